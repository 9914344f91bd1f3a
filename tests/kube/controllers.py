"""Real controllers beside a real API server: JobSet's, Kueue's, LeaderWorkerSet's, Kubernetes' own and the scheduler.

Nodes exist as objects only, so no container ever runs: a test, or a person, says what becomes of a pod. Binaries are
named by ``Binaries``; a controller without one is left out, with its webhooks. The webhooks are reached by URL,
on the loopback, with the certificate that the API server made for itself. Paths of webhooks and names of settings:
Kueue 0.19.2, JobSet 0.12.0 and LeaderWorkerSet 0.10.0, read 2026-11-22; all follow controller-runtime's rule for paths.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import httpx
import yaml

from training_platform.resources.kueue.configuration import OF_TEAMS
from training_platform.sandbox.kubernetes.api_servers.control_plane import START_SECONDS, Access, free_port
from training_platform.sandbox.kubernetes.api_servers.tied_process import TiedProcess
from training_platform.sandbox.kubernetes.store import Refused

Json = dict[str, Any]
VARIABLES: Final = {
    "kueue": "TRAINING_PLATFORM_KUEUE", "jobset": "TRAINING_PLATFORM_JOBSET", "lws": "TRAINING_PLATFORM_LWS",
}  # fmt: skip
"""The variables that name the binaries of controllers which Kubernetes does not bring."""

_CREATED: Final = ("CREATE",)
_CHANGED: Final = ("CREATE", "UPDATE")
_JOBSET_SETTINGS: Final = {"apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration"}
_LWS_SETTINGS: Final = {"apiVersion": "config.lws.x-k8s.io/v1alpha1", "kind": "Configuration"}
_CONTROLLERS: Final = ",".join(
    f"{name}-controller"
    for name in (
        "deployment", "garbage-collector", "horizontal-pod-autoscaler", "job", "namespace", "replicaset",
        "resourcequota", "statefulset",
    )
)  # fmt: skip


class Binaries(NamedTuple):
    """Where programs are; None for those that are left out."""

    kueue: Path | None
    jobset: Path | None
    lws: Path | None
    controller_manager: Path | None
    scheduler: Path | None

    @classmethod
    def of_settings(cls, folder: Path) -> Binaries:
        """Return what ``folder`` has of Kubernetes' own programs, and what variables or PATH name of the others."""
        own = (folder / name for name in ("kube-controller-manager", "kube-scheduler"))
        others = (os.environ.get(variable) or shutil.which(name) for name, variable in VARIABLES.items())
        return cls(
            *(Path(each) if each else None for each in others), *(each if each.exists() else None for each in own)
        )


class Webhook(NamedTuple):
    """What a controller wants to see of a kind; the path follows from it."""

    group: str
    version: str
    plural: str
    kind: str
    mutates: bool
    selector: Mapping[str, Any] | None = None
    namespaces: Mapping[str, Any] | None = None

    @property
    def path(self) -> str:
        """The path by controller-runtime's rule: ``/mutate-batch-v1-job``, dots as dashes."""
        verb = "mutate" if self.mutates else "validate"
        return f"/{verb}-{self.group.replace('.', '-')}-{self.version}-{self.kind.lower()}"


def _both(group: str, version: str, plural: str, kind: str) -> tuple[Webhook, Webhook]:
    return Webhook(group, version, plural, kind, True), Webhook(group, version, plural, kind, False)


_KUEUE_GROUP, _JOBSET_GROUP, _LWS_GROUP = "kueue.x-k8s.io", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io"
_OF_LWS: Final = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}
_OF_JOBSETS: Final = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
KUEUE_WEBHOOKS: Final = (
    *_both(_KUEUE_GROUP, "v1beta2", "clusterqueues", "ClusterQueue"),
    *_both(_KUEUE_GROUP, "v1beta2", "resourceflavors", "ResourceFlavor"),
    *_both(_KUEUE_GROUP, "v1beta2", "workloads", "Workload"),
    Webhook(_KUEUE_GROUP, "v1beta2", "cohorts", "Cohort", False),
    *_both("batch", "v1", "jobs", "Job"),
    *_both(_JOBSET_GROUP, "v1alpha2", "jobsets", "JobSet"),
)
POD_WEBHOOKS: Final = tuple(
    hook._replace(namespaces=OF_TEAMS)
    for hook in (
        *_both("", "v1", "pods", "Pod"),
        *_both("apps", "v1", "deployments", "Deployment"),
        *_both(_LWS_GROUP, "v1", "leaderworkersets", "LeaderWorkerSet"),
    )
)
"""Those of Kueue where it queues pods, as its chart registers them with our configuration."""
JOBSET_WEBHOOKS: Final = (
    *_both(_JOBSET_GROUP, "v1alpha2", "jobsets", "JobSet"),
    Webhook("", "v1", "pods", "Pod", True, _OF_JOBSETS),
    Webhook("", "v1", "pods", "Pod", False, _OF_JOBSETS),
)
LWS_WEBHOOKS: Final = (
    *_both(_LWS_GROUP, "v1", "leaderworkersets", "LeaderWorkerSet"),
    Webhook("", "v1", "pods", "Pod", True, _OF_LWS),
    Webhook("", "v1", "pods", "Pod", False, _OF_LWS),
)


