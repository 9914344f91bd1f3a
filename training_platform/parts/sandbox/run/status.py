"""The contents of a sandbox: stacks, resources of the local cloud, Kubernetes objects, and the quota in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isinf
from pathlib import Path
from typing import Final

from local_google_cloud.kubernetes import ObjectStore
from training_platform.config.reading.section import counted
from training_platform.config.workspace import Workspace
from training_platform.parts.sandbox.run.folder import SandboxFolder
from training_platform.parts.sandbox.run.recovery import clusters_of
from training_platform.parts.sandbox.run.reports import QuotaRow, is_resource
from training_platform.parts.sandbox.run.servers import make_cloud, served
from training_platform.parts.sandbox.run.user_cluster import UserCluster
from training_platform.quota.charges import QuotaKey
from training_platform.resources.resource_types import RELEASE

_COLLECTIONS: Final = {"b": "buckets", "o": "objects"}  # collections in Cloud Storage's names


def status_lines(folder: SandboxFolder, workspace: Workspace) -> Iterator[str]:
    """Yield the output of ``sandbox status``."""
    servers = served(folder)
    yield f"server: http://127.0.0.1:{servers.cloud}" if servers else "server: not running"
    stacks = {
        name: sum(
            is_resource(resource["urn"], resource["type"], custom=resource["custom"])
            for resource in folder.resources(name)
        )
        for name in folder.stacks()
    }
    for name, count in stacks.items():
        state = ", killed or in progress" if folder.locks(name) else ""
        yield f"stack {name}: {counted(count, 'resource')}{state}"
    if not stacks:
        yield "stacks: none"
    cloud = make_cloud(folder, workspace, {})
    for project in cloud.projects.ids():
        names = [record.name.split("/") for record in cloud.store.all(project)]
        kinds = ((parts[0], _COLLECTIONS.get(parts[-2], parts[-2])) for parts in names if len(parts) > 2)
        counts = Counter(f"{service} {kind}" for service, kind in kinds if kind != "operations")
        if counts:
            yield f"project {project}: {_listed(counts)}"
    store = ObjectStore(folder.kubernetes)
    for cluster in store.clusters():
        if f"container/{cluster}" not in cloud.store:  # a deleted cluster's objects stay, for a cluster of its name
            continue
        yield f"cluster {cluster.rpartition('/')[2]}: {_listed(Counter(key.kind for key in store.keys(cluster)))}"
    for row in quota_rows(folder, workspace):
        limit = "" if row.limit is None else f" of {row.limit:g}"
        yield f"quota {row.project}: {row.service} {row.quota}: {row.used:g}{limit}"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def quota_rows(folder: SandboxFolder, workspace: Workspace, project: str | None = None) -> list[QuotaRow]:
    """Return the quota that one project uses, or that all projects use."""
    cloud = make_cloud(folder, workspace, {})
    projects = [project] if project else cloud.projects.ids()
    return [
        QuotaRow(
            project=charged,
            service=key.service,
            quota=str(QuotaKey._make(key)),
            used=used,
            limit=_finite(cloud.judge.limit(key)),
        )
        for charged in projects
        for key, used in sorted(cloud.quota.used(charged).items())
        if used
    ]


def _finite(limit: float | None) -> float | None:
    return None if limit is None or isinf(limit) else limit


def kubernetes_notes(
    folder: SandboxFolder, name: str, crds: Sequence[Path], cluster: UserCluster | None
) -> Iterator[str]:
    """Yield the notes of a summary about a stack's Kubernetes objects, which may be in the user's cluster."""
    resources = folder.resources(name)
    releases = Counter(resource["inputs"]["name"] for resource in resources if resource["type"] == RELEASE)
    count = sum(resource["type"].startswith("kubernetes:") for resource in resources) - releases.total()
    clusters = set(clusters_of(resources).values())
    if cluster is not None:
        yield f"Context {cluster.context} of {cluster.file} has {counted(count, 'Kubernetes object')}."
        return
    objects = f"{counted(count, 'Kubernetes object')} in {counted(len(clusters), 'cluster')}"
    checked = f", checked against the CRDs in {', '.join(map(str, crds))}" if crds else ""
    yield f"A stand-in for the kubernetes provider stores {objects}{checked}."
    if releases:
        yield f"Not rendered: the charts of {counted(releases.total(), 'Helm release')}: {_listed(releases)}."
