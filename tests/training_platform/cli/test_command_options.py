"""Each command takes its options: those that the sandbox's commands share, and none that its function does not know."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import click
import pytest
from click.testing import CliRunner

from training_platform.cli.main import app as training_platform

RUN = {"--parallel", "--yes", "--workspace", "--root"}
OPTIONS = {
    "up": RUN | {"--resume", "--duration", "--crds", "--api-server", "--scenario"},
    "preview": RUN | {"--crds"},
    "refresh": RUN | {"--crds", "--scenario"},
    "destroy": RUN | {"--lift-protection", "--duration", "--scenario"},
    "serve": {"--workspace", "--root", "--port", "--duration", "--crds", "--api-server", "--scenario"},
    "status": {"--workspace", "--root"},
}


@pytest.mark.parametrize("command", OPTIONS)
def test_a_command_has_the_options_that_mean_something_to_it(command: str) -> None:
    said = CliRunner().invoke(training_platform, ["sandbox", command, "--help"]).output

    listed = {word for line in said.splitlines() for word in line.split()[:2] if word.startswith("--")}
    assert listed - {"--help"} == OPTIONS[command]


def commands(group: click.Group, words: str = "") -> Iterator[Any]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{words}{name} ")
        else:
            yield pytest.param(command, id=f"{words}{name}")


@pytest.mark.parametrize("command", list(commands(training_platform)))
def test_a_function_takes_what_its_command_is_given(command: click.Command) -> None:
    assert command.callback is not None
    parameters = inspect.signature(command.callback).parameters.values()
    own = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
    shared = {each.name for each in command.params} - own
    module: Any = inspect.getmodule(command.callback)

    assert own <= {each.name for each in command.params}
    assert shared <= {each.name for each in fields(module.Options)} if len(own) < len(parameters) else not shared
