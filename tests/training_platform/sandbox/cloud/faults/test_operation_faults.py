"""Operations that fail, are slow or are stuck: what a client sees, and what is there afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pytest

from tests.training_platform.sandbox.cloud.conftest import LOCATION, ZONE, Json
from tests.training_platform.sandbox.cloud.faults.conftest import NETWORKS, POOLS, TRAINING, VERTEX, pool

INSTANCES = f"file/v1/{ZONE}/instances"
SHARE = {"tier": "ZONAL", "fileShares": [{"name": "a", "capacityGb": "1024"}], "networks": [{"network": "net"}]}


@dataclass(frozen=True)
class Create:
    """A create of a resource ``it``, and the field and value that say it is in error; None where it is then gone."""

    kind: str
    collection: str
    body: Json
    query: dict[str, str]
    left: tuple[str, str] | None


CREATES = (
    Create("container.nodePools", POOLS, pool("it"), {}, ("status", "ERROR")),
    Create("file.instances", INSTANCES, SHARE, {"instanceId": "it"}, ("state", "ERROR")),
    Create("aiplatform.persistentResources", VERTEX, TRAINING, {"persistentResourceId": "it"}, ("state", "ERROR")),
    Create("compute.networks", NETWORKS, {"name": "it", "autoCreateSubnetworks": False}, {}, None),
)


@pytest.mark.parametrize("create", CREATES, ids=[each.kind for each in CREATES])
def test_a_create_that_fails_half_way_leaves_what_google_leaves(
    http: httpx.Client, add: Callable[..., None], pass_time: Callable[[float], None], create: Create
) -> None:
    http.put("/_sandbox/settings", json={"durations": {create.kind: 100.0}})
    add("failed_operations", kind=create.kind, action="create", at=0.25, message="Something broke.", times=1)
    path = f"/{create.collection}"

    assert http.post(path, json=create.body, params=create.query).status_code == 200
    pass_time(24)
    assert http.get(f"{path}/it").status_code == 200
    pass_time(1)

    found = http.get(f"{path}/it")
    if create.left is None:
        assert found.status_code == 404
    else:
        assert found.json()[create.left[0]] == create.left[1]
        assert http.delete(f"{path}/it").status_code == 200
        pass_time(100)
    assert http.post(path, json=create.body, params=create.query).status_code == 200


def test_an_operation_says_how_it_failed_in_the_form_of_its_api(http: httpx.Client, add: Callable[..., None]) -> None:
    add("failed_operations", kind="compute.networks", message="Something broke.")
    operation = http.post(f"/{NETWORKS}", json={"name": "it", "autoCreateSubnetworks": False}).json()
    assert operation["error"]["errors"] == [{"code": "INTERNAL", "message": "Something broke."}]

    http.delete("/_sandbox/faults")
    add("failed_operations", kind="container.nodePools", message="Something broke.")
    operation = http.post(f"/{POOLS}", json=pool()).json()
    assert (operation["status"], operation["statusMessage"]) == ("DONE", "Something broke.")


def test_the_second_update_fails_and_the_pool_says_so_until_the_third(
    http: httpx.Client, add: Callable[..., None]
) -> None:
    http.post(f"/{POOLS}", json=pool())
    add("failed_operations", kind="container.nodePools", action="update", name="c*", skip=1, times=1)

    for expected in ("RUNNING", "RUNNING_WITH_ERROR", "RUNNING"):
        http.put(f"/{POOLS}/cpu", json={"labels": {"labels": {"turn": expected.lower()}}})
        found = http.get(f"/{POOLS}/cpu").json()
        assert found["status"] == expected
        assert ("statusMessage" in found) is (expected != "RUNNING")


def test_a_failed_delete_leaves_the_resource_and_the_next_removes_it(
    http: httpx.Client, add: Callable[..., None]
) -> None:
    add("failed_operations", kind="compute.networks", action="delete", times=1)
    http.post(f"/{NETWORKS}", json={"name": "it", "autoCreateSubnetworks": False})

    assert "error" in http.delete(f"/{NETWORKS}/it").json()
    assert http.get(f"/{NETWORKS}/it").status_code == 200
    assert "error" not in http.delete(f"/{NETWORKS}/it").json()
    assert http.get(f"/{NETWORKS}/it").status_code == 404


@pytest.mark.parametrize(("fault", "seconds"), [({"factor": 2.5}, 250), ({"seconds": 40}, 140)])
def test_a_slow_operation_takes_longer_by_so_much(
    http: httpx.Client, add: Callable[..., None], pass_time: Callable[[float], None], fault: Json, seconds: int
) -> None:
    http.put("/_sandbox/settings", json={"durations": {"container.nodePools": 100.0}})
    add("slow_operations", kind="container.nodePools", **fault)
    http.post(f"/{POOLS}", json=pool())

    pass_time(seconds - 1)
    assert http.get(f"/{POOLS}/cpu").json()["status"] == "PROVISIONING"
    pass_time(1)
    assert http.get(f"/{POOLS}/cpu").json()["status"] == "RUNNING"


def test_a_stuck_pool_is_provisioning_until_the_fault_is_lifted(
    http: httpx.Client, add: Callable[..., None], pass_time: Callable[[float], None]
) -> None:
    add("stuck_pools", cluster="one", name="c?u")
    operation = http.post(f"/{POOLS}", json=pool()).json()
    http.post(f"/{POOLS}", json=pool("other"))
    pass_time(100_000)

    assert http.get(f"/{POOLS}/cpu").json()["status"] == "PROVISIONING"
    assert http.get(f"/{POOLS}/other").json()["status"] == "RUNNING"
    http.delete("/_sandbox/faults/planned")

    assert http.get(f"/{POOLS}/cpu").json()["status"] == "RUNNING"
    assert http.get(f"/container/v1/{LOCATION}/operations/{operation['name']}").json()["status"] == "DONE"


def test_a_pool_is_stuck_for_a_time(
    http: httpx.Client, add: Callable[..., None], pass_time: Callable[[float], None]
) -> None:
    add("stuck_pools", for_seconds=900)
    http.post(f"/{POOLS}", json=pool())

    pass_time(899)
    assert http.get(f"/{POOLS}/cpu").json()["status"] == "PROVISIONING"
    pass_time(1)
    assert http.get(f"/{POOLS}/cpu").json()["status"] == "RUNNING"
