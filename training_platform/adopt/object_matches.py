"""Which object in a cluster is which resource of a plan, and what of the plan stands there."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from training_platform.adopt.cluster_objects import ClusterObjects
from training_platform.adopt.comparison import TABLE, Difference
from training_platform.adopt.matches import Match
from training_platform.adopt.sections.values import at
from training_platform.clients.project_contents import Contents
from training_platform.resources.gke import kubeconfig
from training_platform.resources.planned import KUBERNETES_PROVIDER, UNKNOWN, Planned
from training_platform.resources.register import (
    CLUSTER,
    KUBERNETES,
    NAMESPACE,
    RELEASE,
    SERVICE_ACCOUNT,
)

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
