"""Scenario files on the command line, faults of a server that runs, and what failed creates leave behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pulumi.automation.events import EngineEvent

from tests.places import ORGANISATION
from training_platform.cli.main import app
from training_platform.sandbox.run.faults import FaultControl, fault_lines, playing
from training_platform.sandbox.run.folder import CannotRun, SandboxFolder
from training_platform.sandbox.run.recovery import HalfMade, Holdings, find_half_made
from training_platform.sandbox.run.reports import Timeline
from training_platform.sandbox.run.servers import Servers, announced, running, serving
from training_platform.sandbox.run.session import read_stacks

AWAY = "bursts:\n  away: {code: 503, service: file}\n"
POOL = "urn:pulumi:small::training-platform::gcp:container/nodePool:NodePool::main-system-pool"
CLUSTER = "urn:pulumi:small::training-platform::gcp:container/cluster:Cluster::main-cluster"
HOMES = "urn:pulumi:small::training-platform::gcp:filestore/instance:Instance::homes"
POOL_INPUTS = {"project": "p", "location": "us-central1", "cluster": "main", "name": "system"}
POOL_ID = "projects/p/locations/us-central1/clusters/main/nodePools/system"
HOMES_ID = "projects/p/locations/us-central1-a/instances/homes"

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def folder(tmp_path: Path) -> SandboxFolder:
    return SandboxFolder(ORGANISATION, tmp_path / "sandbox")


@pytest.fixture
def served(folder: SandboxFolder) -> Iterator[Servers]:
    with serving(folder, read_stacks(ORGANISATION, ()), durations={}) as servers, announced(folder, servers):
        yield servers


@pytest.fixture
def command(folder: SandboxFolder) -> Command:
    def run(*args: str) -> tuple[int, str]:
        place = ["--root", str(ORGANISATION), "--workspace", str(folder.path)]
        result = CliRunner().invoke(app, ["sandbox", *args, *place])
        return result.exit_code, result.output

    return run


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "day.yaml"
    path.write_text(AWAY)
    return path


def test_faults_of_a_server_are_added_listed_and_cleared(served: Servers, command: Command, scenario: Path) -> None:
    assert command("faults", "add", str(scenario)) == (0, "added: away\n")
    assert command("faults", "list") == (0, "Hit nothing: away (bursts).\n")
    assert command("faults", "add", str(scenario))[0] == 2
    code, said = command("faults", "clear", "awy")
    assert code == 2
    assert "there is no fault 'awy'. Nearest: away." in said
    assert command("faults", "clear", "away") == (0, "")
    assert FaultControl(served.cloud).listed() == []
    assert command("faults", "clear") == (0, "")


def test_without_a_server_there_are_no_faults_to_speak_of(command: Command) -> None:
    code, said = command("faults", "list")

    assert code == 2
    assert "training-platform sandbox serve" in said


@pytest.mark.parametrize("args", [("up", "dev"), ("refresh", "dev"), ("destroy", "dev"), ("serve",)])
def test_a_scenario_that_cannot_be_played_ends_with_2_before_anything_runs(
    command: Command, scenario: Path, args: tuple[str, ...]
) -> None:
    scenario.write_text("bursts:\n  away: {code: 504}\n")

    code, said = command(*args, "--scenario", str(scenario))

    assert code == 2
    assert f"{scenario}:2:10: bursts.away.code: 504 is not one of the allowed values" in said


def test_a_scenario_is_played_for_as_long_as_the_run(served: Servers, scenario: Path) -> None:
    faults = FaultControl(served.cloud)
    with playing(served.cloud, scenario):
        assert [each["name"] for each in faults.listed()] == ["away"]
        faults.clear(["away"])
        faults.add(scenario)

    assert faults.listed() == []


def test_what_a_fault_hit_in_this_run_is_told_and_what_it_hit_before_is_not() -> None:
    events = [{"what": f"create {index}"} for index in range(7)]
    fault: dict[str, Any] = {"name": "a", "section": "failed_operations", "fired": 7, "events": events}

    assert list(fault_lines([fault], {"a": 2})) == [
        "Fault a (failed operations) hit 5: create 2, create 3, create 4 and 2 more."
    ]
    assert list(fault_lines([fault], {"a": 7})) == ["Hit nothing: a (failed operations)."]


@pytest.mark.parametrize(
    ("options", "said"),
    [({"durations": {"*": 1.0}}, "--duration cannot be"), ({"crds": (Path("crds"),)}, "--crds cannot be")],
)
def test_what_a_server_that_runs_could_not_be_told_is_refused(
    folder: SandboxFolder, served: Servers, options: dict[str, Any], said: str
) -> None:
    given = {"durations": {}, "crds": (), **options}

    with pytest.raises(CannotRun, match=said), running(folder, read_stacks(ORGANISATION, ()), **given, programs=None):
        pass


def holding(**status: str) -> Holdings:
    pool = {"status": status.get("pool", "RUNNING")}
    return Holdings({"pool": pool, POOL_ID: pool, HOMES_ID: {"state": "ERROR"}}, frozenset())


def test_a_pool_in_error_and_a_cluster_whose_create_failed_are_made_anew() -> None:
    pool = {"urn": POOL, "type": "gcp:container/nodePool:NodePool", "id": "pool", "initErrors": ["failed"]}
    cluster = {"urn": CLUSTER, "type": "gcp:container/cluster:Cluster", "id": "cluster", "initErrors": ["failed"]}

    assert find_half_made([pool], [], holding()) == []
    assert find_half_made([pool], [], holding(pool="ERROR")) == [HalfMade(POOL, "pool", in_state=True)]
    assert find_half_made([pool | {"initErrors": None}], [], holding(pool="ERROR")) == [
        HalfMade(POOL, "pool", in_state=True)
    ]
    begun = {"type": "creating", "resource": {**pool, "custom": True, "inputs": POOL_INPUTS}}
    assert find_half_made([pool | {"id": POOL_ID}], [begun], holding(pool="ERROR")) == [
        HalfMade(POOL, POOL_ID, in_state=True)
    ]
    assert find_half_made([cluster], [], holding()) == [HalfMade(CLUSTER, "cluster", in_state=True)]
    assert find_half_made([cluster | {"initErrors": []}], [], holding()) == []


def test_an_instance_in_error_that_pulumi_forgot_is_found_by_its_inputs_unless_another_stack_has_it() -> None:
    inputs = {"project": "p", "location": "us-central1-a", "name": "homes"}
    resource = {"urn": HOMES, "type": "gcp:filestore/instance:Instance", "inputs": inputs, "custom": True}
    operations = [{"type": "creating", "resource": resource}]

    assert find_half_made([], operations, holding()) == [HalfMade(HOMES, HOMES_ID, in_state=False)]
    assert find_half_made([], operations, holding().without([{"id": HOMES_ID}])) == []


def test_a_create_that_failed_is_kept_with_its_inputs_as_a_pending_one_is() -> None:
    timeline = Timeline()
    for op, urn in (("create", HOMES), ("update", POOL)):
        new = {"type": "t", "urn": urn, "id": "", "parent": "up", "provider": "gcp::1", "custom": True}
        about = {
            "op": op,
            "urn": urn,
            "type": "gcp:x:X",
            "provider": "gcp::1",
            "new": {**new, "inputs": {"name": "homes"}},
        }
        for kind in ("resourcePreEvent", "resOpFailedEvent"):
            timeline.take(EngineEvent.from_json({kind: {"metadata": about, "status": 1, "steps": 1}}))

    assert timeline.failed_creates == [
        {
            "type": "creating",
            "resource": {
                "urn": HOMES, "type": "gcp:x:X", "custom": True, "inputs": {"name": "homes"}, "parent": "up",
                "provider": "gcp::1",
            },
        }
    ]  # fmt: skip
