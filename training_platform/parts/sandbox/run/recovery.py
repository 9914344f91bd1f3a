"""Recovery from a run that was killed or whose creates failed: creates under way, and half-made resources.

Pulumi records that a create began, with its inputs, and would create a second resource: names with a random suffix are
in the inputs too, so that the id can be put together. An addition that creates nothing of its own, such as a member of
a role, is forgotten: to create it again changes nothing.

Of a create that failed late, Pulumi keeps the resource and only updates it the next time, so that a node pool in error
stays in error; others it forgets, though the cloud has them. Seen with engine 3.259 and the gcp provider on 2026-11-21.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from training_platform.parts.sandbox.cloud.state.store import Store
from training_platform.parts.sandbox.kubernetes.object_store import ObjectStore
from training_platform.parts.sandbox.run.folder import SandboxFolder
from training_platform.resources.resource_types import BUCKET, KUBERNETES, RESOURCE_TYPES, ROUTER_NAT, imported_as

_SUFFIXED = re.compile(r"(.+-)[0-9a-f]{7}")  # as Pulumi names what has no name of its own


class PendingCreate(NamedTuple):
    """A create that was under way; ``id`` is None where nothing was created, or another create changes nothing.

    ``inputs`` are empty where they are not known.
    """

    urn: str
    type: str
    id: str | None
    parent: str
    provider: str  # a URN
    inputs: Mapping[str, Any]


class HalfMade(NamedTuple):
    """A resource that is to be created anew; ``in_state`` tells whether Pulumi knows it."""

    urn: str
    id: str
    in_state: bool


class Holdings(NamedTuple):
    """The stand-ins' contents: bodies of cloud resources by name, and ids of objects by cluster."""

    cloud: Mapping[str, Mapping[str, Any]]
    objects: frozenset[tuple[str, str, str]]  # cluster, kind and id

    def without(self, others: Iterable[Mapping[str, Any]]) -> Holdings:
        """Return the contents without the resources in other stacks' states: their names are not a stack's own."""
        theirs = {resource.get("id") for resource in others}
        return self._replace(cloud={name: body for name, body in self.cloud.items() if name not in theirs})


def holdings(folder: SandboxFolder) -> Holdings:
    """Read the stand-ins' contents from their files.

    Objects in API servers are not among them: to create one again takes over the one that is there.
    """
    objects = ObjectStore(folder.kubernetes)
    keys = [(cluster, key) for cluster in objects.clusters() for key in objects.keys(cluster)]
    ids = {(cluster, key.kind, f"{key.namespace}/{key.name}" if key.namespace else key.name) for cluster, key in keys}
    cloud = {record.name.partition("/")[2]: record.body for record in Store(folder.cloud).all()}
    return Holdings(cloud, frozenset(ids))


def find_pending_creates(
    operations: Iterable[Mapping[str, Any]], held: Holdings, clusters: Mapping[str, str]
) -> list[PendingCreate]:
    """Return the creates among a state's pending operations, each with its id where the stand-ins have it.

    ``clusters`` are those of the Kubernetes providers, by URN. Components are left out: to create one again creates
    nothing.
    """
    creates = []
    for resource in (operation["resource"] for operation in operations if operation["type"] == "creating"):
        if resource.get("custom"):
            provider = resource.get("provider", "").rpartition("::")[0]
            identity = find_id(resource, held, clusters.get(provider, ""))
            parent, inputs = resource.get("parent", ""), resource.get("inputs") or {}
            known = {} if resource.get("previewed") else inputs
            creates.append(PendingCreate(resource["urn"], resource["type"], identity, parent, provider, known))
    return creates


def find_half_made(
    resources: Iterable[Mapping[str, Any]], operations: Iterable[Mapping[str, Any]], held: Holdings
) -> list[HalfMade]:
    """Return the resources to be deleted and created anew: those in error, and clusters whose create failed.

    The provider deletes a cluster's first pool only after its create succeeded, so a failed one never becomes what the
    program asked for, even where GKE mends it.
    """
    broken = {}
    known = set()
    for resource in resources:
        known.add(resource["urn"])
        identity = str(resource.get("id", ""))
        row = RESOURCE_TYPES.get(resource["type"])
        failed = row and row.failed_create and resource.get("initErrors")
        if failed or _in_error(held.cloud.get(identity, {})):
            broken[resource["urn"]] = HalfMade(resource["urn"], identity, in_state=True)
    for resource in (operation["resource"] for operation in operations if operation["type"] == "creating"):
        identity = str(find_id(resource, held) or "")
        if resource["urn"] not in known and _in_error(held.cloud.get(identity, {})):
            broken[resource["urn"]] = HalfMade(resource["urn"], identity, in_state=False)
    return list(broken.values())


