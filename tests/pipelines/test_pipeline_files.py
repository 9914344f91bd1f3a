"""The pipelines' files follow their published schemas, and have only the rights that they need."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema import main as check_jsonschema  # type: ignore[import-untyped]
from click.testing import CliRunner

from tests.support.places import ROOT, gitlab_pipeline

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.github-actions": [ROOT / ".github" / "actions" / "setup" / "action.yml"],
    "vendor.gitlab-ci": [ROOT / ".gitlab-ci.yml"],
}
ALL = [file for files in SCHEMAS.values() for file in files]


def jobs(file: Path) -> dict[str, dict[str, Any]]:
    jobs_of_file: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text())["jobs"]
    return jobs_of_file


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_file_is_as_its_published_schema_wants_it(schema: str, tmp_path: Path) -> None:
    files = SCHEMAS[schema]
    options = ["--builtin-schema", schema]
    if schema == "vendor.gitlab-ci":  # a validator takes one document; the first has the inputs
        options += ["--data-transform", "gitlab-ci"]
        files = [tmp_path / "pipeline.yml"]
        files[0].write_text((ROOT / ".gitlab-ci.yml").read_text().partition("\n---\n")[2])

    ran = CliRunner().invoke(check_jsonschema, [*options, *map(str, files)])

    assert ran.exit_code == 0, ran.output


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.name)
def test_no_pipeline_needs_a_secret(file: Path) -> None:
    assert "secrets." not in file.read_text()


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_may_read_the_repository_at_most_unless_a_job_says_more(file: Path) -> None:
    permissions = yaml.safe_load(file.read_text())["permissions"]

    assert permissions in ({}, {"contents": "read"})


def test_what_may_write_to_a_pull_request_runs_none_of_its_code() -> None:
    both = jobs(ROOT / ".github" / "workflows" / "report.yml")
    (job,) = [job for job in both.values() if "write" in job["permissions"].values()]

    used = [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]
    assert used == ["actions/download-artifact", "github/codeql-action/upload-sarif"]
    assert not any("${{" in step.get("run", "") for job in both.values() for step in job["steps"])


def test_what_may_write_unpacks_no_archive_of_another_run() -> None:
    for file in WORKFLOWS:
        for name, job in jobs(file).items():
            unpacked = [step for step in job.get("steps", ()) if "download-artifact" in step.get("uses", "")]
            if "write" in {**yaml.safe_load(file.read_text())["permissions"], **job.get("permissions", {})}.values():
                assert all("run-id" not in step["with"] for step in unpacked), f"{file.name}: {name}"
            assert all(step["with"]["name"] != "check" for step in unpacked), f"{file.name}: {name}"


def test_text_is_printed_only_where_a_pipeline_reads_no_commands_in_it() -> None:
    (job,) = jobs(ROOT / ".github" / "workflows" / "check.yml").values()
    scripts = [step["run"] for step in job["steps"] if "run" in step]

    assert not any("--format text" in script for script in scripts)
    (shown,) = [script for script in scripts if "cat " in script]
    assert shown.index("::stop-commands::") < shown.index("cat ")


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.name)
def test_no_variable_is_handed_to_make_which_would_run_it(file: Path) -> None:
    assert "ARGS" not in file.read_text()


def test_the_cli_is_that_of_the_sdk() -> None:
    steps = yaml.safe_load((ROOT / ".github" / "actions" / "setup" / "action.yml").read_text())["runs"]["steps"]
    (cli,) = [step for step in steps if step.get("uses", "").startswith("pulumi/actions@")]

    assert f"\npulumi=={cli['with']['pulumi-version']} " in (ROOT / "requirements.txt").read_text()


IMAGES = yaml.safe_load((ROOT / "pipelines" / "images.yaml").read_text())
NAMING = [*SCHEMAS["vendor.gitlab-ci"], ROOT / "pipelines" / "gitlab" / "google.yml"]


def test_an_image_is_pinned_by_the_digest_that_is_listed() -> None:
    listed = {image["image"]: image["digest"] for image in IMAGES}
    files = NAMING
    named = {
        image for file in files for image in re.findall(r"^ +(?:image|name): (\S+)", file.read_text(), re.MULTILINE)
    }

    expected = {f"{image}@{digest}" for image, digest in listed.items()}
    assert {image for image in named if "$" not in image} == expected
    assert all(re.fullmatch("sha256:[0-9a-f]{64}", digest) for digest in listed.values())


def test_an_image_of_a_variable_has_to_be_named_by_its_digest() -> None:
    google = yaml.safe_load((ROOT / "pipelines" / "gitlab" / "google.yml").read_text())[".google"]
    assert refused(google["before_script"][0], GCP_IMAGE="a/b:latest")
    assert not refused(google["before_script"][0], GCP_IMAGE="a/b@sha256:1")


def refused(script: str, **environment: str) -> bool:
    """Run a script with stand-ins for a pipeline's tools; return whether it stopped because a digest was missing."""
    tools = "make() { :; }; "
    ran = subprocess.run(["bash", "-ceu", tools + script], env=environment, capture_output=True, text=True, check=False)
    return ran.returncode == 2 and "names no digest" in ran.stdout


