"""Real Kubernetes API servers on the loopback interface, one for each cluster: etcd and kube-apiserver, no controllers.

Clusters are apart because they hold namespaces and cluster-wide objects of the same names. They share one etcd, in
which each has a prefix of its own. An API server is started when its cluster is first asked for; it takes 3 s and
270 MB (kube-apiserver 1.33, idle machine, 2026-11-21), and nothing where a run changes no object of the cluster.
"""

from __future__ import annotations

import json
import secrets
import socket
import ssl
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from threading import Lock, RLock
from typing import Final, NamedTuple, Self
from urllib.parse import quote

import httpx

from training_platform.resources.gke.control_plane import context_name
from training_platform.sandbox.kubernetes.api_servers.tied_process import TiedProcess
from training_platform.sandbox.kubernetes.store import Refused

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
START_SECONDS: Final = 120.0  # far more than a start takes where all processors are busy
_POLL_SECONDS: Final = 0.05
_PARTS_OF_GKE: Final = 6  # projects/*/locations/*/clusters/*
# Service accounts, quotas and the protection of volumes in use are half a controller's work, and there are no
# controllers: with the first nothing is missing but tokens of pods; a quota that nobody counts refuses everything; with
# the third no claim would ever be deleted.
_QUOTA: Final = "ResourceQuota"
_NO_PLUGINS: Final = ("ServiceAccount", _QUOTA, "StorageObjectInUseProtection")


class Access(NamedTuple):
    """How to reach an API server: its address, a token that may do anything, and the certificate to expect."""

    url: str
    token: str
    certificate: Path

    def client(self) -> httpx.Client:
        """Return a client that goes there and nowhere else."""
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.token}"},
            verify=ssl.create_default_context(cafile=str(self.certificate)),
            timeout=START_SECONDS,
            trust_env=False,
        )

    def kubeconfig(self, name: str = "cluster", account: str | None = None) -> str:
        """Return a kubeconfig for kubectl and the released plugin, as JSON; with ``account`` in that user's name."""
        cluster = {"server": self.url, "certificate-authority": str(self.certificate)}
        acting = {"as": account, "as-groups": ["system:masters"]} if account else {}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": self.token, **acting}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        return json.dumps(config, indent=1)


class ControlPlanes:
    """API servers by cluster, for as long as the block runs; ``folder`` keeps their data, certificates and logs.

    ``binaries`` is the folder of both programs. The folder of a cluster is called as the cluster is, and its file
    ``kubeconfig`` is for people and for the released plugin; that of ``folder`` has all clusters. ``quotas`` hold where
    Kubernetes' controllers count them.
    """

    def __init__(self, binaries: Path, folder: Path, *, quotas: bool = False) -> None:
        self._binaries = binaries
        self._without = ",".join(each for each in _NO_PLUGINS if not (quotas and each == _QUOTA))
        self._folder = folder
        self._running: list[TiedProcess] = []
        self._etcd: str | None = None
        self._found: dict[str, Access] = {}
        self._lock = RLock()
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in reversed(self._running):  # etcd last
            each.close()

    def access(self, cluster: str) -> Access:
        """Return how to reach a cluster, whose API server is started unless it runs. Raises Refused if it does not."""
        with self._lock:
            one = self._locks[cluster]
        with one:
            if cluster not in self._found:
                etcd = self._etcd_url()
                self._found[cluster] = self._start(cluster, etcd)
                self._write_together()
            return self._found[cluster]

    def place(self, cluster: str) -> Path:
        """Return the folder of a cluster."""
        return self._folder / quote(cluster)

    def _etcd_url(self) -> str:
        with self._lock:
            if self._etcd is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                url = f"http://127.0.0.1:{free_port()}"
                flags = {
                    "data-dir": self._folder / "etcd",
                    "listen-client-urls": url,
                    "advertise-client-urls": url,
                    "listen-peer-urls": "http://127.0.0.1:0",  # there are no peers
                }
                etcd = self._run(ETCD, flags, self._folder)
                with httpx.Client(trust_env=False) as client:
                    wait_until_ready(etcd, client, f"{url}/health")
                self._etcd = url
            return self._etcd

    def _start(self, cluster: str, etcd: str) -> Access:
        place = self.place(cluster)
        place.mkdir(parents=True, exist_ok=True)
        access = Access(f"https://127.0.0.1:{free_port()}", secrets.token_urlsafe(), place / "apiserver.crt")
        tokens = place / "tokens.csv"
        write_private(tokens, f'{access.token},admin,admin,"system:masters"\n')
        flags = {
            "etcd-servers": etcd,
            "etcd-prefix": f"/{quote(cluster)}",
            "bind-address": "127.0.0.1",
            "secure-port": access.url.rpartition(":")[2],
            "cert-dir": place,  # it makes a key and a certificate for itself there, and keeps them
            "token-auth-file": tokens,
            "allow-privileged": "true",  # as on GKE, whose driver installers are
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-signing-key-file": place / "apiserver.key",
            "service-account-key-file": place / "apiserver.crt",
            "service-cluster-ip-range": "10.96.0.0/16",
            "disable-admission-plugins": self._without,
        }
        server = self._run(API_SERVER, flags, place)
        _wait(server, (place / "apiserver.key").exists)  # written after the certificate
        with access.client() as client:
            wait_until_ready(server, client, "/readyz")
        write_private(place / "kubeconfig", access.kubeconfig(context(cluster)))
        return access

    def _write_together(self) -> None:
        """Write one kubeconfig for every cluster that runs."""
        with self._lock:
            every = [json.loads(access.kubeconfig(context(name))) for name, access in self._found.items()]
            parts = {part: [row for each in every for row in each[part]] for part in ("clusters", "users", "contexts")}
            write_private(self._folder / "kubeconfig", json.dumps({**every[-1], **parts}, indent=1))

    def _run(self, program: str, flags: dict[str, object], place: Path) -> TiedProcess:
        command = [str(self._binaries / program), *(f"--{name}={value}" for name, value in flags.items())]
        process = TiedProcess(command, place / f"{program}.log")
        with self._lock:
            self._running.append(process)
        return process


def context(cluster: str) -> str:
    """Return a cluster's context: gcloud's for a cluster of GKE."""
    parts = cluster.split("/")
    return context_name(*parts[1::2]) if len(parts) == _PARTS_OF_GKE else "cluster"


def free_port() -> int:
    """Return a port of the loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port: int = bound.getsockname()[1]
        return port


def write_private(path: Path, text: str) -> None:
    """Write a file that nobody else on the machine may read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def wait_until_ready(process: TiedProcess, client: httpx.Client, url: str) -> None:
    """Return once a server answers at a URL. Raises Refused where it ends first, or does not in ``START_SECONDS``."""

    def ready() -> bool:
        try:
            return client.get(url).is_success
        except httpx.TransportError:
            return False

    _wait(process, ready)


def _wait(process: TiedProcess, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if process.ended or time.monotonic() > deadline:
            raise Refused(f"{process.log.stem} did not start; {process.log} ends with: {process.last_words()}")
        time.sleep(_POLL_SECONDS)
