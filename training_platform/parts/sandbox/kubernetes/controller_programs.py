"""Real controllers for a real API server: Kueue, controllers of job kinds, Kubernetes' own, and the scheduler.

``PROGRAMS`` lists the first two: the variable with the binary's path, the service account, the configuration and the
webhooks. Nodes are only objects, so no container runs: tests and people set the status of pods. A controller without a
binary is left out, with its webhooks. The API server reaches webhooks by URL on the loopback interface, with its own
self-signed certificate. Each controller has all rights, under the name of its service account in a cluster, which
policies mention. ``ApiStore`` keeps the objects of each cluster in an API server of its own, with GKE's kinds, and
starts the controllers.

Settings, flags and paths of webhooks: Kueue 0.19.2, JobSet 0.12.0, LeaderWorkerSet 0.10.0, KubeRay 1.7.0 and Kubeflow
Trainer 2.3.0, read 2026-11-22; the paths follow controller-runtime's rule.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, Self

import httpx
import yaml

from training_platform.catalog.types import Json
from training_platform.parts.sandbox.kubernetes.api_servers import (
    ApiServer,
    ControlPlanes,
    ObjectNotFound,
    free_port,
    run_program,
    wait_until_ready,
    write_private,
)
from training_platform.parts.sandbox.kubernetes.definitions import read_definitions
from training_platform.parts.sandbox.kubernetes.nodes import kubelets
from training_platform.parts.sandbox.kubernetes.object_store import HELM, Key, ObjectRefused, ObjectStore, pruned
from training_platform.parts.sandbox.kubernetes.tied_process import TiedProcess
from training_platform.resources.kueue import OF_TEAMS, configuration
from training_platform.views.inputs import at

_CREATED: Final = ("CREATE",)
_WRITTEN: Final = ("CREATE", "UPDATE")


class Webhook(NamedTuple):
    """A kind whose objects a controller mutates and validates, and the operations."""

    group: str
    version: str
    plural: str
    kind: str
    mutates: Sequence[str] = _CREATED
    validates: Sequence[str] = _WRITTEN
    selector: Mapping[str, Any] | None = None  # of objects
    namespaces: Mapping[str, Any] | None = None


def _pods(label: str) -> Webhook:
    exists = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
    return Webhook("", "v1", "pods", "Pod", validates=_CREATED, selector=exists)


class ControllerProgram(NamedTuple):
    """A controller that is not part of Kubernetes."""

    variable: str  # with the path of its binary
    account: str  # namespace and name of its service account
    config: str  # API group of its configuration; Kueue has its release's, and KubeRay only flags
    webhooks: tuple[Webhook, ...]


_KUEUE: Final = "kueue.x-k8s.io"
_JOBSET: Final = "jobset.x-k8s.io"
_LWS: Final = "leaderworkerset.x-k8s.io"
_TRAINER: Final = "trainer.kubeflow.org"
PROGRAMS: Final = {  # in the order in which they start
    "jobset": ControllerProgram(
        "TRAINING_PLATFORM_JOBSET", "jobset-system:jobset-controller", _JOBSET,
        (Webhook(_JOBSET, "v1alpha2", "jobsets", "JobSet"), _pods("jobset.sigs.k8s.io/jobset-name")),
    ),
    "lws": ControllerProgram(
        "TRAINING_PLATFORM_LWS", "lws-system:lws-controller-manager", "lws.x-k8s.io",
        (Webhook(_LWS, "v1", "leaderworkersets", "LeaderWorkerSet"), _pods("leaderworkerset.sigs.k8s.io/name")),
    ),
    "kuberay": ControllerProgram(  # its webhooks are off, as in its chart
        "TRAINING_PLATFORM_KUBERAY", "kuberay-system:kuberay-operator", "", ()
    ),
    "trainer": ControllerProgram(
        "TRAINING_PLATFORM_TRAINER", "kubeflow-system:kubeflow-trainer-controller-manager", _TRAINER,
        (
            Webhook(_TRAINER, "v1alpha1", "trainjobs", "TrainJob", mutates=_WRITTEN),
            Webhook(_TRAINER, "v1alpha1", "trainingruntimes", "TrainingRuntime", mutates=()),
            Webhook(_TRAINER, "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", mutates=()),
        ),
    ),
    "kueue": ControllerProgram(
        "TRAINING_PLATFORM_KUEUE", "kueue-system:kueue-controller-manager", "",
        (
            Webhook(_KUEUE, "v1beta2", "clusterqueues", "ClusterQueue"),
            Webhook(_KUEUE, "v1beta2", "resourceflavors", "ResourceFlavor"),
            Webhook(_KUEUE, "v1beta2", "workloads", "Workload"),
            Webhook(_KUEUE, "v1beta2", "cohorts", "Cohort", mutates=()),
            Webhook("batch", "v1", "jobs", "Job", namespaces=OF_TEAMS),
            Webhook(_JOBSET, "v1alpha2", "jobsets", "JobSet", namespaces=OF_TEAMS),
            Webhook("ray.io", "v1", "rayclusters", "RayCluster", namespaces=OF_TEAMS),
            Webhook("ray.io", "v1", "rayjobs", "RayJob", namespaces=OF_TEAMS),
            Webhook(_TRAINER, "v1alpha1", "trainjobs", "TrainJob", namespaces=OF_TEAMS),
        ),
    ),
}  # fmt: skip
_POD_WEBHOOKS: Final = (  # Kueue's if it queues pods, as its chart registers them with our configuration
    Webhook("", "v1", "pods", "Pod", validates=_CREATED, namespaces=OF_TEAMS),
    Webhook("apps", "v1", "deployments", "Deployment", namespaces=OF_TEAMS),
    Webhook(_LWS, "v1", "leaderworkersets", "LeaderWorkerSet", namespaces=OF_TEAMS),
)
IN_SANDBOX: Final = {"kueue": f"clusterqueues.{_KUEUE}", "jobset": f"jobsets.{_JOBSET}"}
"""The controllers that a sandbox can run, by chart, with the definition that each needs to start."""
_KUBERNETES: Final = "kube-system:controllers"  # one account for all of them; in a cluster each has its own
_CONTROLLERS: Final = ",".join(
    f"{name}-controller"
    for name in (
        "deployment", "garbage-collector", "horizontal-pod-autoscaler", "job", "namespace", "replicaset",
        "resourcequota", "statefulset",
    )
)  # fmt: skip
_ADMISSION: Final = "admissionregistration.k8s.io"
_CONFIGURATIONS: Final = {"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}
# Default folder of the certificate of a controller's webhooks, below the folder for temporary files.
_CERTIFICATES: Final = Path("k8s-webhook-server", "serving-certs")


def find_binaries(folder: Path) -> dict[str, Path]:
    """Return the binaries by program: Kubernetes' own are in ``folder``, others are named by variables or on PATH."""
    kubernetes = {name: folder / f"kube-{name.replace('_', '-')}" for name in ("controller_manager", "scheduler")}
    named = {name: os.environ.get(program.variable) or shutil.which(name) for name, program in PROGRAMS.items()}
    return {
        **{name: Path(binary) for name, binary in named.items() if binary},
        **{name: binary for name, binary in kubernetes.items() if binary.exists()},
    }


