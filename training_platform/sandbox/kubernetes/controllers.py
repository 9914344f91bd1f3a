"""Real controllers beside a real API server: Kueue's, those of kinds of jobs, Kubernetes' own and the scheduler.

``PROGRAMS`` is the table of them: the variable that names each one's binary, its service account, its configuration and
its webhooks. Nodes exist as objects only, so no container ever runs: a test, or a person, sets the status of a pod. A
controller without a binary is left out, with its webhooks. The webhooks are reached by URL on the loopback, with the
certificate that the API server made for itself. Each controller has all rights, under the name of the service account
that it has in a cluster, which policies know.

Settings, flags and paths of webhooks: Kueue 0.19.2, JobSet 0.12.0, LeaderWorkerSet 0.10.0, KubeRay 1.7.0 and Kubeflow
Trainer 2.3.0, read 2026-11-22; the paths follow controller-runtime's rule.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import httpx
import yaml

from training_platform.resources.kueue import OF_TEAMS, configuration
from training_platform.sandbox.kubernetes.api_servers import (
    Access,
    ApiClient,
    ControlPlanes,
    free_port,
    wait_until_ready,
    write_private,
)
from training_platform.sandbox.kubernetes.nodes import Kubelets
from training_platform.sandbox.kubernetes.store import HELM, ObjectStore
from training_platform.sandbox.kubernetes.tied_process import TiedProcess
from training_platform.sandbox.kubernetes.values import Json, dig


class Webhook(NamedTuple):
    """A kind whose objects a controller wants to see; the path follows from it."""

    group: str
    version: str
    plural: str
    kind: str
    mutates: bool
    selector: Mapping[str, Any] | None = None
    namespaces: Mapping[str, Any] | None = None
    on_update: bool = False  # for one that mutates; those that validate see updates anyway, but for pods

    @property
    def path(self) -> str:
        """The path by controller-runtime's rule: ``/mutate-batch-v1-job``, dots as dashes."""
        verb = "mutate" if self.mutates else "validate"
        return f"/{verb}-{self.group.replace('.', '-')}-{self.version}-{self.kind.lower()}"


def _both(
    group: str, version: str, plural: str, kind: str, selector: Mapping[str, Any] | None = None
) -> tuple[Webhook, Webhook]:
    return (
        Webhook(group, version, plural, kind, True, selector),
        Webhook(group, version, plural, kind, False, selector),
    )


