"""Machines that are sold out: what a client sees, and what is there afterwards."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.training_platform.sandbox.cloud.conftest import LOCATION, PROJECT, Json
from tests.training_platform.sandbox.cloud.faults.conftest import POOLS, TRAINING, VERTEX, hits, pool


def test_a_sold_out_machine_fails_the_operation_and_leaves_the_pool_in_error_until_there_are_some(
    http: httpx.Client, add: Callable[..., None], pass_time: Callable[[float], None]
) -> None:
    add("stockouts", machine_type="e2-standard-4", location="us-central1-a", after_seconds=60, for_seconds=3600)

    operation = http.post(f"/{POOLS}", json=pool(nodes=3)).json()
    assert operation["status"] == "RUNNING"
    pass_time(60)

    ended = http.get(f"/container/v1/{LOCATION}/operations/{operation['name']}").json()
    assert ended["status"] == "DONE"
    assert "Expected 3, running 0, transitioning 3. Current errors: [GCE_STOCKOUT]" in ended["statusMessage"]
    assert f"The zone 'projects/{PROJECT}/zones/us-central1-a' does not have enough" in ended["error"]["message"]
    left = http.get(f"/{POOLS}/cpu").json()
    assert (left["status"], left["statusMessage"]) == ("ERROR", ended["statusMessage"])
    assert hits(http) == [f"create container/{LOCATION}/clusters/one/nodePools/cpu"]

    pass_time(3539)
    assert http.get(f"/{POOLS}/cpu").json()["status"] == "ERROR"
    pass_time(1)
    well = http.get(f"/{POOLS}/cpu").json()
    assert well["status"] == "RUNNING"
    assert "statusMessage" not in well


@pytest.mark.parametrize(("takes", "well"), [(10, 30), (45, 45)])
def test_an_operation_that_finds_vms_before_it_gives_up_ends_well(
    http: httpx.Client, add: Callable[..., None], pass_time: Callable[[float], None], takes: int, well: int
) -> None:
    http.put("/_sandbox/settings", json={"durations": {"container.nodePools": float(takes)}})
    add("stockouts", machine_type="e2-standard-4", location="us-central1-a", after_seconds=60, for_seconds=30)

    operation = http.post(f"/{POOLS}", json=pool()).json()
    pass_time(well - 1)
    assert http.get(f"/{POOLS}/cpu").json()["status"] == "PROVISIONING"
    pass_time(1)

    assert http.get(f"/{POOLS}/cpu").json()["status"] == "RUNNING"
    ended = http.get(f"/container/v1/{LOCATION}/operations/{operation['name']}").json()
    assert ended["status"] == "DONE"
    assert "error" not in ended


def test_an_operation_that_gave_up_before_there_were_vms_failed_whenever_it_is_looked_at(
    http: httpx.Client, add: Callable[..., None], pass_time: Callable[[float], None]
) -> None:
    add("stockouts", machine_type="e2-standard-4", location="us-central1-a", after_seconds=60, for_seconds=61)

    operation = http.post(f"/{POOLS}", json=pool()).json()
    pass_time(1000)

    assert "error" in http.get(f"/container/v1/{LOCATION}/operations/{operation['name']}").json()
    assert http.get(f"/{POOLS}/cpu").json()["status"] == "RUNNING"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (pool(zones=("us-central1-a", "us-central1-b")), "RUNNING_WITH_ERROR"),
        (pool(zones=("us-central1-b",)), "RUNNING"),
        (pool(machineType="e2-standard-2"), "RUNNING"),
        (pool(nodes=0), "RUNNING"),
        (
            pool(reservationAffinity={"consumeReservationType": "SPECIFIC_RESERVATION", "key": "k", "values": ["r"]}),
            "RUNNING",
        ),
    ],
)
def test_only_vms_that_are_asked_for_and_not_reserved_run_out(
    http: httpx.Client, add: Callable[..., None], body: Json, status: str
) -> None:
    add("stockouts", machine_type="e2-standard-4", location="us-central1-a")

    assert http.post(f"/{POOLS}", json=body).status_code == 200
    assert http.get(f"/{POOLS}/cpu").json()["status"] == status


def test_a_pool_that_grows_into_a_sold_out_zone_runs_with_an_error_and_one_that_shrinks_does_not(
    http: httpx.Client, add: Callable[..., None]
) -> None:
    http.post(f"/{POOLS}", json=pool(nodes=2))
    add("stockouts", machine_type="e2-standard-4", location="us-central1")

    http.post(f"/{POOLS}/cpu:setSize", json={"nodeCount": 1})
    assert http.get(f"/{POOLS}/cpu").json()["status"] == "RUNNING"
    http.post(f"/{POOLS}/cpu:setSize", json={"nodeCount": 3})
    assert http.get(f"/{POOLS}/cpu").json()["status"] == "RUNNING_WITH_ERROR"

    http.delete("/_sandbox/faults/planned")
    assert http.get(f"/{POOLS}/cpu").json()["status"] == "RUNNING"


def test_a_topology_runs_out_while_others_of_the_machine_are_there(
    http: httpx.Client, add: Callable[..., None]
) -> None:
    def slice_of(topology: str, nodes: int) -> Json:
        body = pool(topology, nodes, ("us-central1-b",), machineType="ct6e-standard-4t", diskType="hyperdisk-balanced")
        body["nodePool"] |= {"name": f"tpu-{topology}", "placementPolicy": {"type": "COMPACT", "tpuTopology": topology}}
        return body

    add("stockouts", machine_type="ct6e-standard-4t", location="us-central1-b", topology="4x4")

    for topology, nodes, status in (("4x4", 4, "ERROR"), ("2x4", 2, "RUNNING")):
        assert http.post(f"/{POOLS}", json=slice_of(topology, nodes)).status_code == 200
        assert http.get(f"/{POOLS}/tpu-{topology}").json()["status"] == status


def test_a_cluster_whose_first_pool_finds_no_vms_is_in_error(http: httpx.Client, add: Callable[..., None]) -> None:
    add("stockouts", machine_type="e2-standard-4", location="us-central1-f")
    first = pool(zones=("us-central1-f",))["nodePool"]
    body = {"name": "two", "network": "net", "subnetwork": "nodes", "nodePools": [first]}

    http.post(f"/container/v1/{LOCATION}/clusters", json={"cluster": body})

    assert http.get(f"/container/v1/{LOCATION}/clusters/two").json()["status"] == "ERROR"


def test_a_persistent_resource_fails_in_a_sold_out_region(http: httpx.Client, add: Callable[..., None]) -> None:
    add("stockouts", machine_type="n1-standard-8", location="us-central1")

    operation = http.post(f"/{VERTEX}", params={"persistentResourceId": "tuning"}, json=TRAINING).json()

    assert operation["error"]["code"] == 8
    assert "Resources are insufficient in region: us-central1" in operation["error"]["message"]
    assert http.get(f"/{VERTEX}/tuning").json()["state"] == "ERROR"
