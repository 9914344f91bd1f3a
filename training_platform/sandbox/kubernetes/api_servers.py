"""Real Kubernetes API servers on the loopback interface, one for each cluster, and the REST calls to one of them.

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
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

import httpx

from training_platform.resources.gke import context_name
from training_platform.sandbox.kubernetes.store import Refused
from training_platform.sandbox.kubernetes.tied_process import TiedProcess
from training_platform.sandbox.kubernetes.values import Json, dig

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
START_SECONDS: Final = 120.0  # far more than a start takes where all processors are busy
FIELD_MANAGER: Final = "pulumi-kubernetes"
_POLL_SECONDS: Final = 0.05
_PARTS_OF_GKE: Final = 6  # projects/*/locations/*/clusters/*
# Admission plugins for which a controller does half of the work, and no controller may run: without ServiceAccount
# only tokens of pods are missing; a quota that nobody counts refuses everything; with the third no claim would ever be
# deleted.
_QUOTA: Final = "ResourceQuota"
_NO_PLUGINS: Final = ("ServiceAccount", _QUOTA, "StorageObjectInUseProtection")


class Access(NamedTuple):
    """How to reach an API server: its address, a token that may do anything, and the certificate to expect."""

    url: str
    token: str
    certificate: Path

    def client(self) -> httpx.Client:
        """Return a client that reaches this server and no other."""
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
    ``kubeconfig`` is for people and for the released plugin; that of ``folder`` has all clusters. ``quotas`` of
    namespaces are enforced only where Kubernetes' controllers count them.
    """

    def __init__(self, binaries: Path, folder: Path, *, quotas: bool = False) -> None:
        self._binaries = binaries
        self._without = ",".join(name for name in _NO_PLUGINS if not (quotas and name == _QUOTA))
        self._folder = folder
        self._running: list[TiedProcess] = []
        self._etcd: str | None = None
        self._accesses: dict[str, Access] = {}
        self._lock = RLock()
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running):  # etcd last
            process.close()

    def access(self, cluster: str) -> Access:
        """Return how to reach a cluster, whose API server is started unless it runs. Raises Refused if it does not."""
        with self._lock:
            cluster_lock = self._locks[cluster]
        with cluster_lock:
            if cluster not in self._accesses:
                etcd = self._etcd_url()
                self._accesses[cluster] = self._start(cluster, etcd)
                self._write_together()
            return self._accesses[cluster]

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
            configs = [json.loads(access.kubeconfig(context(name))) for name, access in self._accesses.items()]
            sections = ("clusters", "users", "contexts")
            rows = {section: [row for config in configs for row in config[section]] for section in sections}
            write_private(self._folder / "kubeconfig", json.dumps({**configs[-1], **rows}, indent=1))

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


class ApiResource(NamedTuple):
    """A kind as the server's paths name it; ``root`` is ``/api/v1`` or ``/apis/<group>/<version>``."""

    root: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """The path of an object, or of all objects of the kind."""
        inside = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root}{inside}/{self.plural}" + (f"/{name}" if name else "")


class NotThere(Refused):
    """The object, its namespace, or its kind is not there."""


class ApiConflict(Refused):
    """Somebody else changed the object meanwhile."""


_REFUSALS: Final[dict[int, type[Refused]]] = {HTTPStatus.NOT_FOUND: NotThere, HTTPStatus.CONFLICT: ApiConflict}


