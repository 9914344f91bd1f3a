"""Failed operations, stock-outs and lost responses, in a served cloud with a cluster and a clock to advance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from local_google_cloud.http.server import serve
from local_google_cloud.local_cloud import LocalCloud
from tests.local_google_cloud.client import INSTANCE, LOCATION, PROJECT, TRAINING, ZONE, Client, Json

CLUSTER = f"container/v1/{LOCATION}/clusters/one"
POOLS = f"{CLUSTER}/nodePools"
NETWORKS = f"compute/v1/projects/{PROJECT}/global/networks"
VERTEX = f"aiplatform/v1/{LOCATION}/persistentResources"
RESOURCE = {"resourcePools": [TRAINING]}


class Faulty(httpx.Client):
    """A client of a served cloud that plants faults in it and advances its clock."""

    def add(self, fault: str) -> None:
        self.put(f"/_sandbox/faults/{fault}").raise_for_status()

    def clear(self, fault: str) -> None:
        self.delete(f"/_sandbox/faults/{fault}").raise_for_status()

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
    error: tuple[str, str] | None


CREATES = (
    Create("container.nodePools", POOLS, pool("it"), {}, ("status", "ERROR")),
    Create("file.instances", INSTANCES, INSTANCE, {"instanceId": "it"}, ("state", "ERROR")),
    Create("aiplatform.persistentResources", VERTEX, RESOURCE, {"persistentResourceId": "it"}, ("state", "ERROR")),
    Create("compute.networks", NETWORKS, {"name": "it", "autoCreateSubnetworks": False}, {}, None),
)


@pytest.mark.parametrize("create", CREATES, ids=[create.kind for create in CREATES])
def test_a_create_that_fails_half_way_leaves_what_google_leaves(http: Faulty, create: Create) -> None:
    http.last(create.kind, 100.0)
    http.add(f"failure={create.kind}")
    path = f"/{create.collection}"

    assert http.post(path, json=create.body, params=create.query).status_code == 200
    http.wait(49)
    assert http.get(f"{path}/it").status_code == 200
    http.wait(1)

    response = http.get(f"{path}/it")
    if create.error is None:
        assert response.status_code == 404
    else:
        assert response.json()[create.error[0]] == create.error[1]
        assert http.delete(f"{path}/it").status_code == 200
        http.wait(100)
    assert http.post(path, json=create.body, params=create.query).status_code == 200
    http.wait(100)
    assert http.get(f"{path}/it").json().get("statusMessage") is None


def test_an_operation_says_how_it_failed_in_the_form_of_its_api(http: Faulty) -> None:
    http.add("failure=compute.networks")
    operation = http.post(f"/{NETWORKS}", json={"name": "it", "autoCreateSubnetworks": False}).json()
    assert operation["error"]["errors"] == [{"code": "INTERNAL", "message": "Internal error."}]

    http.add("failure=container.nodePools")
    operation = http.create(pool())
    assert (operation["status"], operation["statusMessage"]) == ("DONE", "Internal error.")


def test_a_failure_waits_for_a_create(http: Faulty) -> None:
    http.create(pool())
    http.add("failure=container.nodePools")

    http.put(f"/{POOLS}/cpu", json={"labels": {"labels": {"turn": "first"}}})
    assert http.status() == "RUNNING"
    assert "error" not in http.delete(f"/{POOLS}/cpu").json()
    http.create(pool())
    assert http.status() == "ERROR"


def test_a_sold_out_machine_fails_the_operation_and_leaves_the_pool_in_error_until_there_are_some(http: Faulty) -> None:
    http.last("container.nodePools", 60.0)
    http.add("stockout=e2-standard-4")

    operation = http.create(pool(nodes=3))
    assert operation["status"] == "RUNNING"
    http.wait(60)

    ended = http.operation(operation)
    assert ended["status"] == "DONE"
    assert (
        "IGM after 60s. Expected 3, running 0, transitioning 3. Current errors: [GCE_STOCKOUT]"
        in (ended["statusMessage"])
    )
    assert f"The zone 'projects/{PROJECT}/zones/us-central1-a' does not have enough" in ended["error"]["message"]
    failed = http.pool()
    assert (failed["status"], failed["statusMessage"]) == ("ERROR", ended["statusMessage"])
    assert http.hits() == [f"create container/{LOCATION}/clusters/one/nodePools/cpu"]

    http.clear("stockout=e2-standard-4")
    well = http.pool()
    assert well["status"] == "RUNNING"
    assert "statusMessage" not in well


@pytest.mark.parametrize(
    "body",
    [
        pool(machineType="e2-standard-2"),
        pool(nodes=0),
        pool(reservationAffinity={"consumeReservationType": "SPECIFIC_RESERVATION", "key": "k", "values": ["r"]}),
    ],
)
def test_only_vms_that_are_requested_and_not_reserved_run_out(http: Faulty, body: Json) -> None:
    http.add("stockout=e2-standard-4")

    http.create(body)

    assert http.status() == "RUNNING"


def test_a_pool_that_grows_without_vms_runs_with_an_error_and_one_that_shrinks_does_not(http: Faulty) -> None:
    http.create(pool(nodes=2))
    http.add("stockout=e2-standard-4")

    http.post(f"/{POOLS}/cpu:setSize", json={"nodeCount": 1})
    assert http.status() == "RUNNING"
    http.post(f"/{POOLS}/cpu:setSize", json={"nodeCount": 3})
    assert http.status() == "RUNNING_WITH_ERROR"

    http.clear("stockout=e2-standard-4")
    assert http.status() == "RUNNING"


def test_a_cluster_whose_first_pool_finds_no_vms_is_in_error(http: Faulty) -> None:
    http.add("stockout=e2-standard-4")
    body = {"name": "two", "network": "net", "subnetwork": "nodes", "nodePools": [pool()["nodePool"]]}

    http.post(f"/container/v1/{LOCATION}/clusters", json={"cluster": body})

    assert http.get(f"/container/v1/{LOCATION}/clusters/two").json()["status"] == "ERROR"


def test_a_persistent_resource_fails_in_a_sold_out_region(http: Faulty) -> None:
    http.add("stockout=n1-standard-8")

    operation = http.post(f"/{VERTEX}", params={"persistentResourceId": "tuning"}, json=RESOURCE).json()

    assert operation["error"]["code"] == 8
    assert "Resources are insufficient in region: us-central1" in operation["error"]["message"]
    assert http.get(f"/{VERTEX}/tuning").json()["state"] == "ERROR"


def test_an_answer_that_is_lost_closes_the_connection_after_the_effect(http: Faulty) -> None:
    http.add("lost-response=compute.networks")
    body = {"name": "it", "autoCreateSubnetworks": False}

    assert http.get(f"/{NETWORKS}").status_code == 200
    assert http.post(f"/{NETWORKS}", json={"name": "NOT A NAME"}).status_code == 400
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        http.post(f"/{NETWORKS}", json=body)

    assert http.get(f"/{NETWORKS}/it").status_code == 200
    assert http.post(f"/{NETWORKS}", json=body).status_code == 409
    assert http.post(f"/{NETWORKS}", json={**body, "name": "other"}).status_code == 200
    assert http.hits() == [f"POST /{NETWORKS}"]


def test_after_a_restart_nothing_goes_wrong_and_what_waited_goes_on(
    make: Callable[..., LocalCloud], tmp_path: Path
) -> None:
    file = tmp_path / "cloud.json"
    before = Client(make(file))
    before.enable(PROJECT, "compute", "container")
    before.network()
    before.cluster()
    before.cloud.faults.add("stockout=e2-standard-4")
    before.done("POST", POOLS, pool())
    assert before.done("GET", f"{POOLS}/cpu")["status"] == "ERROR"

    after = Client(make(file))
    assert after.done("GET", f"{POOLS}/cpu")["status"] == "RUNNING"


def test_a_recreated_pool_is_not_taken_for_the_one_that_waited(http: Faulty) -> None:
    http.add("stockout=e2-standard-4")
    http.create(pool())
    http.delete(f"/{POOLS}/cpu")
    http.add("failure=container.nodePools")
    http.create(pool(machineType="e2-standard-2"))

    http.clear("stockout=e2-standard-4")

    assert http.status() == "ERROR"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stock-out=a", "'stock-out=a' is not a fault. Allowed: stockout=MACHINE_TYPE, failure=KIND, "),
        ("stock-out=a", "Nearest: stockout"),
        ("stockout=a3-higpu-8g", "'a3-higpu-8g' is not a machine type. Nearest: a3-highgpu-8g"),
        ("failure=container.nodePool", "'container.nodePool' is not a kind of resource. Nearest: container.nodePools"),
        ("lost-response", "'' is not a kind of resource."),
    ],
)
def test_a_text_that_is_no_fault_is_refused_with_what_is_near(http: Faulty, text: str, message: str) -> None:
    answer = http.put(f"/_sandbox/faults/{text}")

    assert answer.status_code == 400
    assert message in answer.json()["error"]
    assert http.get("/_sandbox/faults").json() == []


def test_a_resource_can_be_removed_with_everything_in_it(cloud: LocalCloud, http: Faulty) -> None:
    http.create(pool())

    gone = http.delete(f"/_sandbox/resources/{LOCATION}/clusters/one")

    assert gone.json() == {"removed": [f"container/{LOCATION}/clusters/one"]}
    assert not [
        record.name for record in cloud.store.all() if "/clusters/one" in record.name or "instanceGroup" in record.name
    ]