class Controllers:
    """The controllers of one cluster, for as long as the block runs; ``folder`` keeps their settings and logs.

    ``definitions`` are files of CustomResourceDefinitions, which are applied first; ``kueue`` is Kueue's configuration
    as its chart takes it. A second block with other binaries or definitions is an upgrade.
    """

    def __init__(self, access: Access, binaries: Binaries, folder: Path, definitions: list[Path], kueue: Json) -> None:
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
        for each in reversed(self._running):
            each.close()

    def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._access.client() as client:
            self._define(client)
            if self._binaries.controller_manager:
                self._kubernetes()
            if self._binaries.jobset:
                self._operator(client, "jobset", self._binaries.jobset, _JOBSET_SETTINGS, JOBSET_WEBHOOKS)
            if self._binaries.lws:
                self._operator(client, "lws", self._binaries.lws, _LWS_SETTINGS, LWS_WEBHOOKS)
            if self._binaries.kueue:
                pods = POD_WEBHOOKS if "pod" in self._kueue["integrations"]["frameworks"] else ()
                hooks = (*KUEUE_WEBHOOKS, *pods)
                self._operator(client, "kueue", self._binaries.kueue, self._kueue, hooks)

    def _define(self, client: httpx.Client) -> None:
        """Apply the definitions, and wait until every kind of them is served."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        kinds: set[tuple[str, str, str]] = set()
        for file in self._definitions:
            body = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)  # a safe loader
            _apply(client, path, body)
            spec = body["spec"]
            served = (each["name"] for each in spec["versions"] if each["served"])
            kinds.update((spec["group"], version, spec["names"]["plural"]) for version in served)
        # A controller asks once which kinds there are, and ends, or does without, where one is missing.
        _until(lambda: kinds <= _discovered(client), "the definitions are not served")

    def _kubernetes(self) -> None:
        config = self._kubeconfig()
        assert self._binaries.controller_manager is not None  # asked before
        flags = {"kubeconfig": config, "controllers": _CONTROLLERS, "secure-port": "0", "leader-elect": "false"}
        flags["horizontal-pod-autoscaler-sync-period"] = "1s"  # 15 s elsewhere
        self._run(self._binaries.controller_manager, flags)
        if self._binaries.scheduler:
            self._run(self._binaries.scheduler, {"kubeconfig": config, "secure-port": "0", "leader-elect": "false"})

    def _operator(
        self, client: httpx.Client, name: str, binary: Path, settings: Json, hooks: Sequence[Webhook]
    ) -> None:
        """Start a controller with its webhooks, and wait until it answers."""
        ports = Ports(free_port(), free_port(), free_port())
        certificates = self._folder / f"{name}-certificates"
        certificates.mkdir(exist_ok=True)
        source = self._access.certificate
        for copy, original in (("tls.crt", source), ("tls.key", source.with_suffix(".key"))):
            shutil.copy(original, certificates / copy)
        config = self._folder / f"{name}.yaml"
        body = {**settings, **_local(ports, certificates)}
        if name == "kueue":
            body["metrics"] = {**settings.get("metrics", {}), "bindAddress": f"127.0.0.1:{ports.metrics}"}
            self.metrics_url = f"https://127.0.0.1:{ports.metrics}/metrics"
        config.write_text(yaml.safe_dump(body), encoding="utf-8")
        flags = {"config": config, "kubeconfig": self._kubeconfig()}
        if name == "kueue":  # who shows what waits is a server of its own, which wants an aggregator
            process = self._run(binary, {**flags, "feature-gates": "VisibilityOnDemand=false"}, _own_etc(certificates))
        else:
            process = self._run(binary, flags)
        with httpx.Client(trust_env=False) as health:
            url = f"http://127.0.0.1:{ports.health}/readyz"
            _until(lambda: process.ended or _answers(health, url), f"{name} does not start: {process.log}")
        if process.ended:
            raise Refused(f"{name} did not start; {process.log} ends with: {process.last_words()}")
        for body in webhook_configurations(name, hooks, ports.webhook, source.read_bytes()):
            _apply(client, f"/apis/admissionregistration.k8s.io/v1/{body['kind'].lower()}s", body)

    def _kubeconfig(self) -> Path:
        return self._access.certificate.with_name("kubeconfig")

    def _run(self, binary: Path, flags: Mapping[str, object], inside: Sequence[str] = ()) -> TiedProcess:
        command = [*inside, str(binary), *(f"--{name}={value}" for name, value in flags.items())]
        process = TiedProcess(command, self._folder / f"{binary.name}.log")
        self._running.append(process)
        return process


class Ports(NamedTuple):
    """Where a controller answers on the loopback."""

    health: int
    webhook: int
    metrics: int


def webhook_configurations(name: str, hooks: Sequence[Webhook], port: int, certificate: bytes) -> Iterator[Json]:
    """Yield the two configurations of a controller's webhooks: one of those that mutate, one of those that validate."""
    bundle = base64.b64encode(certificate).decode("ascii")
    for kind, mutates in (("MutatingWebhookConfiguration", True), ("ValidatingWebhookConfiguration", False)):
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": [_webhook(name, hook, port, bundle) for hook in hooks if hook.mutates is mutates],
        }


