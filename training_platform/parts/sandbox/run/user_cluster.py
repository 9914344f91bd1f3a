"""A cluster of the user, for example from kind, k3d or minikube, for the Kubernetes objects of a sandbox.

The released Kubernetes plugin registers the objects in it. A real cluster must never be changed. So the user names a
context of the kubeconfig; the server in this context has to be on this machine or in a private network, and its login
must not need a program. A ConfigMap marks the cluster as the sandbox's. It is written only into a cluster that has
neither Kueue nor a namespace of the plan. Every object gets the same mark as a label, and a run does not change an
object without it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import yaml

from local_google_cloud.api import read_json
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import Json
from training_platform.clients.deployed_clusters import objects_without_stack
from training_platform.clients.kubernetes_api import ApiKind, ClusterApi, ClusterError, connect
from training_platform.parts.sandbox.run.folder import CannotRun, SandboxFolder
from training_platform.parts.sandbox.run.redirection import MARK, is_object, redirect
from training_platform.resources.plan import Plan
from training_platform.resources.resource_types import KUBERNETES, NAMESPACE, RELEASE
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER

MARKER: Final = "training-platform-sandbox"
_CONFIG_MAPS: Final = ApiKind("api/v1", "configmaps")
_NAMESPACES: Final = ApiKind("api/v1", "namespaces")
_SECRETS: Final = ApiKind("api/v1", "secrets")
_HOME: Final = "default"  # the namespace of the ConfigMap
_KUEUE: Final = ("kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2")
# 0.0.0.0 is what k3d writes for this machine.
_NEAR: Final = tuple(
    ip_network(text)
    for text in ("127.0.0.0/8", "::1/128", "0.0.0.0/32", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
# Fields of a kubeconfig's clusters and users. Left out: proxy-url, which leads elsewhere, and exec and auth-provider,
# which log in to a real cloud.
_CLUSTER_FIELDS: Final = frozenset({
    "server", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name",
    "extensions",
})  # fmt: skip
_USER_FIELDS: Final = frozenset({
    "client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "username", "password",
    "extensions",
})  # fmt: skip
_FILES: Final = ("certificate-authority", "client-certificate", "client-key")


class UserCluster(NamedTuple):
    """A context of a kubeconfig, and the mark of the sandbox. ``config`` is a kubeconfig with only this context."""

    file: Path
    context: str
    mark: str
    config: Json

    @property
    def host(self) -> str:
        """The host of the cluster's server."""
        return urlsplit(self.config["clusters"][0]["cluster"]["server"]).hostname or ""


# The kubeconfig


def chosen_cluster(folder: SandboxFolder, kubeconfig: Path | None, context: str | None) -> UserCluster | None:
    """Return the cluster that a sandbox uses already, else the one in the options, or None for the stand-in.

    Raises CannotRun for a cluster that may be real, and for options that differ from those of the first ``up``.
    """
    if (kubeconfig is None) != (context is None):
        raise CannotRun("--kubeconfig and --context must be set together, so that the cluster is certain.")
    choice = _choice(folder)
    if choice.exists():
        chosen = read_json(choice)
        file = Path(chosen["kubeconfig"])
        name = chosen["context"]
        mark = chosen["mark"]
        if kubeconfig is not None and (kubeconfig.resolve(), context) != (file, name):
            raise CannotRun(f"this sandbox uses context {name} of {file}: use another --workspace for {context}.")
    elif kubeconfig is None or context is None:
        return None
    elif folder.stacks():
        raise CannotRun(f"{folder.path} has stacks without a cluster: use another --workspace, or delete the folder.")
    else:
        file = kubeconfig.resolve()
        name = context
        mark = uuid4().hex
    cluster = UserCluster(file, name, mark=mark, config=read_context(file, name))
    folder.prepare()
    _write_private(_config_file(folder), cluster.config)
    return cluster


def _choice(folder: SandboxFolder) -> Path:
    return folder.path / "cluster.json"


def _config_file(folder: SandboxFolder) -> Path:
    return folder.path / "cluster-kubeconfig.json"


def _write_private(path: Path, content: Json) -> None:
    path.touch(mode=0o600)
    path.write_text(json.dumps(content), encoding="utf-8")


