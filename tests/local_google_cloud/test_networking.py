"""Zones and records of Cloud DNS, and the one connection of a VPC for private service access."""

from __future__ import annotations

import pytest

from tests.local_google_cloud.client import PROJECT, Client, Json

ZONES = f"dns/v1beta2/projects/{PROJECT}/managedZones"
RECORDS = f"{ZONES}/apis/rrsets"
CHANGES = f"{ZONES}/apis/changes"
NETWORK = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/global/networks/net"
ADDRESSES: Json = {"name": "private.googleapis.com.", "type": "A", "ttl": 300, "rrdatas": ["199.36.153.8"]}
NAMES: Json = {"name": "*.googleapis.com.", "type": "CNAME", "ttl": 300, "rrdatas": ["private.googleapis.com."]}


def zone(**spoiled: object) -> Json:
    networks = {"networks": [{"networkUrl": NETWORK}]}
    body = {"name": "apis", "dnsName": "googleapis.com.", "visibility": "private", "privateVisibilityConfig": networks}
    return {**body, **spoiled}


@pytest.fixture
def ask_dns(ask: Client) -> Client:
    """Return a client of a cloud with the API enabled, a network and a zone."""
    ask.enable(PROJECT, "dns")
    ask.network()
    ask.done("POST", ZONES, zone())
    return ask


def change(ask: Client, additions: tuple[Json, ...] = (), deletions: tuple[Json, ...] = ()) -> Json:
    return ask.done("POST", CHANGES, {"additions": list(additions), "deletions": list(deletions)})


def records(ask: Client, **query: str) -> list[Json]:
    return [
        {key: record_set[key] for key in ADDRESSES}
        for record_set in ask.done("GET", RECORDS, **query).get("rrsets", [])
    ]


def test_a_zone_is_created_read_changed_and_deleted(ask_dns: Client) -> None:
    read = ask_dns.done("GET", f"{ZONES}/apis")
    assert (read["dnsName"], read["visibility"], read["kind"]) == ("googleapis.com.", "private", "dns#managedZone")
    assert ask_dns("POST", ZONES, zone()).code == 409
    assert [managed_zone["name"] for managed_zone in ask_dns.done("GET", ZONES)["managedZones"]] == ["apis"]

    assert ask_dns.done("PATCH", f"{ZONES}/apis", {"labels": {"team": "a"}})["kind"] == "dns#operation"
    assert ask_dns.done("GET", f"{ZONES}/apis")["labels"] == {"team": "a"}

    ask_dns.done("DELETE", f"{ZONES}/apis")
    assert ask_dns("GET", f"{ZONES}/apis").code == 404


def test_a_zone_needs_a_domain_and_existing_networks(ask_dns: Client) -> None:
    assert "dnsName" in ask_dns("POST", ZONES, zone(name="two", dnsName="googleapis.com")).message
    elsewhere = {"networks": [{"networkUrl": NETWORK.replace("net", "none")}]}
    assert ask_dns("POST", ZONES, zone(name="two", privateVisibilityConfig=elsewhere)).code == 404


def test_records_are_added_and_deleted_by_changes(ask_dns: Client) -> None:
    answer = change(ask_dns, (ADDRESSES, NAMES))

    assert answer["status"] == "done"
    assert ask_dns.done("GET", f"{CHANGES}/{answer['id']}") == answer
    assert records(ask_dns) == [ADDRESSES, NAMES]
    assert records(ask_dns, name="*.googleapis.com.", type="CNAME") == [NAMES]
    assert records(ask_dns, name="*.googleapis.com.", type="A") == []

    other = {**ADDRESSES, "rrdatas": ["199.36.153.4"]}
    change(ask_dns, (other,), (ADDRESSES,))
    assert records(ask_dns, type="A") == [other]
    change(ask_dns, (), (other, NAMES))
    assert records(ask_dns) == []


@pytest.mark.parametrize(
    ("additions", "deletions", "code"),
    [
        ((ADDRESSES,), (), 409),
        ((), (NAMES,), 404),
        ((NAMES,), ({**ADDRESSES, "ttl": 60},), 412),
        (({**NAMES, "name": "*.gcr.io."},), (), 400),
        (({**NAMES, "rrdatas": []},), (), 400),
    ],
)
def test_a_change_that_does_not_fit_changes_nothing(
    ask_dns: Client, additions: tuple[Json, ...], deletions: tuple[Json, ...], code: int
) -> None:
    change(ask_dns, (ADDRESSES,))

    assert ask_dns("POST", CHANGES, {"additions": list(additions), "deletions": list(deletions)}).code == code
    assert records(ask_dns) == [ADDRESSES]


def test_a_zone_with_records_and_a_network_with_a_zone_stay(ask_dns: Client) -> None:
    change(ask_dns, (ADDRESSES,))

    assert "not empty" in ask_dns("DELETE", f"{ZONES}/apis").message
    change(ask_dns, (), (ADDRESSES,))
    network = f"compute/v1/projects/{PROJECT}/global/networks/net"
    ask_dns.done("DELETE", f"compute/v1/projects/{PROJECT}/regions/us-central1/subnetworks/nodes")
    assert ask_dns("DELETE", network).code == 400
    ask_dns.done("DELETE", f"{ZONES}/apis")
    ask_dns.done("DELETE", network)


NETWORK_PATH = f"projects/{PROJECT}/global/networks/net"
CONNECTIONS = "servicenetworking/v1/services/servicenetworking.googleapis.com/connections"


@pytest.fixture
def joined(ask: Client) -> Client:
    ask.network()
    ask.private_services()
    return ask


def test_a_connection_goes_with_its_network_alone(joined: Client) -> None:
    networks = f"compute/v1/projects/{PROJECT}/global/networks"
    other = f"projects/{PROJECT}/global/networks/another-net"
    joined.done("POST", networks, {"name": "another-net", "autoCreateSubnetworks": False})
    joined.done("POST", CONNECTIONS, {"network": other})
    for path in ("regions/us-central1/subnetworks/nodes", "global/addresses/private"):
        joined.done("DELETE", f"compute/v1/projects/{PROJECT}/{path}")
    joined.done("DELETE", f"{networks}/net")
    joined.done("POST", networks, {"name": "net", "autoCreateSubnetworks": False})

    assert joined.done("GET", CONNECTIONS, network=NETWORK_PATH) == {"connections": []}
    assert len(joined.done("GET", CONNECTIONS, network=other)["connections"]) == 1
    joined.done("POST", CONNECTIONS, {"network": NETWORK_PATH})


def test_a_network_by_its_short_name_is_refused(joined: Client) -> None:
    answer = joined("POST", CONNECTIONS, {"network": "net"})

    assert (answer.code, "projects/PROJECT/global/networks/NETWORK" in answer.message) == (400, True)
