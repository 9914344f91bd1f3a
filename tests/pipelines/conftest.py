"""A repository with an environment and its teams, and a ``pulumi`` that only says how it was called."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT

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
    python = command.with_name("python")
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for program in (command, python):
        program.chmod(0o755)
    (tmp_path / "policies" / "config").mkdir(parents=True)
    (tmp_path / "policies" / "config" / "prod.json").touch()
    pulumi = tmp_path / "bin" / "pulumi"
    pulumi.parent.mkdir()
    pulumi.write_text(PULUMI)
    pulumi.chmod(0o755)
    return tmp_path


ENDED = '    retired: {since: "2026-11-20", keeps: [buckets.data], paid_by: ml@example.com}\n'
ENDED_TEAM = """\
config:
  training-platform:team:
    environment: dev
    name: nlp
    members: [group:nlp@example.com]
    buckets: {data: {location: us-central1}}
"""
PULUMI_WITH_STATE = """\
#!/bin/sh
if [ "$1" = stack ]; then
    if [ -n "$PROVIDER" ]; then cat "$PROVIDER"; exit; fi
    echo '{"deployment": {"resources": ['
    [ "$4" = "$GONE" ] ||
        printf '{"type": "t",\n "urn": "urn:pulumi:%s::p::t$u::left",\n "custom": true\n}\n' "$4"
    echo ']}}'
    exit 0
fi
echo "$@"
case "$* " in *"--stack $FAILING "*) exit 1;; esac
"""


def run(
    repository: Path, script: str, *arguments: str, failing: str = "", gone: str = "", **variables: str
) -> tuple[int, list[str]]:
    """Run a script; the variable PROVIDER names the file that Pulumi exports as the state of each stack."""
    for name in (script, "clusters.py"):
        shutil.copy(ROOT / "pipelines" / name, repository / "pipelines")
    (repository / "stacks" / "clock.yaml").write_text('today: "2026-11-21"\n')
    (repository / "bin" / "pulumi").write_text(PULUMI_WITH_STATE)
    path = f"{repository / 'bin'}:/usr/bin:/bin"
    ran = subprocess.run(
        [str(repository / "pipelines" / script), *arguments],
        env={"PATH": path, "FAILING": failing, "GONE": gone, **variables},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return ran.returncode, ran.stdout.splitlines()


def stacks_of(command: str, lines: list[str]) -> list[str]:
    """Return the stacks for which a command of Pulumi ran, in order."""
    return [line.split(" --stack ")[1].split()[0] for line in lines if line.startswith(f"{command} ")]


@pytest.fixture
def ended(repository: Path) -> Path:
    """Return a repository in which an environment ends with its teams; one of them keeps a bucket."""
    stacks = repository / "stacks"
    (stacks / "Pulumi.dev.yaml").write_text(
        ENVIRONMENT.format(production="false") + '    retired: {since: "2026-11-21"}\n'
    )
    (stacks / "Pulumi.dev-nlp.yaml").write_text(ENDED_TEAM + ENDED)
    team = TEAM.format(environment="dev", name="vision").replace("}\n", ', retired: {since: "2026-11-21"}}\n')
    (stacks / "Pulumi.dev-vision.yaml").write_text(team)
    return repository