def _labelled(key: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": "Exists"}]}


class ControllerProgram(NamedTuple):
    """A controller that Kubernetes does not bring."""

    variable: str  # names its binary
    account: str  # namespace and name of its service account
    settings: Json  # its configuration; of Kueue that is its release's, and KubeRay has flags alone
    webhooks: tuple[Webhook, ...]


def _settings(name: str) -> Json:
    return {"apiVersion": f"config.{name}/v1alpha1", "kind": "Configuration"}


_KUEUE, _JOBSET, _LWS = "kueue.x-k8s.io", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io"
_TRAINER: Final = "trainer.kubeflow.org"
PROGRAMS: Final = {  # in the order in which they start
    "jobset": ControllerProgram(
        "TRAINING_PLATFORM_JOBSET", "jobset-system:jobset-controller", _settings(_JOBSET),
        (
            *_both(_JOBSET, "v1alpha2", "jobsets", "JobSet"),
            *_both("", "v1", "pods", "Pod", _labelled("jobset.sigs.k8s.io/jobset-name")),
        ),
    ),
    "lws": ControllerProgram(
        "TRAINING_PLATFORM_LWS", "lws-system:lws-controller-manager",
        _settings("lws.x-k8s.io"),
        (
            *_both(_LWS, "v1", "leaderworkersets", "LeaderWorkerSet"),
            *_both("", "v1", "pods", "Pod", _labelled("leaderworkerset.sigs.k8s.io/name")),
        ),
    ),
    "kuberay": ControllerProgram(  # its webhooks are off, as in its chart
        "TRAINING_PLATFORM_KUBERAY", "kuberay-system:kuberay-operator", {}, ()
    ),
    "trainer": ControllerProgram(
        "TRAINING_PLATFORM_TRAINER", "kubeflow-system:kubeflow-trainer-controller-manager",
        _settings(_TRAINER),
        (
            Webhook(_TRAINER, "v1alpha1", "trainjobs", "TrainJob", True, on_update=True),
            Webhook(_TRAINER, "v1alpha1", "trainjobs", "TrainJob", False),
            Webhook(_TRAINER, "v1alpha1", "trainingruntimes", "TrainingRuntime", False),
            Webhook(_TRAINER, "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", False),
        ),
    ),
    "kueue": ControllerProgram(
        "TRAINING_PLATFORM_KUEUE", "kueue-system:kueue-controller-manager", {},
        (
            *_both(_KUEUE, "v1beta2", "clusterqueues", "ClusterQueue"),
            *_both(_KUEUE, "v1beta2", "resourceflavors", "ResourceFlavor"),
            *_both(_KUEUE, "v1beta2", "workloads", "Workload"),
            Webhook(_KUEUE, "v1beta2", "cohorts", "Cohort", False),
            *_both("batch", "v1", "jobs", "Job"),
            *_both(_JOBSET, "v1alpha2", "jobsets", "JobSet"),
            *_both("ray.io", "v1", "rayclusters", "RayCluster"),
            *_both("ray.io", "v1", "rayjobs", "RayJob"),
            *_both(_TRAINER, "v1alpha1", "trainjobs", "TrainJob"),
        ),
    ),
}  # fmt: skip
# Kueue's where it queues pods, as its chart registers them with our configuration.
_POD_WEBHOOKS: Final = tuple(
    webhook._replace(namespaces=OF_TEAMS)
    for webhook in (
        *_both("", "v1", "pods", "Pod"),
        *_both("apps", "v1", "deployments", "Deployment"),
        *_both(_LWS, "v1", "leaderworkersets", "LeaderWorkerSet"),
    )
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
_CONFIGURATIONS: Final = {"MutatingWebhookConfiguration": True, "ValidatingWebhookConfiguration": False}
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


class ReleaseControllers:
    """The controllers beside each API server of a sandbox, for as long as the block runs.

    Charts are not rendered, so Kueue and JobSet run by their ``binaries``, from when a cluster has their Helm release
    in ``releases`` until the release is deleted, Kueue with the configuration of its release. ``nodes`` returns a
    cluster's nodes by name.
    """

    def __init__(
        self,
        planes: ControlPlanes,
        binaries: Mapping[str, Path],
        releases: ObjectStore,
        nodes: Callable[[str], Mapping[str, Json]],
    ) -> None:
        self._planes = planes
        self._binaries = binaries
        self._releases = releases
        self._nodes = nodes
        self._running: dict[str, tuple[Mapping[str, Json], ExitStack]] = {}  # values by chart, and the programs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _values, running in self._running.values():
            running.close()

    def able(self, definitions: Iterable[str]) -> list[str]:
        """Return the charts whose controllers can run: they have a binary, and a definition of their kind."""
        return [chart for chart, kind in IN_SANDBOX.items() if kind in definitions and chart in self._binaries]

    def keep_up(self, cluster: str, definitions: Mapping[str, Json]) -> None:
        """Start, end or restart controllers as a cluster's releases want; one thread at a time for a cluster.

        Raises Refused where a controller does not start.
        """
        wanted: dict[str, Json] = {}  # values by chart
        for key in self._releases.keys(cluster):
            release = (self._releases.read(cluster, key) if key.group == HELM else None) or {}
            if (chart := dig(release, "status", "chart")) in self.able(definitions):
                wanted[chart] = release.get("values") or {}
        if cluster in self._running and self._running[cluster][0] == wanted:
            return
        access = self._planes.access(cluster)
        if cluster in self._running:
            self._running.pop(cluster)[1].close()
        with closing(ApiClient(access)) as client:  # those of a command before this one, too
            _remove_webhooks(client)
        with ExitStack() as stack:
            if wanted:
                binaries = {
                    name: path for name, path in self._binaries.items() if name in wanted or name not in PROGRAMS
                }
                text = dig(wanted.get("kueue", {}), "managerConfig", "controllerManagerConfigYaml")
                kueue = yaml.safe_load(text) if text else configuration([])
                folder = self._planes.place(cluster) / "controllers"
                stack.enter_context(Controllers(access, binaries, folder, list(definitions.values()), kueue))
                stack.enter_context(Kubelets(access, lambda: self._nodes(cluster)))
            self._running[cluster] = (wanted, stack.pop_all())


class Controllers:
    """The controllers of one cluster, for as long as the block runs; ``folder`` keeps their settings and logs.

    ``definitions`` are CustomResourceDefinitions, which are applied first; ``kueue`` is Kueue's configuration as its
    chart takes it. A second block with other binaries or definitions is an upgrade.
    """

    def __init__(
        self, access: Access, binaries: Mapping[str, Path], folder: Path, definitions: Sequence[Json], kueue: Json
    ) -> None:
        self._access = access
        self._binaries = binaries
        self._folder = folder
        self._definitions = definitions
        self._kueue = kueue
        self._running: list[TiedProcess] = []
        self.metrics_url = ""  # of Kueue, once it runs

    def __enter__(self) -> Self:
        with ExitStack() as on_failure:
            on_failure.callback(self.__exit__)
            self._start()
            on_failure.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running):
            process.close()

    def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with closing(ApiClient(self._access)) as client:
            client.define(self._definitions)
            if manager := self._binaries.get("controller_manager"):
                config = self._kubeconfig("kubernetes", _KUBERNETES)
                flags = {"kubeconfig": config, "controllers": _CONTROLLERS, "secure-port": "0", "leader-elect": "false"}
                flags["horizontal-pod-autoscaler-sync-period"] = "1s"  # 15 s elsewhere
                self._run(manager, flags)
                if scheduler := self._binaries.get("scheduler"):
                    self._run(scheduler, {"kubeconfig": config, "secure-port": "0", "leader-elect": "false"})
            for name, program in PROGRAMS.items():
                if name in self._binaries:
                    self._start_program(client, name, program)

    def _start_program(self, client: ApiClient, name: str, program: ControllerProgram) -> None:
        """Start a controller, wait until it answers, and register its webhooks."""
        settings, webhooks = program.settings, program.webhooks
        if name == "kueue":
            settings = self._kueue
            webhooks += _POD_WEBHOOKS if "pod" in settings["integrations"]["frameworks"] else ()
        ports = Ports(free_port(), free_port(), free_port())
        certificate = self._access.certificate
        started = start(name, settings, ports, certificate, self._folder / f"{name}-files")
        flags = {**started.flags, "kubeconfig": self._kubeconfig(name, program.account)}
        if started.settings:
            flags["config"] = config = self._folder / f"{name}.yaml"
            config.write_text(yaml.safe_dump(started.settings), encoding="utf-8")
        if name == "kueue":
            self.metrics_url = f"https://127.0.0.1:{ports.metrics}/metrics"
        process = self._run(self._binaries[name], flags, started.inside)
        with httpx.Client(trust_env=False) as health:
            wait_until_ready(process, health, f"http://127.0.0.1:{ports.health}/readyz")
        for kind, mutates in _CONFIGURATIONS.items():
            body = {
                "apiVersion": f"{_ADMISSION}/v1",
                "kind": kind,
                "metadata": {"name": name},
                "webhooks": list(_registered(name, webhooks, mutates, ports.webhook, certificate.read_bytes())),
            }
            client.apply(client.resource(_ADMISSION, "v1", kind), "", name, body, force=True)

    def _kubeconfig(self, name: str, account: str) -> Path:
        """Write how a program reaches the API server, as a service account that has all rights."""
        path = self._folder / f"{name}.kubeconfig"
        write_private(path, self._access.kubeconfig(account=f"system:serviceaccount:{account}"))
        return path

    def _run(self, binary: Path, flags: Mapping[str, object], inside: Sequence[str] = ()) -> TiedProcess:
        command = [*inside, str(binary), *(f"--{name}={value}" for name, value in flags.items())]
        process = TiedProcess(command, self._folder / f"{binary.name}.log")
        self._running.append(process)
        return process


def _remove_webhooks(client: ApiClient) -> None:
    """Delete the webhooks of controllers that ended: nobody answers there any more, so all would be refused."""
    for kind in _CONFIGURATIONS:
        for name in PROGRAMS:
            client.delete(client.resource(_ADMISSION, "v1", kind), "", name)


def _registered(name: str, webhooks: Sequence[Webhook], mutates: bool, port: int, certificate: bytes) -> Iterator[Json]:
    """Yield the webhooks of a controller that mutate, or those that validate, as the API server takes them."""
    bundle = base64.b64encode(certificate).decode("ascii")
    for hook in (webhook for webhook in webhooks if webhook.mutates is mutates):
        only_created = (hook.mutates and not hook.on_update) or hook.kind == "Pod"
        yield {
            "name": f"{'m' if mutates else 'v'}-{hook.kind.lower()}.{name}.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {"url": f"https://127.0.0.1:{port}{hook.path}", "caBundle": bundle},
            "rules": [
                {
                    "apiGroups": [hook.group],
                    "apiVersions": [hook.version],
                    "resources": [hook.plural],
                    "operations": ["CREATE"] if only_created else ["CREATE", "UPDATE"],
                }
            ],
            **({"objectSelector": dict(hook.selector)} if hook.selector else {}),
            **({"namespaceSelector": dict(hook.namespaces)} if hook.namespaces else {}),
        }


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
    for copy, original in (("tls.crt", certificate), ("tls.key", certificate.with_suffix(".key"))):
        shutil.copy(original, certificates / copy)
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
