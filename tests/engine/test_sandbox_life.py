"""The life of every stack of the repository, in the local Google Cloud under the real engine and the real gcp plugin.

The tests are stages of one life, in their order: what an earlier one changes, it puts right. One server serves them
all, so that stacks of different projects are at work at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engine.fleet import KEPT, SCHEMAS, Fleet, Ran, repository, state, unchanged
from tests.parts.sandbox.run.repositories import held
from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack
from training_platform.config.workspace import read_workspace
from training_platform.parts.sandbox.run.existing import existing_resources
from training_platform.parts.sandbox.run.servers import announced, serving
from training_platform.parts.sandbox.run.session import read_stacks

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

STACKS = read_workspace(ORGANISATION).stacks
ENVIRONMENTS = [name for name, stack in STACKS.items() if not stack.team]
TEAMS = [name for name, stack in STACKS.items() if stack.team]
KILL_EVERY = int(os.environ.get("TRAINING_PLATFORM_KILL_EVERY", "80"))
"""After how many operations a run of ``dev`` is killed; 10 finds more, and takes that much longer."""
EDITS = {
    "dev": ("max_run_hours: 24\n            max_nodes: 2", "max_run_hours: 24\n            max_nodes: 1"),
    "prod": ("capacity_gib: 10240", "capacity_gib: 20480"),
    "prod-vision": ("h100-reservation: {nominal_quota: 24,", "h100-reservation: {nominal_quota: 16,"),
}
"""A field of a stack file, and another value for it."""
PLANNED = {
    "dev": {("update", "us-central1-h100-pool")},
    "prod": {("update", "filestore-datasets-instance")},
    # The namespace's quota is what the shares can reach.
    "prod-vision": {
        ("update", "share-us-central1-queues-cluster-queue"),
        ("update", "share-us-central1-tenancy-resource-quota"),
    },
}
"""What these edits plan."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    sandbox = repository(tmp_path_factory.mktemp("fleet") / "repository")
    folder = sandbox.folder
    crds = [SCHEMAS] if SCHEMAS.is_dir() else []
    with (
        folder.locked(),
        serving(folder, read_stacks(folder.root, ()), durations={}, crds=crds) as servers,
        announced(folder, servers),
    ):
        yield Fleet(sandbox, servers.cloud)


@dataclass(frozen=True)
class Up:
    """How every stack came up, and what the local cloud held when only the environments were."""

    ran: dict[str, Ran]
    environments: Counter[str]


@pytest.fixture(scope="module")
def brought_up(fleet: Fleet) -> Up:
    environments = fleet.each("up", ENVIRONMENTS)
    before = held(fleet.sandbox.folder)
    return Up(environments | fleet.each("up", TEAMS), before)


@pytest.fixture(scope="module")
def looked_at(fleet: Fleet, brought_up: Up) -> dict[str, dict[str, Ran]]:
    return {command: fleet.each(command, STACKS) for command in ("refresh", "up")}


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_comes_up_with_all_that_check_planned(
    stack: str, fleet: Fleet, brought_up: Up, plans: dict[str, PlannedStack]
) -> None:
    ran = brought_up.ran[stack]
    assert ran.returncode == 0, ran.stdout + ran.stderr
    planned = {(resource.type, resource.name) for resource in plans[stack].resources}
    assert len(planned) > 40
    assert planned <= state(fleet.sandbox.folder, stack)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("command", ["refresh", "up"])
def test_what_is_up_does_not_drift_and_a_second_up_changes_nothing(
    command: str, stack: str, looked_at: dict[str, dict[str, Ran]]
) -> None:
    ran = looked_at[command][stack]
    assert unchanged(command, stack, ran), ran.stdout + ran.stderr


def test_a_change_of_one_field_plans_just_that(fleet: Fleet, brought_up: Up) -> None:
    files = {name: fleet.sandbox.folder.root / "stacks" / f"Pulumi.{name}.yaml" for name in EDITS}
    before = {name: path.read_text() for name, path in files.items()}
    for name, (old, new) in EDITS.items():
        assert before[name].count(old) == 1
        files[name].write_text(before[name].replace(old, new))

    ran = fleet.each("preview", EDITS)
    for name, path in files.items():
        path.write_text(before[name])

    assert {name: ran_command.stderr for name, ran_command in ran.items() if ran_command.returncode} == {}
    assert {name: fleet.steps(name) for name in EDITS} == PLANNED
    assert "    updates us-central1-h100-pool (gcp NodePool): autoscaling.maxNodeCount\n" in ran["dev"].stdout


