"""Recovery from a killed run or a failed creation: finds unfinished creations and half-created resources.

Pulumi records the inputs of a resource when its creation begins. Without recovery, the next run would create a second
resource. The inputs include names with a random suffix, so the id can be derived from them. Creations that only add to
another resource, such as a member of a role, are dropped, since repeating them changes nothing.

If a creation fails late, Pulumi keeps some resources in its state and later only updates them, so a node pool in error
stays in error. It drops other resources, although they exist in the cloud. Observed with engine 3.259 and the gcp
provider on 2026-11-21.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from local_google_cloud.api import Store
from local_google_cloud.kubernetes import ObjectStore
from training_platform.parts.sandbox.run.folder import SandboxFolder
from training_platform.resources.resource_types import BUCKET, KUBERNETES, RESOURCE_TYPES, ROUTER_NAT, imported_as

_SUFFIXED = re.compile(r"(.+-)[0-9a-f]{7}")  # as in Pulumi's automatic names


class PendingCreate(NamedTuple):
    """A resource whose creation is unfinished. ``id`` is None if nothing exists, or if repeating it changes nothing.

    ``inputs`` is {} if the inputs are unknown.
    """

    urn: str
    type: str
    id: str | None
    parent: str
    provider: str  # a URN
    inputs: Mapping[str, Any]


class HalfCreated(NamedTuple):
    """A resource that has to be created again. ``in_state`` is True if Pulumi's state contains it."""

    urn: str
    id: str
    in_state: bool


class Holdings(NamedTuple):
    """The contents of the local clouds: bodies of cloud resources, keyed by name, and ids of Kubernetes objects."""

    cloud: Mapping[str, Mapping[str, Any]]
    objects: frozenset[tuple[str, str, str]]  # cluster, kind and id

    def without(self, other_resources: Iterable[Mapping[str, Any]]) -> Holdings:
        """Return the contents without the cloud resources that are in other stacks' states."""
        ids = {resource.get("id") for resource in other_resources}
        return self._replace(cloud={name: body for name, body in self.cloud.items() if name not in ids})


def holdings(folder: SandboxFolder) -> Holdings:
    """Read the contents of the local clouds from their files. Objects in a user's cluster are not included."""
    objects = ObjectStore(folder.kubernetes)
    keys = [(cluster, key) for cluster in objects.clusters() for key in objects.keys(cluster)]
    ids = {(cluster, key.kind, f"{key.namespace}/{key.name}" if key.namespace else key.name) for cluster, key in keys}
    cloud = {record.name.partition("/")[2]: record.body for record in Store(folder.cloud).all()}
    return Holdings(cloud, frozenset(ids))


def find_pending_creates(
    operations: Iterable[Mapping[str, Any]], held: Holdings, clusters: Mapping[str, str]
) -> list[PendingCreate]:
    """Return the unfinished creations among pending operations, each with its id if the local clouds have it.

    ``clusters`` maps the URNs of Kubernetes providers to their clusters. Components are left out, since creating one
    again creates nothing. If a killed run and the next one both created the same resource, a creation that succeeded is
    used.
    """
    creates: dict[str, PendingCreate] = {}
    for resource in _created_by(operations):
        if resource.get("custom"):
            provider = resource.get("provider", "").rpartition("::")[0]
            inputs = {} if resource.get("previewed") else resource.get("inputs") or {}
            create = PendingCreate(
                urn=resource["urn"],
                type=resource["type"],
                id=find_id(resource, held, clusters.get(provider, "")),
                parent=resource.get("parent", ""),
                provider=provider,
                inputs=inputs,
            )
            if create.id is not None or create.urn not in creates:
                creates[create.urn] = create
    return list(creates.values())


