"""The pipelines as local runners and linters of their services take them; a test skips where its tool is not on PATH.

No container and no network: jobs run in the shell, and what they call is a stand-in that says what it was given.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = Path(".github/workflows")
REPOSITORY = "example/training-platform"
REMOTE = "gcl-origin"  # where the runners read the repository's name, and gitlab-ci-local looks first
MAKEFILE = '.venv/.base setup:\n\t@echo "make $@" >&2\n'
SCRIPTS = {
    "pipelines/each-stack": 'echo "each-stack $*" >> CALLS',
    "pipelines/judge": 'echo "judge $*" >> CALLS',
    "pipelines/check": 'echo "check $*"; echo "check $*" >> CALLS',
    "pipelines/retire": 'echo "retire $*" >> CALLS',
    ".venv/bin/training-platform": """case "$*" in
        "job usage"|"persistent-resource list"|"quota pull"|"software outdated") echo "$*" >> CALLS;;
        job*) echo "$*"; echo "$*" >> CALLS; exit 1;;
        *--no-production*) echo '["dev"]';; *--production*) echo '["prod"]';; *) echo '["dev", "prod"]';; esac""",
}
GH = """#!/bin/sh
echo "gh $*" >> FOLDER/calls
case "$*" in
    *artifacts?name=check*) echo 1;;
    */zip) cat FOLDER/check.zip;;
    *pulls*) echo 7;;
    *body=@comment.md*) cat comment.md >> FOLDER/calls;;
esac
"""
ACTION = "{name: stand-in, runs: {using: composite, steps: [{run: 'true', shell: bash}]}}"
PROVIDER = {"WORKLOAD_IDENTITY_PROVIDER": "projects/1/locations/global/workloadIdentityPools/ci/providers/some"}
VARIABLES = tuple(text for key, value in PROVIDER.items() for text in ("--var", f"{key}={value}"))
REQUEST = {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
OURS = {**REQUEST, **PROVIDER, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "1", "CI_PROJECT_ID": "1"}
FORK = {**OURS, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "2"}
MERGED = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}
BY_HAND = {**MERGED, **PROVIDER, "CI_PIPELINE_SOURCE": "api"}
PROTECTED = {"CI_COMMIT_REF_PROTECTED": "true"}
SCHEDULE = {**MERGED, "CI_PIPELINE_SOURCE": "schedule"}


def needs(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not on PATH: {', '.join(missing)}")


def run(folder: Path, *command: str, code: int = 0) -> str:
    home = {"HOME": str(folder.parent), "XDG_CACHE_HOME": str(folder.parent / "cache"), "NO_COLOR": "1", "CI": "true"}
    ran = subprocess.run(
        command, cwd=folder, env={**os.environ, **home},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == code, ran.stdout
    return ran.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of a repository with the pipelines' files, where commands say what they were given."""
    origin = tmp_path / "origin"
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / ".github", origin / ".github")
    shutil.copy(ROOT / ".gitlab-ci.yml", origin)
    (origin / "Makefile").write_text(MAKEFILE)
    for file in ("jobs/nlp/pretrain.yaml", "stacks/Pulumi.dev.yaml"):
        (origin / file).parent.mkdir(parents=True)
        (origin / file).touch()
    shutil.copytree(ROOT / "pipelines" / "gitlab", origin / "pipelines" / "gitlab")
    shutil.copy(ROOT / "pipelines" / "job", origin / "pipelines")
    for name, script in SCRIPTS.items():
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        (origin / name).write_text(f"#!/bin/sh\n{script}\n".replace("CALLS", str(tmp_path / "calls")))
        (origin / name).chmod(0o755)
    run(origin, "git", "init", "--quiet", "--initial-branch", "main")
    run(origin, "git", "add", "--force", ".")
    run(origin, "git", "-c", "user.name=some", "-c", "user.email=some@example.com", "commit", "--quiet", "-m", "base")
    run(tmp_path, "git", "clone", "--quiet", "--branch", "main", str(origin), str(clone))
    run(clone, "git", "switch", "--quiet", "--create", "feature")
    run(clone, "git", "remote", "add", REMOTE, f"git@github.com:{REPOSITORY}.git")
    return clone


