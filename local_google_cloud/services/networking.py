"""Cloud DNS without a name server, and private services access, which gives Google's services addresses in a VPC.

Sources for DNS, read 2026-11-22: the discovery document and Google's documentation. A change applies all of its records
or none, and only an empty zone can be deleted.
"""

from __future__ import annotations

from typing import Final

from local_google_cloud.requests.errors import Refusal, already_exists, not_found, required
from local_google_cloud.resources import lists
from local_google_cloud.resources.actions import change, merge, start_operation
from local_google_cloud.resources.resource_kinds import Call, ResourceKind, Service
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json

# Cloud DNS: zones of a VPC, and their records, which changes add and delete


def _fill_zone(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    if not str(body.get("dnsName", "")).endswith("."):
        raise Refusal(400, f"Invalid value for 'entity.managedZone.dnsName': '{body.get('dnsName', '')}'")
    for network in body.get("privateVisibilityConfig", {}).get("networks", ()):
        cloud.existing("compute/projects/" + network.get("networkUrl", "").partition("projects/")[2])
    if not old:
        body |= {"id": cloud.number(), "kind": "dns#managedZone", "creationTime": cloud.time()}
        body["nameServers"] = ["ns-gcp-private.googledomains.com."]


def _patch_zone(cloud: Cloud, call: Call) -> Json:
    """Change a zone. The response is a finished operation."""
    change(cloud, _ZONES, call, merge)
    return {
        "kind": "dns#operation",
        "id": cloud.number(),
        "type": "UPDATE",
        "status": "DONE",
        "startTime": cloud.time(),
    }


def _check_zone_empty(cloud: Cloud, _call: Call, zone: Record) -> None:
    if cloud.store.children(f"{zone.name}/rrsets"):
        raise Refusal(400, f"The resource '{zone.body['name']}' is not empty", reason="containerNotEmpty")


def _change_records(cloud: Cloud, call: Call) -> Json:
    """Delete and add records, either all or none. A deletion must contain the record's current values."""
    zone = cloud.existing(call.name.rpartition("/")[0])
    deleted = {_record_name(zone, deletion): deletion for deletion in call.body.get("deletions", ())}
    for name, deletion in deleted.items():
        current = cloud.existing(name)
        if any(current.body.get(field) != deletion.get(field) for field in ("ttl", "rrdatas")):
            raise Refusal(412, f"Precondition not met for 'entity.change.deletions': {deletion.get('name')}")
    added = [
        Record(name=_record_name(zone, addition), project=zone.project, body=addition)
        for addition in call.body.get("additions", ())
    ]
    for record in added:
        if record.name in cloud.store and record.name not in deleted:
            raise already_exists(f"{record.body['name']} ({record.body['type']})")
        if not record.body.get("rrdatas"):
            raise Refusal(400, f"Invalid value for 'entity.change.additions[].rrdata': {record.body['name']} has none")
    for name in deleted:
        cloud.store.delete(name)
    for record in added:
        record.body["kind"] = "dns#resourceRecordSet"
        cloud.store.put(record)
    number = cloud.number()
    body = {**call.body, "kind": "dns#change", "id": number, "status": "done", "startTime": cloud.time()}
    cloud.store.put(Record(name=f"{call.name}/{number}", project=zone.project, body=body))
    return body


def _record_name(zone: Record, body: Json) -> str:
    name = str(body.get("name", ""))
    domain = zone.body["dnsName"]
    if name != domain and not name.endswith(f".{domain}"):
        raise Refusal(400, f"Invalid value for 'entity.change.additions[].name': '{name}' is not in {domain}")
    return f"{zone.name}/rrsets/{body.get('type', '')} {name}"


def _list_records(cloud: Cloud, call: Call) -> Json:
    cloud.existing(call.name.rpartition("/")[0])
    criteria = {field: call.parameters[field] for field in ("name", "type") if field in call.parameters}
    bodies = [record.body for record in cloud.store.children(call.name)]
    return lists.page(call, [body for body in bodies if criteria.items() <= body.items()], "ResourceRecordSet")


_ZONES: Final = ResourceKind(
    collection="managedZones", schema="ManagedZone", fill=_fill_zone, check_delete=_check_zone_empty
)
DNS: Final = Service(
    name="dns",
    kinds=(_ZONES,),
    handlers={
        "managedZones.patch": _patch_zone,
        "changes.create": _change_records,
        "changes.get": lambda cloud, call: cloud.existing(call.name).body,
        "resourceRecordSets.list": _list_records,
    },
)

# Private services access: the connection of a VPC


def _write_connection(cloud: Cloud, call: Call) -> Json:
    """Create or change a connection. Its addresses must come from existing ranges of its network."""
    network = _network(cloud, required(call.body, "network", "connection"))
    if call.method.action == "create" and _connection_name(call, network) in cloud.store:
        raise already_exists(f"{call.path} of {network}")
    project = network.split("/")[1]
    for name in call.body.get("reservedPeeringRanges", ()):
        cloud.existing(f"compute/projects/{project}/global/addresses/{name}")
    service = "services/" + call.path.split("/")[1]
    body = {**call.body, "peering": "servicenetworking-googleapis-com", "service": service}
    cloud.store.put(Record(name=_connection_name(call, network), project=project, body=body))
    return _start(cloud, call, project, body)


def _list_connections(cloud: Cloud, call: Call) -> Json:
    network = _network(cloud, call.parameters["network"])
    record = cloud.store.get(_connection_name(call, network))
    return {"connections": [record.body] if record else []}


def _delete_connection(cloud: Cloud, call: Call) -> Json:
    network = _network(cloud, required(call.body, "consumerNetwork", "request"))
    cloud.store.delete(_connection_name(call, network))
    return _start(cloud, call, network.split("/")[1], {})


def disconnect(cloud: Cloud, _call: Call, network: Record) -> None:
    """Delete the connections and the peering of a deleted VPC (general knowledge, not tried)."""
    name = network.name.removeprefix("compute/").replace("/", ":")
    for record in cloud.store.all(network.project):
        if record.name.startswith("servicenetworking/") and record.name.endswith(f"/connections/{name}"):
            cloud.store.delete(record.name)


def _network(cloud: Cloud, name: str) -> str:
    """Return a network's path with the id of its project. Clients may use the project number instead."""
    parts = name.split("/")
    if len(parts) < 2:
        raise Refusal(400, f"Invalid network '{name}': must be projects/PROJECT/global/networks/NETWORK")
    parts[1] = cloud.projects.resolve(parts[1])
    path = "/".join(parts)
    if cloud.store.get(f"compute/{path}") is None:
        raise not_found(name)
    return path


def _connection_name(call: Call, network: str) -> str:
    return f"servicenetworking/{'/'.join(call.path.split('/')[:2])}/connections/{network.replace('/', ':')}"


def _start(cloud: Cloud, call: Call, project: str, response: Json) -> Json:
    schema = "google.cloud.servicenetworking.v1.Connection"
    return start_operation(cloud, call, "connections", project=project, response=response, schema=schema, where="")


SERVICE_NETWORKING: Final = Service(
    name="servicenetworking",
    handlers={
        "services.connections.create": _write_connection,
        "services.connections.patch": _write_connection,
        "services.connections.list": _list_connections,
        "services.connections.deleteConnection": _delete_connection,
    },
)
