"""The options that commands share: each command takes those that mean something to it, as one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from training_platform.cli.main import app as training_platform
from training_platform.cli.options import takes

RUN = {"--parallel", "--yes", "--workspace", "--root"}
OPTIONS = {
    "up": RUN | {"--resume", "--duration", "--crds", "--api-server", "--scenario"},
    "preview": RUN | {"--crds"},
    "refresh": RUN | {"--crds", "--scenario"},
    "destroy": RUN | {"--lift-protection", "--duration", "--scenario"},
    "serve": {"--workspace", "--root", "--port", "--duration", "--crds", "--api-server", "--scenario"},
    "status": {"--workspace", "--root"},
}


@dataclass(frozen=True, kw_only=True)
class Options:
    count: Annotated[int, typer.Option("--count", min=1)] = 3
    label: Annotated[str | None, typer.Option("--label")] = None


@pytest.mark.parametrize("command", OPTIONS)
def test_a_command_has_the_options_that_mean_something_to_it(command: str) -> None:
    said = CliRunner().invoke(training_platform, ["sandbox", command, "--help"]).output

    listed = {word for line in said.splitlines() for word in line.split()[:2] if word.startswith("--")}
    assert listed - {"--help"} == OPTIONS[command]


def test_what_is_typed_arrives_in_the_options_and_the_rest_keeps_its_default() -> None:
    app, seen = typer.Typer(), []

    @app.command()
    @takes(Options, "count")
    def command(name: str, *, loud: bool = False, options: Options) -> None:
        seen.append((name, loud, options))

    assert CliRunner().invoke(app, ["a", "--count", "5", "--loud"]).exit_code == 0
    assert CliRunner().invoke(app, ["b"]).exit_code == 0
    assert seen == [("a", True, Options(count=5)), ("b", False, Options(count=3))]
    assert CliRunner().invoke(app, ["a", "--count", "0"]).exit_code == 2
    assert CliRunner().invoke(app, ["a", "--label", "x"]).exit_code == 2
    assert len(seen) == 2