def gitlab(folder: Path, variables: dict[str, str], *arguments: str) -> str:
    variable_options = [text for key, value in variables.items() for text in ("--variable", f"{key}={value}")]
    options = ("--ignore-predefined-vars", ",".join(variables), "--force-shell-executor")
    return run(folder, "gitlab-ci-local", *arguments, *options, *variable_options)


@needs("gitlab-ci-local", "rsync")
@pytest.mark.parametrize(
    ("variables", "jobs"),
    [
        (REQUEST, {"check": "on_success"}),
        (OURS, {"check": "on_success", "preview": "on_success"}),
        (FORK, {"check": "on_success"}),
        (MERGED, {}),
        ({**MERGED, **PROVIDER}, {"environments": "on_success", "up": "on_success"}),
        ({**MERGED, **PROVIDER, "CI_COMMIT_BRANCH": "feature"}, {}),
        (BY_HAND, {}),
        (SCHEDULE, {}),
        ({**SCHEDULE, **PROVIDER}, dict.fromkeys(("drift", "idle", "software"), "on_success")),
        (
            {**SCHEDULE, **PROVIDER, **PROTECTED},
            {**dict.fromkeys(("drift", "idle", "software", "quotas", "usage"), "on_success"), "push": "always"},
        ),
    ],
)
def test_gitlab_runs_these_jobs_and_no_others(checkout: Path, variables: dict[str, str], jobs: dict[str, str]) -> None:
    output = gitlab(checkout, variables, "--list-json")
    listed: list[dict[str, Any]] = json.loads(output[output.index("[\n") :])

    assert {job["name"]: job["when"] for job in listed if job["when"] != "never"} == jobs


@needs("gitlab-ci-local", "rsync")
@pytest.mark.parametrize(("variables", "jobs"), [(BY_HAND, ["job"]), ({**BY_HAND, "CI_COMMIT_BRANCH": "feature"}, [])])
def test_gitlab_runs_a_job_s_command_for_a_pipeline_by_hand_on_main(
    checkout: Path, variables: dict[str, str], jobs: list[str]
) -> None:
    inputs = ("--input", "command=cancel", "--input", "run=pretrain-a")

    output = gitlab(checkout, variables, "--list-json", *inputs)

    listed: list[dict[str, Any]] = json.loads(output[output.index("[") :])
    assert sorted(job["name"] for job in listed if job["when"] != "never") == jobs


def act(folder: Path, event: str, workflow: str, *arguments: str, payload: dict[str, Any], code: int = 0) -> str:
    """Run a workflow in the shell, and return the calls of its commands; stand-ins that do nothing replace actions.

    The calls come from a file: on a busy machine act may lose the last lines that a step prints.
    """
    calls = folder.parent / "calls"
    calls.write_text("")
    action = folder.parent / "action"
    for place in (action, action / "upload-sarif"):
        place.mkdir(exist_ok=True)
        (place / "action.yml").write_text(ACTION)
    (folder.parent / "event.json").write_text(json.dumps(payload))
    used = {
        f"{repository}@{commit}"
        for file in (ROOT / ".github").rglob("*.yml")
        for repository, commit in re.findall(r"uses: ([\w-]+/[\w-]+)[^@ ]*@(\w+)", file.read_text())
    }
    instead = [text for name in sorted(used) for text in ("--local-repository", f"{name}={action}")]
    where = ("-W", str(WORKFLOWS / workflow), "--eventpath", str(folder.parent / "event.json"))
    options = (*where, "--remote-name", REMOTE, "-P", "ubuntu-latest=-self-hosted", *instead, *arguments)
    run(folder, "act", event, *options, code=code)
    return calls.read_text()


def pull_request(head: str) -> dict[str, Any]:
    return {
        "repository": {"full_name": REPOSITORY, "default_branch": "main"},
        "pull_request": {"number": 7, "base": {"ref": "main"}, "head": {"ref": "feature", "repo": {"full_name": head}}},
    }


