"""Real controllers for a real API server: Kueue, controllers of job kinds, Kubernetes' own, and the scheduler.

``PROGRAMS`` has those that are not part of Kubernetes. Nodes are only objects, so no container runs: tests and people
set the status of pods. A controller without a binary is left out, with its webhooks. The API server reaches webhooks by
URL on the loopback interface, with its own self-signed certificate. Each controller has all rights, under the name of
its service account in a cluster, which policies mention.

Settings, flags and paths of webhooks: Kueue 0.19.2, JobSet 0.12.0, LeaderWorkerSet 0.10.0, KubeRay 1.7.0 and Kubeflow
Trainer 2.3.0, read 2026-11-22; the paths follow controller-runtime's rule.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import yaml

from tests.kube.api_servers import (
    ApiServer,
    free_port,
    run_program,
    wait_until_ready,
    write_private,
)
from tests.kube.tied_process import TiedProcess
from training_platform.catalog.types import Json
from training_platform.resources.kueue import OF_TEAMS

_CREATED: Final = ("CREATE",)
_WRITTEN: Final = ("CREATE", "UPDATE")
_LOOPBACK: Final = "127.0.0.1"


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

    def path(self, verb: str) -> str:
        """Return the path at which a controller serves it, by controller-runtime's rule."""
        return f"{verb}-{self.group.replace('.', '-')}-{self.version}-{self.kind.lower()}"

    def rule(self, operations: Sequence[str]) -> dict[str, list[str]]:
        """Return the rule by which an API server calls it."""
        return {
            "apiGroups": [self.group],
            "apiVersions": [self.version],
            "resources": [self.plural],
            "operations": list(operations),
        }


def _pods(label: str) -> Webhook:
    """Return the webhook on the pods with a label."""
    exists = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
    return Webhook("", "v1", "pods", "Pod", validates=_CREATED, selector=exists)


class Host(NamedTuple):
    """The loopback ports of a controller, and its folder for temporary files."""

    health: int
    webhook: int
    metrics: int
    folder: Path

    @property
    def certificates(self) -> Path:
        """The folder with the certificate of webhooks, which controllers look for below that of temporary files."""
        return self.folder / "k8s-webhook-server" / "serving-certs"


class Launch(NamedTuple):
    """How a controller starts: its flags, its configuration ({} if it has none), and the command around it.

    ``webhooks`` are those that it then serves.
    """

    flags: Mapping[str, object]
    settings: Json
    webhooks: tuple[Webhook, ...] = ()
    inside: tuple[str, ...] = ()


class ControllerProgram(NamedTuple):
    """A controller that is not part of Kubernetes.

    ``variable`` names the path of its binary, and ``account`` the namespace and name of its service account. ``launch``
    gets the configuration of its chart, which is ``settings`` unless a release has another.
    """

    variable: str
    account: str
    launch: Callable[[Host, Json], Launch]
    settings: Json = {}


def launch_kueue(host: Host, settings: Json) -> Launch:
    """Return how Kueue starts.

    Kueue reads the certificate of its metrics only from /etc/kueue/metrics/certs (its cmd/kueue/main.go), so it gets an
    /etc of its own in a mount namespace. That changes nothing on the machine, and needs no root.
    """
    script = (
        'mount -t tmpfs tmpfs /etc && mkdir -p /etc/kueue/metrics && cp -r "$0" /etc/kueue/metrics/certs && exec "$@"'
    )
    own_etc = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(host.certificates))
    local_settings = _with_certificate(settings, host)
    local_settings["metrics"] = {**settings.get("metrics", {}), "bindAddress": f"{_LOOPBACK}:{host.metrics}"}
    # The visibility API is a server of its own, which needs the aggregation layer.
    local_settings["featureGates"] = {**settings.get("featureGates", {}), "VisibilityOnDemand": False}
    return Launch({}, local_settings, _kueue_webhooks(settings), own_etc)


