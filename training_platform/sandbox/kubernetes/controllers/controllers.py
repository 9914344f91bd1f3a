"""Real controllers beside a real API server: Kueue's, those of kinds of jobs, Kubernetes' own and the scheduler.

Nodes exist as objects only, so no container ever runs: a test, or a person, says what becomes of a pod. Binaries are
named by ``Binaries``; a controller without one is left out, with its webhooks. The webhooks are reached by URL,
on the loopback, with the certificate that the API server made for itself. Each may do anything, as the service account
that it has in a cluster, which policies know it by.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import httpx
import yaml

from training_platform.sandbox.kubernetes.api_servers.control_plane import (
    START_SECONDS,
    Access,
    free_port,
    wait_until_ready,
    write_private,
)
from training_platform.sandbox.kubernetes.api_servers.tied_process import TiedProcess
from training_platform.sandbox.kubernetes.controllers.programs import (
    ACCOUNTS,
    OPERATORS,
    VARIABLES,
    Binaries,
    Operator,
    Ports,
    start,
)
from training_platform.sandbox.kubernetes.controllers.webhooks import (
    API,
    CONFIGURATIONS,
    KUEUE_WEBHOOKS,
    POD_WEBHOOKS,
    webhook_configurations,
)
from training_platform.sandbox.kubernetes.store import Refused
from training_platform.sandbox.kubernetes.values import Json

_KUBERNETES: Final = "kube-system:controllers"  # one for all; each has its own in a cluster
_CONTROLLERS: Final = ",".join(
    f"{name}-controller"
    for name in (
        "deployment", "garbage-collector", "horizontal-pod-autoscaler", "job", "namespace", "replicaset",
        "resourcequota", "statefulset",
    )
)  # fmt: skip


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
            for name, operator in OPERATORS.items():
                if binary := getattr(self._binaries, name):
                    self._operator(client, name, binary, operator)
            if self._binaries.kueue:
                pods = POD_WEBHOOKS if "pod" in self._kueue["integrations"]["frameworks"] else ()
                hooks = (*KUEUE_WEBHOOKS, *pods)
                self._operator(client, "kueue", self._binaries.kueue, Operator(self._kueue, hooks))

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

    def _operator(self, client: httpx.Client, name: str, binary: Path, operator: Operator) -> None:
        """Start a controller with its webhooks, and wait until it answers."""
        ports = Ports(free_port(), free_port(), free_port())
        certificate = self._access.certificate
        started = start(name, operator.settings, ports, certificate, self._folder / f"{name}-files")
        flags = {**started.flags, "kubeconfig": self._kubeconfig(name, ACCOUNTS[name])}
        if started.settings:
            flags["config"] = config = self._folder / f"{name}.yaml"
            config.write_text(yaml.safe_dump(started.settings), encoding="utf-8")
        if name == "kueue":
            self.metrics_url = f"https://127.0.0.1:{ports.metrics}/metrics"
        process = self._run(binary, flags, started.inside)
        with httpx.Client(trust_env=False) as health:
            wait_until_ready(process, health, f"http://127.0.0.1:{ports.health}/readyz")
        for body in webhook_configurations(name, operator.hooks, ports.webhook, certificate.read_bytes()):
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