@contextmanager
def run_controllers(
    server: ApiServer, binaries: Mapping[str, Path], folder: Path, definitions: Sequence[Json], kueue: Json
) -> Iterator[str]:
    """Run the controllers of one cluster while the block runs, and yield the URL of Kueue's metrics.

    ``folder`` has their settings and logs. ``definitions`` are CustomResourceDefinitions, which are applied first;
    ``kueue`` is Kueue's configuration as its chart takes it. A second block with other binaries or definitions is an
    upgrade.
    """
    folder.mkdir(parents=True, exist_ok=True)
    server.define(definitions)
    metrics_url = ""
    with ExitStack() as running:

        def run(name: str, account: str, flags: Mapping[str, object], inside: Sequence[str] = ()) -> TiedProcess:
            """Run a program, which calls the API server as a service account with all rights."""
            kubeconfig = folder / f"{name}.kubeconfig"
            write_private(kubeconfig, server.kubeconfig(account=f"system:serviceaccount:{account}"))
            program = run_program(binaries[name], {**flags, "kubeconfig": kubeconfig}, folder, inside)
            return running.enter_context(closing(program))

        if "controller_manager" in binaries:
            flags: dict[str, object] = {"secure-port": "0", "leader-elect": "false"}
            period = {"horizontal-pod-autoscaler-sync-period": "1s"}  # instead of 15 s
            run("controller_manager", _KUBERNETES, {**flags, **period, "controllers": _CONTROLLERS})
            if "scheduler" in binaries:
                run("scheduler", _KUBERNETES, flags)
        for name, program in PROGRAMS.items():
            if name not in binaries:
                continue
            settings: Json = {"apiVersion": f"config.{program.config}/v1alpha1", "kind": "Configuration"}
            webhooks = program.webhooks
            ports = Ports(free_port(), free_port(), free_port())
            if name == "kueue":
                settings = kueue
                metrics_url = f"https://127.0.0.1:{ports.metrics}/metrics"
                webhooks = _kueue_webhooks(kueue)
            started = start(name, settings, ports, server.certificate, folder / f"{name}-files")
            flags = dict(started.flags)
            if started.settings:
                config = folder / f"{name}.yaml"
                config.write_text(yaml.safe_dump(started.settings), encoding="utf-8")
                flags["config"] = config
            process = run(name, program.account, flags, started.inside)
            with httpx.Client(trust_env=False) as health:
                wait_until_ready(process, health, f"http://127.0.0.1:{ports.health}/readyz")
            _register(server, name, webhooks, ports.webhook)
        yield metrics_url


