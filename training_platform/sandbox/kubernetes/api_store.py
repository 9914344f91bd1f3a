"""The objects of every cluster in a real API server of its own, with the kinds that GKE brings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock
from typing import Final, Self

import yaml

from training_platform.catalog.types import Json
from training_platform.resources.kueue import configuration
from training_platform.sandbox.kubernetes.api_servers import ApiServer, ControlPlanes, NotThere
from training_platform.sandbox.kubernetes.controllers import IN_SANDBOX, PROGRAMS, remove_webhooks, run_controllers
from training_platform.sandbox.kubernetes.definitions import read_definitions
from training_platform.sandbox.kubernetes.nodes import kubelets
from training_platform.sandbox.kubernetes.store import HELM, Key, ObjectRefused, ObjectStore
from training_platform.sandbox.kubernetes.values import pruned
from training_platform.views.inputs import at

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
    GKE's kinds. Kueue and JobSet run by their ``binaries`` from when a cluster has their Helm release in ``releases``
    until the release is deleted, Kueue with the configuration of its release. ``nodes`` returns a cluster's nodes.
    """

    def __init__(
        self,
        planes: ControlPlanes,
        crds: Sequence[Path] = (),
        releases: ObjectStore | None = None,
        binaries: Mapping[str, Path] | None = None,
        nodes: Callable[[str], Mapping[str, Json]] = lambda _cluster: {},
    ) -> None:
        self._planes = planes
        self._releases = releases or ObjectStore()
        self._binaries = binaries or {}
        self._nodes = nodes
        brought = [definition for folder in crds for definition in read_definitions(folder)]
        ours = [_open_definition(*kind) for kind in _GKE_KINDS]
        self._definitions = {definition["metadata"]["name"]: definition for definition in (*ours, *brought)}
        self._servers: dict[str, ApiServer] = {}
        self._running: dict[str, tuple[Mapping[str, Json], ExitStack]] = {}  # values by chart, and the controllers
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _values, running in self._running.values():
            running.close()

    @property
    def controllers(self) -> list[str]:
        """The controllers that run where a cluster has their release: each has a binary, and its kind a definition."""
        return [chart for chart, kind in IN_SANDBOX.items() if kind in self._definitions and chart in self._binaries]

    def start(self, clusters: Sequence[str]) -> None:
        """Start the servers of clusters, side by side, and their controllers."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(self.server, clusters))

    def server(self, cluster: str) -> ApiServer:
        """Return the API server of a cluster, started and furnished unless it is, with the controllers of its releases.

        Raises ObjectRefused where a program does not start.
        """
        with self._locks[cluster]:
            if cluster not in self._servers:
                server = self._planes.server(cluster)
                server.define(self._definitions.values())
                for name in NAMESPACES:
                    server.ensure_namespace(name)
                self._servers[cluster] = server
            self._run_controllers(cluster, self._servers[cluster])
            return self._servers[cluster]

    def _run_controllers(self, cluster: str, server: ApiServer) -> None:
        """Start, end or restart controllers as a cluster's releases want."""
        wanted: dict[str, Json] = {}  # values by chart
        for key in self._releases.keys(cluster):
            release = (self._releases.read(cluster, key) if key.group == HELM else None) or {}
            if (chart := at(release, ("status", "chart"))) in self.controllers:
                wanted[chart] = release.get("values") or {}
        if cluster in self._running:
            if self._running[cluster][0] == wanted:
                return
            self._running.pop(cluster)[1].close()
        remove_webhooks(server)
        with ExitStack() as stack:
            if wanted:
                binaries = {
                    name: path for name, path in self._binaries.items() if name in wanted or name not in PROGRAMS
                }
                text = at(wanted.get("kueue", {}), ("managerConfig", "controllerManagerConfigYaml"))
                kueue = yaml.safe_load(text) if text else configuration([])
                folder = self._planes.place(cluster) / "controllers"
                stack.enter_context(run_controllers(server, binaries, folder, list(self._definitions.values()), kueue))
                stack.enter_context(kubelets(server, lambda: self._nodes(cluster)))
            self._running[cluster] = (wanted, stack.pop_all())

    def read(self, cluster: str, key: Key) -> Json | None:
        """An object in the version that the server prefers, or ``None``."""
        server = self.server(cluster)
        try:
            return server.read(server.path(key.group, "", key.kind, key.namespace, key.name))
        except NotThere:  # the kind
            return None

    def own(self, cluster: str, key: Key, live: Json, inputs: Json) -> Json:
        """The program's part of a live object: its ``inputs``, where applying them again would change nothing.

        A comparison field by field would find differences of spelling: a server writes ``1Ti`` for ``1024Gi``.
        """
        server = self.server(cluster)
        path = _path(server, key, inputs)
        now = server.read(path)
        try:
            applied = server.apply(path, inputs, dry_run=True, force=True)
        except ObjectRefused:  # an immutable field was changed, so there is a difference
            return pruned(live, inputs)
        return inputs if applied == now else pruned(live, inputs)

    def rehearse(self, cluster: str, key: Key, obj: Json) -> None:
        """Let the server judge an object; a namespace or a kind that is to be created before it may be missing."""
        server = self.server(cluster)
        with suppress(NotThere):
            server.apply(_path(server, key, obj), obj, dry_run=True)

    def create(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:  # noqa: ARG002 # as in ObjectStore
        """Apply an object; as with the released plugin, one that exists is taken over."""
        server = self.server(cluster)
        return server.apply(_path(server, key, obj), obj)

    def update(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:
        """Apply an object again."""
        if self.read(cluster, key) is None:
            raise NotThere(f'{resource} "{key.name}" not found')
        return self.create(cluster, key, obj, resource)

    def delete(self, cluster: str, key: Key) -> None:
        """Delete an object, and with a namespace all that is in it; deleting it twice is not an error."""
        server = self.server(cluster)
        if key[:2] == ("", "Namespace"):
            server.delete_namespace(key.name)
            return
        with suppress(NotThere):
            path = server.path(key.group, "", key.kind, key.namespace, key.name)
            server.delete(path, controlled=bool(self.controllers))

    def has_namespace(self, cluster: str, name: str) -> bool:
        """Whether objects can be put into a namespace."""
        return self.read(cluster, Key("", "Namespace", "", name)) is not None

    def ensure_namespace(self, cluster: str, name: str) -> None:
        """Create a namespace unless it is there."""
        self.server(cluster).ensure_namespace(name)


def _path(server: ApiServer, key: Key, obj: Json) -> str:
    version = str(at(obj, ("apiVersion",))).rpartition("/")[2]
    try:
        return server.path(key.group, version, key.kind, key.namespace, key.name)
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