def _webhook(name: str, hook: Webhook, port: int, bundle: str) -> Json:
    return {
        "name": f"{'m' if hook.mutates else 'v'}-{hook.kind.lower()}.{name}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": f"https://127.0.0.1:{port}{hook.path}", "caBundle": bundle},
        "rules": [
            {
                "apiGroups": [hook.group],
                "apiVersions": [hook.version],
                "resources": [hook.plural],
                "operations": list(_CREATED if hook.mutates or hook.kind == "Pod" else _CHANGED),
            }
        ],
        **({"objectSelector": dict(hook.selector)} if hook.selector else {}),
        **({"namespaceSelector": dict(hook.namespaces)} if hook.namespaces else {}),
    }


def _local(ports: Ports, certificates: Path) -> Json:
    """Return what is another here than in a cluster: addresses, certificates, and nobody to be elected."""
    return {
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports.health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": ports.webhook, "certDir": str(certificates)},
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
    }


def _own_etc(certificates: Path) -> tuple[str, ...]:
    """Return the start of a command that gives a program an ``/etc`` of its own, in a mount namespace.

    Kueue reads the certificate of its metrics from ``/etc/kueue/metrics/certs`` alone (its cmd/kueue/main.go).
    Nothing of the machine is written, and no root is needed.
    """
    script = (
        'mount -t tmpfs tmpfs /etc && mkdir -p /etc/kueue/metrics && cp -r "$0" /etc/kueue/metrics/certs && exec "$@"'
    )
    return "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(certificates)


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).is_success
    except httpx.TransportError:
        return False


def _discovered(client: httpx.Client) -> set[tuple[str, str, str]]:
    """Return group, version and plural of every kind that the API server's discovery names."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = client.get("/apis", headers={"Accept": accept}).json()["items"]
    return {
        (group["metadata"]["name"], version["version"], resource["resource"])
        for group in groups
        for version in group["versions"]
        for resource in version.get("resources", ())
    }


def _apply(client: httpx.Client, path: str, body: Json) -> None:
    """Create an object, or make it what ``body`` says."""
    headers = {"Content-Type": "application/apply-patch+yaml"}
    query = {"fieldManager": "controllers", "force": "true"}
    answer = client.patch(f"{path}/{body['metadata']['name']}", content=json.dumps(body), headers=headers, params=query)
    if not answer.is_success:
        raise Refused(f"the API server refuses a controller's own object: {answer.text[:500]}")


def _until(done: Callable[[], bool], failure: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise Refused(failure)
        time.sleep(0.05)
