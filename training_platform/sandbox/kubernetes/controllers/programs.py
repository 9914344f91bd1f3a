"""The programs that run as controllers: who names them, and what each is started with.

Names of settings and flags: Kueue 0.19.2, JobSet 0.12.0, LeaderWorkerSet 0.10.0, KubeRay 1.7.0 and Kubeflow Trainer
2.3.0, read 2026-11-22.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from training_platform.sandbox.kubernetes.controllers.webhooks import (
    JOBSET_WEBHOOKS,
    LWS_WEBHOOKS,
    TRAINER_WEBHOOKS,
    Webhook,
)
from training_platform.sandbox.kubernetes.values import Json

VARIABLES: Final = {
    "kueue": "TRAINING_PLATFORM_KUEUE", "jobset": "TRAINING_PLATFORM_JOBSET", "lws": "TRAINING_PLATFORM_LWS",
    "kuberay": "TRAINING_PLATFORM_KUBERAY", "trainer": "TRAINING_PLATFORM_TRAINER",
}  # fmt: skip
"""The variables that name the binaries of controllers which Kubernetes does not bring."""

ACCOUNTS: Final = {
    "kueue": "kueue-system:kueue-controller-manager",
    "jobset": "jobset-system:jobset-controller",
    "lws": "lws-system:lws-controller-manager",
    "kuberay": "kuberay-system:kuberay-operator",
    "trainer": "kubeflow-system:kubeflow-trainer-controller-manager",
}


def _settings(name: str) -> Json:
    return {"apiVersion": f"config.{name}/v1alpha1", "kind": "Configuration"}


class Operator(NamedTuple):
    """A controller for a kind of job: its configuration, and its webhooks."""

    settings: Json
    hooks: tuple[Webhook, ...] = ()


OPERATORS: Final = {  # in the order in which they start; Kueue comes after them
    "jobset": Operator(_settings("jobset.x-k8s.io"), JOBSET_WEBHOOKS),
    "lws": Operator(_settings("lws.x-k8s.io"), LWS_WEBHOOKS),
    "kuberay": Operator({}),  # flags alone; its own webhooks are off, as in its chart
    "trainer": Operator(_settings("trainer.kubeflow.org"), TRAINER_WEBHOOKS),
}
# Below the folder for temporary files, where controllers look for the certificate of their webhooks by default.
_CERTIFICATES: Final = Path("k8s-webhook-server", "serving-certs")


class Binaries(NamedTuple):
    """Where programs are; None for those that are left out."""

    kueue: Path | None = None
    jobset: Path | None = None
    lws: Path | None = None
    kuberay: Path | None = None
    trainer: Path | None = None
    controller_manager: Path | None = None
    scheduler: Path | None = None

    @classmethod
    def of_settings(cls, folder: Path) -> Binaries:
        """Return what ``folder`` has of Kubernetes' own programs, and what variables or PATH name of the others."""
        own = {name: folder / f"kube-{name.replace('_', '-')}" for name in ("controller_manager", "scheduler")}
        others = {name: os.environ.get(variable) or shutil.which(name) for name, variable in VARIABLES.items()}
        return cls(
            **{name: Path(each) for name, each in others.items() if each},
            **{name: each for name, each in own.items() if each.exists()},
        )


class Ports(NamedTuple):
    """Where a controller answers on the loopback."""

    health: int
    webhook: int
    metrics: int


class Start(NamedTuple):
    """What a program is started with: what stands before it, its flags, and its configuration, which may be empty."""

    inside: tuple[str, ...]
    flags: Mapping[str, object]
    settings: Json


def start(name: str, settings: Json, ports: Ports, certificate: Path, folder: Path) -> Start:
    """Return how a controller starts, with what is another here than in a cluster; nobody has to be elected.

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
    # Who shows what waits is a server of its own, which wants an aggregator.
    return Start(_own_etc(certificates), {"feature-gates": "VisibilityOnDemand=false"}, body)


def _own_etc(certificates: Path) -> tuple[str, ...]:
    """Return the start of a command that gives a program an ``/etc`` of its own, in a mount namespace.

    Kueue reads the certificate of its metrics from ``/etc/kueue/metrics/certs`` alone (its cmd/kueue/main.go).
    Nothing of the machine is written, and no root is needed.
    """
    script = (
        'mount -t tmpfs tmpfs /etc && mkdir -p /etc/kueue/metrics && cp -r "$0" /etc/kueue/metrics/certs && exec "$@"'
    )
    return "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(certificates)
