"""What a killed run began to create: under which id the cloud has it, if it has.

Pulumi writes down that a create began, with its inputs, and would create a second one: names with a random suffix
stand in the inputs too, so that the id can be put together. An addition that creates nothing of its own, such as a
member of a role, is forgotten: to make it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from training_platform.sandbox.cloud.state.store import Store as CloudStore
from training_platform.sandbox.kubernetes.store import Store as ObjectStore
from training_platform.sandbox.run.folder import Folder
from training_platform.sandbox.run.reports.timeline import name_of

NAT: Final = "gcp:compute/routerNat:RouterNat"
BUCKET: Final = "gcp:storage/bucket:Bucket"
# What ids are put together from: https://www.pulumi.com/registry/packages/gcp/api-docs/, section Import of each type.
IDS: Final[Mapping[str, str]] = {
    "gcp:artifactregistry/repository:Repository": "projects/{project}/locations/{location}/repositories/{repositoryId}",
    "gcp:compute/firewall:Firewall": "projects/{project}/global/firewalls/{name}",
    "gcp:compute/globalAddress:GlobalAddress": "projects/{project}/global/addresses/{name}",
    "gcp:compute/network:Network": "projects/{project}/global/networks/{name}",
    "gcp:compute/router:Router": "projects/{project}/regions/{region}/routers/{name}",
    NAT: "{project}/{region}/{router}/{name}",
    "gcp:compute/subnetwork:Subnetwork": "projects/{project}/regions/{region}/subnetworks/{name}",
    "gcp:container/cluster:Cluster": "projects/{project}/locations/{location}/clusters/{name}",
    "gcp:container/nodePool:NodePool": "projects/{project}/locations/{location}/clusters/{cluster}/nodePools/{name}",
    "gcp:filestore/instance:Instance": "projects/{project}/locations/{location}/instances/{name}",
    "gcp:serviceaccount/account:Account": (
        "projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com"
    ),
    BUCKET: "{name}",
    "gcp:vertex/aiPersistentResource:AiPersistentResource": (
        "projects/{project}/locations/{region}/persistentResources/{persistentResourceId}"
    ),
}
# Google gives these their ids, so they are looked for by the name that people see.
DISPLAYED: Final[Mapping[str, str]] = {
    "gcp:monitoring/alertPolicy:AlertPolicy": "projects/{project}/alertPolicies/",
    "gcp:monitoring/notificationChannel:NotificationChannel": "projects/{project}/notificationChannels/",
    "gcp:vertex/aiTensorboard:AiTensorboard": "projects/{project}/locations/{region}/tensorboards/",
}


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
    if kind.startswith("kubernetes:"):
        return _object_id(kind, inputs, held, cluster)
    if kind in IDS:
        identity = _filled(IDS[kind], inputs)
        return identity if identity and _is_held(kind, identity, held) else None
    if kind in DISPLAYED:
        prefix = _filled(DISPLAYED[kind], inputs)
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
    if kind == NAT:  # a part of its router
        *place, router, name = identity.split("/")
        path = "projects/{}/regions/{}/routers/{}".format(*place, router)
        return any(nat.get("name") == name for nat in held.cloud.get(path, {}).get("nats", ()))
    return (f"b/{identity}" if kind == BUCKET else identity) in held.cloud