def test_what_changed_behind_pulumis_back_is_found_and_put_right(fleet: Fleet, brought_up: Up) -> None:
    instance, policy = (fleet.identity("dev", name) for name in ("filestore-homes-instance", "alerts-GpuHot"))
    labels = fleet.ask("GET", f"file/v1/{instance}")["labels"]
    fleet.ask("PATCH", f"file/v1/{instance}?updateMask=labels", {"labels": {**labels, "environment": "by-hand"}})
    fleet.ask("DELETE", f"monitoring/v3/{policy}")

    refreshed = fleet.sandbox("refresh", "dev")
    assert refreshed.returncode == 0, refreshed.stdout + refreshed.stderr
    assert re.match(r"dev: refresh done: 1 deleted, \d+ unchanged, 1 updated\n", refreshed.stdout), refreshed.stdout
    assert "    is gone: alerts-GpuHot (gcp AlertPolicy)\n" in refreshed.stdout
    assert "    drifted: filestore-homes-instance (gcp Instance): labels.environment\n" in refreshed.stdout

    mended = fleet.sandbox("up", "dev")
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert fleet.steps("dev") == {("update", "filestore-homes-instance"), ("create", "alerts-GpuHot")}
    assert fleet.ask("GET", f"file/v1/{instance}")["labels"] == labels


@pytest.mark.skipif(sys.platform != "linux", reason="kills by /proc")
def test_an_up_that_is_killed_time_and_again_ends_as_one_that_was_not(
    fleet: Fleet, brought_up: Up, tmp_path: Path
) -> None:
    sandbox = repository(tmp_path / "repository")
    folder = sandbox.folder

    kills, imported = sandbox.up_with_kills("dev", KILL_EVERY)

    assert kills >= 2
    assert imported
    assert folder.pending("dev") == []
    assert unchanged("up", "dev", sandbox("up", "dev"))
    assert state(folder, "dev") == state(fleet.sandbox.folder, "dev")
    # Whatever is brought up, the sandbox makes what any stack file says exists: prod's reservations and roles too.
    existing = {resource.record for resource in existing_resources(read_workspace(folder.root))}
    assert held(folder) == {
        name: count
        for name, count in brought_up.environments.items()
        if "/example-train-dev" in name or name in existing
    }


def test_a_shipped_stack_does_not_die_unasked(fleet: Fleet, brought_up: Up) -> None:
    before = held(fleet.sandbox.folder)

    refused = fleet.each("destroy", ["dev", "prod", "prod-vision"])

    assert {name: ran_command.returncode for name, ran_command in refused.items()} == dict.fromkeys(refused, 1)
    assert "dev-vision is still up in dev: destroy it first." in refused["dev"].stderr
    assert "prod-nlp, prod-vision is still up in prod: destroy it first." in refused["prod"].stderr
    assert "prod-vision is protected: " in refused["prod-vision"].stderr
    assert held(fleet.sandbox.folder) == before


def test_with_its_protection_lifted_a_stack_leaves_only_what_google_keeps(fleet: Fleet, brought_up: Up) -> None:
    gone = fleet.each("destroy", TEAMS, "--lift-protection")
    protected = fleet.sandbox("destroy", "prod")
    gone |= fleet.each("destroy", ENVIRONMENTS, "--lift-protection")

    assert protected.returncode == 1
    assert "prod is protected: " in protected.stderr
    assert {name: ran_command.stderr for name, ran_command in gone.items() if ran_command.returncode} == {}
    assert not any("forgotten" in ran_command.stdout for ran_command in gone.values())
    assert "cluster " not in fleet.sandbox("status").stdout
    assert {name: state(fleet.sandbox.folder, name) for name in STACKS} == {name: set() for name in STACKS}
    assert [name for name in held(fleet.sandbox.folder) if not KEPT.match(name)] == []
