"""Quota, and the bounds of a long run: old operations are deleted, unknown machine types refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.state import long_running
from local_google_cloud.state.questions import Quota
from tests.local_google_cloud.client import INSTANCE, LOCATION, PROJECT, ZONE, Client, Json

NETWORKS = f"compute/v1/projects/{PROJECT}/global/networks"
POOLS = f"container/v1/{LOCATION}/clusters/one/nodePools"


@pytest.fixture
def gke(ask: Client) -> Client:
    ask.network()
    ask.cluster()
    ask.done("DELETE", f"{POOLS}/default-pool")
    return ask


def pool(nodes: int, name: str = "cpu", **fields: Any) -> Json:
    config = {"machineType": "e2-standard-8"}
    return {
        "nodePool": {
            "name": name,
            "initialNodeCount": nodes,
            "locations": ["us-central1-a"],
            "config": config,
            **fields,
        }
    }


def usage(client: Client, quota_id: str, region: str = "us-central1") -> tuple[float, float | None]:
    """Return how much of a quota of Compute Engine is used, and its limit."""
    key = Quota(PROJECT, "compute.googleapis.com", quota_id, region)
    return client.cloud.quota.used(PROJECT).get(key, 0), client.cloud.judge.limit(key)


def test_a_pool_is_charged_and_its_charge_returned(gke: Client) -> None:
    gke.done("POST", POOLS, pool(8))
    assert usage(gke, "CPUS-per-project-region") == (8 * 8, 64)
    assert usage(gke, "INSTANCES-per-project-region") == (8, 10)

    gke.done("DELETE", f"{POOLS}/cpu")
    assert usage(gke, "CPUS-per-project-region") == (0, 64)


def test_the_last_vm_that_fits_is_taken_and_the_next_refused(gke: Client) -> None:
    gke.done("POST", POOLS, pool(7))

    refused = gke("POST", POOLS, pool(2, "more"))
    assert refused.code == 403
    assert (
        "Insufficient regional quota to satisfy request: resource \"CPUS\": request requires '16.0'" in refused.message
    )
    assert "is short '8.0'" in refused.message
    assert gke("GET", f"{POOLS}/more").code == 404
    gke.done("POST", POOLS, pool(1, "more"))


def test_a_resize_over_the_limit_leaves_the_pool_as_it_was(gke: Client) -> None:
    gke.done("POST", POOLS, pool(4))

    assert gke("POST", f"{POOLS}/cpu:setSize", {"nodeCount": 9}).code == 403
    assert usage(gke, "CPUS-per-project-region") == (4 * 8, 64)


def test_nodes_that_the_autoscaler_may_add_are_not_charged(gke: Client) -> None:
    gke.done("POST", POOLS, pool(1, autoscaling={"enabled": True, "minNodeCount": 0, "maxNodeCount": 9}))

    assert usage(gke, "CPUS-per-project-region") == (8, 64)


def test_filestore_is_refused_with_429(ask: Client) -> None:
    body = {"tier": "BASIC_SSD", "fileShares": [{"name": "a", "capacityGb": "2560"}], "networks": [{"network": "net"}]}
    ask.done("POST", f"file/v1/{ZONE}/instances", body, instanceId="a")

    refused = ask("POST", f"file/v1/{ZONE}/instances", body, instanceId="b")

    assert (refused.code, refused.body["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    ask.done("DELETE", f"file/v1/{ZONE}/instances/a")
    ask.done("POST", f"file/v1/{ZONE}/instances", body, instanceId="b")


def network(name: str) -> Json:
    return {"name": name, "autoCreateSubnetworks": False}


def subnet(name: str, cidr: str) -> Json:
    return {"name": name, "network": f"projects/{PROJECT}/global/networks/net", "ipCidrRange": cidr}


def test_the_last_network_that_fits_is_taken_and_the_next_refused(ask: Client) -> None:
    for number in range(15):
        ask.done("POST", NETWORKS, network(f"gpu-{number}"))
    assert usage(ask, "NETWORKS-per-project", "") == (15, 15)

    refused = ask("POST", NETWORKS, network("more"))

    assert (refused.code, refused.body["error"]["errors"][0]["reason"]) == (403, "quotaExceeded")
    assert refused.message == "Quota 'NETWORKS' exceeded.  Limit: 15.0 globally."
    assert ask("GET", f"{NETWORKS}/more").code == 404
    ask.done("DELETE", f"{NETWORKS}/gpu-0")
    ask.done("POST", NETWORKS, network("more"))


def test_subnetworks_are_charged_over_all_regions_of_a_project(ask: Client) -> None:
    ask.network()
    base = f"compute/v1/projects/{PROJECT}/regions"
    ask.done("POST", f"{base}/us-west4/subnetworks", subnet("west", "10.1.0.0/20"))
    assert usage(ask, "SUBNETWORKS-per-project", "") == (2, 2)

    refused = ask("POST", f"{base}/us-east4/subnetworks", subnet("east", "10.2.0.0/20"))

    assert (refused.code, refused.message) == (403, "Quota 'SUBNETWORKS' exceeded.  Limit: 2.0 globally.")
    ask.done("DELETE", f"{base}/us-west4/subnetworks/west")
    ask.done("POST", f"{base}/us-east4/subnetworks", subnet("east", "10.2.0.0/20"))


def test_a_changed_subnetwork_is_not_charged_again(ask: Client) -> None:
    ask.network()
    base = f"compute/v1/projects/{PROJECT}/regions/us-central1/subnetworks"
    ask.done("POST", base, subnet("second", "10.1.0.0/20"))
    body = ask.done("GET", f"{base}/second")

    ask.done("PATCH", f"{base}/second", {"privateIpGoogleAccess": True, "fingerprint": body["fingerprint"]})

    assert usage(ask, "SUBNETWORKS-per-project", "") == (2, 2)


def test_cloud_quotas_reads_the_limits_back(ask: Client) -> None:
    base = f"cloudquotas/v1/projects/{PROJECT}/locations/global"

    info = ask.done("GET", f"{base}/services/compute.googleapis.com/quotaInfos/CPUS-per-project-region")

    assert info["dimensionsInfos"] == [
        {"dimensions": {"region": "us-central1"}, "details": {"value": "64"}, "applicableLocations": ["us-central1"]}
    ]
    assert ask("GET", f"{base}/services/compute.googleapis.com/quotaInfos/NOTHING").code == 404


def test_a_quota_preference_is_kept_and_cannot_be_deleted(ask: Client) -> None:
    base = f"cloudquotas/v1/projects/{PROJECT}/locations/global/quotaPreferences"
    body = {
        "service": "compute.googleapis.com",
        "quotaId": "CPUS-per-project-region",
        "quotaConfig": {"preferredValue": "96"},
    }
    created = ask.done("POST", base, body, quotaPreferenceId="cpus")

    assert created["quotaConfig"]["preferredValue"] == "96"
    assert ask("POST", base, body, quotaPreferenceId="cpus").code == 409
    assert ask("PATCH", f"{base}/cpus", {**body, "etag": "stale"}).code == 409
    assert ask("DELETE", f"{base}/cpus").code == 404
    assert ask.done("GET", f"{base}/cpus") == created


COMPUTE = f"compute/v1/projects/{PROJECT}"


def kept_names(cloud: LocalCloud) -> list[str]:
    return [record.name for record in cloud.store.all() if "/operations/" in record.name]


def test_old_operations_go_but_none_that_a_client_may_still_ask_for(
    make: Callable[..., LocalCloud], time: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_running, "KEPT_OPERATIONS", 3)
    ask = Client(make(tmp_path / "cloud.json"))
    ask.enable(PROJECT, "compute")
    first = ask.done("POST", f"{COMPUTE}/global/networks", {"name": "first"})
    for index in range(5):
        ask.done("POST", f"{COMPUTE}/global/networks", {"name": f"net-{index}"})
    assert len(kept_names(ask.cloud)) == 7  # with the one that enabled the API: all of them are new

    time[0] += 61
    after = Client(make(tmp_path / "cloud.json"))
    for index in range(2):
        after.done("POST", f"{COMPUTE}/global/networks", {"name": f"more-{index}"})

    assert len(kept_names(after.cloud)) == 3
    assert after("GET", f"{COMPUTE}/global/operations/{first['name']}").code == 404
    assert after("GET", f"{COMPUTE}/global/networks/first").code == 200


def test_no_burst_of_changes_keeps_more_operations_than_a_bound(ask: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_running, "KEPT_OPERATIONS", 2)
    monkeypatch.setattr(long_running, "MOST_OPERATIONS", 5)

    for index in range(12):
        ask.done("POST", f"{COMPUTE}/global/networks", {"name": f"net-{index}"})

    assert len(kept_names(ask.cloud)) == 5


def test_a_resource_that_is_changed_for_ever_does_not_grow(ask: Client, time: list[float]) -> None:
    channel = {"type": "email", "labels": {"email_address": "a@example.com"}}
    name = ask.done("POST", f"monitoring/v3/projects/{PROJECT}/notificationChannels", channel)["name"]

    for index in range(30):
        time[0] += 1
        changed = ask.done("PATCH", f"monitoring/v3/{name}", {"description": str(index)})

    records = changed["mutationRecords"]
    assert len(records) == 10
    assert records[0]["mutateTime"] == max(mutation["mutateTime"] for mutation in records)


def test_an_operation_under_way_is_never_dropped(
    cloud: LocalCloud, ask: Client, time: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_running, "KEPT_OPERATIONS", 1)
    cloud.settings = cloud.settings.model_copy(update={"durations": {"compute.networks": 1000.0}})
    long = ask.done("POST", f"{COMPUTE}/global/networks", {"name": "long"})
    cloud.settings = cloud.settings.model_copy(update={"durations": {}})
    for index in range(4):
        time[0] += 61
        ask.done("POST", f"{COMPUTE}/global/networks", {"name": f"net-{index}"})

    assert ask.done("GET", f"{COMPUTE}/global/operations/{long['name']}")["status"] == "RUNNING"
    assert len(kept_names(cloud)) == 2  # it, and the newest


def test_an_operation_that_an_earlier_server_began_is_never_dropped(
    make: Callable[..., LocalCloud], time: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_running, "KEPT_OPERATIONS", 1)
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
    monkeypatch.setattr(long_running, "KEPT_OPERATIONS", 1)
    ask.network()
    ask.cluster()
    cloud.faults.add("stockout=e2-standard-4")
    ask.done("POST", POOLS, pool_of("e2-standard-4"))
    for index in range(2):
        time[0] += 61
        ask.done("POST", f"{COMPUTE}/global/networks", {"name": f"net-{index}"})

    cloud.faults.clear("stockout=e2-standard-4")

    assert ask.done("GET", f"{POOLS}/cpu")["status"] == "RUNNING"


def pool_of(machine_type: str) -> Json:
    return {"nodePool": {"name": "cpu", "initialNodeCount": 1, "config": {"machineType": machine_type}}}


def test_a_machine_that_nobody_can_charge_is_refused_with_the_nearest(ask: Client) -> None:
    ask.network()
    ask.cluster()

    refused = ask("POST", POOLS, pool_of("e2-standart-4"))

    assert (refused.code, refused.body["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert refused.message.startswith("Machine type with name 'e2-standart-4' does not exist")
    assert "nearest: 'e2-standard-4'" in refused.message
    assert ask("GET", f"{POOLS}/cpu").code == 404


def test_a_pool_of_gkes_own_machine_is_charged_two_cpus_a_vm(ask: Client) -> None:
    ask.network()
    ask.cluster()  # its default pool has a VM in each of three zones

    assert usage(ask, "CPUS-per-project-region") == (3 * 2, 64)


def test_a_kind_is_listed_in_all_places_at_once(ask: Client) -> None:
    ask.network()
    ask.done("POST", f"{COMPUTE}/global/addresses", {"name": "everywhere", "addressType": "INTERNAL"})
    ask.done("POST", f"{COMPUTE}/regions/us-west4/addresses", {"name": "west"})

    aggregated: dict[str, Any] = ask.done("GET", f"{COMPUTE}/aggregated/addresses")
    subnets = ask.done("GET", f"{COMPUTE}/aggregated/subnetworks")["items"]

    assert aggregated["kind"] == "compute#addressAggregatedList"
    places = {
        place: [address["name"] for address in scope["addresses"]] for place, scope in aggregated["items"].items()
    }
    assert places == {"global": ["everywhere"], "regions/us-west4": ["west"]}
    assert [subnet["name"] for subnet in subnets["regions/us-central1"]["subnetworks"]] == ["nodes"]


def test_the_legacy_paths_of_gke_are_the_same_clusters(ask: Client) -> None:
    ask.network()
    ask.cluster(location="us-central1-a")
    legacy = f"container/v1/projects/{PROJECT}/zones/us-central1-a/clusters"

    ask.done("POST", f"{legacy}/one/nodePools", pool_of("e2-standard-4"))

    pools = f"container/v1/{ZONE}/clusters/one/nodePools"
    assert {node_pool["name"] for node_pool in ask.done("GET", pools)["nodePools"]} == {"cpu", "default-pool"}
    assert [cluster["name"] for cluster in ask.done("GET", legacy)["clusters"]] == ["one"]


def test_a_filestore_instance_has_backups_and_snapshots(ask: Client) -> None:
    ask.done("POST", f"file/v1/{ZONE}/instances", INSTANCE, instanceId="homes")
    backups = f"file/v1/{LOCATION}/backups"
    snapshots = f"file/v1/{ZONE}/instances/homes/snapshots"
    source = {"sourceInstance": f"{ZONE}/instances/homes", "sourceFileShare": "a"}

    ask.done("POST", backups, source, backupId="monday")
    ask.done("POST", snapshots, {}, snapshotId="noon")

    backup = ask.done("GET", f"{backups}/monday")
    assert (backup["state"], backup["capacityGb"], backup["sourceInstanceTier"]) == ("READY", "1024", "ZONAL")
    assert [snapshot["name"] for snapshot in ask.done("GET", snapshots)["snapshots"]] == [
        f"{ZONE}/instances/homes/snapshots/noon"
    ]
    assert ask("POST", backups, {**source, "sourceFileShare": "b"}, backupId="none").code == 400
    assert ask("POST", backups, {**source, "sourceInstance": f"{ZONE}/instances/x"}, backupId="none").code == 404
