"""Networks of Compute Engine and what belongs to them: what it fills in and refuses of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, ip_network

from training_platform.sandbox.cloud.requests.errors import ApiError, required
from training_platform.sandbox.cloud.requests.links import COMPUTE_LINK
from training_platform.sandbox.cloud.resources.defaults import fill_in
from training_platform.sandbox.cloud.resources.model import Call, Json
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record


def link_network(cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    """Write the network's full link, which must be there."""
    text = record.body.get("network") or "default"
    path = (
        "projects/" + text.split("projects/", 1)[1]
        if "projects/" in text
        else f"projects/{record.project}/global/networks/{text.rpartition('/')[2]}"
    )
    if cloud.store.get(f"compute/{path}") is None:
        raise ApiError(
            400,
            f"Invalid value for field 'resource.network': '{text}'. The referenced network resource cannot be found.",
        )
    record.body["network"] = COMPUTE_LINK + path


def fill_subnet(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    """Fill in a subnetwork. Raises ApiError for ranges that are not valid, or overlap others of its network."""
    body = record.body
    primary = read_range(body.get("ipCidrRange", ""), "resource.ipCidrRange")
    if not old:
        body["gatewayAddress"] = str(primary[1])
    ranges = [primary, *_secondary(body)]
    for other in cloud.store.all(record.project):
        if other.name != record.name and "/subnetworks/" in other.name and other.body.get("network") == body["network"]:
            for mine, theirs in ((a, b) for a in ranges for b in _ranges_of(other) if a.overlaps(b)):
                raise ApiError(
                    400,
                    f"Invalid IPCidrRange: {mine} conflicts with existing subnetwork '{other.id}' ({theirs}).",
                )


def _secondary(body: Json) -> Iterator[IPv4Network]:
    field = "resource.secondaryIpRanges"
    for each in body.get("secondaryIpRanges", ()):
        required(each, "rangeName", field)
        yield read_range(required(each, "ipCidrRange", field), field)


def _ranges_of(subnet: Record) -> Iterator[IPv4Network]:
    for text in (
        subnet.body["ipCidrRange"],
        *(each["ipCidrRange"] for each in subnet.body.get("secondaryIpRanges", ())),
    ):
        yield IPv4Network(text)


def read_range(text: str, field: str) -> IPv4Network:
    """Return a subnetwork's range. Raises ApiError for anything else."""
    try:
        network = ip_network(text)
    except ValueError as error:
        raise ApiError(
            400, f"Invalid value for field '{field}': '{text}'. Must be a CIDR range without host bits."
        ) from error
    if not isinstance(network, IPv4Network) or not 4 <= network.prefixlen <= 29:
        raise ApiError(400, f"Invalid value for field '{field}': '{text}'. Must be an IPv4 range of /4 to /29.")
    return network


def fill_router(cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    """Fill in a router's NATs."""
    seen = set()
    for nat in record.body.get("nats", ()):
        if nat.get("name") in seen:
            raise ApiError(
                400, f"Invalid value for field 'resource.nats': the name '{nat.get('name')}' is there twice."
            )
        seen.add(nat.get("name"))
        fill_in(nat, "router.nat")
        for subnet in nat.get("subnetworks", ()):
            name = required(subnet, "name", "resource.nats[].subnetworks[]")
            subnet["name"] = COMPUTE_LINK + "projects/" + name.split("projects/", 1)[-1]
            if cloud.store.get("compute/" + subnet["name"].removeprefix(COMPUTE_LINK)) is None:
                raise ApiError(
                    400,
                    f"Invalid value for field 'resource.nats[].subnetworks[].name': '{subnet['name']}' is not there.",
                )


def fill_firewall(_cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    """Fill in a firewall rule."""
    body = record.body
    if bool(body.get("allowed")) == bool(body.get("denied")):
        raise ApiError(400, "Exactly one of 'allowed' and 'denied' must be specified.")
    if body["direction"] == "INGRESS" and not any(
        body.get(each) for each in ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    ):
        body["sourceRanges"] = ["0.0.0.0/0"]


def fill_address(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    """Fill in an address; an external one from a range for documentation."""
    body = record.body
    if body["addressType"] == "EXTERNAL":
        body.setdefault("networkTier", "PREMIUM")
    if not old:
        body.setdefault("address", f"198.51.100.{cloud.store.serial() % 250 + 1}")  # TEST-NET-2, for documentation
