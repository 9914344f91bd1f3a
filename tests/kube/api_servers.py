"""A real Kubernetes API server on the loopback interface, and REST calls to it.

It takes 3 s to start, and 270 MB (kube-apiserver 1.33, idle machine, 2026-11-21).
"""

from __future__ import annotations

import json
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self

import httpx

from local_google_cloud.kubernetes import ObjectRefused
from tests.kube.tied_process import TiedProcess
from training_platform.catalog.types import Json
from training_platform.resources.gke import context_name
from training_platform.views.inputs import at

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
START_SECONDS: Final = 120.0  # far more than a start takes on a busy machine
FIELD_MANAGER: Final = "pulumi-kubernetes"
_POLL_SECONDS: Final = 0.05
_PARTS_OF_GKE: Final = 6  # projects/*/locations/*/clusters/*
# Admission plugins that need a controller, which may not run. Without ServiceAccount, only tokens of pods are missing;
# a quota without counts refuses everything; with the third, claims could never be deleted.
_QUOTA: Final = "ResourceQuota"
_NO_PLUGINS: Final = ("ServiceAccount", _QUOTA, "StorageObjectInUseProtection")
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class ControlPlanes:
    """An API server with its etcd, while the block runs; ``folder`` has their data, certificates and logs.

    ``binaries`` is the folder of both programs. ``folder`` gets a ``kubeconfig`` for people and for the released
    plugin. ``quotas`` enforces the quotas of namespaces, which needs Kubernetes' controllers. ``flags`` are further
    flags of the API server.
    """

    def __init__(
        self, binaries: Path, folder: Path, *, quotas: bool = False, flags: Mapping[str, object] | None = None
    ) -> None:
        self._binaries = binaries
        self._flags = dict(flags or {})
        self._without = ",".join(name for name in _NO_PLUGINS if not (quotas and name == _QUOTA))
        self._folder = folder
        self._running = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()  # etcd last

    def server(self, cluster: str) -> ApiServer:
        """Start the API server of a cluster, whose kubeconfig has the context that gcloud would write.

        Raises ObjectRefused if it does not start.
        """
        etcd = self._start_etcd()
        folder = self._folder
        server = ApiServer(f"https://127.0.0.1:{free_port()}", secrets.token_urlsafe(), folder / "apiserver.crt")
        tokens = folder / "tokens.csv"
        write_private(tokens, f'{server.token},admin,admin,"system:masters"\n')
        flags = {
            "etcd-servers": etcd,
            "bind-address": "127.0.0.1",
            "secure-port": server.url.rpartition(":")[2],
            "cert-dir": folder,  # it creates its key and certificate there
            "token-auth-file": tokens,
            "allow-privileged": "true",  # as on GKE, whose driver installers need it
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-signing-key-file": folder / "apiserver.key",
            "service-account-key-file": folder / "apiserver.crt",
            "service-cluster-ip-range": "10.96.0.0/16",
            "disable-admission-plugins": self._without,
            **self._flags,
        }
        process = self._running.enter_context(closing(run_program(self._binaries / API_SERVER, flags, folder)))
        _wait_for(process, (folder / "apiserver.key").exists)  # written after the certificate
        self._running.callback(server.http.close)
        wait_until_ready(process, server.http, "/readyz")
        write_private(folder / "kubeconfig", server.kubeconfig(context(cluster)))
        return server

    def _start_etcd(self) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        url = f"http://127.0.0.1:{free_port()}"
        flags = {
            "data-dir": self._folder / "etcd",
            "listen-client-urls": url,
            "advertise-client-urls": url,
            "listen-peer-urls": "http://127.0.0.1:0",  # there are no peers
        }
        etcd = self._running.enter_context(closing(run_program(self._binaries / ETCD, flags, self._folder)))
        with httpx.Client(trust_env=False) as http:
            wait_until_ready(etcd, http, f"{url}/health")
        return url


def context(cluster: str) -> str:
    """Return a cluster's kubeconfig context, which is gcloud's for a GKE cluster."""
    parts = cluster.split("/")
    return context_name(*parts[1::2]) if len(parts) == _PARTS_OF_GKE else "cluster"


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port: int = bound.getsockname()[1]
        return port


def write_private(path: Path, text: str) -> None:
    """Write a file that other users of the machine cannot read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def run_program(binary: Path, flags: Mapping[str, object], logs: Path, inside: Sequence[str] = ()) -> TiedProcess:
    """Start a program, run by the command ``inside`` if any; its log has the program's name."""
    command = [*inside, str(binary), *(f"--{name}={value}" for name, value in flags.items())]
    return TiedProcess(command, logs / f"{binary.name}.log")


def wait_until_ready(process: TiedProcess, http: httpx.Client, url: str) -> None:
    """Return once a server answers at a URL. Raises ObjectRefused if it ends, or after ``START_SECONDS``."""

    def ready() -> bool:
        try:
            return http.get(url).is_success
        except httpx.TransportError:
            return False

    _wait_for(process, ready)


