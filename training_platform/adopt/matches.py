"""Which thing in a project is which resource of a plan, and by which id it is imported."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from training_platform.adopt.cluster_objects import ClusterObjects
from training_platform.adopt.comparison import TABLE, Difference, same
from training_platform.adopt.sections.values import at
from training_platform.clients.project_contents import ENABLED_APIS, POLICY, Contents
from training_platform.resources import register
from training_platform.resources.gke import kubeconfig
from training_platform.resources.planned import KUBERNETES_PROVIDER, UNKNOWN, Planned
from training_platform.resources.register import CLUSTER, KUBERNETES, NAMESPACE, REGISTER, RELEASE, SERVICE_ACCOUNT
from training_platform.resources.rest import leaves

_SERVICES = "servicenetworking-googleapis-com"  # the peering of private service access
# What tells things apart whose names the program leaves to Pulumi, or Google Cloud chooses.
_TOLD_BY: Mapping[str, tuple[str, ...]] = {
    register.SUBNETWORK: ("network", "ipCidrRange"),
    register.ROUTER: ("network",),
    register.FIREWALL: ("network", "direction", "description"),
    register.ALERT_POLICY: ("displayName",),
    register.NOTIFICATION_CHANNEL: ("displayName",),
    register.TENSORBOARD: ("displayName",),
}


class Match(NamedTuple):
    """A planned resource with what it waited for filled in, the id that imports it, and where it stands in the project.

    ``body`` is what its API says of it, None of what is no resource there.
    """

    planned: Planned
    id: str
    path: str
    body: Mapping[str, Any] | None


def matches(resources: Iterable[Planned], contents: Contents) -> dict[tuple[str, str], Match]:
    """Return the resources that stand in a project, by type and name; a plan has them before those that need them."""
    found: dict[tuple[str, str], Match] = {}
    taken: set[str] = set()
    for resource in resources:
        if resource.custom and resource.type.startswith("gcp:"):
            planned = _resolved(resource, found)
            match = next((each for each in _candidates(planned, contents) if each.id not in taken), None)
            if match is not None:
                found[resource.key] = match
                taken.add(match.id)
    return found


def _resolved(resource: Planned, found: Mapping[tuple[str, str], Match]) -> Planned:
    """Return a resource with paths of things for the values that only they tell, or that a thing is new."""
    inputs = dict(resource.inputs)
    for name, sources in resource.inputs_from.items():
        new = [REGISTER[kind].kind for kind, _ in sources if kind in REGISTER and not REGISTER[kind].adds]
        told = [_value(name, found[each]) for each in sources if each in found]
        if len(sources) == 1:
            inputs[name] = _filled(inputs.get(name), *(told or [f"a new {kind}" for kind in new]))
        elif inputs.get(name) == [UNKNOWN] * len(told):
            inputs[name] = told
    return dataclasses.replace(resource, inputs=inputs)


def _value(name: str, match: Match) -> str:
    """Return what an input takes of a thing: an account's address for a member, else its path."""
    last = match.path.rpartition("/")[2]
    return f"serviceAccount:{last}" if name == "member" else match.path


def _filled(value: Any, known: Any = UNKNOWN) -> Any:
    if value is UNKNOWN:
        return known
    if isinstance(value, Mapping):
        return {key: _filled(each, known) for key, each in value.items()}
    return [_filled(each, known) for each in value] if isinstance(value, list) else value


def _candidates(planned: Planned, contents: Contents) -> Iterator[Match]:
    special = {
        register.SERVICE: _service,
        register.IAM_MEMBER: _member,
        register.ROUTER_NAT: _nats,
        register.SERVICE_CONNECTION: _connection,
        register.DASHBOARD: _dashboard,
    }
    if planned.type in special:
        yield from special[planned.type](planned, contents)
        return
    row = REGISTER.get(planned.type)
    identity = _import_id(row.import_id, planned.inputs) if row and row.import_id else None
    if identity is not None:
        body = contents.of(planned.type).get(identity)
        if body is not None:
            yield Match(planned, register.imported_as(planned.type, identity, contents.project), identity, body)
    elif planned.type in _TOLD_BY:
        yield from sorted(_alike(planned, contents), key=lambda match: not _suffixed(match.path, planned.name))


