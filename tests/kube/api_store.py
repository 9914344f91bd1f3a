"""Objects in real API servers for the stand-in of the Kubernetes provider; each cluster has a server of its own.

Every server has GKE's kinds and namespaces. Controllers run beside it while the cluster has their Helm releases.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final, Self

import yaml

from local_google_cloud.kubernetes import HELM, Key, ObjectRefused, ObjectStore, pruned
from tests.kube.api_servers import ApiServer, ControlPlanes, ObjectNotFound
from tests.kube.controller_programs import PROGRAMS, remove_webhooks, run_controllers
from tests.kube.nodes import kubelets
from training_platform.catalog.types import Json
from training_platform.resources.kueue import configuration
from training_platform.rules.documents.definitions import read_definitions
from training_platform.views.inputs import at

CONTROLLERS: Final = {"kueue": "clusterqueues.kueue.x-k8s.io", "jobset": "jobsets.jobset.x-k8s.io"}
"""The controllers that can run, by chart, with the definition that each needs to start."""
NAMESPACES: Final = ("gmp-system", "gmp-public")  # GKE creates them for managed Prometheus
# Kinds that GKE installs in every cluster: group, version, kind, plural, and whether objects are in a namespace. GKE's
# definitions are not ours to distribute, so any field is accepted; a real definition in ``--crds`` takes precedence.
# Plurals and scopes are those of the published definitions, read 2026-11-22: GoogleCloudPlatform/
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


@dataclass
class _Cluster:
    """A started server, the values of the releases whose controllers run beside it, by chart, and the controllers."""

    server: ApiServer
    values_by_chart: Mapping[str, Json] | None = None
    running: ExitStack = field(default_factory=ExitStack)


class ApiStore(ObjectStore):
    """Objects in real API servers; a cluster's server starts at its first call.

    Every cluster gets GKE's kinds and the CRDs under ``crds``, since charts are not rendered here. Kueue and JobSet run
    from their ``binaries`` while a cluster has their Helm release in ``releases``, Kueue with the configuration of its
    release. ``nodes`` returns a cluster's nodes.
    """

    def __init__(
        self,
        planes: ControlPlanes,
        crds: Sequence[Path] = (),
        releases: ObjectStore | None = None,
        binaries: Mapping[str, Path] | None = None,
        nodes: Callable[[str], Mapping[str, Json]] = lambda _cluster: {},
    ) -> None:
        super().__init__()
        self._planes = planes
        self._releases = releases or ObjectStore()
        self._binaries = binaries or {}
        self._nodes = nodes
        definitions = [_open_definition(*kind) for kind in _GKE_KINDS]
        for folder in crds:
            definitions += read_definitions(folder)
        self._definitions = {definition["metadata"]["name"]: definition for definition in definitions}
        self._clusters: dict[str, _Cluster] = {}
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    @property
    def controllers(self) -> list[str]:
        """The controllers that can run: those with a binary and the definition that they need."""
        return [chart for chart, kind in CONTROLLERS.items() if kind in self._definitions and chart in self._binaries]

    def server(self, cluster: str) -> ApiServer:
        """Return a cluster's API server, started if necessary, with the controllers of the cluster's releases.

        Raises ObjectRefused if a program does not start.
        """
        with self._locks[cluster]:
            if cluster not in self._clusters:
                self._clusters[cluster] = self._started(cluster)
            self._run_controllers(cluster, self._clusters[cluster])
            return self._clusters[cluster].server

    def _started(self, cluster: str) -> _Cluster:
        server = self._planes.server(cluster)
        server.define(self._definitions.values())
        for name in NAMESPACES:
            server.ensure_namespace(name)
        started = _Cluster(server)
        self._exit.callback(started.running.close)
        return started

    def _run_controllers(self, name: str, cluster: _Cluster) -> None:
        """Start, end or restart the controllers according to a cluster's releases."""
        values_by_chart = release_values(self._releases, name, self.controllers)
        if cluster.values_by_chart == values_by_chart:
            return
        cluster.values_by_chart = None  # until all of them have started
        cluster.running.close()
        remove_webhooks(cluster.server)
        if values_by_chart:
            binaries = {
                program: path
                for program, path in self._binaries.items()
                if program in values_by_chart or program not in PROGRAMS
            }
            folder = self._planes.folder_of(name) / "controllers"
            definitions = list(self._definitions.values())
            kueue = _kueue_configuration(values_by_chart)
            cluster.running.enter_context(run_controllers(cluster.server, binaries, folder, definitions, kueue))
            cluster.running.enter_context(kubelets(cluster.server, lambda: self._nodes(name)))
        cluster.values_by_chart = values_by_chart

    def read(self, cluster: str, key: Key) -> Json | None:
        """Return an object in the server's preferred version, or ``None``."""
        server = self.server(cluster)
        try:
            return server.read(server.path(key.group, "", key.kind, key.namespace, key.name))
        except ObjectNotFound:  # no such kind
            return None

    def set_fields(self, cluster: str, key: Key, live: Json, inputs: Json) -> Json:
        """Return the fields of a live object that the program has set: ``inputs`` if applying them changes nothing.

        A comparison field by field would find differences of spelling: a server writes ``1Ti`` for ``1024Gi``.
        """
        server = self.server(cluster)
        path = _path(server, key, inputs)
        current = server.read(path)
        try:
            applied = server.apply(path, inputs, dry_run=True, force=True)
        except ObjectRefused:  # an immutable field differs
            return pruned(live, inputs)
        return inputs if applied == current else pruned(live, inputs)

    def rehearse(self, cluster: str, key: Key, obj: Json) -> None:
        """Apply an object in a dry run; its namespace or kind may be missing, since they may be created before it."""
        server = self.server(cluster)
        with suppress(ObjectNotFound):
            server.apply(_path(server, key, obj), obj, dry_run=True, force=True)

    def create(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:
        """Create an object, if it does not exist; by an apply, so that a later one deletes fields."""
        if self.read(cluster, key) is not None:
            raise ObjectRefused(f'{resource} "{key.name}" already exists')
        server = self.server(cluster)
        return server.apply(_path(server, key, obj), obj)

    def update(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:
        """Apply an object again; it takes over fields that others have set."""
        if self.read(cluster, key) is None:
            raise ObjectNotFound(f'{resource} "{key.name}" not found')
        server = self.server(cluster)
        return server.apply(_path(server, key, obj), obj, force=True)

    def delete(self, cluster: str, key: Key) -> None:
        """Delete an object, if it exists; with a namespace, delete everything in it."""
        server = self.server(cluster)
        if key[:2] == ("", "Namespace"):
            server.delete_namespace(key.name)
            return
        with suppress(ObjectNotFound):
            path = server.path(key.group, "", key.kind, key.namespace, key.name)
            server.delete(path, controlled=bool(self.controllers))

    def has_namespace(self, cluster: str, name: str) -> bool:
        """Whether a namespace exists."""
        return self.read(cluster, Key("", "Namespace", "", name)) is not None

    def ensure_namespace(self, cluster: str, name: str) -> None:
        """Create a namespace if it does not exist."""
        self.server(cluster).ensure_namespace(name)


def release_values(releases: ObjectStore, cluster: str, charts: Collection[str]) -> dict[str, Json]:
    """Return the values of a cluster's Helm releases of some charts, by chart."""
    values: dict[str, Json] = {}
    for key in releases.keys(cluster):
        if key.group != HELM:
            continue
        release = releases.read(cluster, key) or {}
        chart = at(release, ("status", "chart"))
        if chart in charts:
            values[chart] = release.get("values") or {}
    return values


def _kueue_configuration(values_by_chart: Mapping[str, Json]) -> Json:
    """Return Kueue's configuration in the values of its release, by default that of an environment without pools."""
    text = at(values_by_chart.get("kueue", {}), ("managerConfig", "controllerManagerConfigYaml"))
    loaded: Json = yaml.safe_load(text) if text else configuration([])
    return loaded


def _path(server: ApiServer, key: Key, obj: Json) -> str:
    version = str(at(obj, ("apiVersion",))).rpartition("/")[2]
    try:
        return server.path(key.group, version, key.kind, key.namespace, key.name)
    except ObjectNotFound as error:
        raise ObjectNotFound(f"{error}; --crds names a folder of definitions to install") from error


def _open_definition(group: str, version: str, kind: str, plural: str, namespaced: bool) -> Json:
    """Return a CustomResourceDefinition that accepts any field."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    api_approved = {"api-approved.kubernetes.io": "unapproved, a stand-in for the definition that GKE installs"}
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