def read_context(file: Path, name: str) -> Json:
    """Return a kubeconfig with only one context. Raises CannotRun if the context's cluster may be a real one."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        rows = {
            section: {row["name"]: dict(row[section.removesuffix("s")]) for row in content[section]}
            for section in ("contexts", "clusters", "users")
        }
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise CannotRun(f"--kubeconfig {file}: it is not a kubeconfig ({error!r}).") from error
    contexts = rows["contexts"]
    if name not in contexts:
        nearest = find_nearest(name, contexts)
        hint = f" Nearest: {nearest}" if nearest else ""
        raise CannotRun(f"--context {name}: {file} has no such context. Allowed: {', '.join(contexts)}.{hint}")
    cluster_name = contexts[name].get("cluster", "")
    user_name = contexts[name].get("user", "")
    cluster = rows["clusters"].get(cluster_name)
    user = rows["users"].get(user_name)
    if cluster is None or user is None:
        raise CannotRun(f"--context {name}: {file} does not define the context's cluster or user.")
    refusal = _refusal(name, cluster_name, cluster, user)
    if refusal:
        raise CannotRun(f"--context {name}: {refusal}. Allowed: a cluster of your own, such as kind's.")
    for row in (cluster, user):
        row.pop("extensions", None)
        row |= {field: str(file.parent / row[field]) for field in _FILES if field in row}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster_name, "cluster": cluster}],
        "users": [{"name": user_name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": cluster_name, "user": user_name}}],
        "current-context": name,
    }


def _refusal(name: str, cluster_name: str, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> str | None:
    """Return the reason why a context may belong to a real cluster, or None if it cannot."""
    if name.startswith("gke_") or cluster_name.startswith("gke_"):
        return "it is a cluster of GKE"
    unknown = sorted({*cluster} - _CLUSTER_FIELDS | {*user} - _USER_FIELDS)
    if unknown:
        return f"its kubeconfig has {', '.join(unknown)}, which local clusters do not need"
    server = str(cluster.get("server", ""))
    parts = urlsplit(server)
    if parts.scheme != "https" or not _is_near(parts.hostname or ""):
        return f"its server {server} is neither on this machine nor a private address"
    return None


def _is_near(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:  # a name may lead anywhere
        return False
    return any(address in network for network in _NEAR)


# The cluster


def claim(cluster: UserCluster, folder: SandboxFolder, plans: Iterable[Plan], *, mark: bool) -> None:
    """Before a run, check that the cluster and its objects in the sandbox's states belong to the sandbox.

    With ``mark``, mark an unused cluster, and record it as the sandbox's. Raises CannotRun if the cluster or an object
    does not belong to the sandbox, or if the plans have several clusters.
    """
    plans = list(plans)
    planned = {
        resource.inputs["clusterIdentifier"]
        for plan in plans
        for resource in plan.resources()
        if resource.type == KUBERNETES_PROVIDER
    }
    if len(planned) > 1:
        names = ", ".join(sorted(str(name).rpartition("/")[2] for name in planned))
        raise CannotRun(
            f"the environment has the clusters {names}, and --context names only one. Allowed: one cluster."
        )
    resources = [resource for stack in folder.stacks() for resource in folder.resources(stack)]
    objects = [resource for resource in resources if is_object(resource["type"])]
    try:
        api = _connect(cluster, folder)
        marker = api.get(_CONFIG_MAPS, _HOME, MARKER)
        if marker is not None and _mark_of(marker) != cluster.mark:
            raise CannotRun(f"context {cluster.context}: the cluster belongs to another sandbox.")
        if marker is None and objects:
            raise CannotRun(
                f"context {cluster.context}: the cluster does not have this sandbox's mark, so it is another cluster "
                f"or was recreated. To start again, delete {folder.path}."
            )
        if marker is None:
            _refuse_used(api, cluster, plans)
            if mark:
                choice = {"kubeconfig": str(cluster.file), "context": cluster.context, "mark": cluster.mark}
                _write_private(_choice(folder), choice)
                api.create(_CONFIG_MAPS, _HOME, _marker(cluster), dry_run=False)
        foreign = list(_foreign(api, objects, cluster.mark))
    except ClusterError as error:
        raise CannotRun(str(error)) from error
    if foreign:
        raise CannotRun(
            f"context {cluster.context}: these objects do not have the label {MARK}: {', '.join(foreign)}. "
            "The sandbox did not create them: delete or rename them."
        )


def refuse_objects_without_stack(cluster: UserCluster, folder: SandboxFolder, stack: str) -> None:
    """Raise CannotRun if a stack has Kueue's Helm release, and the cluster has Kueue objects that no stack has."""
    if not any(resource["type"] == RELEASE for resource in folder.resources(stack)):
        return
    resources = [resource for name in folder.stacks() for resource in folder.resources(name)]
    try:
        names = list(objects_without_stack(_connect(cluster, folder), resources))
    except ClusterError as error:
        raise CannotRun(str(error)) from error
    if names:
        raise CannotRun(
            f"context {cluster.context}: these objects of Kueue belong to no stack: {', '.join(names)}. "
            "Delete them first, because they block the uninstallation of Kueue."
        )


def release(cluster: UserCluster, folder: SandboxFolder) -> None:
    """Remove the mark from the cluster if no stack has an object in it."""
    if any(is_object(resource["type"]) for stack in folder.stacks() for resource in folder.resources(stack)):
        return
    try:
        _connect(cluster, folder).delete(_CONFIG_MAPS, _HOME, MARKER)
    except ClusterError as error:
        raise CannotRun(str(error)) from error


def _connect(cluster: UserCluster, folder: SandboxFolder) -> ClusterApi:
    log_in = f"look at {cluster.file}"
    return connect(cluster.context, contexts=[cluster.context], kubeconfig=str(_config_file(folder)), log_in=log_in)


