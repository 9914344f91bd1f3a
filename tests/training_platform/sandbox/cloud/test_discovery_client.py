"""Life cycles driven by Google's discovery-based client."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.training_platform.sandbox.cloud.conftest import LOCATION, PROJECT, ZONE

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # google.api_core announces the end of this Python
    import httplib2  # type: ignore[import-untyped]
    from googleapiclient.discovery import build  # type: ignore[import-untyped]
    from googleapiclient.errors import HttpError  # type: ignore[import-untyped]


@pytest.fixture
def google(port: int) -> Iterator[Callable[..., Any]]:
    """Return a maker of discovery-based clients of the server."""
    opened = []

    def made(service: str, version: str, below: str = "") -> Any:
        options = {"api_endpoint": f"http://127.0.0.1:{port}/{service}/{below}"}
        http = httplib2.Http(proxy_info=None)
        opened.append(http)
        return build(service, version, http=http, static_discovery=True, client_options=options)

    yield made
    for each in opened:
        each.close()


def test_a_training_job_by_the_discovery_client_and_by_numbers_as_the_generated_one_sends_them(
    google: Callable[..., Any], port: int
) -> None:
    """google-cloud-aiplatform sends the numbers of enums; FLEX_START is 6, H100_80GB 13, and 5 is no strategy."""
    jobs = google("aiplatform", "v1").projects().locations().customJobs()
    machine: dict[str, Any] = {"machineType": "a3-highgpu-8g", "acceleratorType": 13, "acceleratorCount": 8}
    pool = {"machineSpec": machine, "replicaCount": "1", "containerSpec": {"imageUri": "example.com/a"}}

    def body(strategy: int) -> dict[str, Any]:
        spec = {"workerPoolSpecs": [pool], "scheduling": {"strategy": strategy}}
        return {"displayName": "train", "jobSpec": spec}

    made = jobs.create(parent=LOCATION, body=body(6)).execute()

    assert made["jobSpec"]["scheduling"]["strategy"] == "FLEX_START"
    assert made["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] == "NVIDIA_H100_80GB"
    assert jobs.get(name=made["name"]).execute()["state"] == "JOB_STATE_SUCCEEDED"
    with pytest.raises(HttpError, match="TYPE_ENUM"):
        jobs.create(parent=LOCATION, body=body(5)).execute()
    url = f"http://127.0.0.1:{port}/aiplatform/v1/{LOCATION}/customJobs?$alt=json;enum-encoding=int"
    content = json.dumps(body(6))
    with closing(httplib2.Http(proxy_info=None)) as plain:
        answer, _ = plain.request(url, "POST", content, {"Content-Type": "application/json"})
    assert answer.status == 200


def test_the_discovery_client_takes_a_cluster_through_its_life(google: Callable[..., Any]) -> None:
    compute, gke = google("compute", "v1", "compute/v1/"), google("container", "v1").projects().locations()
    compute.networks().insert(project=PROJECT, body={"name": "net", "autoCreateSubnetworks": False}).execute()
    subnet = {"name": "nodes", "network": f"projects/{PROJECT}/global/networks/net", "ipCidrRange": "10.0.0.0/20"}
    compute.subnetworks().insert(project=PROJECT, region="us-central1", body=subnet).execute()
    google("iam", "v1").projects().serviceAccounts().create(
        name=f"projects/{PROJECT}", body={"accountId": "node-account"}
    ).execute()
    cluster = {"name": "one", "initialNodeCount": 1, "network": "net", "subnetwork": "nodes"}

    operation = gke.clusters().create(parent=LOCATION, body={"cluster": cluster}).execute()
    assert gke.operations().get(name=f"{LOCATION}/operations/{operation['name']}").execute()["status"] == "DONE"

    pool = {"name": "cpu", "initialNodeCount": 1, "config": {"machineType": "e2-standard-4"}}
    pools = gke.clusters().nodePools()
    with pytest.raises(HttpError, match=r"Unknown name .*size"):
        pools.create(parent=f"{LOCATION}/clusters/one", body={"nodePool": {**pool, "size": 1}}).execute()
    pools.create(parent=f"{LOCATION}/clusters/one", body={"nodePool": pool}).execute()
    assert [each["name"] for each in pools.list(parent=f"{LOCATION}/clusters/one").execute()["nodePools"]] == [
        "cpu",
        "default-pool",
    ]
    pools.delete(name=f"{LOCATION}/clusters/one/nodePools/cpu").execute()
    gke.clusters().delete(name=f"{LOCATION}/clusters/one").execute()
    with pytest.raises(HttpError, match="404"):
        gke.clusters().get(name=f"{LOCATION}/clusters/one").execute()


def test_the_discovery_client_takes_networks_through_their_life(google: Callable[..., Any]) -> None:
    compute = google("compute", "v1", "compute/v1/")
    made = compute.networks().insert(project=PROJECT, body={"name": "net", "autoCreateSubnetworks": False}).execute()
    waited = compute.globalOperations().wait(project=PROJECT, operation=made["name"]).execute()
    assert (waited["status"], waited["targetLink"].rpartition("/")[2]) == ("DONE", "net")
    with pytest.raises(HttpError, match="already exists"):
        compute.networks().insert(project=PROJECT, body={"name": "net"}).execute()

    places = {"project": PROJECT, "region": "us-central1"}
    subnet = {"name": "nodes", "network": "global/networks/net", "ipCidrRange": "10.0.0.0/20"}
    compute.subnetworks().insert(**places, body=subnet).execute()
    compute.subnetworks().expandIpCidrRange(**places, subnetwork="nodes", body={"ipCidrRange": "10.0.0.0/19"}).execute()
    assert compute.subnetworks().get(**places, subnetwork="nodes").execute()["ipCidrRange"] == "10.0.0.0/19"
    with pytest.raises(HttpError, match="nodes"):
        compute.networks().delete(project=PROJECT, network="net").execute()

    compute.subnetworks().delete(**places, subnetwork="nodes").execute()
    compute.networks().delete(project=PROJECT, network="net").execute()
    assert "items" not in compute.networks().list(project=PROJECT).execute()


def test_the_discovery_client_takes_a_file_share_through_its_life(google: Callable[..., Any]) -> None:
    instances = google("file", "v1").projects().locations().instances()
    body = {
        "tier": "ZONAL",
        "fileShares": [{"name": "a", "capacityGb": "1024"}],
        "networks": [{"network": "net", "modes": ["MODE_IPV4"]}],
    }
    operation = instances.create(parent=ZONE, instanceId="homes", body=body).execute()
    assert operation["done"]
    assert operation["response"]["state"] == "READY"
    assert operation["metadata"]["verb"] == "create"

    name = f"{ZONE}/instances/homes"
    shares = [{"name": "a", "capacityGb": "2048"}]
    instances.patch(name=name, updateMask="file_shares", body={"fileShares": shares}).execute()
    assert instances.get(name=name).execute()["fileShares"][0]["capacityGb"] == "2048"
    assert [each["name"] for each in instances.list(parent=ZONE).execute()["instances"]] == [name]
    instances.delete(name=name).execute()
    with pytest.raises(HttpError, match="404"):
        instances.get(name=name).execute()


def test_the_discovery_client_takes_a_persistent_resource_through_its_life(google: Callable[..., Any]) -> None:
    resources = google("aiplatform", "v1").projects().locations().persistentResources()
    pool = {
        "machineSpec": {"machineType": "n1-standard-8"},
        "replicaCount": "1",
        "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
    }
    body = {"resourcePools": [pool]}
    operation = resources.create(parent=LOCATION, persistentResourceId="tuning", body=body).execute()
    assert operation["done"]
    made = operation["metadata"]["@type"].rpartition(".")[2]
    assert made == "CreatePersistentResourceOperationMetadata"

    name = f"{LOCATION}/persistentResources/tuning"
    resources.patch(name=name, updateMask="displayName", body={"displayName": "for tuning"}).execute()
    read = resources.get(name=name).execute()
    assert (read["displayName"], read["state"]) == ("for tuning", "RUNNING")
    assert len(resources.list(parent=LOCATION).execute()["persistentResources"]) == 1
    resources.delete(name=name).execute()
    with pytest.raises(HttpError, match="404"):
        resources.get(name=name).execute()