def _kueue_webhooks(settings: Json) -> tuple[Webhook, ...]:
    """Return Kueue's webhooks, with the namespace selector that its chart copies from its configuration."""
    webhooks: list[Webhook] = [*_KUEUE_WEBHOOKS]
    if "pod" in settings["integrations"]["frameworks"]:
        webhooks += _KUEUE_POD_WEBHOOKS
    selector = settings.get("managedJobsNamespaceSelector")
    return tuple(webhook._replace(namespaces=selector) if webhook.namespaces else webhook for webhook in webhooks)


def _launch_jobset(host: Host, settings: Json) -> Launch:
    webhooks = (Webhook(_JOBSET, "v1alpha2", "jobsets", "JobSet"), _pods("jobset.sigs.k8s.io/jobset-name"))
    return Launch({}, _with_certificate(settings, host), webhooks)


def _launch_lws(host: Host, settings: Json) -> Launch:
    webhooks = (
        Webhook(_LWS, "v1", "leaderworkersets", "LeaderWorkerSet"),
        _pods("leaderworkerset.sigs.k8s.io/name"),
    )
    return Launch({}, _with_certificate(settings, host), webhooks)


def _launch_trainer(host: Host, settings: Json) -> Launch:
    """Return how Kubeflow Trainer starts, which reads its certificate only from the default folder."""
    local_settings = {**_local(settings, host), "certManagement": {"enable": False}}
    webhooks = (
        Webhook(_TRAINER, "v1alpha1", "trainjobs", "TrainJob", mutates=_WRITTEN),
        Webhook(_TRAINER, "v1alpha1", "trainingruntimes", "TrainingRuntime", mutates=()),
        Webhook(_TRAINER, "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", mutates=()),
    )
    return Launch({}, local_settings, webhooks, ("env", f"TMPDIR={host.folder}"))


def _launch_kuberay(host: Host, settings: Json) -> Launch:
    """Return how KubeRay starts: it has only flags, and its webhooks are off, as in its chart."""
    flags = {
        "health-probe-bind-address": f"{_LOOPBACK}:{host.health}",
        "metrics-addr": f"{_LOOPBACK}:{host.metrics}",
        "enable-leader-election": "false",
    }
    return Launch(flags, settings)


def _settings_of(group: str) -> Json:
    """Return a configuration with nothing but defaults, of a kind in an API group."""
    return {"apiVersion": f"config.{group}/v1alpha1", "kind": "Configuration"}


