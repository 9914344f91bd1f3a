"""Life cycles driven by Google's generated clients, where they speak REST and can be had beside our own libraries.

That of GKE speaks gRPC alone; that of Vertex AI brings a dozen libraries.
"""

from __future__ import annotations

import warnings

import pytest
from google.auth.credentials import AnonymousCredentials

from tests.training_platform.sandbox.cloud.conftest import PROJECT, ZONE, Client

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # google.api_core announces the end of this Python
    compute_v1 = pytest.importorskip("google.cloud.compute_v1", reason="not to be had for this Python")
    filestore_v1 = pytest.importorskip("google.cloud.filestore_v1", reason="not to be had for this Python")
    from google.api_core.exceptions import BadRequest, Conflict, NotFound
    from google.cloud.compute_v1.services.firewalls.transports import FirewallsRestTransport
    from google.cloud.filestore_v1.services.cloud_filestore_manager.transports import CloudFilestoreManagerRestTransport

SECONDS = 20  # that a client waits for an operation of no length


def test_the_generated_client_takes_a_firewall_through_its_life(port: int, ask: Client) -> None:
    ask.network()
    transport = FirewallsRestTransport(host=f"http://127.0.0.1:{port}/compute", credentials=AnonymousCredentials())
    firewalls = compute_v1.FirewallsClient(transport=transport)
    allow = compute_v1.Firewall(
        name="allow", network="global/networks/net", allowed=[compute_v1.Allowed(I_p_protocol="tcp")]
    )

    firewalls.insert(project=PROJECT, firewall_resource=allow).result(SECONDS)
    with pytest.raises(Conflict):
        firewalls.insert(project=PROJECT, firewall_resource=allow)
    disabled = compute_v1.Firewall(disabled=True)
    firewalls.patch(project=PROJECT, firewall="allow", firewall_resource=disabled).result(SECONDS)
    (read,) = firewalls.list(project=PROJECT)
    assert (read.name, read.disabled, read.priority) == ("allow", True, 1000)
    firewalls.delete(project=PROJECT, firewall="allow").result(SECONDS)
    with pytest.raises(NotFound):
        firewalls.get(project=PROJECT, firewall="allow")


def test_the_generated_client_takes_a_file_share_through_its_life(port: int) -> None:
    host = f"http://127.0.0.1:{port}/file"
    transport = CloudFilestoreManagerRestTransport(host=host, credentials=AnonymousCredentials())
    manager = filestore_v1.CloudFilestoreManagerClient(transport=transport)
    share = filestore_v1.FileShareConfig(name="a", capacity_gb=1024)
    network = filestore_v1.NetworkConfig(network="net")
    instance = filestore_v1.Instance(tier="ZONAL", file_shares=[share], networks=[network])

    made = manager.create_instance(parent=ZONE, instance_id="homes", instance=instance)
    assert made.result(SECONDS).state == filestore_v1.Instance.State.READY
    assert (made.metadata.verb, made.metadata.end_time >= made.metadata.create_time) == ("create", True)
    small = filestore_v1.Instance(tier="BASIC_SSD", file_shares=[share], networks=[network])
    with pytest.raises(BadRequest):
        manager.create_instance(parent=ZONE, instance_id="small", instance=small)

    labelled = filestore_v1.Instance(name=f"{ZONE}/instances/homes", labels={"team": "vision"})
    changed = manager.update_instance(instance=labelled, update_mask={"paths": ["labels"]}).result(SECONDS)
    assert (changed.labels, changed.tier) == ({"team": "vision"}, filestore_v1.Instance.Tier.ZONAL)
    assert [each.name for each in manager.list_instances(parent=ZONE)] == [changed.name]
    manager.delete_instance(name=changed.name).result(SECONDS)
    with pytest.raises(NotFound):
        manager.get_instance(name=changed.name)