def test_a_token_that_may_push_is_for_a_job_that_runs_git_alone() -> None:
    jobs = gitlab_pipeline()
    job = jobs["push"]

    assert [name for name in jobs if "QUOTA_PUSH_URL" in str(jobs[name])] == []
    assert job["environment"] == {"name": "quota-push", "action": "access"}  # the scope of the variable
    assert [line.split()[0] for line in job["script"]] == ["pipelines/gitlab/push"] * 2
    assert {"extends", "before_script"}.isdisjoint(job)
    (rule,) = job["rules"]
    assert rule["if"].endswith('&& $CI_COMMIT_REF_PROTECTED == "true"')


def test_a_push_takes_the_stack_files_of_a_patch_and_nothing_else(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    clone = tmp_path / "clone"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch", "main", "origin")
    git(tmp_path, "clone", "--quiet", str(origin), "clone")
    (clone / "stacks").mkdir()
    for name in ("stacks/limits.yaml", "program.py"):
        (clone / name).write_text("before\n")
    shutil.copytree(ROOT / "pipelines" / "gitlab", clone / "pipelines" / "gitlab")
    git(clone, "add", ".")
    git(clone, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "First")
    commit = git(clone, "rev-parse", "HEAD")
    for name in ("stacks/limits.yaml", "program.py"):
        (clone / name).write_text("after\n")
    (clone / "quota-pull.patch").write_text(git(clone, "diff") + "\n")
    git(origin, "config", "receive.advertisePushOptions", "true")
    variables = {"CI_COMMIT_SHA": commit, "CI_DEFAULT_BRANCH": "main", "QUOTA_PUSH_URL": str(origin)}

    for branch in ("quota-pull", "chip-hours"):  # the second has no patch
        subprocess.run(
            ["pipelines/gitlab/push", branch, "Pull quota limits"],
            cwd=clone, env={**os.environ, **variables}, check=True,
        )  # fmt: skip

    assert git(origin, "branch", "--format=%(refname:short)").split() == ["quota-pull"]
    assert git(origin, "show", "--name-only", "--format=%s", "quota-pull").split("\n") == [
        "Pull quota limits", "", "stacks/limits.yaml",
    ]  # fmt: skip


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()  # fmt: skip


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_no_expression_is_pasted_into_a_script(file: Path) -> None:
    scripts = [step["run"] for job in jobs(file).values() for step in job.get("steps", ()) if "run" in step]

    assert not any("${{" in script for script in scripts)


def test_a_pull_request_from_a_fork_is_never_given_credentials() -> None:
    for name, job in jobs(ROOT / ".github" / "workflows" / "preview.yml").items():
        assert "head.repo.full_name == github.repository" in job["if"], name
    assert "id-token" not in (ROOT / ".github" / "workflows" / "check.yml").read_text()


def test_one_environment_is_deployed_once_at_a_time_and_never_killed() -> None:
    for file in ("up-environment.yml", "retire.yml"):  # whoever approves a deployment approves that stacks end
        (job,) = jobs(ROOT / ".github" / "workflows" / file).values()

        assert job["concurrency"] == {"group": "up-${{ inputs.environment }}", "cancel-in-progress": False}
        assert job["environment"] == "${{ inputs.environment }}"


@pytest.mark.parametrize("file", [*ALL, ROOT / "pipelines" / "gitlab" / "google.yml"], ids=lambda file: file.name)
def test_no_pipeline_keeps_a_cache_that_a_fork_s_run_could_have_written(file: Path) -> None:
    assert re.findall(r"actions/cache|^ *cache:|XDG_CACHE_HOME", file.read_text(), re.MULTILINE) == []


SARIF = json.dumps({"version": "2.1.0", "runs": [{"results": []}]})


def read(archive: Path) -> tuple[int, str, dict[str, str]]:
    folder = archive.parent / "report"
    command = [sys.executable, str(ROOT / "pipelines" / "read_report.py"), str(archive), str(folder)]
    ran = subprocess.run(command, cwd=archive.parent, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stderr, {path.name: path.read_text() for path in folder.iterdir()}


def write(archive: Path, **members: str) -> Path:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return archive


def test_two_reports_are_read_and_nothing_else(tmp_path: Path) -> None:
    members = {"comment.md": "ünd", "check.sarif": SARIF, "../out": "a", "/out": "a", "check.html": "a"}

    assert read(write(tmp_path / "a.zip", **members)) == (0, "", {"comment.md": "ünd", "check.sarif": SARIF})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "report"]


def test_no_more_is_read_than_a_comment_holds(tmp_path: Path) -> None:
    _, _, files = read(write(tmp_path / "a.zip", **{"comment.md": "ü" * 50_000_000}))

    assert files == {"comment.md": "ü" * 30_000}


@pytest.mark.parametrize(
    "sarif", ["[" * 100_000, "[]", "{}", '{"version": "2.1.0", "runs": []}', '{"version": 2, "runs": [1]}', "\x00"]
)
def test_what_is_not_sarif_of_one_run_is_left_out(sarif: str, tmp_path: Path) -> None:
    code, _, files = read(write(tmp_path / "a.zip", **{"comment.md": "a", "check.sarif": sarif}))

    assert (code, files) == (0, {"comment.md": "a"})


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04" + b"\xff" * 100, b"no archive"])
def test_what_is_no_archive_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(data)

    code, message, files = read(tmp_path / "a.zip")

    assert (code, files) == (1, {})
    assert message.startswith("the archive cannot be read: ")
    assert message.count("\n") == 1
