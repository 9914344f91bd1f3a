"""The pipelines' files: as their published schemas want them, and with no more rights than they need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.github-actions": [ROOT / ".github" / "actions" / "setup" / "action.yml"],
    "vendor.gitlab-ci": [ROOT / ".gitlab-ci.yml"],
    "vendor.cloudbuild": sorted((ROOT / "pipelines" / "cloudbuild").glob("*.yaml")),
}
ALL = [file for files in SCHEMAS.values() for file in files]


def jobs(file: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text())["jobs"]
    return found


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_file_is_as_its_published_schema_wants_it(schema: str) -> None:
    pytest.importorskip("check_jsonschema")
    assert SCHEMAS[schema]
    transform = ["--data-transform", "gitlab-ci"] if schema == "vendor.gitlab-ci" else []
    ran = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *transform, *map(str, SCHEMAS[schema])],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.name)
def test_no_pipeline_needs_a_secret(file: Path) -> None:
    assert "secrets." not in file.read_text()


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_may_read_the_repository_at_most_unless_a_job_says_more(file: Path) -> None:
    permissions = yaml.safe_load(file.read_text())["permissions"]

    assert permissions in ({}, {"contents": "read"})


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_job_ends_by_itself(file: Path) -> None:
    assert all("timeout-minutes" in job or "uses" in job for job in jobs(file).values())


def test_what_may_write_to_a_pull_request_runs_none_of_its_code() -> None:
    (job,) = jobs(ROOT / ".github" / "workflows" / "report.yml").values()

    used = [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]
    assert used == ["actions/download-artifact", "github/codeql-action/upload-sarif"]
    assert not any("${{" in step.get("run", "") for step in job["steps"])


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_no_expression_is_pasted_into_a_script(file: Path) -> None:
    scripts = [step["run"] for job in jobs(file).values() for step in job.get("steps", ()) if "run" in step]

    assert not any("${{" in script for script in scripts)


def test_a_pull_request_from_a_fork_is_never_given_credentials() -> None:
    for name, job in jobs(ROOT / ".github" / "workflows" / "preview.yml").items():
        assert "head.repo.full_name == github.repository" in job["if"], name
    assert "id-token" not in (ROOT / ".github" / "workflows" / "check.yml").read_text()


def test_one_environment_is_deployed_once_at_a_time_and_never_killed() -> None:
    (job,) = jobs(ROOT / ".github" / "workflows" / "up-environment.yml").values()

    assert job["concurrency"] == {"group": "up-${{ inputs.environment }}", "cancel-in-progress": False}
    assert job["environment"] == "${{ inputs.environment }}"


def test_hooks_run_commands_that_there_are() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())

    assert [hook["entry"] for hook in hooks] == ["training-platform check --fast", "training-platform schema"]
    assert all(not hook["pass_filenames"] for hook in hooks)
