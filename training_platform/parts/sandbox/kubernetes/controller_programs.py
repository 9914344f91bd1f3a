"""Real controllers beside a real API server: Kueue's, those of kinds of jobs, Kubernetes' own and the scheduler.

``PROGRAMS`` is the table of them: the variable that names each one's binary, its service account, its configuration and
its webhooks. Nodes exist as objects only, so no container ever runs: a test, or a person, sets the status of a pod. A
controller without a binary is left out, with its webhooks. The webhooks are reached by URL on the loopback, with the
certificate that the API server made for itself. Each controller has all rights, under the name of the service account
that it has in a cluster, which policies know. ``ApiStore`` keeps the objects of every cluster in an API server of its
own, with the kinds that GKE brings, and starts what ``PROGRAMS`` has beside it.

Settings, flags and paths of webhooks: Kueue 0.19.2, JobSet 0.12.0, LeaderWorkerSet 0.10.0, KubeRay 1.7.0 and Kubeflow
Trainer 2.3.0, read 2026-11-22; the paths follow controller-runtime's rule.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    NotThere,
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
    """A kind whose objects a controller changes and judges, and in which operations."""

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
    """A controller that Kubernetes does not bring."""

    variable: str  # names its binary
    account: str  # namespace and name of its service account
    config: str  # the group of its configuration's kind; Kueue has its release's, and KubeRay flags alone
    webhooks: tuple[Webhook, ...]


_KUEUE, _JOBSET, _LWS = "kueue.x-k8s.io", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io"
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
_POD_WEBHOOKS: Final = (  # Kueue's where it queues pods, as its chart registers them with our configuration
    Webhook("", "v1", "pods", "Pod", validates=_CREATED, namespaces=OF_TEAMS),
    Webhook("apps", "v1", "deployments", "Deployment", namespaces=OF_TEAMS),
    Webhook(_LWS, "v1", "leaderworkersets", "LeaderWorkerSet", namespaces=OF_TEAMS),
)
IN_SANDBOX: Final = {"kueue": f"clusterqueues.{_KUEUE}", "jobset": f"jobsets.{_JOBSET}"}
"""The controllers that a sandbox runs, by the name of their chart, and a kind without which each does not start."""
_KUBERNETES: Final = "kube-system:controllers"  # one account for all; each has its own in a cluster
_CONTROLLERS: Final = ",".join(
    f"{name}-controller"
    for name in (
        "deployment", "garbage-collector", "horizontal-pod-autoscaler", "job", "namespace", "replicaset",
        "resourcequota", "statefulset",
    )
)  # fmt: skip
_ADMISSION: Final = "admissionregistration.k8s.io"
_CONFIGURATIONS: Final = {"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}
# Below the folder for temporary files, where controllers look for the certificate of their webhooks by default.
_CERTIFICATES: Final = Path("k8s-webhook-server", "serving-certs")


def find_binaries(folder: Path) -> dict[str, Path]:
    """Return the binaries by program: ``folder`` holds Kubernetes' own, variables or PATH name those of others."""
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
    """Run the controllers of one cluster for as long as the block runs; gives the URL of Kueue's metrics.

    ``folder`` keeps their settings and logs. ``definitions`` are CustomResourceDefinitions, which are applied first;
    ``kueue`` is Kueue's configuration as its chart takes it. A second block with other binaries or definitions is an
    upgrade.
    """
    folder.mkdir(parents=True, exist_ok=True)
    server.define(definitions)
    metrics_url = ""
    with ExitStack() as running:

        def run(name: str, account: str, flags: Mapping[str, object], inside: Sequence[str] = ()) -> TiedProcess:
            """Run a program, which reaches the API server as a service account that has all rights."""
            kubeconfig = folder / f"{name}.kubeconfig"
            write_private(kubeconfig, server.kubeconfig(account=f"system:serviceaccount:{account}"))
            program = run_program(binaries[name], {**flags, "kubeconfig": kubeconfig}, folder, inside)
            return running.enter_context(closing(program))

        if "controller_manager" in binaries:
            flags: dict[str, object] = {"secure-port": "0", "leader-elect": "false"}
            period = {"horizontal-pod-autoscaler-sync-period": "1s"}  # 15 s elsewhere
            run("controller_manager", _KUBERNETES, {**flags, **period, "controllers": _CONTROLLERS})
            if "scheduler" in binaries:
                run("scheduler", _KUBERNETES, flags)
        for name, program in PROGRAMS.items():
            if name not in binaries:
                continue
            settings: Json = {"apiVersion": f"config.{program.config}/v1alpha1", "kind": "Configuration"}
            webhooks, ports = program.webhooks, Ports(free_port(), free_port(), free_port())
            if name == "kueue":
                settings, metrics_url = kueue, f"https://127.0.0.1:{ports.metrics}/metrics"
                webhooks += _POD_WEBHOOKS if "pod" in settings["integrations"]["frameworks"] else ()
                looked_at = settings.get("managedJobsNamespaceSelector")  # which its chart gives to the same webhooks
                webhooks = tuple(hook._replace(namespaces=looked_at) if hook.namespaces else hook for hook in webhooks)
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