def _kueue_webhooks(settings: Json) -> tuple[Webhook, ...]:
    """Return Kueue's webhooks, with the namespace selector that its chart copies from its configuration."""
    webhooks = PROGRAMS["kueue"].webhooks
    if "pod" in settings["integrations"]["frameworks"]:
        webhooks += _POD_WEBHOOKS
    selector = settings.get("managedJobsNamespaceSelector")
    return tuple(webhook._replace(namespaces=selector) if webhook.namespaces else webhook for webhook in webhooks)


def remove_webhooks(server: ApiServer) -> None:
    """Delete the webhooks of ended controllers: nothing answers there, so they would refuse every object."""
    for kind in _CONFIGURATIONS.values():
        for name in PROGRAMS:
            server.delete(server.path(_ADMISSION, "v1", kind, "", name))


def _register(server: ApiServer, name: str, webhooks: Sequence[Webhook], port: int) -> None:
    """Register a controller's webhooks with an API server; their paths follow controller-runtime's rule."""
    bundle = base64.b64encode(server.certificate.read_bytes()).decode("ascii")
    for verb, kind in _CONFIGURATIONS.items():
        rows = []
        for hook in webhooks:
            operations = hook.mutates if verb == "mutate" else hook.validates
            if not operations:
                continue
            path = f"{verb}-{hook.group.replace('.', '-')}-{hook.version}-{hook.kind.lower()}"
            rule = {
                "apiGroups": [hook.group],
                "apiVersions": [hook.version],
                "resources": [hook.plural],
                "operations": list(operations),
            }
            row = {
                "name": f"{verb[0]}-{hook.kind.lower()}.{name}.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/{path}", "caBundle": bundle},
                "rules": [rule],
            }
            if hook.selector:
                row["objectSelector"] = hook.selector
            if hook.namespaces:
                row["namespaceSelector"] = hook.namespaces
            rows.append(row)
        body = {"apiVersion": f"{_ADMISSION}/v1", "kind": kind, "metadata": {"name": name}, "webhooks": rows}
        server.apply(server.path(_ADMISSION, "v1", kind, "", name), body, force=True)


class Ports(NamedTuple):
    """The loopback ports of a controller."""

    health: int
    webhook: int
    metrics: int


class Start(NamedTuple):
    """What starts a program: the command around it, its flags, and its configuration, {} if it has none."""

    inside: tuple[str, ...]
    flags: Mapping[str, object]
    settings: Json


