"""Each command takes its options: those that the sandbox's commands share, and none that its function does not know."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.support.places import ORGANISATION
from training_platform.cli.main import app as training_platform
from training_platform.parts.jobs.cli import inside, runs
from training_platform.parts.sandbox import cli as sandbox
from training_platform.parts.simulate.cli import trace

RUN = {"--parallel", "--yes", "--workspace", "--root", "--as"}
OPTIONS = {
    "up": RUN | {"--resume", "--duration", "--crds", "--fault", "--kubeconfig", "--context"},
    "preview": RUN | {"--crds"},
    "refresh": RUN | {"--crds"},
    "destroy": RUN | {"--lift-protection", "--duration"},
    "serve": {"--workspace", "--root", "--port", "--duration", "--crds", "--fault"},
    "status": {"--workspace", "--root"},
}


@pytest.mark.parametrize("command", OPTIONS)
def test_a_command_has_the_options_that_mean_something_to_it(command: str) -> None:
    help_text = CliRunner().invoke(training_platform, ["sandbox", command, "--help"]).output

    listed = {word for line in help_text.splitlines() for word in line.split()[:2] if word.startswith("--")}
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
    own_names = {parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
    shared = {option.name for option in command.params if option.expose_value} - own_names
    classes = {module.__name__: runs.RunsOptions for module in (runs, inside, trace)} | {
        sandbox.__name__: sandbox.SandboxOptions
    }

    assert own_names <= {option.name for option in command.params}
    if len(own_names) < len(parameters):
        assert shared <= {field.name for field in fields(classes[command.callback.__module__])}
    else:
        assert not shared


PROGRAM = "import sys; from training_platform.cli.main import main; sys.argv = ['training-platform']; main()"


def offered(*words: str, cwd: Path = ORGANISATION) -> list[str]:
    environment = {
        **os.environ,
        "_TRAINING_PLATFORM_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("training-platform", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return [line.removeprefix("plain,") for line in done.stdout.split()]


@pytest.mark.parametrize("command", [("check",), ("sandbox", "up")], ids=" ".join)
def test_stacks_are_offered_from_any_folder_of_the_repository(command: tuple[str, ...]) -> None:
    assert offered(*command, "prod", cwd=ORGANISATION / "jobs") == ["prod", "prod-nlp", "prod-vision"]


def test_machines_are_offered() -> None:
    assert offered("catalog", "show", "a3-highgpu") == [f"a3-highgpu-{count}g" for count in (1, 2, 4, 8)]


def test_rules_are_offered() -> None:
    assert offered("explain", "tpu-topo") == ["tpu-topology"]


def test_whatever_can_be_explained_is_offered() -> None:
    assert offered("explain", "job-vertex-ti") == ["job-vertex-timeout"]
    assert offered("explain", "a3-highgpu-8") == ["a3-highgpu-8g"]


def test_outside_a_repository_no_stack_is_offered(tmp_path: Path) -> None:
    assert offered("check", "p", cwd=tmp_path) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("job", "list", "--team", ""), ["nlp", "vision"]),
        (("job", "status", "fi"), ["finetune-"]),
        (("job", "submit", "jobs/v"), ["jobs/vision/finetune.yaml"]),
        (("job", "cost", "jobs/"), ["jobs/nlp/pretrain.yaml", "jobs/vision/finetune.yaml"]),
        (("image", "build", ".", "--environment", "de"), ["dev", "dev-vision"]),
    ],
    ids=" ".join,
)
def test_teams_jobs_and_runs_are_offered(words: tuple[str, ...], expected: list[str]) -> None:
    assert offered(*words) == expected
