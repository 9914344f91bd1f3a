"""What a shell is offered, asked as the script asks that the line of the README evaluates."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ORGANISATION

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


def test_rules_and_their_sets_are_offered() -> None:
    assert offered("explain", "tpu-topo") == ["tpu-topology"]
    assert offered("rules", "list", "addr") == ["addresses"]


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
