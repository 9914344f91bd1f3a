from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.places import ORGANISATION
from training_platform.cli.main import app

# A gcloud without anything: what it is asked to describe does not exist, but for projects.
GCLOUD = """#!/bin/sh
echo "$*" >> "$LOG"
case "$*" in projects*) echo 123;; *" describe "*) exit 1;; esac
"""


def script(*options: str) -> str:
    result = CliRunner().invoke(app, ["pipeline-accounts", "example-admin", *options, "--root", str(ORGANISATION)])
    assert result.exit_code == 0, result.output
    return result.stdout


def run(text: str, folder: Path) -> list[str]:
    """Run a script with a gcloud that only writes down what it is called with."""
    (folder / "gcloud").write_text(GCLOUD)
    (folder / "gcloud").chmod(0o755)
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "LOG": str(folder / "log")}
    subprocess.run(["sh", "-c", text], env=environment, check=True, capture_output=True)
    return [line for line in (folder / "log").read_text().splitlines() if " describe " not in line]


def test_each_environment_has_an_account_that_deploys_it_alone(tmp_path: Path) -> None:
    commands = run(script("--github", "4567"), tmp_path)

    created = [command.split()[3] for command in commands if " service-accounts create " in command]
    assert created == ["preview", "nightly", "deploy-dev", "deploy-prod"]
    users = {
        command.split()[3].partition("@")[0]: command.rpartition("/")[2]
        for command in commands
        if "roles/iam.workloadIdentityUser" in command
    }
    assert users == {name: name for name in created}


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        (("--github", "4567"), "assertion.repository_id == '4567'"),
        (("--gitlab", "89"), "assertion.project_id == '89'"),
    ],
)
def test_tokens_of_other_repositories_are_refused(options: tuple[str, ...], condition: str, tmp_path: Path) -> None:
    (provider,) = (command for command in run(script(*options), tmp_path) if " create-oidc " in command)

    assert provider.endswith(f"--attribute-condition={condition}")


def test_a_provider_that_exists_gets_the_new_condition(tmp_path: Path) -> None:
    text = script("--github", "4567").replace("exists()", "exists() { true; }; unused()")

    commands = run(text, tmp_path)

    assert not any(re.search(r" create\b", command) for command in commands)
    assert any(" update-oidc " in command for command in commands)


def test_without_a_service_nobody_is_let_in(tmp_path: Path) -> None:
    assert not any("workload" in command for command in run(script(), tmp_path))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("example-train-prod",), "example-train-prod is the project of prod, prod-nlp, prod-vision: "),
        (("example admin",), "project 'example admin' is not a project's id."),
        (("example-admin", "--github", "a;b"), "--github 'a;b' is not an id, which consists of digits."),
        (("example-admin", "--branch", "$(a)"), "--branch '$(a)' is not a branch such as main."),
        (("example-admin", "--github", "1", "--gitlab", "2"), "--github and --gitlab exclude each other."),
    ],
)
def test_what_no_script_can_be_written_for_is_refused(arguments: tuple[str, ...], sentence: str) -> None:
    result = CliRunner().invoke(app, ["pipeline-accounts", *arguments, "--root", str(ORGANISATION)])

    assert result.exit_code == 2
    assert sentence in result.stderr
