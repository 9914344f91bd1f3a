"""Each command takes its options: those that the sandbox's commands share, and none that its function does not know."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ORGANISATION

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


def test_whatever_can_be_explained_is_offered() -> None:
    assert offered("explain", "job-vertex-ti") == ["job-vertex-timeout"]
    assert offered("explain", "a3-highgpu-8") == ["a3-highgpu-8g"]


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