def _marker(cluster: UserCluster) -> Json:
    labels = {MARK: cluster.mark}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": MARKER, "labels": labels}}


def _mark_of(obj: Json) -> str | None:
    value: str | None = (obj["metadata"].get("labels") or {}).get(MARK)
    return value


def _refuse_used(api: ClusterApi, cluster: UserCluster, plans: Iterable[Plan]) -> None:
    """Raise CannotRun for an unmarked cluster that has Kueue or a namespace of the plans."""
    if any(api.kinds(version) for version in _KUEUE):
        raise CannotRun(f"context {cluster.context}: the cluster has Kueue, which this sandbox did not install.")
    for name in sorted(_namespaces(plans)):
        if api.get(_NAMESPACES, "", name) is not None:
            sentence = f"the cluster already has namespace {name}, which a stack would create."
            raise CannotRun(f"context {cluster.context}: {sentence}")


def _namespaces(plans: Iterable[Plan]) -> set[str]:
    names = set()
    for plan in plans:
        for resource in plan.resources():
            if resource.type == RELEASE:
                names.add(resource.inputs["namespace"])
            elif resource.type == NAMESPACE:
                names.add(resource.inputs["metadata"]["name"])
    return names


def _foreign(api: ClusterApi, objects: Iterable[Mapping[str, Any]], mark: str) -> Iterator[str]:
    """Yield the kind and name of each object in a state that exists in the cluster without the mark."""
    ids = ((resource["type"], str(resource.get("id", ""))) for resource in objects)
    for type_, identity, live in _live(api, ids):
        if _mark_of(live) != mark:
            yield f"{type_.rpartition(':')[2]} {identity}"


def created_objects(
    cluster: UserCluster, folder: SandboxFolder, creates: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield the type and id of each half-created object that exists in the cluster with the mark."""
    ids = []
    for create in creates:
        resource = create["resource"]
        if is_object(resource["type"]):
            metadata = (resource.get("inputs") or {}).get("metadata") or {}
            name = str(metadata.get("name"))
            ids.append((resource["type"], f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name))
    try:
        for type_, identity, live in _live(_connect(cluster, folder), ids):
            if _mark_of(live) == cluster.mark:
                yield type_, identity
    except ClusterError as error:
        raise CannotRun(str(error)) from error


def forget_killed_releases(
    cluster: UserCluster, folder: SandboxFolder, operations: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Delete Helm's records of releases that a killed run left unfinished; yield each release and its status.

    Helm refuses to change a release that it is installing or upgrading. The next deployment takes over the objects of
    the killed one, since they have the release's annotations; seen with pulumi-kubernetes 9497796, 2026-11-29.
    """
    resources = (operation["resource"] for operation in operations)
    releases = [resource["inputs"] for resource in resources if resource["type"] == RELEASE]
    if not releases:
        return
    try:
        api = _connect(cluster, folder)
        for inputs in releases:
            name = inputs["name"]
            namespace = inputs["namespace"]
            unfinished = "status in (pending-install,pending-upgrade,pending-rollback)"
            for record in list(api.objects(_SECRETS, namespace, f"owner=helm,name={name},{unfinished}")):
                api.delete(_SECRETS, namespace, record["metadata"]["name"])
                yield name, record["metadata"]["labels"]["status"]
    except ClusterError as error:
        raise CannotRun(str(error)) from error


def _live(api: ClusterApi, ids: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, Json]]:
    """Yield the type, id and content of each of the given objects that exists."""
    kinds: dict[str, Mapping[str, tuple[ApiKind, bool]]] = {}
    for type_, identity in ids:
        version, kind = type_.removeprefix(KUBERNETES).split(":")
        version = version.removeprefix("core/")
        if version not in kinds:
            kinds[version] = api.kinds(version)
        namespace, _, name = identity.rpartition("/")
        if kind in kinds[version]:
            live = api.get(kinds[version][kind][0], namespace, name)
            if live is not None:
                yield type_, identity, live


# The engine and the program


def cluster_variables(cluster: UserCluster) -> dict[str, str]:
    """Return the engine's variables for a run in a user's cluster. Its plugin needs the user's proxies for charts."""
    direct = ",".join(filter(None, (_users("NO_PROXY"), "127.0.0.1", "localhost", cluster.host)))
    return {"HTTP_PROXY": _users("HTTP_PROXY"), "HTTPS_PROXY": _users("HTTPS_PROXY"), "NO_PROXY": direct}


def _users(name: str) -> str:
    """Return a variable of the user's environment, whose name may be in upper or lower case."""
    return os.environ.get(name) or os.environ.get(name.lower(), "")


def program(folder: SandboxFolder, cluster: UserCluster) -> str:
    """Return the main file for a run in a user's cluster. It runs the user's program as ``program.py``."""
    return (
        "import runpy\nfrom pathlib import Path\n\n"
        f"from {redirect.__module__} import redirect\n\n"
        f"redirect(Path({str(_config_file(folder))!r}), {cluster.mark!r})\n"
        'runpy.run_path("program.py", run_name="__main__")\n'
    )
