"""``pipelines/retire`` destroys what has ended: teams first, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pipelines.test_each_stack import ENVIRONMENT, ROOT, TEAM, repository

__all__ = ["repository"]
ENDED = '    retired: {since: "2026-11-20", keeps: [buckets.data], paid_by: ml@example.com}\n'
ENDED_TEAM = """\
config:
  training-platform:team:
    environment: dev
    name: nlp
    members: [group:nlp@example.com]
    buckets: {data: {location: us-central1}}
"""


PULUMI = """\
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
    (repository / "bin" / "pulumi").write_text(PULUMI)
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


def test_teams_are_destroyed_before_their_environment_and_what_stays_is_listed(ended: Path) -> None:
    code, lines = run(ended, "retire", "dev")

    assert code == 0
    assert stacks_of("up", lines) == ["dev-nlp", "dev-vision", "dev"]  # which lifts the protection
    assert stacks_of("destroy", lines) == ["dev-nlp", "dev-vision", "dev"]
    assert lines[-1] == "dev-nlp buckets.data paid by ml@example.com"


def test_an_environment_stays_while_a_team_of_it_is_not_destroyed(ended: Path) -> None:
    code, lines = run(ended, "retire", "dev", failing="dev-nlp")

    assert code == 1
    assert stacks_of("destroy", lines) == ["dev-vision"]
    assert any("gcloud storage rm --recursive" in line for line in lines)


def test_what_is_destroyed_already_is_not_created_to_be_destroyed_again(ended: Path) -> None:
    code, lines = run(ended, "retire", "dev", gone="dev-nlp")

    assert code == 0
    assert stacks_of("up", lines) == stacks_of("destroy", lines) == ["dev-vision", "dev"]
    ups = [line for line in lines if line.startswith("up ")]
    assert [line.count(" --target ") for line in ups] == [1, 1]
    assert all(f" --target urn:pulumi:{line.split()[-1]}::p::t$u::left " in line for line in ups)


def test_what_goes_on_is_never_destroyed(repository: Path) -> None:
    code, lines = run(repository, "retire", "dev")

    assert code == 0
    assert lines == ["== what stays", "nothing: no stack of dev is marked as retired and keeps anything"]


def test_before_the_day_of_a_stack_it_says_which_day_that_is(repository: Path) -> None:
    (repository / "stacks" / "Pulumi.dev-nlp.yaml").write_text(ENDED_TEAM + ENDED.replace("2026-11-20", "2026-11-22"))

    code, lines = run(repository, "retire", "dev")

    assert code == 0
    assert lines == ["== what stays", "dev-nlp ends on 2026-11-22, and nothing of it is destroyed before"]


def test_a_deployment_leaves_a_stack_alone_that_has_ended(ended: Path) -> None:
    (ended / "stacks" / "Pulumi.dev.yaml").write_text(ENVIRONMENT.format(production="false"))
    team = ended / "stacks" / "Pulumi.dev-vision.yaml"
    team.write_text(team.read_text().replace("2026-11-21", "2026-11-22"))

    code, lines = run(ended, "each-stack", "dev", "up", "--yes")

    assert code == 0
    assert stacks_of("up", lines) == ["dev", "dev-vision"]  # whose protection is lifted from now on
    assert any(line.startswith("== dev-nlp has ended") for line in lines)
