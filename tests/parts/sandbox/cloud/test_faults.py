"""Faults of operations, stock-outs and faults of requests, in a served cloud with a cluster and a clock to advance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.parts.sandbox.cloud.client import INSTANCE, LOCATION, OTHER, PROJECT, TRAINING, ZONE, Client, Json
from training_platform.parts.sandbox.cloud.faults.scenario import parse_scenario
from training_platform.parts.sandbox.cloud.http.server import serve
from training_platform.parts.sandbox.cloud.local_cloud import LocalCloud

CLUSTER = f"container/v1/{LOCATION}/clusters/one"
POOLS = f"{CLUSTER}/nodePools"
NETWORKS = f"compute/v1/projects/{PROJECT}/global/networks"
VERTEX = f"aiplatform/v1/{LOCATION}/persistentResources"
RESOURCE = {"resourcePools": [TRAINING]}


class Faulty(httpx.Client):
    """A client of a served cloud that plants faults in it and advances its clock."""

    def add(self, section: str, **fault: Any) -> None:
        answer = self.post("/_sandbox/faults", json={section: {"planned": fault}})
        assert (answer.status_code, answer.json()) == (200, {"added": ["planned"]})

    def clear(self) -> None:
        self.delete("/_sandbox/faults").raise_for_status()

    def hits(self) -> list[str]:
        return [event["what"] for fault in self.get("/_sandbox/faults").json() for event in fault["events"]]

    def wait(self, seconds: float) -> None:
        self.post("/_sandbox/clock", json={"advance": seconds}).raise_for_status()

    def last(self, kind: str, seconds: float) -> None:
        """Set how long operations of a kind last."""
        self.put("/_sandbox/settings", json={"durations": {kind: seconds}}).raise_for_status()

    def create(self, body: Json) -> Json:
        """Create a node pool; returns the operation."""
        answer = self.post(f"/{POOLS}", json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def pool(self, name: str = "cpu") -> Json:
        return dict(self.get(f"/{POOLS}/{name}").json())

    def status(self, name: str = "cpu") -> str:
        return str(self.pool(name)["status"])

    def operation(self, begun: Json) -> Json:
        return dict(self.get(f"/container/v1/{LOCATION}/operations/{begun['name']}").json())


@pytest.fixture
def http(cloud: LocalCloud, ask: Client) -> Iterator[Faulty]:
    ask.network()
    ask.cluster()
    with serve(cloud) as port, Faulty(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client


def pool(name: str = "cpu", nodes: int = 1, zones: tuple[str, ...] = ("us-central1-a",), **config: Any) -> Json:
    config = {"machineType": "e2-standard-4", **config}
    return {"nodePool": {"name": name, "initialNodeCount": nodes, "locations": list(zones), "config": config}}


INSTANCES = f"file/v1/{ZONE}/instances"


@dataclass(frozen=True)
class Create:
    """A create of a resource ``it``, and the field and value that show its error; None if it is gone then."""

    kind: str
    collection: str
    body: Json
    query: dict[str, str]
    left: tuple[str, str] | None


CREATES = (
    Create("container.nodePools", POOLS, pool("it"), {}, ("status", "ERROR")),
    Create("file.instances", INSTANCES, INSTANCE, {"instanceId": "it"}, ("state", "ERROR")),
    Create("aiplatform.persistentResources", VERTEX, RESOURCE, {"persistentResourceId": "it"}, ("state", "ERROR")),
    Create("compute.networks", NETWORKS, {"name": "it", "autoCreateSubnetworks": False}, {}, None),
)


@pytest.mark.parametrize("create", CREATES, ids=[create.kind for create in CREATES])
def test_a_create_that_fails_half_way_leaves_what_google_leaves(http: Faulty, create: Create) -> None:
    http.last(create.kind, 100.0)
    http.add("failed_operations", kind=create.kind, action="create", at=0.25, message="Something broke.", times=1)
    path = f"/{create.collection}"

    assert http.post(path, json=create.body, params=create.query).status_code == 200
    http.wait(24)
    assert http.get(f"{path}/it").status_code == 200
    http.wait(1)

    response = http.get(f"{path}/it")
    if create.left is None:
        assert response.status_code == 404
    else:
        assert response.json()[create.left[0]] == create.left[1]
        assert http.delete(f"{path}/it").status_code == 200
        http.wait(100)
    assert http.post(path, json=create.body, params=create.query).status_code == 200


def test_an_operation_says_how_it_failed_in_the_form_of_its_api(http: Faulty) -> None:
    http.add("failed_operations", kind="compute.networks", message="Something broke.")
    operation = http.post(f"/{NETWORKS}", json={"name": "it", "autoCreateSubnetworks": False}).json()
    assert operation["error"]["errors"] == [{"code": "INTERNAL", "message": "Something broke."}]

    http.clear()
    http.add("failed_operations", kind="container.nodePools", message="Something broke.")
    operation = http.create(pool())
    assert (operation["status"], operation["statusMessage"]) == ("DONE", "Something broke.")


def test_the_second_update_fails_and_the_pool_says_so_until_the_third(http: Faulty) -> None:
    http.create(pool())
    http.add("failed_operations", kind="container.nodePools", action="update", name="c*", skip=1, times=1)

    for expected in ("RUNNING", "RUNNING_WITH_ERROR", "RUNNING"):
        http.put(f"/{POOLS}/cpu", json={"labels": {"labels": {"turn": expected.lower()}}})
        node_pool = http.pool()
        assert node_pool["status"] == expected
        assert ("statusMessage" in node_pool) is (expected != "RUNNING")


def test_a_failed_delete_leaves_the_resource_and_the_next_removes_it(http: Faulty) -> None:
    http.add("failed_operations", kind="compute.networks", action="delete", times=1)
    http.post(f"/{NETWORKS}", json={"name": "it", "autoCreateSubnetworks": False})

    assert "error" in http.delete(f"/{NETWORKS}/it").json()
    assert http.get(f"/{NETWORKS}/it").status_code == 200
    assert "error" not in http.delete(f"/{NETWORKS}/it").json()
    assert http.get(f"/{NETWORKS}/it").status_code == 404


def test_a_sold_out_machine_fails_the_operation_and_leaves_the_pool_in_error_until_there_are_some(http: Faulty) -> None:
    http.add("stockouts", machine_type="e2-standard-4", location="us-central1-a", after_seconds=60, for_seconds=3600)

    operation = http.create(pool(nodes=3))
    assert operation["status"] == "RUNNING"
    http.wait(60)

    ended = http.operation(operation)
    assert ended["status"] == "DONE"
    assert "Expected 3, running 0, transitioning 3. Current errors: [GCE_STOCKOUT]" in ended["statusMessage"]
    assert f"The zone 'projects/{PROJECT}/zones/us-central1-a' does not have enough" in ended["error"]["message"]
    left = http.pool()
    assert (left["status"], left["statusMessage"]) == ("ERROR", ended["statusMessage"])
    assert http.hits() == [f"create container/{LOCATION}/clusters/one/nodePools/cpu"]

    http.wait(3539)
    assert http.status() == "ERROR"
    http.wait(1)
    well = http.pool()
    assert well["status"] == "RUNNING"
    assert "statusMessage" not in well


@pytest.mark.parametrize(("takes", "well"), [(10, 30), (45, 45)])
def test_an_operation_that_finds_vms_before_it_gives_up_ends_well(http: Faulty, takes: int, well: int) -> None:
    http.last("container.nodePools", float(takes))
    http.add("stockouts", machine_type="e2-standard-4", location="us-central1-a", after_seconds=60, for_seconds=30)

    operation = http.create(pool())
    http.wait(well - 1)
    assert http.status() == "PROVISIONING"
    http.wait(1)

    assert http.status() == "RUNNING"
    ended = http.operation(operation)
    assert ended["status"] == "DONE"
    assert "error" not in ended


def test_an_operation_that_gave_up_before_there_were_vms_failed_whenever_it_is_looked_at(http: Faulty) -> None:
    http.add("stockouts", machine_type="e2-standard-4", location="us-central1-a", after_seconds=60, for_seconds=61)

    operation = http.create(pool())
    http.wait(1000)

    assert "error" in http.operation(operation)
    assert http.status() == "RUNNING"


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
def test_only_vms_that_are_asked_for_and_not_reserved_run_out(http: Faulty, body: Json, status: str) -> None:
    http.add("stockouts", machine_type="e2-standard-4", location="us-central1-a")

    http.create(body)
    assert http.status() == status


def test_a_pool_that_grows_into_a_sold_out_zone_runs_with_an_error_and_one_that_shrinks_does_not(http: Faulty) -> None:
    http.create(pool(nodes=2))
    http.add("stockouts", machine_type="e2-standard-4", location="us-central1")

    http.post(f"/{POOLS}/cpu:setSize", json={"nodeCount": 1})
    assert http.status() == "RUNNING"
    http.post(f"/{POOLS}/cpu:setSize", json={"nodeCount": 3})
    assert http.status() == "RUNNING_WITH_ERROR"

    http.delete("/_sandbox/faults/planned")
    assert http.status() == "RUNNING"


def test_a_cluster_whose_first_pool_finds_no_vms_is_in_error(http: Faulty) -> None:
    http.add("stockouts", machine_type="e2-standard-4", location="us-central1-f")
    first = pool(zones=("us-central1-f",))["nodePool"]
    body = {"name": "two", "network": "net", "subnetwork": "nodes", "nodePools": [first]}

    http.post(f"/container/v1/{LOCATION}/clusters", json={"cluster": body})

    assert http.get(f"/container/v1/{LOCATION}/clusters/two").json()["status"] == "ERROR"


def test_a_persistent_resource_fails_in_a_sold_out_region(http: Faulty) -> None:
    http.add("stockouts", machine_type="n1-standard-8", location="us-central1")

    operation = http.post(f"/{VERTEX}", params={"persistentResourceId": "tuning"}, json=RESOURCE).json()

    assert operation["error"]["code"] == 8
    assert "Resources are insufficient in region: us-central1" in operation["error"]["message"]
    assert http.get(f"/{VERTEX}/tuning").json()["state"] == "ERROR"


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (401, "UNAUTHENTICATED", "authError"),
        (429, "RESOURCE_EXHAUSTED", "rateLimitExceeded"),
        (503, "UNAVAILABLE", "backendError"),
    ],
)
def test_a_burst_turns_requests_away_so_often_and_then_lets_them_through(
    http: Faulty, code: int, status: str, reason: str
) -> None:
    http.add("bursts", code=code, service="compute", verb="POST", path="v1/*/networks", times=2)
    body = {"name": "it", "autoCreateSubnetworks": False}

    for _ in range(2):
        refused = http.post(f"/{NETWORKS}", json=body)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["status"]) == (code, code, status)
        assert error["errors"][0]["reason"] == reason
        assert http.get(f"/{NETWORKS}/it").status_code == 404

    assert http.post(f"/{NETWORKS}", json=body).status_code == 200
    assert http.hits() == [f"POST /{NETWORKS}"] * 2


def test_a_burst_lasts_from_a_time_for_a_time(http: Faulty) -> None:
    http.add("bursts", code=503, from_seconds=10, for_seconds=20)

    seen = []
    for wait in (9, 1, 19, 1):
        http.wait(wait)
        seen.append(http.get(f"/{NETWORKS}").status_code)

    assert seen == [200, 503, 503, 200]


def test_an_answer_that_is_lost_closes_the_connection_after_the_effect(http: Faulty) -> None:
    http.add("lost_responses", times=1)
    body = {"name": "it", "autoCreateSubnetworks": False}

    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        http.post(f"/{NETWORKS}", json=body)

    assert http.get(f"/{NETWORKS}/it").status_code == 200
    assert http.post(f"/{NETWORKS}", json=body).status_code == 409


def test_reads_and_refusals_are_not_lost(http: Faulty) -> None:
    http.add("lost_responses")

    assert http.get(f"/{CLUSTER}").status_code == 200
    assert http.post(f"/{NETWORKS}", json={"name": "NOT A NAME"}).status_code == 400
    assert http.hits() == []


def test_a_fault_of_a_project_leaves_the_others_alone(ask: Client, http: Faulty) -> None:
    ask.enable(OTHER, "compute", "container", "storage")
    http.add("bursts", code=503, project=OTHER)
    bucket = {"name": "example-other-data", "location": "us-central1"}

    assert http.get(f"/{NETWORKS}").status_code == 200
    assert http.get(f"/compute/v1/projects/{OTHER}/global/networks").status_code == 503
    ask.done("POST", "storage/v1/b", bucket, project=OTHER)
    assert http.get("/storage/v1/b/example-other-data").status_code == 503
    assert http.get("/storage/v1/b", params={"project": PROJECT}).status_code == 200


def test_after_a_restart_nothing_goes_wrong_and_what_waited_goes_on(
    make: Callable[..., LocalCloud], tmp_path: Path
) -> None:
    file = tmp_path / "cloud.json"
    before = Client(make(file))
    before.enable(PROJECT, "compute", "container")
    before.network()
    before.cluster()
    scenario = "stockouts: {sold-out: {machine_type: e2-standard-4, location: us-central1}}"
    before.cloud.faults.add(parse_scenario(scenario, "s.yaml"))
    before.done("POST", POOLS, pool())
    assert before.done("GET", f"{POOLS}/cpu")["status"] == "ERROR"

    after = Client(make(file))
    assert after.done("GET", f"{POOLS}/cpu")["status"] == "RUNNING"


def test_a_recreated_pool_is_not_taken_for_the_one_that_waited(http: Faulty) -> None:
    http.add("stockouts", machine_type="e2-standard-4", location="us-central1-a", times=1)
    http.create(pool())
    http.delete(f"/{POOLS}/cpu")
    http.post(
        "/_sandbox/faults", json={"failed_operations": {"more": {"kind": "container.nodePools", "action": "create"}}}
    )
    http.create(pool())

    http.clear()

    assert http.status() == "ERROR"


def test_a_resource_can_be_removed_with_everything_in_it(cloud: LocalCloud, http: Faulty) -> None:
    http.create(pool())

    gone = http.delete(f"/_sandbox/resources/{LOCATION}/clusters/one")

    assert gone.json() == {"removed": [f"container/{LOCATION}/clusters/one"]}
    assert not [
        record.name for record in cloud.store.all() if "/clusters/one" in record.name or "instanceGroup" in record.name
    ]