def _import_id(template: str, inputs: Mapping[str, Any]) -> str | None:
    values = {key: value for key, value in inputs.items() if isinstance(value, str)}
    if "cluster" in values:
        values["cluster"] = values["cluster"].rpartition("/")[2]
    try:
        return template.format_map(values)
    except KeyError:
        return None


def _alike(planned: Planned, contents: Contents) -> Iterator[Match]:
    place = planned.inputs.get("region") or planned.inputs.get("location")
    told = [leaf for leaf in leaves(planned.type, planned.inputs) if leaf.name in _TOLD_BY[planned.type]]
    for path, body in contents.of(planned.type).items():
        here = place in (None, UNKNOWN) or f"/{place}/" in path
        if here and told and all(leaf.value is not UNKNOWN and same(leaf.value, _at(body, leaf.path)) for leaf in told):
            yield Match(planned, path, path, body)


def _suffixed(path: str, name: str) -> bool:
    """Whether a name is the resource's own with what Pulumi puts behind it."""
    return path.rpartition("/")[2].rpartition("-")[0] == name


def _at(body: Any, path: Iterable[Any]) -> Any:
    for key in path:
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def _service(planned: Planned, contents: Contents) -> Iterator[Match]:
    api = planned.inputs["service"]
    if any(path.endswith(f"/{api}") for path in contents.of(ENABLED_APIS)):
        yield Match(planned, f"{contents.project}/{api}", api, None)


def _member(planned: Planned, contents: Contents) -> Iterator[Match]:
    role, member = planned.inputs.get("role"), planned.inputs.get("member")
    policy = contents.of(POLICY).get(contents.project, {})
    bindings = (each for each in policy.get("bindings", ()) if not each.get("condition"))
    if any(each["role"] == role and member in each.get("members", ()) for each in bindings):
        identity = f"{contents.project} {role} {member}"
        yield Match(planned, identity, identity, None)


def _nats(planned: Planned, contents: Contents) -> Iterator[Match]:
    router = str(planned.inputs.get("router"))
    for nat in contents.of(register.ROUTER).get(router, {}).get("nats", ()):
        region, name = router.split("/")[3], router.rpartition("/")[2]
        identity = f"{contents.project}/{region}/{name}/{nat['name']}"
        yield Match(planned, identity, identity, nat)


def _dashboard(planned: Planned, contents: Contents) -> Iterator[Match]:
    title = json.loads(planned.inputs["dashboardJson"])["displayName"]
    for path, body in contents.of(register.DASHBOARD).items():
        if body.get("displayName") == title:
            yield Match(planned, path, path, body)


def _connection(planned: Planned, contents: Contents) -> Iterator[Match]:
    network = str(planned.inputs.get("network"))
    peerings = contents.of(register.NETWORK).get(network, {}).get("peerings", ())
    if any(each.get("name") == _SERVICES for each in peerings):
        identity = f"{network}:{planned.inputs['service']}"
        yield Match(planned, identity, identity, None)


_ENDPOINT = "controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint"
_ACCOUNT = "iam.gke.io/gcp-service-account"
_KUEUE = f"{KUBERNETES}kueue.x-k8s.io/"
Found = Mapping[tuple[str, str], Match]


def object_matches(resources: Iterable[Planned], found: Found, contents: Contents) -> dict[tuple[str, str], Match]:
    """Return the objects that stand in clusters, by type and name, and the providers by which they are imported."""
    clusters = ClusterObjects(contents.clusters, contents.unread)
    providers: dict[str, Match] = {}
    matched: dict[tuple[str, str], Match] = {}
    for each in resources:
        if each.type == KUBERNETES_PROVIDER and (reached := _provider(each, contents)):
            providers[each.name] = reached
        provider = providers.get(str(each.options.get("provider")))
        if each.custom and each.type.startswith(KUBERNETES) and provider:
            match = _match(each, provider.path, clusters, {**found, **matched})
            if match is not None:
                matched[each.key] = match
                matched[provider.planned.key] = provider
    return matched


def _provider(planned: Planned, contents: Contents) -> Match | None:
    """Return a provider whose cluster can be asked; it is made by the import, and not read, so that it needs no id."""
    path = str(planned.inputs.get("clusterIdentifier"))
    endpoint = at(contents.of(CLUSTER).get(path), _ENDPOINT)
    if path not in contents.clusters or not endpoint:
        return None
    inputs = {**planned.inputs, "kubeconfig": kubeconfig(endpoint)}
    return Match(dataclasses.replace(planned, inputs=inputs), "", path, None)


