"""What a sandbox holds: stacks, resources of the local cloud, objects, quota in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from training_platform.config.workspace import Workspace
from training_platform.sandbox.cloud.state.quota import finite
from training_platform.sandbox.kubernetes.store import ObjectStore
from training_platform.sandbox.run.folder import Folder
from training_platform.sandbox.run.reports.summary import QuotaRow
from training_platform.sandbox.run.servers import make_cloud, served

_CALLED = {"b": "buckets", "o": "objects"}  # of names in the API of Cloud Storage


def quota_rows(folder: Folder, workspace: Workspace, project: str | None = None) -> list[QuotaRow]:
    """Return the quota in use, by project; of one project, or of all."""
    cloud = make_cloud(folder, workspace, {})
    rows = []
    for each in [project] if project else cloud.projects.ids():
        for key, used in sorted(cloud.quota.used(each).items()):
            if used:
                limit = finite(cloud.quota.limit(key))
                rows.append(QuotaRow(project=each, service=key.service, quota=str(key), used=used, limit=limit))
    return rows


def status_lines(folder: Folder, workspace: Workspace) -> Iterator[str]:
    """Yield what ``sandbox status`` prints."""
    servers = served(folder)
    yield f"server: http://127.0.0.1:{servers.cloud}" if servers else "server: none is running; what follows is kept"
    stacks = {name: len(folder.resources(name)) for name in folder.stacks()}
    for name, count in stacks.items():
        more = ", killed or under way" if folder.locks(name) else ""
        yield f"stack {name}: {count} resources{more}"
    if not stacks:
        yield "no stack was ever up"
    yield from _cloud(folder, workspace)
    yield from _objects(folder)
    for row in quota_rows(folder, workspace):
        limit = "" if row.limit is None else f" of {row.limit:g}"
        yield f"quota {row.project}: {row.service} {row.quota}: {row.used:g}{limit}"


def _cloud(folder: Folder, workspace: Workspace) -> Iterator[str]:
    cloud = make_cloud(folder, workspace, {})
    for project in cloud.projects.ids():
        names = [each.name.split("/") for each in cloud.store.all(project)]
        kinds = ((parts[0], _CALLED.get(parts[-2], parts[-2])) for parts in names if len(parts) > 2)
        counts = Counter(f"{service} {kind}" for service, kind in kinds if kind != "operations")
        if counts:
            yield f"project {project}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def _objects(folder: Folder) -> Iterator[str]:
    if folder.api_servers.exists():
        yield "Kubernetes objects are in API servers, which run while a command does; what follows are Helm's records"
    store = ObjectStore(folder.kubernetes)
    for cluster in store.clusters():
        counts = Counter(key.kind for key in store.keys(cluster))
        yield f"cluster {cluster.rpartition('/')[2]}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
