"""What a killed run began to create: under which id the cloud has it, if it has.

Pulumi writes down that a create began, with its inputs, and would create a second one: names with a random suffix
stand in the inputs too, so that the id can be put together. An addition that creates nothing of its own, such as a
member of a role, is forgotten: to make it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from training_platform.resources.register import BUCKET, KUBERNETES, REGISTER, ROUTER_NAT, imported_as
from training_platform.sandbox.cloud.state.store import Store as CloudStore
from training_platform.sandbox.kubernetes.store import ObjectStore
from training_platform.sandbox.run.folder import Folder
from training_platform.sandbox.run.reports.timeline import name_of


class Pending(NamedTuple):
    """A create that was under way; ``id`` is None where nothing was created, or another create changes nothing."""

    urn: str
    type: str
    id: str | None
    parent: str
    provider: str  # a URN
    inputs: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return name_of(self.urn)


class Holdings(NamedTuple):
    """What the stand-ins hold: names of cloud resources with their bodies, and ids of objects by cluster."""

    cloud: Mapping[str, Mapping[str, Any]]
    objects: frozenset[tuple[str, str, str]]  # cluster, kind and id


def pending_creates(
    operations: Iterable[Mapping[str, Any]], held: Holdings, clusters: Mapping[str, str]
) -> list[Pending]:
    """Return the creates among a state's pending operations, each with its id where the stand-ins have it.

    ``clusters`` are those of the Kubernetes providers, by URN. Components are left out: to create one again creates
    nothing.
    """
    creates = [each["resource"] for each in operations if each["type"] == "creating" and each["resource"].get("custom")]
    return [
        Pending(
            each["urn"],
            each["type"],
            find_id(each, held, clusters.get(_provider(each), "")),
            each.get("parent", ""),
            _provider(each),
            each.get("inputs") or {},
        )
        for each in creates
    ]


def find_id(resource: Mapping[str, Any], held: Holdings, cluster: str = "") -> str | None:
    """Return the id under which the stand-ins have a resource with these inputs; an object, in its own cluster."""
    kind, inputs = resource["type"], resource.get("inputs") or {}
    if kind.startswith(KUBERNETES):
        return _object_id(kind, inputs, held, cluster)
    row = REGISTER.get(kind)
    if row and row.import_id:
        identity = _filled(row.import_id, inputs)
        there = identity and _is_held(kind, identity, held)
        return imported_as(kind, identity, inputs.get("project")) if identity and there else None
    if row and row.listed_under:
        prefix = _filled(row.listed_under, inputs)
        return _displayed(prefix, inputs, held) if prefix else None
    return None


def holdings(folder: Folder) -> Holdings:
    """Read what the stand-ins hold from their files.

    Objects in API servers are not among them: to create one again takes over the one that is there.
    """
    objects = ObjectStore(folder.kubernetes)
    keys = [(cluster, key) for cluster in objects.clusters() for key in objects.keys(cluster)]
    ids = {(cluster, key.kind, f"{key.namespace}/{key.name}" if key.namespace else key.name) for cluster, key in keys}
    cloud = {each.name.partition("/")[2]: each.body for each in CloudStore(folder.cloud).all()}
    return Holdings(cloud, frozenset(ids))


def clusters_of(resources: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the cluster of each Kubernetes provider in a state, by the provider's URN."""
    providers = (each for each in resources if each["type"] == "pulumi:providers:kubernetes")
    return {each["urn"]: (each.get("inputs") or {}).get("clusterIdentifier", "") for each in providers}


def _provider(resource: Mapping[str, Any]) -> str:
    found: str = resource.get("provider", "").rpartition("::")[0]
    return found


def _filled(template: str, inputs: Mapping[str, Any]) -> str | None:
    values = {**inputs, "cluster": str(inputs.get("cluster", "")).rpartition("/")[2]}
    try:
        return template.format_map(values)
    except KeyError:
        return None


def _object_id(kind: str, inputs: Mapping[str, Any], held: Holdings, cluster: str) -> str | None:
    about = inputs if kind.endswith(":Release") else inputs.get("metadata", {})
    name, namespace = about.get("name"), about.get("namespace")
    for identity in (f"{namespace}/{name}", str(name)):
        if (cluster, kind.rpartition(":")[2], identity) in held.objects:
            return identity
    return None


def _displayed(prefix: str, inputs: Mapping[str, Any], held: Holdings) -> str | None:
    names = (
        name
        for name, body in held.cloud.items()
        if name.startswith(prefix) and body.get("displayName") == inputs.get("displayName")
    )
    return next(names, None)


def _is_held(kind: str, identity: str, held: Holdings) -> bool:
    if kind == ROUTER_NAT:  # a part of its router
        *place, router, name = identity.split("/")
        path = "projects/{}/regions/{}/routers/{}".format(*place, router)
        return any(nat.get("name") == name for nat in held.cloud.get(path, {}).get("nats", ()))
    return (f"b/{identity}" if kind == BUCKET else identity) in held.cloud
