"""Private service access of the local cloud: a VPC's one connection, which goes with the VPC."""

from __future__ import annotations

import pytest

from tests.training_platform.sandbox.cloud.conftest import PROJECT, Client

NETWORK = f"projects/{PROJECT}/global/networks/net"
CONNECTIONS = "servicenetworking/v1/services/servicenetworking.googleapis.com/connections"


@pytest.fixture
def joined(ask: Client) -> Client:
    ask.network()
    ask.private_services()
    return ask


def test_a_network_has_one_connection(joined: Client) -> None:
    asked = joined("POST", CONNECTIONS, {"network": NETWORK})

    assert asked.code == 409
    assert len(joined.done("GET", CONNECTIONS, network=NETWORK)["connections"]) == 1


def test_a_connection_goes_with_its_network_alone(joined: Client) -> None:
    networks = f"compute/v1/projects/{PROJECT}/global/networks"
    other = f"projects/{PROJECT}/global/networks/another-net"
    joined.done("POST", networks, {"name": "another-net", "autoCreateSubnetworks": False})
    joined.done("POST", CONNECTIONS, {"network": other})
    for path in ("regions/us-central1/subnetworks/nodes", "global/addresses/private"):
        joined.done("DELETE", f"compute/v1/projects/{PROJECT}/{path}")
    joined.done("DELETE", f"{networks}/net")
    joined.done("POST", networks, {"name": "net", "autoCreateSubnetworks": False})

    assert joined.done("GET", CONNECTIONS, network=NETWORK) == {"connections": []}
    assert len(joined.done("GET", CONNECTIONS, network=other)["connections"]) == 1
    joined.done("POST", CONNECTIONS, {"network": NETWORK})


def test_a_network_by_its_name_alone_is_refused(joined: Client) -> None:
    asked = joined("POST", CONNECTIONS, {"network": "net"})

    assert (asked.code, "projects/PROJECT/global/networks/NETWORK" in asked.message) == (400, True)