@needs("act")
def test_github_checks_a_pull_request_against_its_base(checkout: Path) -> None:
    output = act(checkout, "pull_request", "check.yml", payload=pull_request("somebody/fork"))

    assert output.startswith("check --base origin/main --new-only --format github ")


@needs("act")
@pytest.mark.parametrize(("head", "stacks"), [("somebody/fork", []), (REPOSITORY, ["dev", "prod"])])
def test_github_previews_what_is_no_fork(checkout: Path, head: str, stacks: list[str]) -> None:
    output = act(checkout, "pull_request", "preview.yml", *VARIABLES, payload=pull_request(head))

    assert sorted(re.findall(r"each-stack (\w+) preview --diff", output)) == stacks
    assert sorted(re.findall(r"judge (\w+) origin/main", output)) == stacks


@needs("act")
@pytest.mark.parametrize(("variables", "stacks"), [((), []), (VARIABLES, ["dev", "prod"])])
def test_github_deploys_a_merge_environment_by_environment(
    checkout: Path, variables: tuple[str, ...], stacks: list[str]
) -> None:
    output = act(checkout, "push", "up.yml", *variables, payload={"ref": "refs/heads/main"})

    assert re.findall(r"each-stack (\w+) up --yes", output) == stacks


@needs("act")
def test_github_runs_a_job_s_command_and_ends_with_its_code(checkout: Path) -> None:
    payload = {"ref": "refs/heads/main", "inputs": {"request": "", "command": "cancel", "run": "pretrain-a"}}

    output = act(checkout, "workflow_dispatch", "jobs.yml", *VARIABLES, payload=payload, code=1)

    assert output == "job cancel pretrain-a\n"


@needs("act")
def test_github_looks_every_night_at_each_environment_and_at_what_is_used(checkout: Path) -> None:
    output = act(checkout, "schedule", "nightly.yml", *VARIABLES, payload={})

    assert sorted(output.splitlines()) == [
        "each-stack dev preview --refresh --expect-no-changes --diff",
        "each-stack prod preview --refresh --expect-no-changes --diff",
        "job usage", "persistent-resource list", "quota pull", "software outdated",
    ]  # fmt: skip


@needs("act")
def test_github_destroys_the_ended_stacks_of_the_named_environment(checkout: Path) -> None:
    payload = {"ref": "refs/heads/main", "inputs": {"environment": "prod"}}

    assert act(checkout, "workflow_dispatch", "retire.yml", *VARIABLES, payload=payload) == "retire prod\n"


@needs("act")
def test_github_comments_on_the_pull_request_of_the_checked_commit(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "pipelines" / "read_report.py", checkout / "pipelines")
    with zipfile.ZipFile(tmp_path / "check.zip", "w") as archive:
        archive.writestr("comment.md", "5 stacks: clean")
    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin" / "gh"
    gh.write_text(GH.replace("FOLDER", str(tmp_path)))
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", str(gh.parent), prepend=os.pathsep)
    run_of_check = {
        "event": "pull_request", "conclusion": "success", "id": 5, "head_branch": "feature", "head_sha": "abc",
        "head_repository": {"full_name": "somebody/fork", "owner": {"login": "somebody"}},
    }  # fmt: skip

    output = act(checkout, "workflow_run", "report.yml", payload={"workflow_run": run_of_check})

    assert output.endswith(
        "gh api --silent --method POST repos/example/training-platform/issues/7/comments -F body=@comment.md\n"
        "<!-- training-platform check -->\n"  # stand-ins carry no report from one job to the next
    )


@needs("actionlint")
def test_actionlint_finds_nothing() -> None:
    files = [str(file) for file in (ROOT / WORKFLOWS).glob("*.yml")]

    assert run(ROOT, "actionlint", *files) == ""


@needs("zizmor")
def test_zizmor_finds_nothing_worse_than_a_hint() -> None:
    run(ROOT, "zizmor", "--offline", "--no-progress", "--min-severity", "medium", ".github")  # fails on a finding
