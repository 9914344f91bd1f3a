"""Matches planned resources with existing ones, and determines their import ids."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from training_platform.clients.project_contents import ENABLED_APIS, POLICY, Contents
from training_platform.parts.adopt.cluster_objects import ClusterObjects
from training_platform.parts.adopt.differences import TABLE, Difference, same
from training_platform.resources import resource_types
from training_platform.resources.api_fields import leaves
from training_platform.resources.gke import kubeconfig
from training_platform.resources.resource_types import (
    CLUSTER,
    KUBERNETES,
    NAMESPACE,
    RELEASE,
    RESOURCE_TYPES,
    SERVICE_ACCOUNT,
)
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, UNKNOWN, StackResource

_SERVICES = "servicenetworking-googleapis-com"  # the peering of private service access
# The inputs that identify resources with names that Pulumi or Google Cloud chooses.
_TOLD_BY: Mapping[str, tuple[str, ...]] = {
    resource_types.SUBNETWORK: ("network", "ipCidrRange"),
    resource_types.ROUTER: ("network",),
    resource_types.FIREWALL: ("network", "direction", "description"),
    resource_types.ALERT_POLICY: ("displayName",),
    resource_types.NOTIFICATION_CHANNEL: ("displayName",),
    resource_types.TENSORBOARD: ("displayName",),
}


class Match(NamedTuple):
    """A planned resource with resolved references, its import id, and its path in the project.

    ``body`` is the response of its API, or None if it is not a resource in the API.
    """

    planned: StackResource
    id: str
    path: str
    body: Mapping[str, Any] | None


def matches(resources: Iterable[StackResource], contents: Contents) -> dict[tuple[str, str], Match]:
    """Return the planned resources that exist in a project, keyed by type and name, in the order of the plan."""
    matched: dict[tuple[str, str], Match] = {}
    taken: set[str] = set()
    for resource in resources:
        if resource.custom and resource.type.startswith("gcp:"):
            planned = _resolved(resource, matched)
            match = next((candidate for candidate in _candidates(planned, contents) if candidate.id not in taken), None)
            if match is not None:
                matched[resource.key] = match
                taken.add(match.id)
    return matched


def _resolved(resource: StackResource, matched: Mapping[tuple[str, str], Match]) -> StackResource:
    """Return a resource whose references are replaced by paths, or by ``a new KIND`` if the target does not exist."""
    inputs = dict(resource.inputs)
    for name, sources in resource.inputs_from.items():
        new = [
            RESOURCE_TYPES[kind].kind for kind, _ in sources if kind in RESOURCE_TYPES and not RESOURCE_TYPES[kind].adds
        ]
        paths = [matched[source].path for source in sources if source in matched]
        if name == "member":  # has the address of an account
            paths = [f"serviceAccount:{path.rpartition('/')[2]}" for path in paths]
        if len(sources) == 1:
            inputs[name] = _filled(inputs.get(name), *(paths or [f"a new {kind}" for kind in new]))
        elif inputs.get(name) == [UNKNOWN] * len(paths):
            inputs[name] = paths
    return dataclasses.replace(resource, inputs=inputs)


def _filled(value: Any, default: Any = UNKNOWN) -> Any:
    if value is UNKNOWN:
        return default
    if isinstance(value, Mapping):
        return {key: _filled(item, default) for key, item in value.items()}
    return [_filled(item, default) for item in value] if isinstance(value, list) else value


def _candidates(planned: StackResource, contents: Contents) -> Iterator[Match]:
    special = {
        resource_types.SERVICE: _service,
        resource_types.IAM_MEMBER: _member,
        resource_types.ROUTER_NAT: _nats,
        resource_types.SERVICE_CONNECTION: _connection,
        resource_types.DASHBOARD: _dashboard,
    }
    if planned.type in special:
        yield from special[planned.type](planned, contents)
        return
    row = RESOURCE_TYPES.get(planned.type)
    identity = _import_id(row.import_id, planned.inputs) if row and row.import_id else None
    if identity is not None:
        body = contents.of(planned.type).get(identity)
        if body is not None:
            yield Match(
                planned, resource_types.imported_as(planned.type, identity, contents.project), path=identity, body=body
            )
    elif planned.type in _TOLD_BY:
        # First the candidates with the resource's own name and the suffix that Pulumi adds.
        named = f"/{planned.name}"
        yield from sorted(
            _alike(planned, contents), key=lambda match: not match.path.rpartition("-")[0].endswith(named)
        )


def _import_id(template: str, inputs: Mapping[str, Any]) -> str | None:
    values = {key: value for key, value in inputs.items() if isinstance(value, str)}
    if "cluster" in values:
        values["cluster"] = values["cluster"].rpartition("/")[2]
    try:
        return template.format_map(values)
    except KeyError:
        return None


def _alike(planned: StackResource, contents: Contents) -> Iterator[Match]:
    place = planned.inputs.get("region") or planned.inputs.get("location")
    told = [leaf for leaf in leaves(planned.type, planned.inputs) if leaf.name in _TOLD_BY[planned.type]]
    for path, body in contents.of(planned.type).items():
        here = place in (None, UNKNOWN) or f"/{place}/" in path
        if here and told and all(leaf.value is not UNKNOWN and same(leaf.value, _at(body, leaf.path)) for leaf in told):
            yield Match(planned, path, path=path, body=body)


def _at(body: Any, path: Iterable[Any]) -> Any:
    for key in path:
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def _service(planned: StackResource, contents: Contents) -> Iterator[Match]:
    api = planned.inputs["service"]
    if any(path.endswith(f"/{api}") for path in contents.of(ENABLED_APIS)):
        yield Match(planned, f"{contents.project}/{api}", path=api, body=None)


def _member(planned: StackResource, contents: Contents) -> Iterator[Match]:
    role = planned.inputs.get("role")
    member = planned.inputs.get("member")
    if planned.inputs.get("project") != contents.project:  # a grant in the environment's, of a team with its own
        return
    policy = contents.of(POLICY).get(contents.project, {})
    bindings = (row for row in policy.get("bindings", ()) if not row.get("condition"))
    if any(row["role"] == role and member in row.get("members", ()) for row in bindings):
        identity = f"{contents.project} {role} {member}"
        yield Match(planned, identity, path=identity, body=None)


def _nats(planned: StackResource, contents: Contents) -> Iterator[Match]:
    router = str(planned.inputs.get("router"))
    for nat in contents.of(resource_types.ROUTER).get(router, {}).get("nats", ()):
        region = router.split("/")[3]
        name = router.rpartition("/")[2]
        identity = f"{contents.project}/{region}/{name}/{nat['name']}"
        yield Match(planned, identity, path=identity, body=nat)


def _dashboard(planned: StackResource, contents: Contents) -> Iterator[Match]:
    title = json.loads(planned.inputs["dashboardJson"])["displayName"]
    for path, body in contents.of(resource_types.DASHBOARD).items():
        if body.get("displayName") == title:
            yield Match(planned, path, path=path, body=body)


def _connection(planned: StackResource, contents: Contents) -> Iterator[Match]:
    network = str(planned.inputs.get("network"))
    peerings = contents.of(resource_types.NETWORK).get(network, {}).get("peerings", ())
    if any(peering.get("name") == _SERVICES for peering in peerings):
        identity = f"{network}:{planned.inputs['service']}"
        yield Match(planned, identity, path=identity, body=None)


_ENDPOINT = ("controlPlaneEndpointsConfig", "dnsEndpointConfig", "endpoint")
_ACCOUNT = "iam.gke.io/gcp-service-account"
_KUEUE = f"{KUBERNETES}kueue.x-k8s.io/"
Matches = Mapping[tuple[str, str], Match]


def object_matches(
    resources: Iterable[StackResource], in_cloud: Matches, contents: Contents
) -> dict[tuple[str, str], Match]:
    """Return the planned objects that exist in clusters, and their providers, keyed by type and name."""
    clusters = ClusterObjects(contents.clusters, contents.unread)
    providers: dict[str, Match] = {}
    matched: dict[tuple[str, str], Match] = {}
    for planned in resources:
        if planned.type == KUBERNETES_PROVIDER and (reached := _provider(planned, contents)):
            providers[planned.name] = reached
        provider = providers.get(str(planned.options.get("provider")))
        if not (planned.custom and planned.type.startswith(KUBERNETES) and provider):
            continue
        inputs = _known(planned, {**in_cloud, **matched})
        find = clusters.find_release if planned.type == RELEASE else clusters.find
        if (current := find(provider.path, inputs)) is not None:
            path = f"{provider.path}/{inputs.get('kind', 'Release')}/{current.id}"
            resolved = dataclasses.replace(planned, inputs=inputs)
            matched[planned.key] = Match(resolved, current.id, path=path, body=current.body)
            matched[provider.planned.key] = provider
    return matched


def _provider(planned: StackResource, contents: Contents) -> Match | None:
    """Return the provider of a reachable cluster. It needs no id, since the import creates it."""
    path = str(planned.inputs.get("clusterIdentifier"))
    endpoint = _at(contents.of(CLUSTER).get(path), _ENDPOINT)
    if path not in contents.clusters or not endpoint:
        return None
    inputs = {**planned.inputs, "kubeconfig": kubeconfig(endpoint)}
    return Match(dataclasses.replace(planned, inputs=inputs), "", path=path, body=None)


def _known(planned: StackResource, matched: Matches) -> dict[str, Any]:
    """Return an object's inputs, with references to its namespace and account replaced by the real names."""
    deployed: dict[str, Any] = {}
    for source in (source for sources in planned.inputs_from.values() for source in sources if source in matched):
        if source[0] == NAMESPACE:
            deployed["namespace"] = matched[source].id
        elif source[0] == SERVICE_ACCOUNT:
            deployed[_ACCOUNT] = matched[source].path.rpartition("/")[2]

    def filled(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: deployed.get(key, UNKNOWN) if item is UNKNOWN else filled(item) for key, item in value.items()}
        return [filled(item) for item in value] if isinstance(value, list) else value

    return {
        key: deployed.get(key, UNKNOWN) if item is UNKNOWN else filled(item) for key, item in planned.inputs.items()
    }