def remove_webhooks(server: ApiServer) -> None:
    """Delete the webhooks of controllers that ended: nobody answers there any more, so all would be refused."""
    for kind in _CONFIGURATIONS.values():
        for name in PROGRAMS:
            server.delete(server.path(_ADMISSION, "v1", kind, "", name))


def _register(server: ApiServer, name: str, webhooks: Sequence[Webhook], port: int) -> None:
    """Tell an API server of a controller's webhooks; their paths are by controller-runtime's rule."""
    bundle = base64.b64encode(server.certificate.read_bytes()).decode("ascii")
    for verb, kind in _CONFIGURATIONS.items():
        rows = []
        for hook in webhooks:
            if operations := hook.mutates if verb == "mutate" else hook.validates:
                path = f"{verb}-{hook.group.replace('.', '-')}-{hook.version}-{hook.kind.lower()}"
                rows.append(
                    {
                        "name": f"{verb[0]}-{hook.kind.lower()}.{name}.example.com",
                        "admissionReviewVersions": ["v1"],
                        "sideEffects": "None",
                        "failurePolicy": "Fail",
                        "clientConfig": {"url": f"https://127.0.0.1:{port}/{path}", "caBundle": bundle},
                        "rules": [
                            {
                                "apiGroups": [hook.group],
                                "apiVersions": [hook.version],
                                "resources": [hook.plural],
                                "operations": list(operations),
                            }
                        ],
                        **({"objectSelector": hook.selector} if hook.selector else {}),
                        **({"namespaceSelector": hook.namespaces} if hook.namespaces else {}),
                    }
                )
        body = {"apiVersion": f"{_ADMISSION}/v1", "kind": kind, "metadata": {"name": name}, "webhooks": rows}
        server.apply(server.path(_ADMISSION, "v1", kind, "", name), body, force=True)


class Ports(NamedTuple):
    """The loopback ports on which a controller answers."""

    health: int
    webhook: int
    metrics: int


class Start(NamedTuple):
    """How a program is started: the command that runs it, its flags, and its configuration, which may be empty."""

    inside: tuple[str, ...]
    flags: Mapping[str, object]
    settings: Json


def start(name: str, settings: Json, ports: Ports, certificate: Path, folder: Path) -> Start:
    """Return how a controller starts, with the settings that differ from a cluster's; there is no leader election.

    ``folder`` is its own for temporary files, and gets a copy of the ``certificate`` and its key.
    """
    certificates = folder / _CERTIFICATES
    certificates.mkdir(parents=True, exist_ok=True)
    shutil.copy(certificate, certificates / "tls.crt")
    shutil.copy(certificate.with_suffix(".key"), certificates / "tls.key")
    health, metrics = f"127.0.0.1:{ports.health}", f"127.0.0.1:{ports.metrics}"
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
    # Kueue reads the certificate of its metrics from /etc/kueue/metrics/certs alone (its cmd/kueue/main.go), so it gets
    # an /etc of its own in a mount namespace. Nothing of the machine is written, and no root is needed.
    script = (
        'mount -t tmpfs tmpfs /etc && mkdir -p /etc/kueue/metrics && cp -r "$0" /etc/kueue/metrics/certs && exec "$@"'
    )
    own_etc = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(certificates))
    # Visibility of pending workloads is a server of its own, which wants an aggregator.
    return Start(own_etc, {"feature-gates": "VisibilityOnDemand=false"}, body)


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
