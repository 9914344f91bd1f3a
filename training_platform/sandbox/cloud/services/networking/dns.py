"""Cloud DNS: zones of a VPC, and their records, which changes add and delete; nothing answers queries.

Source: the discovery document; that records change as a whole, and that a zone must be empty to go, is Google's
documentation of changes and zones, read 2026-11-22.
"""

from __future__ import annotations

from training_platform.sandbox.cloud.requests.errors import ApiError, already_exists, not_found
from training_platform.sandbox.cloud.requests.masks import merge
from training_platform.sandbox.cloud.resources import lists
from training_platform.sandbox.cloud.resources.actions import change
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record


def _fill(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    if not str(body.get("dnsName", "")).endswith("."):
        raise ApiError(400, f"Invalid value for 'entity.managedZone.dnsName': '{body.get('dnsName', '')}'")
    for network in body.get("privateVisibilityConfig", {}).get("networks", ()):
        path = "projects/" + network.get("networkUrl", "").partition("projects/")[2]
        if cloud.store.get(f"compute/{path}") is None:
            raise not_found(path)
    if not old:
        body |= {"id": cloud.number(), "kind": "dns#managedZone", "creationTime": cloud.time()}
        body["nameServers"] = ["ns-gcp-private.googledomains.com."]


def _patch(cloud: Cloud, call: Call) -> Json:
    """Change a zone; the answer is an operation that is done."""
    kind = call.definition.kind("managedZones")
    if kind is None:
        raise not_found(call.path)
    change(cloud, kind, call, merge)
    return {
        "kind": "dns#operation",
        "id": cloud.number(),
        "type": "UPDATE",
        "status": "DONE",
        "startTime": cloud.time(),
    }


def _empty(cloud: Cloud, _call: Call, record: Record) -> None:
    if cloud.store.children(f"{record.name}/rrsets"):
        raise ApiError(400, f"The resource '{record.body['name']}' is not empty", reason="containerNotEmpty")


def _gone(cloud: Cloud, _call: Call, record: Record) -> None:
    for each in cloud.store.children(f"{record.name}/changes"):
        cloud.store.delete(each.name)


def _change(cloud: Cloud, call: Call) -> Json:
    """Delete and add records, all or none: deletions name a record as it is."""
    zone = cloud.existing(call.name.rpartition("/")[0])
    deleted = {_name(zone, each): each for each in call.body.get("deletions", ())}
    for name, each in deleted.items():
        held = cloud.existing(name)
        if any(held.body.get(field) != each.get(field) for field in ("ttl", "rrdatas")):
            raise ApiError(412, f"Precondition not met for 'entity.change.deletions': {each.get('name')}")
    added = [Record(name=_name(zone, each), project=zone.project, body=each) for each in call.body.get("additions", ())]
    for record in added:
        if record.name in cloud.store and record.name not in deleted:
            raise already_exists(f"{record.body['name']} ({record.body['type']})")
        if not record.body.get("rrdatas"):
            raise ApiError(400, f"Invalid value for 'entity.change.additions[].rrdata': {record.body['name']} has none")
    for name in deleted:
        cloud.store.delete(name)
    for record in added:
        record.body["kind"] = "dns#resourceRecordSet"
        cloud.store.put(record)
    number = cloud.number()
    done = {**call.body, "kind": "dns#change", "id": number, "status": "done", "startTime": cloud.time()}
    cloud.store.put(Record(name=f"{call.name}/{number}", project=zone.project, body=done))
    return done


def _name(zone: Record, record: Json) -> str:
    name, domain = str(record.get("name", "")), zone.body["dnsName"]
    if name != domain and not name.endswith(f".{domain}"):
        raise ApiError(400, f"Invalid value for 'entity.change.additions[].name': '{name}' is not in {domain}")
    return f"{zone.name}/rrsets/{record.get('type', '')} {name}"


def _list(cloud: Cloud, call: Call) -> Json:
    cloud.existing(call.name.rpartition("/")[0])
    wanted = {field: call.parameters[field] for field in ("name", "type") if field in call.parameters}
    held = (each.body for each in cloud.store.children(call.name))
    return lists.page(call, [each for each in held if wanted.items() <= each.items()], "ResourceRecordSet")


def _get_change(cloud: Cloud, call: Call) -> Json:
    return cloud.existing(call.name).body


SERVICE = Service(
    name="dns",
    kinds=(Kind(collection="managedZones", schema="ManagedZone", fill=_fill, removable=_empty, gone=_gone),),
    handlers={
        "managedZones.patch": _patch,
        "changes.create": _change,
        "changes.get": _get_change,
        "resourceRecordSets.list": _list,
    },
)
