"""Compute Engine: regions, zones, networks and related resources, disks, and node pools' instance groups; no VMs.

The regions and zones are those of the catalogue. Each region has at least three zones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from local_google_cloud.requests.errors import Refusal, in_use, not_found, required
from local_google_cloud.resources.actions import check_versions, etag
from local_google_cloud.resources.resource_kinds import (
    Call,
    Fill,
    Hook,
    ResourceKind,
    Service,
    nothing,
)
from local_google_cloud.services.networking import disconnect
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.operation import COMPUTE_LINK, Work
from local_google_cloud.state.store import Record
from training_platform.catalog import ZONES
from training_platform.catalog.locations import is_zone, region_of
from training_platform.catalog.types import Json
from training_platform.catalog.zones import zones_in
from training_platform.rules.documents.api_defaults import fill_in

# Regions and zones


@cache
def regions() -> tuple[str, ...]:
    """Return every region."""
    return tuple(sorted({region_of(zone) for zone in ZONES}))


@cache
def zones(region: str) -> tuple[str, ...]:
    """Return a region's zones: those of the catalogue (us-central2 has one), plus a, b or c until there are three."""
    listed = zones_in(region)
    if region == "us-central2":
        return listed
    unlisted = [zone for zone in (f"{region}-{letter}" for letter in "abc") if zone not in listed]
    return tuple(sorted([*listed, *unlisted[: max(0, 3 - len(listed))]]))


def node_zones(location: str) -> list[str]:
    """Return the default zones of a cluster's nodes: its own zone, or three zones of its region."""
    if is_zone(location):
        return [location]
    lettered = [zone for zone in zones(location) if len(zone) == len(f"{location}-a")]  # not us-central1-ai1a
    return lettered[:3]


# Networks and their parts