def current_inputs(match: Match) -> dict[str, Any]:
    """Return the program's inputs for an existing object or release."""
    inputs = match.planned.inputs
    body = match.body or {}
    if match.planned.type != RELEASE:
        return dict(current_values(inputs, body))
    read = {key: inputs[key] for key in body if key in inputs}
    return {**inputs, **current_values(read, body)}


def current_values(planned: Any, current: Any) -> Any:
    """Return the planned fields of an object with their current values."""
    if planned is UNKNOWN:
        return current
    if isinstance(planned, Mapping) and isinstance(current, Mapping):
        return {
            key: current_values(value, current.get(key, value))
            for key, value in planned.items()
            if key in current or value in ({}, [], None)
        }
    if isinstance(planned, list) and isinstance(current, list) and len(planned) == len(current):
        return [current_values(*pair) for pair in zip(planned, current, strict=True)]
    return planned if _same(planned, current) else current


def object_differences(planned: StackResource, body: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the fields of an object or release that an update to ``planned`` would change, then unplanned fields.

    Unplanned fields are only reported for Kueue's objects. In other objects, servers and controllers set most of them.
    """
    inputs = {key: planned.inputs.get(key) for key in body} if planned.type == RELEASE else planned.inputs
    for path, current, value in _changes(inputs, body):
        yield Difference(path, current, planned=value, replaces=False)
    if planned.type.startswith(_KUEUE):
        for path, current in _beside(inputs.get("spec", {}), body.get("spec", {}), "spec"):
            if TABLE["kueue"].get(path.rpartition(".")[2]) != str(current):
                yield Difference(path, current, planned=None, replaces=False)


def _beside(planned: Any, current: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of an object that are not in a plan."""
    if isinstance(current, Mapping):
        below = planned if isinstance(planned, Mapping) else {}
        for key, value in current.items():
            yield from _beside(below.get(key), value, f"{path}.{key}")
    elif isinstance(current, list) and isinstance(planned, list):
        for index, value in enumerate(current[: len(planned)]):
            yield from _beside(planned[index], value, f"{path}[{index}]")
    elif planned is None and current not in (None, "", []):
        yield path, current


def _changes(planned: Any, current: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(planned, Mapping) and isinstance(current, Mapping):
        for key, value in planned.items():
            yield from _changes(value, current.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(planned, list) and isinstance(current, list) and len(planned) == len(current):
        for index, value in enumerate(planned):
            yield from _changes(value, current[index], f"{path}[{index}]")
    elif planned is not UNKNOWN and not _same(planned, current) and (current is not None or planned not in ({}, [])):
        yield path, current, planned


def _same(planned: Any, current: Any) -> bool:
    """Return True if two values are equal, also as quantities, since a server writes ``1Ti`` for ``1024Gi``."""
    if planned == current:
        return True
    from kubernetes.utils import quantity  # noqa: PLC0415 # the extra brings it

    number: Any = quantity.parse_quantity
    try:
        return bool(number(planned) == number(current))
    except (ValueError, TypeError):
        return False