def lost_creates(creates: Iterable[Mapping[str, Any]], unknown: Holdings) -> list[dict[str, Any]]:
    """Return the creates that a preview wants although ``unknown``, what no state knows, has such a resource.

    A preview draws another random suffix for a name than the create had: the one of the resource is put in its place.
    The inputs are those of the preview, some of which nobody knows yet: an import takes the API's instead.
    """
    lost = []
    for create in creates:
        resource = create["resource"]
        names = [resource["inputs"]]
        if suffixed := _SUFFIXED.fullmatch(str(resource["inputs"].get("name", ""))):
            drawn = re.compile(rf"(?:.*/)?({re.escape(suffixed[1])}[0-9a-f]{{7}})")
            found = (drawn.fullmatch(held) for held in unknown.cloud)
            names = [{**resource["inputs"], "name": match[1]} for match in found if match]
        for inputs in names:
            if resource["custom"] and find_id({**resource, "inputs": inputs}, unknown):
                lost.append({**create, "resource": {**resource, "inputs": inputs, "previewed": True}})
                break
    return lost


def clusters_of(resources: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the cluster of each Kubernetes provider in a state, by the provider's URN."""
    providers = (resource for resource in resources if resource["type"] == "pulumi:providers:kubernetes")
    return {provider["urn"]: (provider.get("inputs") or {}).get("clusterIdentifier", "") for provider in providers}


def find_id(resource: Mapping[str, Any], held: Holdings, cluster: str = "") -> str | None:
    """Return the id under which the stand-ins have a resource with these inputs; an object, in its own cluster."""
    kind, inputs = resource["type"], resource.get("inputs") or {}
    if kind.startswith(KUBERNETES):
        metadata = inputs if kind.endswith(":Release") else inputs.get("metadata", {})
        name, namespace = metadata.get("name"), metadata.get("namespace")
        identities = (f"{namespace}/{name}", str(name))
        objects = (identity for identity in identities if (cluster, kind.rpartition(":")[2], identity) in held.objects)
        return next(objects, None)
    row = RESOURCE_TYPES.get(kind)
    if row and row.import_id:
        identity = _filled(row.import_id, inputs)
        if not identity or not _is_held(kind, identity, held):
            return None
        return imported_as(kind, identity, inputs.get("project"))
    prefix = _filled(row.listed_under, inputs) if row and row.listed_under else None
    named = (
        name
        for name, body in held.cloud.items()
        if prefix and name.startswith(prefix) and body.get("displayName") == _title(inputs)
    )
    return next(named, None)


def _title(inputs: Mapping[str, Any]) -> str:
    """Return the name that people see, of what Google numbers; a dashboard has its own in its text."""
    try:
        return str(json.loads(inputs["dashboardJson"])["displayName"])
    except (KeyError, TypeError, ValueError):  # of another type, or not known yet
        return str(inputs.get("displayName", ""))


def _filled(template: str, inputs: Mapping[str, Any]) -> str | None:
    values = {**inputs, "cluster": str(inputs.get("cluster", "")).rpartition("/")[2]}
    try:
        return template.format_map(values)
    except KeyError:
        return None


def _is_held(kind: str, identity: str, held: Holdings) -> bool:
    if kind == ROUTER_NAT:  # a part of its router
        *place, router, name = identity.split("/")
        path = "projects/{}/regions/{}/routers/{}".format(*place, router)
        return any(nat.get("name") == name for nat in held.cloud.get(path, {}).get("nats", ()))
    return (f"b/{identity}" if kind == BUCKET else identity) in held.cloud


def _in_error(body: Mapping[str, Any]) -> bool:
    return "ERROR" in (body.get("status"), body.get("state"))
