"""Real Kubernetes API servers on the loopback interface, one for each cluster, and REST calls to them.

Each cluster needs its own, since clusters have namespaces and cluster-scoped objects of the same names. They share one
etcd, with a prefix for each cluster. An API server starts at its cluster's first call, in 3 s, and takes 270 MB
(kube-apiserver 1.33, idle machine, 2026-11-21).
"""

from __future__ import annotations

import json
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from threading import RLock
from typing import Any, Final, Self
from urllib.parse import quote

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
_NAMESPACES: Final = "/api/v1/namespaces"


class ControlPlanes:
    """API servers by cluster, while the block runs; ``folder`` has their data, certificates and logs.

    ``binaries`` is the folder of both programs. Each cluster has a folder of its name with a ``kubeconfig``, for people
    and the released plugin; the one in ``folder`` has all clusters. ``quotas`` enforces those of namespaces, which
    takes Kubernetes' controllers. ``flags`` are further ones of each API server.
    """

    def __init__(
        self, binaries: Path, folder: Path, *, quotas: bool = False, flags: Mapping[str, object] | None = None
    ) -> None:
        self._binaries = binaries
        self._flags = dict(flags or {})
        self._without = ",".join(name for name in _NO_PLUGINS if not (quotas and name == _QUOTA))
        self._folder = folder
        self._running: list[TiedProcess] = []
        self._etcd = ""  # its URL
        self._servers: dict[str, ApiServer] = {}
        self._lock = RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers.values():
            server.http.close()
        for process in reversed(self._running):  # etcd last
            process.close()

    def server(self, cluster: str) -> ApiServer:
        """Return a cluster's API server, started if necessary; one thread at a time may call this for a cluster.

        Raises ObjectRefused if it does not start.
        """
        if cluster not in self._servers:
            with self._lock:
                self._etcd = self._etcd or self._start_etcd()
            server = self._start(cluster)
            with self._lock:
                self._servers[cluster] = server
                configs = [json.loads(server.kubeconfig(context(name))) for name, server in self._servers.items()]
                sections = ("clusters", "users", "contexts")
                rows = {section: [row for config in configs for row in config[section]] for section in sections}
                write_private(self._folder / "kubeconfig", json.dumps({**configs[-1], **rows}, indent=1))
        return self._servers[cluster]

    def folder_of(self, cluster: str) -> Path:
        """Return the folder of a cluster."""
        return self._folder / quote(cluster)

    def _start_etcd(self) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        url = f"http://127.0.0.1:{free_port()}"
        flags = {
            "data-dir": self._folder / "etcd",
            "listen-client-urls": url,
            "advertise-client-urls": url,
            "listen-peer-urls": "http://127.0.0.1:0",  # there are no peers
        }
        self._running.append(etcd := run_program(self._binaries / ETCD, flags, self._folder))
        with httpx.Client(trust_env=False) as http:
            wait_until_ready(etcd, http, f"{url}/health")
        return url

    def _start(self, cluster: str) -> ApiServer:
        folder = self.folder_of(cluster)
        folder.mkdir(parents=True, exist_ok=True)
        server = ApiServer(f"https://127.0.0.1:{free_port()}", secrets.token_urlsafe(), folder / "apiserver.crt")
        tokens = folder / "tokens.csv"
        write_private(tokens, f'{server.token},admin,admin,"system:masters"\n')
        flags = {
            "etcd-servers": self._etcd,
            "etcd-prefix": f"/{quote(cluster)}",
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
        process = run_program(self._binaries / API_SERVER, flags, folder)
        with self._lock:
            self._running.append(process)
        _wait_for(process, (folder / "apiserver.key").exists)  # written after the certificate
        wait_until_ready(process, server.http, "/readyz")
        write_private(folder / "kubeconfig", server.kubeconfig(context(cluster)))
        return server


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


class ApiConflict(ObjectRefused):
    """The object was changed in the meantime."""


_REFUSALS: Final[dict[int, type[ObjectRefused]]] = {
    HTTPStatus.NOT_FOUND: ObjectNotFound,
    HTTPStatus.CONFLICT: ApiConflict,
}


@dataclass(frozen=True)
class ApiServer:
    """An API server: its address, an administrator's token, and its certificate.

    A refused call raises ObjectRefused. Thread-safe.
    """

    url: str
    token: str
    certificate: Path
    _kinds: dict[tuple[str, str], Json] = field(default_factory=dict, init=False)  # rows of discovery, by root and kind

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

    def path(self, group: str, version: str, kind: str, namespace: str = "", name: str = "") -> str:
        """Return the path of an object, by default in the server's preferred version.

        Raises ObjectNotFound for an unknown kind.
        """
        root = f"/api/{version or 'v1'}"
        if group:
            root = f"/apis/{group}/{version or self.call('GET', f'/apis/{group}')['preferredVersion']['version']}"
        if (root, kind) not in self._kinds:
            self._kinds.update({(root, row["kind"]): row for row in self._resources(root)})
        row = self._kinds.get((root, kind))
        if row is None:
            raise ObjectNotFound(f'no matches for kind "{kind}" in version "{root.removeprefix("/apis/")}"')
        inside = f"/namespaces/{namespace}" if row["namespaced"] and namespace else ""
        return f"{root}{inside}/{row['name']}" + (f"/{name}" if name else "")

    def read(self, path: str) -> Json | None:
        """Return an object without ``managedFields``, or ``None``."""
        try:
            return _plain(self.call("GET", path))
        except ObjectNotFound:
            return None

    def apply(self, path: str, obj: Json, *, dry_run: bool = False, force: bool = False) -> Json:
        """Apply an object server-side: create it, or set its fields and delete those that an earlier apply set.

        ``force`` takes over fields that others have set; without it they are a conflict. Unknown fields (seen with
        1.33) and repeated fields are refused.
        """
        options = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", "force": str(force).lower()}
        if dry_run:
            options["dryRun"] = "All"
        headers = {"Content-Type": "application/apply-patch+yaml"}  # JSON is YAML
        return _plain(self.call("PATCH", path, params=options, json=obj, headers=headers))

    def merge(self, path: str, body: Json, manager: str = "tests") -> None:
        """Change fields of an object by a merge patch of a field manager; null deletes a field."""
        headers = {"Content-Type": "application/merge-patch+json"}
        self.call("PATCH", path, params={"fieldManager": manager}, json=body, headers=headers)

    def delete(self, path: str, *, controlled: bool = False) -> None:
        """Delete an object, if it exists.

        With controllers (``controlled``), wait until they have removed their finalizers; without, remove them.
        """
        try:
            self.call("DELETE", path, params={"propagationPolicy": "Background"})
        except ObjectNotFound:
            return

        def finalizers() -> list[str]:
            return at(self.read(path), ("metadata", "finalizers")) or []

        if controlled:
            *_, plural, name = path.split("/")
            _wait_until(
                lambda: not finalizers(),
                lambda: f'{plural} "{name}" is being deleted, and held by {", ".join(finalizers())}',
            )
        elif finalizers():
            self.merge(path, {"metadata": {"finalizers": None}})

    def ensure_namespace(self, name: str) -> None:
        """Create a namespace if it does not exist."""
        path = f"{_NAMESPACES}/{name}"
        if self.read(path) is None:
            self.apply(path, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace and everything in it, with the namespace controller or instead of it."""
        path = f"{_NAMESPACES}/{name}"
        self.delete(path)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            groups = self.call("GET", "/apis")["groups"]
            for root in ("/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
                for row in self._resources(root):
                    if row["namespaced"] and "deletecollection" in row["verbs"]:
                        collection = f"{root}/namespaces/{name}/{row['name']}"
                        self.call("DELETE", collection, params={"propagationPolicy": "Background"})
            try:
                self.call("PUT", f"{path}/finalize", json={**self.call("GET", path), "spec": {"finalizers": []}})
            except ObjectNotFound:
                return
            except ApiConflict:  # with the controller
                time.sleep(_POLL_SECONDS)

    def define(self, definitions: Iterable[Json]) -> None:
        """Install CustomResourceDefinitions, and wait until discovery lists their kinds.

        A controller runs discovery once; if a kind is missing, it exits or ignores the kind.
        """
        defined: set[str] = set()
        for definition in definitions:
            spec = definition["spec"]
            path = self.path(
                "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", definition["metadata"]["name"]
            )
            self.apply(path, definition, force=True)
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
        raise _REFUSALS.get(response.status_code, ObjectRefused)(body.get("message") or response.text.strip())

    def _resources(self, root: str) -> list[Json]:
        """Return the resources of a version, without subresources such as ``pods/log``; [] if it is not served."""
        try:
            return [row for row in self.call("GET", root)["resources"] if "/" not in row["name"]]
        except ObjectNotFound:
            return []


def _plain(obj: Json) -> Json:
    obj.get("metadata", {}).pop("managedFields", None)
    return obj