def _wait_for(process: TiedProcess, ready: Callable[[], bool]) -> None:
    _wait_until(
        ready,
        lambda: f"{process.log.stem} did not start; {process.log} ends with: {process.last_words()}",
        fails=lambda: process.ended,
    )


def _wait_until(
    holds: Callable[[], bool], refusal: Callable[[], str], fails: Callable[[], bool] = lambda: False
) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not holds():
        if fails() or time.monotonic() > deadline:
            raise ObjectRefused(refusal())
        time.sleep(_POLL_SECONDS)


class ObjectNotFound(ObjectRefused):
    """The object, its namespace or its kind does not exist."""


@dataclass(frozen=True)
class ApiServer:
    """An API server: its address, an administrator's token, and its certificate.

    A refused call raises ObjectRefused. Thread-safe.
    """

    url: str
    token: str
    certificate: Path

    @cached_property
    def http(self) -> httpx.Client:
        """The client of all calls."""
        return self.client()

    def client(self) -> httpx.Client:
        """Return a new client for this server only."""
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.token}"},
            verify=ssl.create_default_context(cafile=str(self.certificate)),
            timeout=START_SECONDS,
            trust_env=False,
        )

    def kubeconfig(self, name: str = "cluster", account: str | None = None) -> str:
        """Return a kubeconfig for kubectl and the released plugin, as JSON; ``account`` is the user to impersonate."""
        cluster = {"server": self.url, "certificate-authority": str(self.certificate)}
        user: Json = {"token": self.token}
        if account:
            user |= {"as": account, "as-groups": ["system:masters"]}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        return json.dumps(config, indent=1)

    def read(self, path: str) -> Json | None:
        """Return an object without ``managedFields``, or ``None``."""
        try:
            obj = self.call("GET", path)
        except ObjectNotFound:
            return None
        obj.get("metadata", {}).pop("managedFields", None)
        return obj

    def apply(self, path: str, obj: Json, *, force: bool = False) -> None:
        """Apply an object server-side: create it, or set its fields and delete those that an earlier apply set.

        ``force`` takes over fields that others have set; without it they are a conflict. Unknown fields (seen with
        1.33) and repeated fields are refused.
        """
        options = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", "force": str(force).lower()}
        headers = {"Content-Type": "application/apply-patch+yaml"}  # JSON is YAML
        self.call("PATCH", path, params=options, json=obj, headers=headers)

    def merge(self, path: str, body: Json, manager: str = "tests") -> None:
        """Change fields of an object by a merge patch of a field manager; null deletes a field."""
        headers = {"Content-Type": "application/merge-patch+json"}
        self.call("PATCH", path, params={"fieldManager": manager}, json=body, headers=headers)

    def delete(self, path: str) -> None:
        """Delete an object and its finalizers, if it exists."""
        try:
            self.call("DELETE", path, params={"propagationPolicy": "Background"})
        except ObjectNotFound:
            return
        if at(self.read(path), ("metadata", "finalizers")):
            self.merge(path, {"metadata": {"finalizers": None}})

    def ensure_namespace(self, name: str) -> None:
        """Create a namespace if it does not exist."""
        path = f"/api/v1/namespaces/{name}"
        if self.read(path) is None:
            self.apply(path, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def define(self, definitions: Iterable[Json]) -> None:
        """Install CustomResourceDefinitions, and wait until discovery lists their kinds.

        A controller runs discovery once; if a kind is missing, it exits or ignores the kind.
        """
        defined: set[str] = set()
        for definition in definitions:
            spec = definition["spec"]
            self.apply(f"{_DEFINITIONS}/{definition['metadata']['name']}", definition, force=True)
            served = (version["name"] for version in spec["versions"] if version["served"])
            defined |= {f"{spec['group']}/{version}/{spec['names']['plural']}" for version in served}

        def missing() -> set[str]:
            return defined - self._discovered()

        _wait_until(
            lambda: not missing(),
            lambda: (
                f"not served {START_SECONDS:.0f} s after their definitions were installed: "
                + ", ".join(sorted(missing()))
            ),
        )

    def _discovered(self) -> set[str]:
        """Return the resources of all API groups, as GROUP/VERSION/PLURAL."""
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        resources: set[str] = set()
        for group in self.call("GET", "/apis", headers={"Accept": accept})["items"]:
            for version in group["versions"]:
                prefix = f"{group['metadata']['name']}/{version['version']}"
                resources |= {f"{prefix}/{resource['resource']}" for resource in version.get("resources", ())}
        return resources

    def call(self, method: str, path: str, **options: Any) -> Json:
        """Return the response to a request; ``options`` are httpx's."""
        try:
            response = self.http.request(method, path, **options)
        except httpx.TransportError as error:
            raise ObjectRefused(f"the API server of the cluster does not answer: {error}") from error
        body: Json = response.json() if response.headers["Content-Type"].startswith("application/json") else {}
        if response.is_success:
            return body
        refusal = ObjectNotFound if response.status_code == HTTPStatus.NOT_FOUND else ObjectRefused
        raise refusal(body.get("message") or response.text.strip())
