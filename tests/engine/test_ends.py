"""The end of stacks under the real engine, as docs/lifecycle.md has it: a renamed team, a retired team and environment.

The tests are stages of one life, in their order. Nothing is left behind except what is kept, and nothing of another
team is touched.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.fleet import KEPT, Fleet, repository, served, state, unchanged
from tests.parts.sandbox.run.repositories import held
from training_platform.parts.sandbox.run.engine import PASSPHRASE

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

NAME = "    name: vision\n"
RETIRED = '    retired: {since: "2026-11-21", keeps: [%s], paid_by: a@example.com}\n'
AUDIO = """\
config:
  training-platform:team:
    environment: dev
    name: audio
    members: [group:audio@example.com]
    shares:
      us-west4:
        tpu-v5e-2x4-spot: {nominal_quota: 8}
    buckets:
      recordings: {location: us-central1}
"""
KEPT_BUCKET = "storage/b/example-train-dev-dev-vision-checkpoints"


def stack_file(fleet: Fleet, stack: str) -> Path:
    return fleet.sandbox.folder.root / "stacks" / f"Pulumi.{stack}.yaml"


def up(fleet: Fleet, stack: str) -> Counter[str]:
    """Bring a stack up, and return what the local cloud holds then."""
    ran = fleet.sandbox("up", stack)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return held(fleet.sandbox.folder)


def destroy(fleet: Fleet, stack: str) -> None:
    ran = fleet.sandbox("destroy", stack)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert state(fleet.sandbox.folder, stack) == set()


def assert_nothing_to_do(fleet: Fleet, *stacks: str) -> None:
    """Hold that the local cloud is as the stacks' files and states say."""
    for stack in stacks:
        for command in ("refresh", "up"):
            ran = fleet.sandbox(command, stack)
            assert unchanged(command, stack, ran), ran.stdout + ran.stderr


def rename(fleet: Fleet, old: str, new: str) -> None:
    """Rename a deployed stack, as ``pulumi stack rename NEW --stack OLD`` does."""
    folder = fleet.sandbox.folder
    environment = {
        **os.environ,
        "PULUMI_BACKEND_URL": folder.state.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_HOME": str(folder.home),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    command = ["pulumi", "stack", "rename", new, "--stack", old, "--non-interactive"]
    ran = subprocess.run(command, cwd=folder.root, env=environment, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    sandbox = repository(tmp_path_factory.mktemp("ends") / "repository")
    (sandbox.folder.root / "stacks" / "Pulumi.dev-audio.yaml").write_text(AUDIO, encoding="utf-8")
    with served(sandbox) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def before_vision(fleet: Fleet) -> Counter[str]:
    """What the local cloud holds with the environment and its other team, before the team of these tests is up."""
    up(fleet, "dev")
    return up(fleet, "dev-audio")


@pytest.fixture(scope="module")
def with_vision(fleet: Fleet, before_vision: Counter[str]) -> Counter[str]:
    return up(fleet, "dev-vision")


def test_a_renamed_stack_is_deployed_as_it_is(fleet: Fleet, with_vision: Counter[str]) -> None:
    old = stack_file(fleet, "dev-vision")
    old.rename(stack_file(fleet, "dev-sight"))
    text = stack_file(fleet, "dev-sight").read_text(encoding="utf-8")
    stack_file(fleet, "dev-sight").write_text(text.replace(NAME, f"{NAME}    renamed_from: dev-vision\n"))

    rename(fleet, "dev-vision", "dev-sight")

    assert_nothing_to_do(fleet, "dev-sight", "dev-audio", "dev")
    assert held(fleet.sandbox.folder) == with_vision


def test_a_retired_team_leaves_only_what_it_keeps(
    fleet: Fleet, before_vision: Counter[str], with_vision: Counter[str]
) -> None:
    file = stack_file(fleet, "dev-sight")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(NAME, NAME + RETIRED % "buckets.checkpoints"), encoding="utf-8")
    assert KEPT_BUCKET in with_vision

    assert up(fleet, "dev-sight") == with_vision
    destroy(fleet, "dev-sight")

    remaining_records = held(fleet.sandbox.folder) - before_vision
    assert [name for name in remaining_records if not KEPT.match(name)] == [KEPT_BUCKET]
    assert before_vision - held(fleet.sandbox.folder) == Counter()
    assert_nothing_to_do(fleet, "dev", "dev-audio")


def test_a_retired_environment_ends_after_its_teams(fleet: Fleet, with_vision: Counter[str]) -> None:
    marks = {
        "dev": ("    project: example-train-dev\n", "filestore.homes"),
        "dev-audio": ("    name: audio\n", ""),
    }
    for stack, (head, keeps) in marks.items():
        file = stack_file(fleet, stack)
        text = file.read_text(encoding="utf-8")
        assert head in text
        file.write_text(text.replace(head, head + RETIRED % keeps), encoding="utf-8")
    up(fleet, "dev")
    up(fleet, "dev-audio")

    early = fleet.sandbox("destroy", "dev")
    destroy(fleet, "dev-audio")
    destroy(fleet, "dev")

    assert early.returncode == 1
    assert "dev-audio is still up in dev: destroy it first." in early.stderr
    assert {name for name in held(fleet.sandbox.folder) if not KEPT.match(name)} == {
        KEPT_BUCKET,
        "file/projects/example-train-dev/locations/us-central1-a/instances/dev-homes",
        "compute/projects/example-train-dev/global/networks/dev-network",  # which the instance is in
    }
