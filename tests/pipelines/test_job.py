"""``pipelines/job`` runs four commands, for a job file of its commit or for a run, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.places import ROOT

COMMAND = """#!/bin/sh
printf '<%s>' "$@"
echo
exit 3
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    for path, text in (("jobs/nlp/pretrain.yaml", "image: a\n"), (".venv/bin/training-platform", COMMAND)):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text)
    (folder / ".venv/bin/training-platform").chmod(0o755)
    (folder / "pipelines").mkdir()
    shutil.copy(ROOT / "pipelines" / "job", folder / "pipelines")
    for command in (
        ["init", "--quiet"],
        ["add", "jobs"],
        ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "First"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    (folder / "jobs/nlp/not-merged.yaml").write_text("image: a\n")
    return folder


def run(checkout: Path, **variables: str) -> tuple[int, str]:
    ran = subprocess.run(
        ["pipelines/job"], cwd=checkout, env={"PATH": "/usr/bin:/bin", **variables},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return ran.returncode, ran.stdout


@pytest.mark.parametrize(
    ("variables", "arguments"),
    [
        ({"COMMAND": "submit", "FILE": "jobs/nlp/pretrain.yaml"}, "submit jobs/nlp/pretrain.yaml --target vertex"),
        (
            {"COMMAND": "submit", "FILE": "jobs/nlp/pretrain.yaml", "RUN": "pretrain-a"},
            "submit jobs/nlp/pretrain.yaml --target vertex --run pretrain-a",
        ),
        ({"COMMAND": "status", "RUN": "pretrain-a"}, "status pretrain-a"),
        ({"COMMAND": "logs", "RUN": "pretrain-a"}, "logs pretrain-a"),
        ({"COMMAND": "cancel", "RUN": "pretrain-a"}, "cancel pretrain-a"),
    ],
)
def test_a_command_runs_between_its_marks_and_its_exit_code_is_kept(
    checkout: Path, variables: dict[str, str], arguments: str
) -> None:
    output = "".join(f"<{argument}>" for argument in ("job", *arguments.split()))

    assert run(checkout, **variables) == (3, f"== job {variables['COMMAND']}\n{output}\n== exit code 3\n")


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"COMMAND": "exec", "RUN": "pretrain-a"},
        {"COMMAND": "submit"},
        {"COMMAND": "submit", "FILE": "jobs/nlp/not-merged.yaml"},
        {"COMMAND": "submit", "FILE": "jobs/nlp/../nlp/pretrain.yaml"},
        {"COMMAND": "submit", "FILE": "jobs/nlp/pretrain.yaml --args=a"},
        {"COMMAND": "submit", "FILE": "jobs/*/pretrain.yaml"},
        {"COMMAND": "submit", "FILE": "/etc/jobs/nlp/pretrain.yaml"},
        {"COMMAND": "submit", "FILE": "jobs/nlp/pretrain.yaml", "RUN": "$(id)"},
        {"COMMAND": "submit", "FILE": "jobs/nlp/pretrain.yaml", "RUN": "a --args=b"},
        {"COMMAND": "status"},
        {"COMMAND": "status", "RUN": "--help"},
        {"COMMAND": "cancel", "RUN": "a\nb"},
    ],
    ids=str,
)
def test_anything_else_is_refused_before_a_command_runs(checkout: Path, variables: dict[str, str]) -> None:
    code, output = run(checkout, **variables)

    assert code == 2
    assert "<job>" not in output
