"""Whom faults reach, and what of them outlives a restart, a resource made anew, and a reset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx

from tests.training_platform.sandbox.cloud.conftest import LOCATION, OTHER, PROJECT, Client
from tests.training_platform.sandbox.cloud.faults.conftest import NETWORKS, POOLS, pool
from training_platform.sandbox.cloud.faults.scenario import parse_scenario
from training_platform.sandbox.cloud.local_cloud import LocalCloud


def test_a_fault_of_a_project_leaves_the_others_alone(
    ask: Client, http: httpx.Client, add: Callable[..., None]
) -> None:
    ask.enable(OTHER, "compute", "container", "storage")
    add("bursts", code=503, project=OTHER)
    bucket = {"name": "example-other-data", "location": "us-central1"}

    assert http.get(f"/{NETWORKS}").status_code == 200
    assert http.get(f"/compute/v1/projects/{OTHER}/global/networks").status_code == 503
    ask.done("POST", "storage/v1/b", bucket, project=OTHER)
    assert http.get("/storage/v1/b/example-other-data").status_code == 503
    assert http.get("/storage/v1/b", params={"project": PROJECT}).status_code == 200

    http.post("/_sandbox/reset", params={"project": PROJECT})
    assert http.get(f"/compute/v1/projects/{OTHER}/global/networks").status_code == 503
    http.post("/_sandbox/reset", params={"project": OTHER})
    assert http.get("/_sandbox/faults").json() == []


def test_after_a_restart_nothing_goes_wrong_and_what_waited_goes_on(
    make: Callable[..., LocalCloud], tmp_path: Path
) -> None:
    file = tmp_path / "cloud.json"
    before = Client(make(file))
    before.enable(PROJECT, "compute", "container")
    before.network()
    before.cluster()
    scenario = "stuck_pools: {a: {name: held}}\nstockouts: {b: {machine_type: e2-standard-4, location: us-central1}}"
    before.cloud.faults.add(parse_scenario(scenario, "s.yaml"))
    for name in ("held", "short"):
        machine = "e2-standard-2" if name == "held" else "e2-standard-4"
        before.done("POST", POOLS, pool(name, machineType=machine))
    assert [before.done("GET", f"{POOLS}/{name}")["status"] for name in ("held", "short")] == ["PROVISIONING", "ERROR"]

    after = Client(make(file))
    assert [after.done("GET", f"{POOLS}/{name}")["status"] for name in ("held", "short")] == ["RUNNING", "RUNNING"]


def test_a_pool_made_anew_is_not_taken_for_the_one_that_waited(http: httpx.Client, add: Callable[..., None]) -> None:
    add("stockouts", machine_type="e2-standard-4", location="us-central1-a", times=1)
    http.post(f"/{POOLS}", json=pool())
    http.delete(f"/{POOLS}/cpu")
    http.post(
        "/_sandbox/faults", json={"failed_operations": {"more": {"kind": "container.nodePools", "action": "create"}}}
    )
    http.post(f"/{POOLS}", json=pool())

    http.delete("/_sandbox/faults")

    assert http.get(f"/{POOLS}/cpu").json()["status"] == "ERROR"


def test_a_resource_can_be_taken_away_with_all_that_belongs_to_it(cloud: LocalCloud, http: httpx.Client) -> None:
    http.post(f"/{POOLS}", json=pool())

    gone = http.delete(f"/_sandbox/resources/{LOCATION}/clusters/one")

    assert gone.json() == {"removed": [f"container/{LOCATION}/clusters/one"]}
    assert not [each.name for each in cloud.store.all() if "/clusters/one" in each.name or "instanceGroup" in each.name]
