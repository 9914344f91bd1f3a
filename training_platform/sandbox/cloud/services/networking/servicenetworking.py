"""Private service access: the one connection of a VPC by which services of Google get addresses in it."""

from __future__ import annotations

from training_platform.sandbox.cloud.requests.errors import already_exists, not_found, required
from training_platform.sandbox.cloud.resources.model import Call, Json, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record
from training_platform.sandbox.cloud.state.work import Work


def _create(cloud: Cloud, call: Call) -> Json:
    network = _network(cloud, required(call.body, "network", "connection"))
    if cloud.store.get(_name(call, network)):
        raise already_exists(f"{call.path} of {network}")
    return _write(cloud, call, network)


def _patch(cloud: Cloud, call: Call) -> Json:
    return _write(cloud, call, _network(cloud, required(call.body, "network", "connection")))


def _write(cloud: Cloud, call: Call, network: str) -> Json:
    """Keep what a connection takes its addresses from: ranges that are there, of this network."""
    project = network.split("/")[1]
    for name in call.body.get("reservedPeeringRanges", ()):
        if cloud.store.get(f"compute/projects/{project}/global/addresses/{name}") is None:
            raise not_found(f"projects/{project}/global/addresses/{name}")
    service = "services/" + call.path.split("/")[1]
    body = {**call.body, "peering": "servicenetworking-googleapis-com", "service": service}
    cloud.store.put(Record(name=_name(call, network), project=project, body=body))
    return _operation(cloud, call, project, body)


def _list(cloud: Cloud, call: Call) -> Json:
    wanted = _network(cloud, call.parameters["network"])
    record = cloud.store.get(_name(call, wanted))
    return {"connections": [record.body] if record else []}


def _delete(cloud: Cloud, call: Call) -> Json:
    network = _network(cloud, required(call.body, "consumerNetwork", "request"))
    cloud.store.delete(_name(call, network))
    return _operation(cloud, call, network.split("/")[1], {})


def disconnect(cloud: Cloud, _call: Call, network: Record) -> None:
    """Let the connections of a VPC go with it, as the peering of a deleted VPC does (general knowledge, not tried)."""
    name = network.name.removeprefix("compute/").replace("/", ":")
    for record in cloud.store.all(network.project):
        if record.name.startswith("servicenetworking/") and record.name.endswith(f"/connections/{name}"):
            cloud.store.delete(record.name)


def _network(cloud: Cloud, name: str) -> str:
    """Return a network's name with its project by id, since clients write its number."""
    parts = name.split("/")
    parts[1] = cloud.projects.resolve(parts[1])
    if cloud.store.get("compute/" + "/".join(parts)) is None:
        raise not_found(name)
    return "/".join(parts)


def _name(call: Call, network: str) -> str:
    return f"servicenetworking/{'/'.join(call.path.split('/')[:2])}/connections/{network.replace('/', ':')}"


def _operation(cloud: Cloud, call: Call, project: str, response: Json) -> Json:
    work = Work(
        style="longrunning", service=call.service, project=project, target=call.name, type=call.method.action,
        seconds=cloud.settings.seconds("servicenetworking.connections"), response=response,
        schema="google.cloud.servicenetworking.v1.Connection", where="", metadata={},
    )  # fmt: skip
    return cloud.operations.start(work)


SERVICE = Service(
    name="servicenetworking",
    handlers={
        "services.connections.create": _create,
        "services.connections.patch": _patch,
        "services.connections.list": _list,
        "services.connections.deleteConnection": _delete,
    },
)
