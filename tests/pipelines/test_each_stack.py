"""``pipelines/each-stack``: an environment before its teams, with its own policy config."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.pipelines.conftest import ENVIRONMENT, TEAM
from tests.support.places import ROOT, gitlab_pipeline


def each_stack(repository: Path, environment: str = "dev", failing: str = "", base: str = "") -> tuple[int, list[str]]:
    ran = subprocess.run(
        [str(repository / "pipelines" / "each-stack"), environment, "preview", "--diff"],
        env={"PATH": f"{repository / 'bin'}:/usr/bin:/bin", "FAILING": failing, "BASE": base},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ran.returncode, [line for line in ran.stdout.splitlines() if not line.startswith("==")]


def test_an_environment_is_run_before_its_teams(repository: Path) -> None:
    assert each_stack(repository, "dev") == (
        0,
        [
            f"preview --non-interactive --stack {stack} --policy-pack policies --diff"
            for stack in ("dev", "dev-nlp", "dev-vision")
        ],
    )


def test_an_environments_policy_config_is_given_where_there_is_one(repository: Path) -> None:
    _, lines = each_stack(repository, "prod")

    (line,) = lines
    assert line.endswith(" --stack prod --policy-pack policies --diff --policy-pack-config policies/config/prod.json")


def test_a_team_that_fails_holds_up_no_other_and_is_not_forgotten(repository: Path) -> None:
    code, lines = each_stack(repository, "dev", failing="dev-nlp")

    assert (code, len(lines)) == (1, 3)


def test_an_environment_that_fails_ends_it(repository: Path) -> None:
    code, lines = each_stack(repository, "dev", failing="dev")

    assert (code, len(lines)) == (1, 1)


def test_what_belongs_to_an_environment_is_asked_of_the_files_and_not_of_their_names(repository: Path) -> None:
    def run(environment: str) -> list[str]:
        return [line.split(" --stack ")[1].split()[0] for line in each_stack(repository, environment)[1]]

    assert run("prod") == ["prod"]
    assert run("prod-eu") == ["prod-eu", "robotics"]
    assert run("--all") == ["dev", "dev-nlp", "dev-vision", "prod", "prod-eu", "robotics"]


def test_a_stack_that_nobody_can_place_stops_every_environment(repository: Path) -> None:
    (repository / "stacks" / "Pulumi.lost.yaml").write_text("config: {training-platform:team: {name: 1}}\n")

    code, lines = each_stack(repository, "dev")

    assert (code, lines) == (2, [])


POOL = ", node_pools: {pool: {machine_type: a2-highgpu-8g, zone: us-central1-a, max_nodes: 1}}"
SHARE = ", shares: {a: {a100-40: {nominal_quota: 8}}}"


def commit(repository: Path, **stacks: str) -> str:
    """Write stack files, commit all of the repository, and return the commit."""
    for stack, text in stacks.items():
        (repository / "stacks" / f"Pulumi.{stack.replace('_', '-')}.yaml").write_text(text)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "--allow-empty", "-m", "A change"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True)
    return head.stdout.strip()


def with_pool(pool: str = POOL) -> str:
    return ENVIRONMENT.format(production="false").replace("10.1.0.0/20}", "10.1.0.0/20}" + pool)


def with_share(share: str = SHARE) -> str:
    return TEAM.format(environment="dev", name="nlp").replace("example.com]", "example.com]" + share)


def order(repository: Path, base: str, failing: str = "") -> tuple[int, list[str]]:
    code, lines = each_stack(repository, "dev", failing=failing, base=base)
    return code, [line.split(" --stack ")[1].split()[0] for line in lines]


def test_what_is_added_is_deployed_before_the_team_that_needs_it(repository: Path) -> None:
    base = commit(repository)
    commit(repository, dev=with_pool(), dev_nlp=with_share())

    assert order(repository, base) == (0, ["dev", "dev-nlp", "dev-vision"])


def test_a_team_lets_go_before_its_environment_removes(repository: Path) -> None:
    base = commit(repository, dev=with_pool(), dev_nlp=with_share())
    commit(repository, dev=with_pool(""), dev_nlp=with_share(""))

    assert order(repository, base) == (0, ["dev-nlp", "dev", "dev-vision"])
    assert order(repository, "HEAD^1") == (0, ["dev-nlp", "dev", "dev-vision"])
    assert order(repository, base, failing="dev-nlp") == (1, ["dev-nlp"])
    assert order(repository, "0" * 40) == (0, ["dev", "dev-nlp", "dev-vision"])


def test_a_change_that_wants_two_deployments_is_not_begun(repository: Path) -> None:
    base = commit(repository, dev=with_pool(), dev_nlp=with_share())
    commit(
        repository,
        dev=with_pool(POOL.replace("a2-highgpu-8g", "a2-ultragpu-8g")),
        dev_nlp=with_share(SHARE.replace("40", "80")),
    )

    assert order(repository, base) == (1, [])


def test_a_base_that_is_not_there_begins_nothing(repository: Path) -> None:
    commit(repository)

    assert order(repository, "1" * 40) == (2, [])


def test_gitlab_deploys_an_environment_in_a_job_of_its_own_and_production_when_somebody_says_so(
    repository: Path,
) -> None:
    (repository / "pipelines" / "gitlab").mkdir()
    shutil.copy(ROOT / "pipelines" / "gitlab" / "up-jobs", repository / "pipelines" / "gitlab")

    environment = {"PATH": "/usr/bin:/bin", "CI_COMMIT_BEFORE_SHA": "abc123"}
    command = [repository / "pipelines" / "gitlab" / "up-jobs"]
    output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout

    document = yaml.safe_load(output)
    assert {name: (job["stage"], job["when"]) for name, job in document.items() if name.startswith("up ")} == {
        "up dev": ("before", "on_success"),
        "up prod": ("production", "manual"),
        "up prod-eu": ("production", "manual"),
    }
    assert document["up prod-eu"]["variables"] == {"ENVIRONMENT": "prod-eu", "BASE": "abc123"}
    assert document["include"] == [{"local": "pipelines/gitlab/google.yml"}]


BRANCH = "a$(touch${IFS}ran)`touch${IFS}ran`;touch${IFS}ran\"'$(1)"  # git takes such a name


def github() -> list[str]:
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text())["jobs"]["check"]["steps"]
    return [step["run"] for step in steps if "pipelines/check" in step.get("run", "")]


def gitlab() -> list[str]:
    lines: list[str] = gitlab_pipeline()["check"]["script"]
    return lines


@pytest.mark.parametrize("service", [github, gitlab], ids=lambda service: service.__name__)
def test_a_branch_s_name_is_never_run(service: object, tmp_path: Path) -> None:
    scripts = service()  # type: ignore[operator] # one of those above
    (tmp_path / "pipelines").mkdir()
    shutil.copy(ROOT / "pipelines" / "check", tmp_path / "pipelines")
    for name, text in (
        ("make", "exit 0"),
        ("git", "exit 0"),
        (".venv/bin/python", "exit 0"),
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