def _created_by(operations: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the resources that pending operations were creating."""
    for operation in operations:
        if operation["type"] == "creating":
            yield operation["resource"]


def find_half_created(
    resources: Iterable[Mapping[str, Any]], operations: Iterable[Mapping[str, Any]], held: Holdings
) -> list[HalfCreated]:
    """Return the resources to delete and create again: those in error, and clusters whose creation failed.

    The provider deletes a cluster's first pool only after it has created the cluster successfully. So a failed cluster
    never matches the program, even if GKE repairs it.
    """
    broken = {}
    urns = set()
    for resource in resources:
        urns.add(resource["urn"])
        identity = str(resource.get("id", ""))
        row = RESOURCE_TYPES.get(resource["type"])
        failed = row and row.failed_create and resource.get("initErrors")
        if failed or _in_error(held.cloud.get(identity, {})):
            broken[resource["urn"]] = HalfCreated(resource["urn"], identity, in_state=True)
    for resource in _created_by(operations):
        identity = str(find_id(resource, held) or "")
        if resource["urn"] not in urns and _in_error(held.cloud.get(identity, {})):
            broken[resource["urn"]] = HalfCreated(resource["urn"], identity, in_state=False)
    return list(broken.values())


def lost_creates(creates: Iterable[Mapping[str, Any]], unrecorded: Holdings) -> list[dict[str, Any]]:
    """Return what a preview would create although it exists: it is in ``unrecorded``, but in no stack's state.

    The random suffix of a name is different in the preview, and is replaced by the existing one. The inputs are those
    of the preview. Some of their values are unknown, and an import uses the API's values instead.
    """
    lost = []
    for create in creates:
        resource = create["resource"]
        candidates = [resource["inputs"]]
        if suffixed := _SUFFIXED.fullmatch(str(resource["inputs"].get("name", ""))):
            same_prefix = re.compile(rf"(?:.*/)?({re.escape(suffixed[1])}[0-9a-f]{{7}})")
            matches = (same_prefix.fullmatch(name) for name in unrecorded.cloud)
            candidates = [{**resource["inputs"], "name": match[1]} for match in matches if match]
        for inputs in candidates:
            if resource["custom"] and find_id({**resource, "inputs": inputs}, unrecorded):
                lost.append({**create, "resource": {**resource, "inputs": inputs, "previewed": True}})
                break
    return lost


def clusters_of(resources: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the cluster of each Kubernetes provider in a state, keyed by the provider's URN."""
    providers = (resource for resource in resources if resource["type"] == "pulumi:providers:kubernetes")
    return {provider["urn"]: (provider.get("inputs") or {}).get("clusterIdentifier", "") for provider in providers}


def find_id(resource: Mapping[str, Any], held: Holdings, cluster: str = "") -> str | None:
    """Return the id of the resource with these inputs in the local clouds. An object is looked up in ``cluster``."""
    kind = resource["type"]
    inputs = resource.get("inputs") or {}
    if kind.startswith(KUBERNETES):
        metadata = inputs if kind.endswith(":Release") else inputs.get("metadata", {})
        name = str(metadata.get("name"))
        identities = (f"{metadata.get('namespace')}/{name}", name)
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
    """Return the display name of a resource that has a number as its name. For a dashboard, it is in its JSON."""
    try:
        return str(json.loads(inputs["dashboardJson"])["displayName"])
    except (KeyError, TypeError, ValueError):  # another type, or unknown
        return str(inputs.get("displayName", ""))


def _filled(template: str, inputs: Mapping[str, Any]) -> str | None:
    values = {**inputs, "cluster": str(inputs.get("cluster", "")).rpartition("/")[2]}
    try:
        return template.format_map(values)
    except KeyError:
        return None


def _is_held(kind: str, identity: str, held: Holdings) -> bool:
    if kind == ROUTER_NAT:  # a part of its router
        project, region, router, name = identity.split("/")
        path = f"projects/{project}/regions/{region}/routers/{router}"
        return any(nat.get("name") == name for nat in held.cloud.get(path, {}).get("nats", ()))
    return (f"b/{identity}" if kind == BUCKET else identity) in held.cloud


def _in_error(body: Mapping[str, Any]) -> bool:
    return "ERROR" in (body.get("status"), body.get("state"))
