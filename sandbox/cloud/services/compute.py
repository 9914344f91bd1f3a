"""Compute Engine: networks and what belongs to them, and the groups behind node pools; no VMs of its own."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, ip_network
from typing import TYPE_CHECKING, Any, Final

from sandbox.cloud import resources
from sandbox.cloud.errors import ApiError, in_use, not_found
from sandbox.cloud.model import Call, Fill, Json, Kind, Service
from sandbox.cloud.operations import COMPUTE_LINK, Work
from sandbox.cloud.services.compute_places import HANDLERS
from sandbox.cloud.services.places import regions, zones
from sandbox.cloud.store import Record

if TYPE_CHECKING:
    from sandbox.cloud.cloud import Cloud


def _base(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    """Fill in what every resource of Compute Engine has."""
    if old:
        return
    path = record.name.partition("/")[2]
    parts = path.split("/")
    record.body |= {
        "kind": call.api.schemas[_SCHEMAS[parts[-2]]]["properties"].get("kind", {}).get("default", ""),
        "id": cloud.number(),
        "creationTimestamp": cloud.time(),
        "selfLink": COMPUTE_LINK + path,
        "selfLinkWithId": COMPUTE_LINK + "/".join(parts[:-1]) + f"/{cloud.store.serial()}",
    }
    if parts[2] in ("regions", "zones"):
        record.body[parts[2][:-1]] = COMPUTE_LINK + "/".join(parts[:4])
    _known_place(parts)


def _known_place(parts: list[str]) -> None:
    known = {"regions": regions(), "zones": tuple(zone for each in regions() for zone in zones(each))}
    if parts[2] in known and parts[3] not in known[parts[2]]:
        raise not_found("/".join(parts[:4]))


def _with(*more: Fill) -> Fill:
    def fill(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
        _base(cloud, call, record, old)
        for each in more:
            each(cloud, call, record, old)

    return fill


def _network_link(cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
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


def _network(_cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    body = record.body
    body.setdefault("autoCreateSubnetworks", False)
    body.setdefault("mtu", 1460)
    body.setdefault("networkFirewallPolicyEnforcementOrder", "AFTER_CLASSIC_FIREWALL")
    routing = body.setdefault("routingConfig", {})
    routing.setdefault("routingMode", "REGIONAL")
    routing.setdefault("bgpBestPathSelectionMode", "LEGACY")


def _subnet(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    primary = _cidr(body.get("ipCidrRange", ""), "resource.ipCidrRange")
    if not old:
        body["gatewayAddress"] = str(primary[1])
    body.setdefault("purpose", "PRIVATE")
    body.setdefault("stackType", "IPV4_ONLY")
    body.setdefault("privateIpGoogleAccess", False)
    body.setdefault("privateIpv6GoogleAccess", "DISABLE_GOOGLE_ACCESS")
    body.setdefault("enableFlowLogs", False)
    body.setdefault("logConfig", {"enable": False})
    ranges = [
        primary,
        *(_cidr(each["ipCidrRange"], "resource.secondaryIpRanges") for each in body.get("secondaryIpRanges", ())),
    ]
    for other in cloud.store.all(record.project):
        if other.name != record.name and "/subnetworks/" in other.name and other.body.get("network") == body["network"]:
            for mine, theirs in ((a, b) for a in ranges for b in _ranges_of(other) if a.overlaps(b)):
                raise ApiError(
                    400,
                    f"Invalid IPCidrRange: {mine} conflicts with existing subnetwork '{other.id}' ({theirs}).",
                )


def _ranges_of(subnet: Record) -> Iterator[IPv4Network]:
    for text in (
        subnet.body["ipCidrRange"],
        *(each["ipCidrRange"] for each in subnet.body.get("secondaryIpRanges", ())),
    ):
        yield IPv4Network(text)


def _cidr(text: str, field: str) -> IPv4Network:
    try:
        network = ip_network(text)
    except ValueError as error:
        raise ApiError(
            400, f"Invalid value for field '{field}': '{text}'. Must be a CIDR range without host bits."
        ) from error
    if not isinstance(network, IPv4Network) or not 4 <= network.prefixlen <= 29:
        raise ApiError(400, f"Invalid value for field '{field}': '{text}'. Must be an IPv4 range of /4 to /29.")
    return network


def _router(cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    record.body.setdefault("encryptedInterconnectRouter", False)
    seen = set()
    for nat in record.body.get("nats", ()):
        if nat.get("name") in seen:
            raise ApiError(
                400, f"Invalid value for field 'resource.nats': the name '{nat.get('name')}' is there twice."
            )
        seen.add(nat.get("name"))
        for field, value in _NAT.items():
            nat.setdefault(field, value)
        for subnet in nat.get("subnetworks", ()):
            subnet["name"] = COMPUTE_LINK + "projects/" + subnet["name"].split("projects/", 1)[-1]
            if cloud.store.get("compute/" + subnet["name"].removeprefix(COMPUTE_LINK)) is None:
                raise ApiError(
                    400,
                    f"Invalid value for field 'resource.nats[].subnetworks[].name': '{subnet['name']}' is not there.",
                )


def _firewall(_cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    body = record.body
    for field, value in (("direction", "INGRESS"), ("priority", 1000), ("disabled", False)):
        body.setdefault(field, value)
    body.setdefault("logConfig", {"enable": False})
    if bool(body.get("allowed")) == bool(body.get("denied")):
        raise ApiError(400, "Exactly one of 'allowed' and 'denied' must be specified.")
    if body["direction"] == "INGRESS" and not any(
        body.get(each) for each in ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    ):
        body["sourceRanges"] = ["0.0.0.0/0"]


def _address(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    body.setdefault("addressType", "EXTERNAL")
    body.setdefault("status", "RESERVED")
    body.setdefault("ipVersion", "IPV4")
    if body["addressType"] == "EXTERNAL":
        body.setdefault("networkTier", "PREMIUM")
    if not old:
        body.setdefault("address", f"198.51.100.{cloud.store.serial() % 250 + 1}")  # TEST-NET-2: nobody's


def _policy(_cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    record.body.setdefault("status", "READY")


def _unused(cloud: Cloud, _call: Call, record: Record) -> None:
    """Refuse the deletion of a resource that another one names."""
    path = record.name.partition("/")[2]
    for other in cloud.store.all(record.project):
        operation = "/operations/" in other.name
        if other.name != record.name and not operation and _names(other.body, path):
            raise in_use(path, other.name.partition("/")[2])


def _names(value: Any, path: str) -> bool:
    if isinstance(value, str):
        return value == path or value.endswith(f"/{path}")
    if isinstance(value, dict):
        return any(_names(each, path) for each in value.values())
    return isinstance(value, list) and any(_names(each, path) for each in value)


def _expand(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name.removesuffix("/expandIpCidrRange"))
    old, new = IPv4Network(record.body["ipCidrRange"]), _cidr(call.body.get("ipCidrRange", ""), "ipCidrRange")
    if not old.subnet_of(new):
        raise ApiError(400, "The new range must contain the old one.")
    record.body |= {"ipCidrRange": str(new), "fingerprint": resources.etag(cloud)}
    return _done(cloud, record, "expandIpCidrRange")


def _google_access(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name.removesuffix("/setPrivateIpGoogleAccess"))
    record.body |= {
        "privateIpGoogleAccess": call.body.get("privateIpGoogleAccess", False),
        "fingerprint": resources.etag(cloud),
    }
    return _done(cloud, record, "setPrivateIpGoogleAccess")


def _set_labels(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name.removesuffix("/setLabels"))
    resources.check_versions(record, call.body)
    record.body |= {"labels": call.body.get("labels", {}), "labelFingerprint": resources.etag(cloud)}
    return _done(cloud, record, "setLabels")


def _done(cloud: Cloud, record: Record, kind: str) -> Json:
    cloud.store.put(record)
    work = Work(
        style="compute",
        service="compute",
        project=record.project,
        target=record.name,
        type=kind,
        seconds=cloud.settings.seconds("compute.change"),
    )
    return cloud.operations.start(work)


_NAT: Final = {
    "endpointTypes": ["ENDPOINT_TYPE_VM"],
    "enableEndpointIndependentMapping": False,
    "type": "PUBLIC",
    "autoNetworkTier": "PREMIUM",
}
_SCHEMAS: Final = {
    "networks": "Network",
    "subnetworks": "Subnetwork",
    "routers": "Router",
    "firewalls": "Firewall",
    "addresses": "Address",
    "globalAddresses": "Address",
    "resourcePolicies": "ResourcePolicy",
    "instanceGroupManagers": "InstanceGroupManager",
}


def _kind(collection: str, fill: Fill, etag: str = "") -> Kind:
    return Kind(
        collection=collection, schema=_SCHEMAS[collection], style="compute", fill=fill, removable=_unused, etag=etag
    )


SERVICE = Service(
    name="compute",
    kinds=(
        _kind("networks", _with(_network)),
        _kind("subnetworks", _with(_network_link, _subnet), "fingerprint"),
        _kind("routers", _with(_network_link, _router)),
        _kind("firewalls", _with(_network_link, _firewall)),
        _kind("addresses", _with(_address), "labelFingerprint"),
        _kind("globalAddresses", _with(_address), "labelFingerprint"),
        _kind("resourcePolicies", _with(_policy)),
        _kind("instanceGroupManagers", _with()),
    ),
    handlers={
        "subnetworks.expandIpCidrRange": _expand,
        "subnetworks.setPrivateIpGoogleAccess": _google_access,
        "addresses.setLabels": _set_labels,
        "globalAddresses.setLabels": _set_labels,
        **HANDLERS,
    },
)