class ApiClient:
    """The REST calls to one cluster's API server; a refusal raises ``Refused``. Safe to use from several threads."""

    def __init__(self, access: Access) -> None:
        self._http = access.client()
        self._kinds: dict[str, dict[str, ApiResource]] = {}  # by root and kind

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def resource(self, group: str, version: str, kind: str) -> ApiResource:
        """Look a kind up; without a version, in the one that the server prefers. Raises NotThere."""
        root = f"/api/{version or 'v1'}"
        if group:
            root = f"/apis/{group}/{version or self._call('GET', f'/apis/{group}')['preferredVersion']['version']}"
        if kind not in self._kinds.get(root, {}):
            rows = self._resources(root)
            self._kinds[root] = {row["kind"]: ApiResource(root, row["name"], row["namespaced"]) for row in rows}
        if kind not in self._kinds[root]:
            raise NotThere(f'no matches for kind "{kind}" in version "{root.removeprefix("/apis/")}"')
        return self._kinds[root][kind]

    def read(self, resource: ApiResource, namespace: str, name: str) -> Json | None:
        """An object without the server's notes on who set which field, or ``None``."""
        try:
            return _plain(self._call("GET", resource.path(namespace, name)))
        except NotThere:
            return None

    def apply(
        self, resource: ApiResource, namespace: str, name: str, obj: Json, *, dry_run: bool = False, force: bool = False
    ) -> Json:
        """Apply an object server-side: create it, or set its fields and delete those that an earlier apply set.

        With ``force`` fields that others have set are taken over; else they are a conflict, which is refused. Fields
        that a kind lacks are refused (seen with 1.33), and by strict validation fields that are written twice.
        """
        options = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", "force": str(force).lower()}
        if dry_run:
            options["dryRun"] = "All"
        headers = {"Content-Type": "application/apply-patch+yaml"}  # JSON is YAML
        return _plain(self._call("PATCH", resource.path(namespace, name), params=options, json=obj, headers=headers))

    def delete(self, resource: ApiResource, namespace: str, name: str, *, controlled: bool = False) -> None:
        """Delete an object; deleting it twice is not an error.

        Where controllers run (``controlled``) it waits until they remove their finalizers, else it removes them.
        """
        try:
            self._call("DELETE", resource.path(namespace, name), params={"propagationPolicy": "Background"})
        except NotThere:
            return
        deadline = time.monotonic() + START_SECONDS
        while (obj := self.read(resource, namespace, name)) and (holders := dig(obj, "metadata", "finalizers")):
            if not controlled:
                patch = {"Content-Type": "application/merge-patch+json"}
                body = json.dumps({"metadata": {"finalizers": None}})
                self._call("PATCH", resource.path(namespace, name), content=body, headers=patch)
                return
            if time.monotonic() > deadline:
                raise Refused(f'{resource.plural} "{name}" is being deleted, and held by {", ".join(holders)}')
            time.sleep(_POLL_SECONDS)

    def ensure_namespace(self, name: str) -> None:
        """Create a namespace unless it is there."""
        namespaces = self.resource("", "v1", "Namespace")
        if self.read(namespaces, "", name) is None:
            obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.apply(namespaces, "", name, obj)

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace and all in it, as its controller does; without one, in its place."""
        namespaces = self.resource("", "v1", "Namespace")
        path = namespaces.path("", name)
        self.delete(namespaces, "", name)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for collection in self._collections(name):
                self._call("DELETE", collection)
            try:
                self._call("PUT", f"{path}/finalize", json={**self._call("GET", path), "spec": {"finalizers": []}})
            except NotThere:
                return
            except ApiConflict:  # the controller is at it
                time.sleep(_POLL_SECONDS)

    def define(self, definitions: Iterable[Json]) -> None:
        """Install CustomResourceDefinitions, and wait until discovery names every kind of them.

        A controller asks once which kinds there are, and ends, or works without, where one is missing.
        """
        resource = self.resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
        missing = set()
        for definition in definitions:
            self.apply(resource, "", definition["metadata"]["name"], definition, force=True)
            spec = definition["spec"]
            served = (version["name"] for version in spec["versions"] if version["served"])
            missing |= {(spec["group"], version, spec["names"]["plural"]) for version in served}
        deadline = time.monotonic() + START_SECONDS
        while missing := missing - self._discovered():
            if time.monotonic() > deadline:
                names = ", ".join("/".join(kind) for kind in sorted(missing))
                raise Refused(f"not served {START_SECONDS:.0f} s after their definitions were installed: {names}")
            time.sleep(_POLL_SECONDS)

    def _discovered(self) -> set[tuple[str, str, str]]:
        """Return group, version and plural of every kind that the server's discovery names."""
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        groups = self._call("GET", "/apis", headers={"Accept": accept})["items"]
        return {
            (group["metadata"]["name"], version["version"], resource["resource"])
            for group in groups
            for version in group["versions"]
            for resource in version.get("resources", ())
        }

    def _resources(self, root: str) -> Iterator[Json]:
        """Every kind of a version; one that has none is empty. Parts of objects, such as ``pods/log``, are left out."""
        try:
            listed = self._call("GET", root)
        except NotThere:
            return
        yield from (row for row in listed["resources"] if "/" not in row["name"])

    def _collections(self, namespace: str) -> Iterator[str]:
        groups = self._call("GET", "/apis")["groups"]
        for root in ("/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
            for row in self._resources(root):
                if row["namespaced"] and "deletecollection" in row["verbs"]:
                    yield ApiResource(root, row["name"], namespaced=True).path(namespace)

    def _call(self, method: str, path: str, **options: Any) -> Json:
        try:
            answer = self._http.request(method, path, **options)
        except httpx.TransportError as error:
            raise Refused(f"the API server of the cluster does not answer: {error}") from error
        body: Json = answer.json() if answer.headers["Content-Type"].startswith("application/json") else {}
        if answer.is_success:
            return body
        raise _REFUSALS.get(answer.status_code, Refused)(body.get("message") or answer.text.strip())


def _plain(obj: Json) -> Json:
    obj.get("metadata", {}).pop("managedFields", None)
    return obj
