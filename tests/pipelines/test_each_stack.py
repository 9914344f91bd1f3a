"""``pipelines/each-stack``: an environment before its teams, with its own policy config."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PULUMI = """\
#!/bin/sh
echo "$@"
case "$*" in *"--stack $FAILING "*) exit 1;; esac
"""
ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-a
    production: {production}
    clusters:
      a: {{location: us-central1, subnet: {{nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}}}}
"""
TEAM = """\
config:
  training-platform:team: {{environment: {environment}, name: {name}, members: [group:{name}@example.com]}}
"""
STACKS = {
    "dev": ENVIRONMENT.format(production="false"),
    "dev-nlp": TEAM.format(environment="dev", name="nlp"),
    "dev-vision": TEAM.format(environment="dev", name="vision"),
    "prod": ENVIRONMENT.format(production="true"),
    "prod-eu": ENVIRONMENT.format(production="true"),
    "robotics": TEAM.format(environment="prod-eu", name="robotics"),
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with four stacks, and a ``pulumi`` that says its arguments and fails for one stack."""
    (tmp_path / "pipelines").mkdir()
    shutil.copy(ROOT / "pipelines" / "each-stack", tmp_path / "pipelines")
    (tmp_path / "stacks").mkdir()
    for stack, text in STACKS.items():
        (tmp_path / "stacks" / f"Pulumi.{stack}.yaml").write_text(text)
    (tmp_path / "Pulumi.yaml").touch()
    command = tmp_path / ".venv" / "bin" / "training-platform"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m training_platform.cli.main "$@"\n')
    command.chmod(0o755)
    (tmp_path / "policies" / "config").mkdir(parents=True)
    (tmp_path / "policies" / "config" / "prod.json").touch()
    pulumi = tmp_path / "bin" / "pulumi"
    pulumi.parent.mkdir()
    pulumi.write_text(PULUMI)
    pulumi.chmod(0o755)
    return tmp_path


def each_stack(repository: Path, environment: str = "dev", failing: str = "") -> tuple[int, list[str]]:
    ran = subprocess.run(
        [str(repository / "pipelines" / "each-stack"), environment, "preview", "--diff"],
        env={"PATH": f"{repository / 'bin'}:/usr/bin:/bin", "FAILING": failing},
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
    _, said = each_stack(repository, "prod")

    (line,) = said
    assert line.endswith(" --stack prod --policy-pack policies --diff --policy-pack-config policies/config/prod.json")


def test_a_team_that_fails_holds_up_no_other_and_is_not_forgotten(repository: Path) -> None:
    code, said = each_stack(repository, "dev", failing="dev-nlp")

    assert (code, len(said)) == (1, 3)


def test_an_environment_that_fails_ends_it(repository: Path) -> None:
    code, said = each_stack(repository, "dev", failing="dev")

    assert (code, len(said)) == (1, 1)


def test_what_belongs_to_an_environment_is_asked_of_the_files_and_not_of_their_names(repository: Path) -> None:
    def run(environment: str) -> list[str]:
        return [line.split(" --stack ")[1].split()[0] for line in each_stack(repository, environment)[1]]

    assert run("prod") == ["prod"]
    assert run("prod-eu") == ["prod-eu", "robotics"]
    assert run("--all") == ["dev", "dev-nlp", "dev-vision", "prod", "prod-eu", "robotics"]


def test_a_stack_that_nobody_can_place_stops_every_environment(repository: Path) -> None:
    (repository / "stacks" / "Pulumi.lost.yaml").write_text("config: {training-platform:team: {name: 1}}\n")

    code, said = each_stack(repository, "dev")

    assert (code, said) == (2, [])


def test_gitlab_deploys_an_environment_in_a_job_of_its_own_and_production_when_somebody_says_so(
    repository: Path,
) -> None:
    (repository / "pipelines" / "gitlab").mkdir()
    shutil.copy(ROOT / "pipelines" / "gitlab" / "up-jobs", repository / "pipelines" / "gitlab")

    said = subprocess.run([repository / "pipelines" / "gitlab" / "up-jobs"], capture_output=True, check=True).stdout

    document = yaml.safe_load(said)
    assert {name: (job["stage"], job["when"]) for name, job in document.items() if name.startswith("up ")} == {
        "up dev": ("before", "on_success"),
        "up prod": ("production", "manual"),
        "up prod-eu": ("production", "manual"),
    }
    assert document["up prod-eu"]["variables"] == {"ENVIRONMENT": "prod-eu"}
    assert document["include"] == [{"local": "pipelines/gitlab/google.yml"}]
