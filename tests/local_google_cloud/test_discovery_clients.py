"""Life cycles driven by Google's discovery-based client, and by generated clients that speak REST.

The generated client of GKE speaks gRPC alone; that of Vertex AI brings a dozen libraries.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from typing import Any

import httplib2  # type: ignore[import-untyped]
import pytest
from google.auth.credentials import AnonymousCredentials
from googleapiclient.errors import HttpError  # type: ignore[import-untyped]

from tests.local_google_cloud.client import LOCATION, PROJECT, ZONE, Client

SECONDS = 20  # that a client waits for an operation of no length


def loaded(name: str, load: Callable[[str], Any] = import_module) -> Any:
    """Import a client's module only when a test needs it: it takes 2 s in each process that collects tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # google.api_core announces the end of this Python
        return load(name)


def generated(name: str) -> Any:
    """Return a module of a generated client."""
    return loaded(name, lambda name: pytest.importorskip(name, reason="not to be had for this Python"))


@pytest.fixture
def google(port: int) -> Iterator[Callable[..., Any]]:
    """Return a function that builds discovery-based clients of the server."""
    build = loaded("googleapiclient.discovery").build
    opened = []

    def made(service: str, version: str, below: str = "") -> Any:
        options = {"api_endpoint": f"http://127.0.0.1:{port}/{service}/{below}"}
        http = httplib2.Http(proxy_info=None)
        opened.append(http)
        return build(service, version, http=http, static_discovery=True, client_options=options)

    yield made
    for connection in opened:
        connection.close()


def test_a_training_job_is_accepted_from_the_discovery_client_and_with_enums_as_numbers(
    google: Callable[..., Any], port: int
) -> None:
    """google-cloud-aiplatform sends the numbers of enums; FLEX_START is 6, H100_80GB 13, and 5 is no strategy."""
    jobs = google("aiplatform", "v1").projects().locations().customJobs()
    machine: dict[str, Any] = {"machineType": "a3-highgpu-8g", "acceleratorType": 13, "acceleratorCount": 8}
    pool = {"machineSpec": machine, "replicaCount": "1", "containerSpec": {"imageUri": "example.com/a"}}

    def body(strategy: int) -> dict[str, Any]:
        spec = {"workerPoolSpecs": [pool], "scheduling": {"strategy": strategy}}
        return {"displayName": "train", "jobSpec": spec}

    created = jobs.create(parent=LOCATION, body=body(6)).execute()

    assert created["jobSpec"]["scheduling"]["strategy"] == "FLEX_START"
    assert created["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] == "NVIDIA_H100_80GB"
    assert jobs.get(name=created["name"]).execute()["state"] == "JOB_STATE_SUCCEEDED"
    with pytest.raises(HttpError, match="TYPE_ENUM"):
        jobs.create(parent=LOCATION, body=body(5)).execute()
    url = f"http://127.0.0.1:{port}/aiplatform/v1/{LOCATION}/customJobs?$alt=json;enum-encoding=int"
    content = json.dumps(body(6))
    with closing(httplib2.Http(proxy_info=None)) as plain:
        answer, _ = plain.request(url, "POST", content, {"Content-Type": "application/json"})
    assert answer.status == 200


def test_the_generated_client_takes_a_firewall_through_its_life(port: int, ask: Client) -> None:
    compute_v1 = generated("google.cloud.compute_v1")
    refusals = loaded("google.api_core.exceptions")
    transports = generated("google.cloud.compute_v1.services.firewalls.transports")
    ask.network()
    host = f"http://127.0.0.1:{port}/compute"
    transport = transports.FirewallsRestTransport(host=host, credentials=AnonymousCredentials())
    firewalls = compute_v1.FirewallsClient(transport=transport)
    allow = compute_v1.Firewall(
        name="allow", network="global/networks/net", allowed=[compute_v1.Allowed(I_p_protocol="tcp")]
    )

    firewalls.insert(project=PROJECT, firewall_resource=allow).result(SECONDS)
    with pytest.raises(refusals.Conflict):
        firewalls.insert(project=PROJECT, firewall_resource=allow)
    disabled = compute_v1.Firewall(disabled=True)
    firewalls.patch(project=PROJECT, firewall="allow", firewall_resource=disabled).result(SECONDS)
    (read,) = firewalls.list(project=PROJECT)
    assert (read.name, read.disabled, read.priority) == ("allow", True, 1000)
    firewalls.delete(project=PROJECT, firewall="allow").result(SECONDS)
    with pytest.raises(refusals.NotFound):
        firewalls.get(project=PROJECT, firewall="allow")


def test_the_generated_client_takes_a_file_share_through_its_life(port: int) -> None:
    filestore_v1 = generated("google.cloud.filestore_v1")
    refusals = loaded("google.api_core.exceptions")
    transports = generated("google.cloud.filestore_v1.services.cloud_filestore_manager.transports")
    host = f"http://127.0.0.1:{port}/file"
    transport = transports.CloudFilestoreManagerRestTransport(host=host, credentials=AnonymousCredentials())
    manager = filestore_v1.CloudFilestoreManagerClient(transport=transport)
    share = filestore_v1.FileShareConfig(name="a", capacity_gb=1024)
    network = filestore_v1.NetworkConfig(network="net")
    instance = filestore_v1.Instance(tier="ZONAL", file_shares=[share], networks=[network])

    operation = manager.create_instance(parent=ZONE, instance_id="homes", instance=instance)
    assert operation.result(SECONDS).state == filestore_v1.Instance.State.READY
    assert (operation.metadata.verb, operation.metadata.end_time >= operation.metadata.create_time) == ("create", True)
    small = filestore_v1.Instance(tier="BASIC_SSD", file_shares=[share], networks=[network])
    with pytest.raises(refusals.BadRequest):
        manager.create_instance(parent=ZONE, instance_id="small", instance=small)

    labelled = filestore_v1.Instance(name=f"{ZONE}/instances/homes", labels={"team": "vision"})
    changed = manager.update_instance(instance=labelled, update_mask={"paths": ["labels"]}).result(SECONDS)
    assert (changed.labels, changed.tier) == ({"team": "vision"}, filestore_v1.Instance.Tier.ZONAL)
    assert [listed.name for listed in manager.list_instances(parent=ZONE)] == [changed.name]
    manager.delete_instance(name=changed.name).result(SECONDS)
    with pytest.raises(refusals.NotFound):
        manager.get_instance(name=changed.name)