def start(name: str, settings: Json, ports: Ports, certificate: Path, folder: Path) -> Start:
    """Return what starts a controller: ``settings`` changed for this machine, without leader election.

    ``folder`` is the controller's own for temporary files, and gets a copy of the ``certificate`` and its key.
    """
    certificates = folder / _CERTIFICATES
    certificates.mkdir(parents=True, exist_ok=True)
    shutil.copy(certificate, certificates / "tls.crt")
    shutil.copy(certificate.with_suffix(".key"), certificates / "tls.key")
    health = f"127.0.0.1:{ports.health}"
    metrics = f"127.0.0.1:{ports.metrics}"
    if name == "kuberay":
        flags = {"health-probe-bind-address": health, "metrics-addr": metrics, "enable-leader-election": "false"}
        return Start((), flags, {})
    body: Json = {
        **settings,
        "health": {"healthProbeBindAddress": health},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
    }
    webhook: Json = {"host": "127.0.0.1", "port": ports.webhook}
    if name == "trainer":
        body |= {"webhook": webhook, "certManagement": {"enable": False}}
        return Start(("env", f"TMPDIR={folder}"), {}, body)
    body |= {"webhook": {**webhook, "certDir": str(certificates)}, "internalCertManagement": {"enable": False}}
    if name != "kueue":
        return Start((), {}, body)
    body["metrics"] = {**settings.get("metrics", {}), "bindAddress": metrics}
    # Kueue reads the certificate of its metrics only from /etc/kueue/metrics/certs (its cmd/kueue/main.go), so it gets
    # an /etc of its own in a mount namespace. That changes nothing on the machine, and needs no root.
    script = (
        'mount -t tmpfs tmpfs /etc && mkdir -p /etc/kueue/metrics && cp -r "$0" /etc/kueue/metrics/certs && exec "$@"'
    )
    own_etc = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(certificates))
    # The visibility API is a server of its own, which needs the aggregation layer.
    return Start(own_etc, {"feature-gates": "VisibilityOnDemand=false"}, body)


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


class ApiStore:
    """Objects in real API servers, with the methods of ``ObjectStore``; a cluster's server starts at its first call.

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
        self._planes = planes
        self._releases = releases or ObjectStore()
        self._binaries = binaries or {}
        self._nodes = nodes
        definitions = [_open_definition(*kind) for kind in _GKE_KINDS]
        for folder in crds:
            definitions += read_definitions(folder)
        self._definitions = {definition["metadata"]["name"]: definition for definition in definitions}
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
        """The controllers that can run: those with a binary and the definition that they need."""
        return [chart for chart, kind in IN_SANDBOX.items() if kind in self._definitions and chart in self._binaries]

    def start(self, clusters: Sequence[str]) -> None:
        """Start the servers of clusters in parallel, and their controllers."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(self.server, clusters))

    def server(self, cluster: str) -> ApiServer:
        """Return a cluster's API server, started if necessary, with the controllers of the cluster's releases.

        Raises ObjectRefused if a program does not start.
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
        """Start, end or restart the controllers according to a cluster's releases."""
        values_by_chart = release_values(self._releases, cluster, self.controllers)
        if cluster in self._running:
            previous_values, running = self._running[cluster]
            if previous_values == values_by_chart:
                return
            del self._running[cluster]
            running.close()
        remove_webhooks(server)
        with ExitStack() as stack:
            if values_by_chart:
                binaries = {
                    name: path
                    for name, path in self._binaries.items()
                    if name in values_by_chart or name not in PROGRAMS
                }
                text = at(values_by_chart.get("kueue", {}), ("managerConfig", "controllerManagerConfigYaml"))
                kueue = yaml.safe_load(text) if text else configuration([])
                folder = self._planes.folder_of(cluster) / "controllers"
                stack.enter_context(run_controllers(server, binaries, folder, list(self._definitions.values()), kueue))
                stack.enter_context(kubelets(server, lambda: self._nodes(cluster)))
            self._running[cluster] = (values_by_chart, stack.pop_all())

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
            server.apply(_path(server, key, obj), obj, dry_run=True)

    def create(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:  # noqa: ARG002 # as in ObjectStore
        """Apply an object; like the released plugin, take over an existing one."""
        server = self.server(cluster)
        return server.apply(_path(server, key, obj), obj)

    def update(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:
        """Apply an object again."""
        if self.read(cluster, key) is None:
            raise ObjectNotFound(f'{resource} "{key.name}" not found')
        return self.create(cluster, key, obj, resource)

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