def _link_network(cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    """Replace a resource's network with its full link. Raises Refusal if the network does not exist."""
    text = record.body.get("network") or "default"
    path = f"projects/{record.project}/global/networks/{text.rpartition('/')[2]}"
    if "projects/" in text:
        path = "projects/" + text.split("projects/", 1)[1]
    if cloud.store.get(f"compute/{path}") is None:
        message = (
            f"Invalid value for field 'resource.network': '{text}'. The referenced network resource cannot be found."
        )
        raise Refusal(400, message)
    record.body["network"] = COMPUTE_LINK + path


def _fill_subnet(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    """Fill in a subnetwork. Raises Refusal for ranges that are invalid or overlap other ranges of the network."""
    body = record.body
    primary = _read_range(body.get("ipCidrRange", ""), "resource.ipCidrRange")
    if not old:
        body["gatewayAddress"] = str(primary[1])
    ranges = [primary]
    for secondary in body.get("secondaryIpRanges", ()):
        required(secondary, "rangeName", "resource.secondaryIpRanges")
        text = required(secondary, "ipCidrRange", "resource.secondaryIpRanges")
        ranges.append(_read_range(text, "resource.secondaryIpRanges"))
    for other in cloud.store.all(record.project):
        if other.name != record.name and "/subnetworks/" in other.name and other.body.get("network") == body["network"]:
            _check_overlap(ranges, other)


def _check_overlap(ranges: list[IPv4Network], subnet: Record) -> None:
    for new_range in ranges:
        for old_range in _ranges_of(subnet):
            if new_range.overlaps(old_range):
                message = (
                    f"Invalid IPCidrRange: {new_range} conflicts with existing subnetwork '{subnet.id}' ({old_range})."
                )
                raise Refusal(400, message)


def _ranges_of(subnet: Record) -> Iterator[IPv4Network]:
    yield IPv4Network(subnet.body["ipCidrRange"])
    for secondary in subnet.body.get("secondaryIpRanges", ()):
        yield IPv4Network(secondary["ipCidrRange"])


def _read_range(text: str, field: str) -> IPv4Network:
    try:
        network = ip_network(text)
    except ValueError as error:
        message = f"Invalid value for field '{field}': '{text}'. Must be a CIDR range without host bits."
        raise Refusal(400, message) from error
    if not isinstance(network, IPv4Network) or not 4 <= network.prefixlen <= 29:
        raise Refusal(400, f"Invalid value for field '{field}': '{text}'. Must be an IPv4 range of /4 to /29.")
    return network


def _expand_range(cloud: Cloud, call: Call) -> Json:
    record = _changed_by(cloud, call)
    new = _read_range(call.body.get("ipCidrRange", ""), "ipCidrRange")
    if not IPv4Network(record.body["ipCidrRange"]).subnet_of(new):
        raise Refusal(400, "The new range must contain the old one.")
    record.body |= {"ipCidrRange": str(new), "fingerprint": etag(cloud)}
    return _write(cloud, record, "expandIpCidrRange")


def _set_google_access(cloud: Cloud, call: Call) -> Json:
    record = _changed_by(cloud, call)
    allowed = call.body.get("privateIpGoogleAccess", False)
    record.body |= {"privateIpGoogleAccess": allowed, "fingerprint": etag(cloud)}
    return _write(cloud, record, "setPrivateIpGoogleAccess")


def _fill_router(cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    names = set()
    for nat in record.body.get("nats", ()):
        if nat.get("name") in names:
            message = f"Invalid value for field 'resource.nats': the name '{nat.get('name')}' occurs twice."
            raise Refusal(400, message)
        names.add(nat.get("name"))
        fill_in(nat, "router.nat")
        for subnet in nat.get("subnetworks", ()):
            field = "resource.nats[].subnetworks[]"
            path = "projects/" + required(subnet, "name", field).split("projects/", 1)[-1]
            subnet["name"] = COMPUTE_LINK + path
            if cloud.store.get(f"compute/{path}") is None:
                raise Refusal(400, f"Invalid value for field '{field}.name': '{subnet['name']}' does not exist.")


def _fill_firewall(_cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    body = record.body
    if bool(body.get("allowed")) == bool(body.get("denied")):
        raise Refusal(400, "Exactly one of 'allowed' and 'denied' must be specified.")
    sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    if body["direction"] == "INGRESS" and not any(body.get(field) for field in sources):
        body["sourceRanges"] = ["0.0.0.0/0"]


def _fill_address(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    if body["addressType"] == "EXTERNAL":
        body.setdefault("networkTier", "PREMIUM")
    if not old:
        body.setdefault("address", f"198.51.100.{cloud.store.serial() % 250 + 1}")  # TEST-NET-2, for documentation


# Disks


def _fill_disk(_cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    disk_type = record.body.get("type", "pd-standard").rpartition("/")[2]
    record.body["type"] = f"{record.body['zone']}/diskTypes/{disk_type}"


def _resize_disk(cloud: Cloud, call: Call) -> Json:
    record = _changed_by(cloud, call)
    old = record.body["sizeGb"]
    new = call.body.get("sizeGb", "0")
    if int(new) <= int(old):
        raise Refusal(400, f"New disk size '{new}' GB must be larger than existing size '{old}' GB.")
    record.body["sizeGb"] = new
    return _write(cloud, record, "resizeDisk")


def _update_disk(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    record.body |= {key: value for key, value in call.body.items() if key != "name"}
    return _write(cloud, record, "updateDisk")


# All kinds


def _set_labels(cloud: Cloud, call: Call) -> Json:
    record = _changed_by(cloud, call)
    check_versions(record, call.body)
    record.body |= {"labels": call.body.get("labels", {}), "labelFingerprint": etag(cloud)}
    return _write(cloud, record, "setLabels")


def _changed_by(cloud: Cloud, call: Call) -> Record:
    """Return the resource that a custom method changes. Its path ends with the verb: ``disks/d/resize``."""
    return cloud.existing(call.name.removesuffix(f"/{call.method.action}"))


def _write(cloud: Cloud, record: Record, operation: str) -> Json:
    cloud.store.put(record)
    work = Work(
        style="compute",
        service="compute",
        project=record.project,
        target=record.name,
        type=operation,
        seconds=cloud.settings.seconds("compute.change"),
    )
    return cloud.operations.start(work)


def _list_everywhere(cloud: Cloud, call: Call) -> Json:
    """Return a kind's resources in all locations, grouped by location, on one page. Empty locations are left out."""
    collection = call.method.collection.rpartition(".")[2]
    prefix = f"compute/projects/{call.project}/"
    items: dict[str, Json] = {}
    for record in cloud.store.all(call.project):
        place, _, kind = record.name.removeprefix(prefix).rpartition("/")[0].rpartition("/")
        if record.name.startswith(prefix) and kind == collection:
            items.setdefault(place, {}).setdefault(collection, []).append(record.body)
    kind = call.api.schemas[call.method.response or ""]["properties"]["kind"]["default"]
    return {"kind": kind, "id": call.path, "items": items, "selfLink": COMPUTE_LINK + call.path}


def _check_unused(cloud: Cloud, _call: Call, record: Record) -> None:
    """Refuse to delete a resource that another resource refers to. A VPC's connections are deleted with it, though."""
    path = record.path
    for other in cloud.store.all(record.project):
        ignored = "/operations/" in other.name or other.name.startswith("servicenetworking/")
        if other.name != record.name and not ignored and _names(other.body, path):
            raise in_use(path, other.path)


def _names(value: Any, path: str) -> bool:
    if isinstance(value, str):
        return value == path or value.endswith(f"/{path}")
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, list) and any(_names(item, path) for item in value)


def _kind(collection: str, schema: str, *fills: Fill, etag: str = "", clean_up: Hook = nothing) -> ResourceKind:
    def fill(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
        if not old:
            _fill_new(cloud, call, record, schema)
        for fill_more in fills:
            fill_more(cloud, call, record, old)

    return ResourceKind(
        collection=collection,
        schema=schema,
        style="compute",
        fill=fill,
        check_delete=_check_unused,
        clean_up=clean_up,
        etag=etag,
    )


def _fill_new(cloud: Cloud, call: Call, record: Record, schema: str) -> None:
    """Fill in the fields that all resources of Compute Engine have. Raises Refusal for an unknown region or zone."""
    path = record.path
    parts = path.split("/")
    record.body |= {
        "kind": call.api.schemas[schema]["properties"].get("kind", {}).get("default", ""),
        "id": cloud.number(),
        "creationTimestamp": cloud.time(),
        "selfLink": COMPUTE_LINK + path,
        "selfLinkWithId": COMPUTE_LINK + "/".join(parts[:-1]) + f"/{cloud.store.serial()}",
    }
    locations = {"regions": regions(), "zones": [zone for region in regions() for zone in zones(region)]}
    if parts[2] in locations:
        location = "/".join(parts[:4])
        record.body[parts[2].removesuffix("s")] = COMPUTE_LINK + location
        if parts[3] not in locations[parts[2]]:
            raise not_found(location)


_KINDS: Final = (
    _kind("networks", "Network", clean_up=disconnect),
    _kind("subnetworks", "Subnetwork", _link_network, _fill_subnet, etag="fingerprint"),
    _kind("routers", "Router", _link_network, _fill_router),
    _kind("firewalls", "Firewall", _link_network, _fill_firewall),
    _kind("addresses", "Address", _fill_address, etag="labelFingerprint"),
    _kind("globalAddresses", "Address", _fill_address, etag="labelFingerprint"),
    _kind("networkAttachments", "NetworkAttachment", etag="fingerprint"),
    _kind("reservations", "Reservation"),
    _kind("resourcePolicies", "ResourcePolicy"),
    _kind("instanceGroupManagers", "InstanceGroupManager"),
    _kind("disks", "Disk", _fill_disk, etag="labelFingerprint"),
)
COMPUTE: Final = Service(
    name="compute",
    kinds=_KINDS,
    handlers={
        **{f"{kind.collection}.aggregatedList": _list_everywhere for kind in _KINDS},
        **{f"{collection}.setLabels": _set_labels for collection in ("addresses", "disks", "globalAddresses")},
        "subnetworks.expandIpCidrRange": _expand_range,
        "subnetworks.setPrivateIpGoogleAccess": _set_google_access,
        "disks.resize": _resize_disk,
        "disks.update": _update_disk,
    },
)
