"""``pipelines/check`` as each service runs it: a branch's name is an argument, whatever it holds."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BRANCH = "a$(touch${IFS}ran)`touch${IFS}ran`;touch${IFS}ran\"'$(1)"  # git takes such a name
STEPS = {"check.yml": "Check every stack"}


def github() -> list[str]:
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text())["jobs"]["check"]["steps"]
    return [step["run"] for step in steps if "pipelines/check" in step.get("run", "")]


def gitlab() -> list[str]:
    lines: list[str] = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())["check"]["script"]
    return lines


def cloud_build() -> list[str]:
    steps = yaml.safe_load((ROOT / "pipelines" / "cloudbuild" / "check.yaml").read_text())["steps"]
    lines = []
    for step in steps:
        arguments = [each.replace("$_BASE_BRANCH", BRANCH).replace("$$", "$") for each in step["args"]]
        lines += [arguments[1]] if step["entrypoint"] == "bash" else []
    return [*lines, 'pipelines/check --base "origin/$BASE"']  # the second step has no shell, as the next test says


@pytest.mark.parametrize("service", [github, gitlab, cloud_build], ids=lambda each: each.__name__)
def test_a_branch_s_name_is_never_run(service: object, tmp_path: Path) -> None:
    scripts = service()  # type: ignore[operator] # one of those above
    (tmp_path / "pipelines").mkdir()
    shutil.copy(ROOT / "pipelines" / "check", tmp_path / "pipelines")
    for name, text in (
        ("make", "exit 0"),
        ("git", "exit 0"),
        (".venv/bin/training-platform", 'printf "%s\\n" "$@" > given'),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    base = BRANCH if service is not github else f"origin/{BRANCH}"
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "BASE": base, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": BRANCH,
        "REPORT": "report", "TEXT": "text", "GITHUB_STEP_SUMMARY": "summary", "LINKS": "https://git.example.com/",
    }  # fmt: skip

    for script in scripts:
        subprocess.run(["bash", "-ec", script], cwd=tmp_path, env=environment, check=True, capture_output=True)

    assert f"origin/{BRANCH}" in (tmp_path / "given").read_text().splitlines()
    assert not (tmp_path / "ran").exists()


def test_cloud_build_checks_without_a_shell_of_its_own() -> None:
    steps = yaml.safe_load((ROOT / "pipelines" / "cloudbuild" / "check.yaml").read_text())["steps"]

    assert steps[1]["entrypoint"] == "pipelines/check"
    assert not any("$_" in argument for step in steps if step["entrypoint"] == "bash" for argument in step["args"])