def _match(planned: Planned, cluster: str, clusters: ClusterObjects, found: Found) -> Match | None:
    known = _known(planned, found)
    standing = (clusters.find_release if planned.type == RELEASE else clusters.find)(cluster, known)
    if standing is None:
        return None
    path = f"{cluster}/{known.get('kind', 'Release')}/{standing.id}"
    return Match(dataclasses.replace(planned, inputs=known), standing.id, path, standing.body)


def _known(planned: Planned, found: Found) -> dict[str, Any]:
    """Return an object's inputs with the namespace and the account that other resources of the plan tell."""
    told = {}
    for sources in planned.inputs_from.values():
        for source in sources:
            if source in found and source[0] == NAMESPACE:
                told["namespace"] = found[source].id
            if source in found and source[0] == SERVICE_ACCOUNT:
                told[_ACCOUNT] = found[source].path.rpartition("/")[2]

    def filled(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: told.get(key, UNKNOWN) if each is UNKNOWN else filled(each) for key, each in value.items()}
        return [filled(each) for each in value] if isinstance(value, list) else value

    known: dict[str, Any] = filled(planned.inputs)
    return known


def inputs_as_they_stand(match: Match) -> dict[str, Any]:
    """Return what a program would have said to make an object or a release as it stands."""
    inputs, body = match.planned.inputs, match.body or {}
    if match.planned.type != RELEASE:
        return dict(as_it_stands(inputs, body))
    read = {key: inputs[key] for key in body if key in inputs}
    return {**inputs, **as_it_stands(read, body)}


def as_it_stands(planned: Any, stands: Any) -> Any:
    """Return as much of an object as a plan says, with the values that stand there."""
    if planned is UNKNOWN:
        return stands
    if isinstance(planned, Mapping) and isinstance(stands, Mapping):
        return {
            key: as_it_stands(each, stands.get(key, each))
            for key, each in planned.items()
            if key in stands or each in ({}, [], None)
        }
    if isinstance(planned, list) and isinstance(stands, list) and len(planned) == len(stands):
        return [as_it_stands(*each) for each in zip(planned, stands, strict=True)]
    return planned if _same(planned, stands) else stands


def object_differences(planned: Planned, body: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield what an update to ``planned`` would change of an object or of a release, then what stands there beside.

    The second of Kueue's objects alone: of others a server and controllers fill in most of it.
    """
    inputs = {key: planned.inputs.get(key) for key in body} if planned.type == RELEASE else planned.inputs
    for path, stands, wanted in _changes(inputs, body):
        yield Difference(path, stands, wanted, replaces=False)
    if planned.type.startswith(_KUEUE):
        for path, stands in _beside(inputs.get("spec", {}), body.get("spec", {}), "spec"):
            if TABLE["kueue"].get(path.rpartition(".")[2]) != str(stands):
                yield Difference(path, stands, None, replaces=False)


def _beside(planned: Any, stands: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the values that an object has and a plan does not say."""
    if isinstance(stands, Mapping):
        below = planned if isinstance(planned, Mapping) else {}
        for key, each in stands.items():
            yield from _beside(below.get(key), each, f"{path}.{key}")
    elif isinstance(stands, list) and isinstance(planned, list):
        for index, each in enumerate(stands[: len(planned)]):
            yield from _beside(planned[index], each, f"{path}[{index}]")
    elif planned is None and stands not in (None, "", []):
        yield path, stands


def _changes(planned: Any, stands: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(planned, Mapping) and isinstance(stands, Mapping):
        for key, each in planned.items():
            yield from _changes(each, stands.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(planned, list) and isinstance(stands, list) and len(planned) == len(stands):
        for index, each in enumerate(planned):
            yield from _changes(each, stands[index], f"{path}[{index}]")
    elif planned is not UNKNOWN and not _same(planned, stands) and (stands is not None or planned not in ({}, [])):
        yield path, stands, planned


def _same(planned: Any, stands: Any) -> bool:
    """Whether two values are one, as those of a quantity are: a server writes ``1Ti`` for ``1024Gi``."""
    if planned == stands:
        return True
    from kubernetes.utils import quantity  # noqa: PLC0415 # of the extra

    number: Any = quantity.parse_quantity
    try:
        return bool(number(planned) == number(stands))
    except (ValueError, TypeError):
        return False