def _local(settings: Json, host: Host) -> Json:
    """Return a configuration changed for this machine, without leader election."""
    return {
        **settings,
        "health": {"healthProbeBindAddress": f"{_LOOPBACK}:{host.health}"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": _LOOPBACK, "port": host.webhook},
    }


def _with_certificate(settings: Json, host: Host) -> Json:
    """Return a configuration changed for this machine, with the certificate of the API server for webhooks."""
    local_settings = _local(settings, host)
    local_settings["webhook"]["certDir"] = str(host.certificates)
    return {**local_settings, "internalCertManagement": {"enable": False}}


_KUEUE: Final = "kueue.x-k8s.io"
_JOBSET: Final = "jobset.x-k8s.io"
_LWS: Final = "leaderworkerset.x-k8s.io"
_TRAINER: Final = "trainer.kubeflow.org"
_KUEUE_WEBHOOKS: Final = (
    Webhook(_KUEUE, "v1beta2", "clusterqueues", "ClusterQueue"),
    Webhook(_KUEUE, "v1beta2", "resourceflavors", "ResourceFlavor"),
    Webhook(_KUEUE, "v1beta2", "workloads", "Workload"),
    Webhook(_KUEUE, "v1beta2", "cohorts", "Cohort", mutates=()),
    Webhook("batch", "v1", "jobs", "Job", namespaces=OF_TEAMS),
    Webhook(_JOBSET, "v1alpha2", "jobsets", "JobSet", namespaces=OF_TEAMS),
    Webhook("ray.io", "v1", "rayclusters", "RayCluster", namespaces=OF_TEAMS),
    Webhook("ray.io", "v1", "rayjobs", "RayJob", namespaces=OF_TEAMS),
    Webhook(_TRAINER, "v1alpha1", "trainjobs", "TrainJob", namespaces=OF_TEAMS),
)
_KUEUE_POD_WEBHOOKS: Final = (  # if it queues pods, as its chart registers them with our configuration
    Webhook("", "v1", "pods", "Pod", validates=_CREATED, namespaces=OF_TEAMS),
    Webhook("apps", "v1", "deployments", "Deployment", namespaces=OF_TEAMS),
    Webhook(_LWS, "v1", "leaderworkersets", "LeaderWorkerSet", namespaces=OF_TEAMS),
)
PROGRAMS: Final = {  # in the order in which they start
    "jobset": ControllerProgram(
        variable="TRAINING_PLATFORM_JOBSET",
        account="jobset-system:jobset-controller",
        launch=_launch_jobset,
        settings=_settings_of(_JOBSET),
    ),
    "lws": ControllerProgram(
        variable="TRAINING_PLATFORM_LWS",
        account="lws-system:lws-controller-manager",
        launch=_launch_lws,
        settings=_settings_of("lws.x-k8s.io"),
    ),
    "kuberay": ControllerProgram(
        variable="TRAINING_PLATFORM_KUBERAY",
        account="kuberay-system:kuberay-operator",
        launch=_launch_kuberay,
    ),
    "trainer": ControllerProgram(
        variable="TRAINING_PLATFORM_TRAINER",
        account="kubeflow-system:kubeflow-trainer-controller-manager",
        launch=_launch_trainer,
        settings=_settings_of(_TRAINER),
    ),
    "kueue": ControllerProgram(
        variable="TRAINING_PLATFORM_KUEUE",
        account="kueue-system:kueue-controller-manager",
        launch=launch_kueue,
    ),
}
_KUBERNETES_ACCOUNT: Final = "kube-system:controllers"  # one account for all of them; in a cluster each has its own
_KUBERNETES_CONTROLLERS: Final = ",".join(
    f"{name}-controller"
    for name in (
        "deployment", "garbage-collector", "horizontal-pod-autoscaler", "job", "namespace", "replicaset",
        "resourceclaim", "resourcequota", "statefulset",
    )
)  # fmt: skip
_CONTROLLERS_OF_KUBELETS: Final = (
    "endpoints-controller", "endpointslice-controller", "node-lifecycle-controller",
    "persistentvolume-binder-controller", "pod-garbage-collector-controller", "taint-eviction-controller",
)  # fmt: skip
_ADMISSION: Final = "admissionregistration.k8s.io"
_CONFIGURATIONS: Final = {"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}


def find_binaries(folder: Path) -> dict[str, Path]:
    """Return the binaries by program: Kubernetes' own are in ``folder``, others are named by variables or on PATH."""
    binaries: dict[str, Path] = {}
    for name, program in PROGRAMS.items():
        binary = os.environ.get(program.variable) or shutil.which(name)
        if binary:
            binaries[name] = Path(binary)
    for name in ("controller_manager", "scheduler"):
        path = folder / f"kube-{name.replace('_', '-')}"
        if path.exists():
            binaries[name] = path
    return binaries


@contextmanager
def run_controllers(
    server: ApiServer,
    binaries: Mapping[str, Path],
    folder: Path,
    definitions: Sequence[Json],
    kueue: Json,
    *,
    kubelets: bool = False,
) -> Iterator[str]:
    """Run the controllers of one cluster while the block runs, and yield the URL of Kueue's metrics, "" without Kueue.

    ``folder`` has their settings and logs. ``definitions`` are CustomResourceDefinitions, which are applied first;
    ``kueue`` is Kueue's configuration as its chart takes it. A second block with other binaries or definitions is an
    upgrade. With ``kubelets`` the controllers run that act on what these report, or no longer do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    server.define(definitions)
    settings = {name: program.settings for name, program in PROGRAMS.items()} | {"kueue": kueue}
    metrics_urls: dict[str, str] = {}
    with ExitStack() as running:
        starter = _Starter(server, binaries, folder, running)
        starter.start_kubernetes(kubelets=kubelets)
        for name, program in PROGRAMS.items():
            if name in binaries:
                host = starter.start(name, program, settings[name])
                metrics_urls[name] = f"https://{_LOOPBACK}:{host.metrics}/metrics"
        yield metrics_urls.get("kueue", "")


class _Starter(NamedTuple):
    """Starts programs beside an API server, which end with ``running``."""

    server: ApiServer
    binaries: Mapping[str, Path]
    folder: Path
    running: ExitStack

    def start_kubernetes(self, *, kubelets: bool) -> None:
        """Start Kubernetes' controllers and, only beside them, its scheduler."""
        flags = {"secure-port": "0", "leader-elect": "false"}
        if "controller_manager" in self.binaries:
            period = {"horizontal-pod-autoscaler-sync-period": "1s"}  # instead of 15 s
            names = [_KUBERNETES_CONTROLLERS]
            if kubelets:
                names += _CONTROLLERS_OF_KUBELETS
            controllers = {"controllers": ",".join(names)}
            self._run("controller_manager", _KUBERNETES_ACCOUNT, {**flags, **period, **controllers})
            if "scheduler" in self.binaries:
                self._run("scheduler", _KUBERNETES_ACCOUNT, flags)

    def start(self, name: str, program: ControllerProgram, settings: Json) -> Host:
        """Start a controller, wait until it is ready, and register its webhooks."""
        host = Host(free_port(), free_port(), free_port(), self.folder / f"{name}-files")
        host.certificates.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.server.certificate, host.certificates / "tls.crt")
        shutil.copy(self.server.certificate.with_suffix(".key"), host.certificates / "tls.key")
        launch = program.launch(host, settings)
        flags = dict(launch.flags)
        if launch.settings:
            config = self.folder / f"{name}.yaml"
            config.write_text(yaml.safe_dump(launch.settings), encoding="utf-8")
            flags["config"] = config
        process = self._run(name, program.account, flags, launch.inside)
        with httpx.Client(trust_env=False) as health:
            wait_until_ready(process, health, f"http://{_LOOPBACK}:{host.health}/readyz")
        _register(self.server, name, launch.webhooks, host.webhook)
        return host

    def _run(self, name: str, account: str, flags: Mapping[str, object], inside: Sequence[str] = ()) -> TiedProcess:
        """Run a program, which calls the API server as a service account with all rights."""
        kubeconfig = self.folder / f"{name}.kubeconfig"
        write_private(kubeconfig, self.server.kubeconfig(account=f"system:serviceaccount:{account}"))
        process = run_program(self.binaries[name], {**flags, "kubeconfig": kubeconfig}, self.folder, inside)
        return self.running.enter_context(closing(process))


def _register(server: ApiServer, name: str, webhooks: Sequence[Webhook], port: int) -> None:
    """Register a controller's webhooks with an API server."""
    bundle = base64.b64encode(server.certificate.read_bytes()).decode("ascii")
    for verb, kind in _CONFIGURATIONS.items():
        rows = []
        for webhook in webhooks:
            operations = webhook.mutates if verb == "mutate" else webhook.validates
            if operations:
                client = {"url": f"https://{_LOOPBACK}:{port}/{webhook.path(verb)}", "caBundle": bundle}
                row = {
                    "name": f"{verb[0]}-{webhook.kind.lower()}.{name}.example.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "clientConfig": client,
                    "rules": [webhook.rule(operations)],
                }
                if webhook.selector:
                    row["objectSelector"] = webhook.selector
                if webhook.namespaces:
                    row["namespaceSelector"] = webhook.namespaces
                rows.append(row)
        body = {"apiVersion": f"{_ADMISSION}/v1", "kind": kind, "metadata": {"name": name}, "webhooks": rows}
        server.apply(f"/apis/{_ADMISSION}/v1/{kind.lower()}s/{name}", body, force=True)
