"""What keeps a long run flat and honest: old operations go, unknown machines are refused; smaller methods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training_platform.sandbox.cloud.conftest import LOCATION, PROJECT, ZONE, Client, Json
from training_platform.sandbox.cloud.faults.scenario import parse_scenario
from training_platform.sandbox.cloud.local_cloud import LocalCloud
from training_platform.sandbox.cloud.state import operations

COMPUTE = f"compute/v1/projects/{PROJECT}"
POOLS = f"container/v1/{LOCATION}/clusters/one/nodePools"


def kept(cloud: LocalCloud) -> list[str]:
    return [each.name for each in cloud.store.all() if "/operations/" in each.name]


def test_old_operations_go_but_none_that_a_client_may_still_ask_for(
    make: Callable[..., LocalCloud], time: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "KEPT_OPERATIONS", 3)
    ask = Client(make(tmp_path / "cloud.json"))
    ask.enable(PROJECT, "compute")
    first = ask.done("POST", f"{COMPUTE}/global/networks", {"name": "first"})
    for index in range(5):
        ask.done("POST", f"{COMPUTE}/global/networks", {"name": f"net-{index}"})
    assert len(kept(ask.cloud)) == 7  # with the one that enabled the API: all of them are new

    time[0] += 61
    after = Client(make(tmp_path / "cloud.json"))
    for index in range(2):
        after.done("POST", f"{COMPUTE}/global/networks", {"name": f"more-{index}"})

    assert len(kept(after.cloud)) == 3
    assert after("GET", f"{COMPUTE}/global/operations/{first['name']}").code == 404
    assert after("GET", f"{COMPUTE}/global/networks/first").code == 200


def test_no_burst_of_changes_keeps_more_operations_than_a_bound(ask: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "KEPT_OPERATIONS", 2)
    monkeypatch.setattr(operations, "MOST_OPERATIONS", 5)

    for index in range(12):
        ask.done("POST", f"{COMPUTE}/global/networks", {"name": f"net-{index}"})

    assert len(kept(ask.cloud)) == 5


def test_a_resource_that_is_changed_for_ever_does_not_grow(ask: Client, time: list[float]) -> None:
    channel = {"type": "email", "labels": {"email_address": "a@example.com"}}
    name = ask.done("POST", f"monitoring/v3/projects/{PROJECT}/notificationChannels", channel)["name"]

    for index in range(30):
        time[0] += 1
        changed = ask.done("PATCH", f"monitoring/v3/{name}", {"description": str(index)})

    records = changed["mutationRecords"]
    assert len(records) == 10
    assert records[0]["mutateTime"] == max(each["mutateTime"] for each in records)


def test_an_operation_under_way_is_never_dropped(
    cloud: LocalCloud, ask: Client, time: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "KEPT_OPERATIONS", 1)
    cloud.settings = cloud.settings.model_copy(update={"durations": {"compute.networks": 1000.0}})
    long = ask.done("POST", f"{COMPUTE}/global/networks", {"name": "long"})
    cloud.settings = cloud.settings.model_copy(update={"durations": {}})
    for index in range(4):
        time[0] += 61
        ask.done("POST", f"{COMPUTE}/global/networks", {"name": f"net-{index}"})

    assert ask.done("GET", f"{COMPUTE}/global/operations/{long['name']}")["status"] == "RUNNING"
    assert len(kept(cloud)) == 2  # it, and the newest


def test_an_operation_that_an_earlier_server_began_is_never_dropped(
    make: Callable[..., LocalCloud], time: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "KEPT_OPERATIONS", 1)
    ask = Client(make(tmp_path / "cloud.json"))
    ask.enable(PROJECT, "compute")
    ask.cloud.settings = ask.cloud.settings.model_copy(update={"durations": {"compute.networks": 1000.0}})
    long = ask.done("POST", f"{COMPUTE}/global/networks", {"name": "long"})

    after = Client(make(tmp_path / "cloud.json"))
    for index in range(4):
        time[0] += 61
        after.done("POST", f"{COMPUTE}/global/networks", {"name": f"net-{index}"})

    assert after.done("GET", f"{COMPUTE}/global/operations/{long['name']}")["status"] == "RUNNING"


def test_a_pool_that_waits_for_vms_gets_them_however_many_operations_end_meanwhile(
    cloud: LocalCloud, ask: Client, time: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "KEPT_OPERATIONS", 1)
    ask.network()
    ask.cluster()
    cloud.faults.add(parse_scenario("stockouts: {a: {machine_type: e2-standard-4, location: us-central1}}", "s.yaml"))
    ask.done("POST", POOLS, pool("e2-standard-4"))
    for index in range(2):
        time[0] += 61
        ask.done("POST", f"{COMPUTE}/global/networks", {"name": f"net-{index}"})

    cloud.faults.clear_all()

    assert ask.done("GET", f"{POOLS}/cpu")["status"] == "RUNNING"


def pool(machine_type: str) -> Json:
    return {"nodePool": {"name": "cpu", "initialNodeCount": 1, "config": {"machineType": machine_type}}}


def test_a_machine_that_nobody_can_charge_is_refused_with_the_nearest(ask: Client) -> None:
    ask.network()
    ask.cluster()

    refused = ask("POST", POOLS, pool("e2-standart-4"))

    assert (refused.code, refused.body["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert refused.message.startswith("Machine type with name 'e2-standart-4' does not exist")
    assert "nearest: 'e2-standard-4'" in refused.message
    assert ask("GET", f"{POOLS}/cpu").code == 404


def test_a_pool_of_gkes_own_machine_is_charged_two_cpus_a_vm(ask: Client) -> None:
    ask.network()
    ask.cluster()  # its default pool has a VM in each of three zones

    quotas = ask.done("GET", f"{COMPUTE}/regions/us-central1")["quotas"]

    assert next(each["usage"] for each in quotas if each["metric"] == "CPUS") == 3 * 2


def test_a_kind_is_listed_in_all_places_at_once(ask: Client) -> None:
    ask.network()
    ask.done("POST", f"{COMPUTE}/global/addresses", {"name": "everywhere", "addressType": "INTERNAL"})
    ask.done("POST", f"{COMPUTE}/regions/us-west4/addresses", {"name": "west"})

    found: dict[str, Any] = ask.done("GET", f"{COMPUTE}/aggregated/addresses")
    subnets = ask.done("GET", f"{COMPUTE}/aggregated/subnetworks")["items"]

    assert found["kind"] == "compute#addressAggregatedList"
    places = {place: [each["name"] for each in scope["addresses"]] for place, scope in found["items"].items()}
    assert places == {"global": ["everywhere"], "regions/us-west4": ["west"]}
    assert [each["name"] for each in subnets["regions/us-central1"]["subnetworks"]] == ["nodes"]


def test_the_legacy_paths_of_gke_are_the_same_clusters(ask: Client) -> None:
    ask.network()
    ask.cluster(location="us-central1-a")
    legacy = f"container/v1/projects/{PROJECT}/zones/us-central1-a/clusters"

    ask.done("POST", f"{legacy}/one/nodePools", pool("e2-standard-4"))

    pools = f"container/v1/{ZONE}/clusters/one/nodePools"
    assert {each["name"] for each in ask.done("GET", pools)["nodePools"]} == {"cpu", "default-pool"}
    assert [each["name"] for each in ask.done("GET", legacy)["clusters"]] == ["one"]


def test_a_filestore_instance_has_backups_and_snapshots(ask: Client) -> None:
    share = {"tier": "ZONAL", "fileShares": [{"name": "a", "capacityGb": "1024"}], "networks": [{"network": "net"}]}
    ask.done("POST", f"file/v1/{ZONE}/instances", share, instanceId="homes")
    backups, snapshots = f"file/v1/{LOCATION}/backups", f"file/v1/{ZONE}/instances/homes/snapshots"
    source = {"sourceInstance": f"{ZONE}/instances/homes", "sourceFileShare": "a"}

    ask.done("POST", backups, source, backupId="monday")
    ask.done("POST", snapshots, {}, snapshotId="noon")

    backup = ask.done("GET", f"{backups}/monday")
    assert (backup["state"], backup["capacityGb"], backup["sourceInstanceTier"]) == ("READY", "1024", "ZONAL")
    assert [each["name"] for each in ask.done("GET", snapshots)["snapshots"]] == [
        f"{ZONE}/instances/homes/snapshots/noon"
    ]
    assert ask("POST", backups, {**source, "sourceFileShare": "b"}, backupId="none").code == 400
    assert ask("POST", backups, {**source, "sourceInstance": f"{ZONE}/instances/x"}, backupId="none").code == 404


def test_cloud_storage_has_an_account_in_each_project(ask: Client) -> None:
    found = ask.done("GET", f"storage/v1/projects/{PROJECT}/serviceAccount")

    assert found["email_address"].endswith("@gs-project-accounts.iam.gserviceaccount.com")
