"""Real controllers beside a real API server: JobSet's, Kueue's, LeaderWorkerSet's, Kubernetes' own and the scheduler.

Nodes exist as objects only, so no container ever runs: a test, or a person, says what becomes of a pod. Binaries are
named by ``Binaries``; a controller without one is left out, with its webhooks. The webhooks are reached by URL,
on the loopback, with the certificate that the API server made for itself. Each may do anything, as the service account
that it has in a cluster, which policies know it by. Names of settings: Kueue 0.19.2, JobSet 0.12.0 and LeaderWorkerSet
0.10.0, read 2026-11-22.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple, Self

import httpx
import yaml

from training_platform.sandbox.kubernetes.api_servers.control_plane import (
    START_SECONDS,
    Access,
    free_port,
    write_private,
)
from training_platform.sandbox.kubernetes.api_servers.tied_process import TiedProcess
from training_platform.sandbox.kubernetes.controllers.webhooks import (
    API,
    CONFIGURATIONS,
    JOBSET_WEBHOOKS,
    KUEUE_WEBHOOKS,
    LWS_WEBHOOKS,
    POD_WEBHOOKS,
    Webhook,
    webhook_configurations,
)
from training_platform.sandbox.kubernetes.store import Refused
from training_platform.sandbox.kubernetes.values import Json

VARIABLES: Final = {
    "kueue": "TRAINING_PLATFORM_KUEUE", "jobset": "TRAINING_PLATFORM_JOBSET", "lws": "TRAINING_PLATFORM_LWS",
}  # fmt: skip
"""The variables that name the binaries of controllers which Kubernetes does not bring."""

_ACCOUNTS: Final = {
    "kueue": "kueue-system:kueue-controller-manager",
    "jobset": "jobset-system:jobset-controller",
    "lws": "lws-system:lws-controller-manager",
}
_KUBERNETES: Final = "kube-system:controllers"  # one for all; each has its own in a cluster
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


class Controllers:
    """The controllers of one cluster, for as long as the block runs; ``folder`` keeps their settings and logs.

    ``definitions`` are CustomResourceDefinitions, which are applied first; ``kueue`` is Kueue's configuration as its
    chart takes it. A second block with other binaries or definitions is an upgrade.
    """

    def __init__(
        self, access: Access, binaries: Binaries, folder: Path, definitions: Sequence[Json], kueue: Json
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
        for each in reversed(self._running):
            each.close()

    def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._access.client() as client:
            self._define(client)
            if self._binaries.controller_manager:
                self._kubernetes(self._binaries.controller_manager)
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
        for body in self._definitions:
            _apply(client, path, body)
            spec = body["spec"]
            served = (each["name"] for each in spec["versions"] if each["served"])
            kinds.update((spec["group"], version, spec["names"]["plural"]) for version in served)
        # A controller asks once which kinds there are, and ends, or does without, where one is missing.
        _until(lambda: kinds <= _discovered(client), "the definitions are not served")

    def _kubernetes(self, manager: Path) -> None:
        config = self._kubeconfig("kubernetes", _KUBERNETES)
        flags = {"kubeconfig": config, "controllers": _CONTROLLERS, "secure-port": "0", "leader-elect": "false"}
        flags["horizontal-pod-autoscaler-sync-period"] = "1s"  # 15 s elsewhere
        self._run(manager, flags)
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
        flags = {"config": config, "kubeconfig": self._kubeconfig(name, _ACCOUNTS[name])}
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
            _apply(client, f"{API}/{body['kind'].lower()}s", body)

    def _kubeconfig(self, name: str, account: str) -> Path:
        """Write how a program reaches the API server, as a service account that may do anything."""
        path = self._folder / f"{name}.kubeconfig"
        write_private(path, self._access.kubeconfig(account=f"system:serviceaccount:{account}"))
        return path

    def _run(self, binary: Path, flags: Mapping[str, object], inside: Sequence[str] = ()) -> TiedProcess:
        command = [*inside, str(binary), *(f"--{name}={value}" for name, value in flags.items())]
        process = TiedProcess(command, self._folder / f"{binary.name}.log")
        self._running.append(process)
        return process


def remove_webhooks(client: httpx.Client) -> None:
    """Take away the webhooks of controllers that ended: nobody answers there any more, so all would be refused."""
    for name in VARIABLES:
        for kind in CONFIGURATIONS:
            client.delete(f"{API}/{kind.lower()}s/{name}")


class Ports(NamedTuple):
    """Where a controller answers on the loopback."""

    health: int
    webhook: int
    metrics: int


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
