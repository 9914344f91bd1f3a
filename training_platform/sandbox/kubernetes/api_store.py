"""The objects of every cluster in a real API server of its own, with the kinds that GKE brings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Final, Self

from training_platform.sandbox.kubernetes.api_servers import ApiClient, ApiResource, ControlPlanes, NotThere
from training_platform.sandbox.kubernetes.controllers import ReleaseControllers
from training_platform.sandbox.kubernetes.definitions import read_definitions
from training_platform.sandbox.kubernetes.store import Key, Refused
from training_platform.sandbox.kubernetes.values import Json, dig, pruned

NAMESPACES: Final = ("gmp-system", "gmp-public")  # which GKE creates for managed Prometheus
# Kinds that GKE brings to every cluster: group, version, kind, plural, and whether objects live in a namespace. GKE's
# definitions are not ours to bring, so any field is accepted; ``--crds`` may bring a real definition, which takes
# precedence. Plurals and scopes are those of the published definitions, read 2026-11-22: GoogleCloudPlatform/
# gke-networking-api 34c617f, gke-gateway-api and kubernetes-sigs/gateway-api for networks, GoogleCloudPlatform/
# compute-class-api 8067eae for ComputeClass, GoogleCloudPlatform/prometheus-engine 2ffde4e for managed Prometheus,
# kubernetes/autoscaler 55c37cd for ProvisioningRequest.
_GKE_KINDS: Final = (
    ("autoscaling.x-k8s.io", "v1", "ProvisioningRequest", "provisioningrequests", True),
    ("cloud.google.com", "v1", "ComputeClass", "computeclasses", False),
    ("gateway.networking.k8s.io", "v1", "Gateway", "gateways", True),
    ("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes", True),
    ("monitoring.googleapis.com", "v1", "ClusterPodMonitoring", "clusterpodmonitorings", False),
    ("monitoring.googleapis.com", "v1", "ClusterRules", "clusterrules", False),
    ("monitoring.googleapis.com", "v1", "PodMonitoring", "podmonitorings", True),
    ("monitoring.googleapis.com", "v1", "Rules", "rules", True),
    ("networking.gke.io", "v1", "GCPBackendPolicy", "gcpbackendpolicies", True),
    ("networking.gke.io", "v1", "GKENetworkParamSet", "gkenetworkparamsets", False),
    ("networking.gke.io", "v1", "HealthCheckPolicy", "healthcheckpolicies", True),
    ("networking.gke.io", "v1", "Network", "networks", False),
    ("networking.gke.io", "v1alpha1", "FQDNNetworkPolicy", "fqdnnetworkpolicies", True),
)


class ApiStore:
    """Keeps objects as ``ObjectStore`` does; a cluster's server starts with the first call about it.

    The CRDs under ``crds`` are installed in every cluster, in the place of charts that nobody renders here, and so are
    GKE's kinds. ``operators`` are told of each call, since a release may have brought or changed a controller.
    """

    def __init__(
        self, planes: ControlPlanes, crds: Sequence[Path] = (), operators: ReleaseControllers | None = None
    ) -> None:
        self._planes = planes
        self._operators = operators
        brought = [definition for folder in crds for definition in read_definitions(folder)]
        ours = [_open_definition(*kind) for kind in _GKE_KINDS]
        self._definitions = {definition["metadata"]["name"]: definition for definition in (*ours, *brought)}
        self._clients: dict[str, ApiClient] = {}
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            client.close()

    @property
    def controllers(self) -> list[str]:
        """The controllers that run where a cluster has their release."""
        return self._operators.able(self._definitions) if self._operators else []

    def start(self, clusters: Sequence[str]) -> None:
        """Start the servers of clusters, side by side, and their controllers."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(self.client, clusters))

    def client(self, cluster: str) -> ApiClient:
        """Return the client of a cluster, whose server is started and furnished unless it is."""
        with self._locks[cluster]:
            if cluster not in self._clients:
                client = ApiClient(self._planes.access(cluster))
                client.define(self._definitions.values())
                for name in NAMESPACES:
                    client.ensure_namespace(name)
                self._clients[cluster] = client
            if self._operators is not None:
                self._operators.keep_up(cluster, self._definitions)
            return self._clients[cluster]

    def read(self, cluster: str, key: Key) -> Json | None:
        """An object in the version that the server prefers, or ``None``."""
        client = self.client(cluster)
        try:
            resource = client.resource(key.group, "", key.kind)
        except NotThere:
            return None
        return client.read(resource, key.namespace, key.name)

    def own(self, cluster: str, key: Key, live: Json, inputs: Json) -> Json:
        """The program's part of a live object: its ``inputs``, where applying them again would change nothing.

        A comparison field by field would find differences of spelling: a server writes ``1Ti`` for ``1024Gi``.
        """
        client = self.client(cluster)
        resource = _resource(client, key, inputs)
        now = client.read(resource, key.namespace, key.name)
        try:
            applied = client.apply(resource, key.namespace, key.name, inputs, dry_run=True, force=True)
        except Refused:  # an immutable field was changed, so there is a difference
            return pruned(live, inputs)
        return inputs if applied == now else pruned(live, inputs)

    def rehearse(self, cluster: str, key: Key, obj: Json) -> None:
        """Let the server judge an object; a namespace or a kind that is to be created before it may be missing."""
        client = self.client(cluster)
        try:
            client.apply(_resource(client, key, obj), key.namespace, key.name, obj, dry_run=True)
        except NotThere:
            return

    def create(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:  # noqa: ARG002 # as in ObjectStore
        """Apply an object; as with the released plugin, one that exists is taken over."""
        client = self.client(cluster)
        return client.apply(_resource(client, key, obj), key.namespace, key.name, obj)

    def update(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:
        """Apply an object again."""
        if self.read(cluster, key) is None:
            raise NotThere(f'{resource} "{key.name}" not found')
        return self.create(cluster, key, obj, resource)

    def delete(self, cluster: str, key: Key) -> None:
        """Delete an object, and with a namespace all that is in it; deleting it twice is not an error."""
        client = self.client(cluster)
        if key[:2] == ("", "Namespace"):
            client.delete_namespace(key.name)
            return
        try:
            resource = client.resource(key.group, "", key.kind)
            client.delete(resource, key.namespace, key.name, controlled=bool(self.controllers))
        except NotThere:
            return

    def has_namespace(self, cluster: str, name: str) -> bool:
        """Whether objects can be put into a namespace."""
        return self.read(cluster, Key("", "Namespace", "", name)) is not None

    def ensure_namespace(self, cluster: str, name: str) -> None:
        """Create a namespace unless it is there."""
        self.client(cluster).ensure_namespace(name)


def _resource(client: ApiClient, key: Key, obj: Json) -> ApiResource:
    try:
        return client.resource(key.group, str(dig(obj, "apiVersion")).rpartition("/")[2], key.kind)
    except NotThere as error:
        raise NotThere(f"{error}; --crds names a folder of definitions to install") from error


def _open_definition(group: str, version: str, kind: str, plural: str, namespaced: bool) -> Json:
    """Return a CustomResourceDefinition that accepts any field."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    api_approved = {"api-approved.kubernetes.io": "unapproved, a stand-in for the definition that GKE brings"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": api_approved},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [{**served, "subresources": {"status": {}}}],
        },
    }
