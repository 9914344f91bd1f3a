"""Compute Engine: networks and what belongs to them, and the groups behind node pools; no VMs of its own."""

from __future__ import annotations

from typing import Any, Final

from training_platform.sandbox.cloud.requests.errors import in_use, not_found
from training_platform.sandbox.cloud.requests.links import COMPUTE_LINK
from training_platform.sandbox.cloud.resources.model import Call, Fill, Hook, Json, Kind, Service, nothing
from training_platform.sandbox.cloud.services.compute import changes, places
from training_platform.sandbox.cloud.services.compute.networks import (
    fill_address,
    fill_firewall,
    fill_router,
    fill_subnet,
    link_network,
)
from training_platform.sandbox.cloud.services.networking.servicenetworking import disconnect
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.places import regions, zones
from training_platform.sandbox.cloud.state.store import Record


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


def _unused(cloud: Cloud, _call: Call, record: Record) -> None:
    """Refuse the deletion of a resource that another one names; connections of a VPC go with it."""
    path = record.name.partition("/")[2]
    for other in cloud.store.all(record.project):
        passing = "/operations/" in other.name or other.name.startswith("servicenetworking/")
        if other.name != record.name and not passing and _names(other.body, path):
            raise in_use(path, other.name.partition("/")[2])


def _names(value: Any, path: str) -> bool:
    if isinstance(value, str):
        return value == path or value.endswith(f"/{path}")
    if isinstance(value, dict):
        return any(_names(each, path) for each in value.values())
    return isinstance(value, list) and any(_names(each, path) for each in value)


def _aggregated(cloud: Cloud, call: Call) -> Json:
    """List a kind in all places at once, by place and on one page; places without any are left out."""
    collection = call.method.collection.rpartition(".")[2]
    prefix = f"compute/projects/{call.project}/"
    found: dict[str, Json] = {}
    for record in cloud.store.all(call.project):
        place, _, kind = record.name.removeprefix(prefix).rpartition("/")[0].rpartition("/")
        if record.name.startswith(prefix) and kind == collection:
            found.setdefault(place, {}).setdefault(collection, []).append(record.body)
    about = call.api.schemas[call.method.response or ""]["properties"]["kind"]["default"]
    return {"kind": about, "id": call.path, "items": found, "selfLink": COMPUTE_LINK + call.path}


_SCHEMAS: Final = {
    "networks": "Network",
    "networkAttachments": "NetworkAttachment",
    "subnetworks": "Subnetwork",
    "routers": "Router",
    "firewalls": "Firewall",
    "addresses": "Address",
    "globalAddresses": "Address",
    "resourcePolicies": "ResourcePolicy",
    "instanceGroupManagers": "InstanceGroupManager",
    "disks": "Disk",
}


def _kind(collection: str, fill: Fill, etag: str = "", gone: Hook = nothing) -> Kind:
    return Kind(
        collection=collection, schema=_SCHEMAS[collection], style="compute", fill=fill, removable=_unused, gone=gone,
        etag=etag,
    )  # fmt: skip


_KINDS: Final = (
    _kind("networks", _with(), gone=disconnect),
    _kind("subnetworks", _with(link_network, fill_subnet), "fingerprint"),
    _kind("routers", _with(link_network, fill_router)),
    _kind("firewalls", _with(link_network, fill_firewall)),
    _kind("addresses", _with(fill_address), "labelFingerprint"),
    _kind("globalAddresses", _with(fill_address), "labelFingerprint"),
    _kind("networkAttachments", _with(), "fingerprint"),
    _kind("resourcePolicies", _with()),
    _kind("instanceGroupManagers", _with()),
    _kind("disks", _with(changes.fill_disk), "labelFingerprint"),
)
SERVICE = Service(
    name="compute",
    kinds=_KINDS,
    handlers={
        **{f"{kind.collection}.aggregatedList": _aggregated for kind in _KINDS},
        **changes.HANDLERS,
        **places.HANDLERS,
    },
)
