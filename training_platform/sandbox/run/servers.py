"""The stand-ins that a run needs, in this process or the ones that ``sandbox serve`` serves."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from training_platform.config.reading.clock import today
from training_platform.config.workspace import Workspace
from training_platform.quota.snapshot import read_snapshots
from training_platform.sandbox.cloud.http.server import serve as serve_cloud
from training_platform.sandbox.cloud.local_cloud import LocalCloud
from training_platform.sandbox.cloud.state.cloud import Settings
from training_platform.sandbox.cloud.state.quota import Projects
from training_platform.sandbox.cloud.state.store import Store
from training_platform.sandbox.files import read_json
from training_platform.sandbox.kubernetes.api_servers import ControlPlanes
from training_platform.sandbox.kubernetes.api_store import ApiStore
from training_platform.sandbox.kubernetes.controllers import ReleaseControllers, find_binaries
from training_platform.sandbox.kubernetes.nodes import NodePool, node_objects
from training_platform.sandbox.kubernetes.plugin import serve as serve_kubernetes
from training_platform.sandbox.kubernetes.store import ObjectStore
from training_platform.sandbox.run.folder import Folder, is_alive
from training_platform.sandbox.run.problems import CannotRun

# Of the shortest operation: with more, a run spends a noticeable part of its time asleep between two polls.
POLL_SHARE: Final = 0.02
SHORTEST_POLL: Final = 0.05  # seconds; below it, polling itself is what keeps the processors busy
LONGEST_POLL: Final = 10.0  # seconds, the provider's own choice
# The provider waits so long for more calls of a kind to send as one; by itself 3 s, three times over for an API to
# be enabled. The calls of one step of a stack come within less.
BATCHING: Final = '{"sendAfter":"500ms"}'


@dataclass(frozen=True)
class Servers:
    """The ports of the loopback interface on which the stand-ins listen."""

    cloud: int
    kubernetes: int
    durations: Mapping[str, float]
    controllers: Sequence[str] = ()  # beside each API server


def poll_interval(durations: Mapping[str, float]) -> str:
    """Return ``gcp:pollInterval`` for operations of these lengths in seconds, as Go writes it: ``0.2s``."""
    real = [each for each in durations.values() if each > 0]
    seconds = min(LONGEST_POLL, max(SHORTEST_POLL, POLL_SHARE * min(real, default=0)))
    return f"{round(seconds * 1000)}ms"


def provider_settings(durations: Mapping[str, float]) -> dict[str, str]:
    """Return the settings of a gcp provider that waits for this cloud, and not as it would wait for Google's."""
    return {"gcp:batching": BATCHING, "gcp:pollInterval": poll_interval(durations)}


def make_cloud(folder: Folder, workspace: Workspace, durations: Mapping[str, float]) -> LocalCloud:
    """Return the local cloud as its file has it: projects of all stacks, networks and keys, the repository's quotas.

    A project that no file names any more is there as long as something is in it: a stack may be on its way out.
    """
    snapshots = read_snapshots(folder.root, today(folder.root)).by_project
    store = Store(folder.cloud)
    known = {project for stack in workspace.stacks.values() if (project := workspace.project_of(stack))}
    known |= {
        project for _, home in workspace.environments() if home.encryption for project in home.encryption.projects
    }
    known |= {home.host_project for _, home in workspace.environments() if home.host_project}
    known |= {record.project for record in store.all() if record.project}
    return LocalCloud(Projects(snapshots, known), store=store, settings=Settings(durations=dict(durations)))


@contextmanager
def running(
    folder: Folder,
    workspace: Workspace,
    *,
    durations: Mapping[str, float],
    crds: Sequence[Path],
    programs: Path | None,
) -> Iterator[Servers]:
    """Give the servers that ``sandbox serve`` runs, else serve for as long as the block runs.

    Raises CannotRun for what only a server of one's own could be told.
    """
    shared = served(folder)
    if shared is not None:
        given = [name for name, value in (("--duration", durations), ("--crds", crds)) if value]
        if given:
            raise CannotRun(
                f"{' and '.join(given)} cannot be set for one run while `training-platform sandbox serve` runs: "
                "stop it, or give it the option."
            )
        yield shared
        return
    with folder.alone(), serving(folder, workspace, durations=durations, crds=crds, programs=programs) as own:
        yield own


@contextmanager
def serving(
    folder: Folder,
    workspace: Workspace,
    *,
    durations: Mapping[str, float],
    crds: Sequence[Path] = (),
    port: int = 0,
    programs: Path | None = None,
    at_once: bool = False,
) -> Iterator[Servers]:
    """Serve both stand-ins on the loopback interface for as long as the block runs.

    With ``programs``, the folder of etcd and kube-apiserver, objects are in API servers, started when they are needed;
    with ``at_once`` those of clusters that were up before start first of all.
    """
    folder.prepare()
    cloud = make_cloud(folder, workspace, durations)
    try:
        store = ObjectStore(folder.kubernetes)
        with (
            _api_store(folder, programs, crds, store, cloud) as objects,
            serve_cloud(cloud, port) as bound,
            serve_kubernetes(crds=crds, store=store, objects=objects) as plugin,
        ):
            if objects is not None and at_once:
                objects.start(store.clusters())
            yield Servers(bound, plugin, durations, objects.controllers if objects else ())
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES) or error.filename:
            raise
        raise CannotRun(f"the server cannot listen on port {port}: {error.strerror}.") from error


@contextmanager
def _api_store(
    folder: Folder, programs: Path | None, crds: Sequence[Path], releases: ObjectStore, cloud: LocalCloud
) -> Iterator[ApiStore | None]:
    if programs is None:
        yield None
        return
    with (
        ControlPlanes(programs, folder.api_servers) as planes,
        ReleaseControllers(planes, find_binaries(programs), releases, partial(cluster_nodes, cloud.store)) as operators,
        ApiStore(planes, crds, operators) as store,
    ):
        yield store


def cluster_nodes(store: Store, cluster: str) -> dict[str, dict[str, Any]]:
    """Return the Node objects of a cluster of the local cloud by name; ``cluster`` is its full name in the GKE API."""
    prefix = f"container/{cluster}/nodePools/"
    pools = (record for record in store.all() if record.name.startswith(prefix))
    name = cluster.rpartition("/")[2]
    return node_objects(NodePool(name, pool.id, pool.body, pool.meta.get("nodes", 0)) for pool in pools)


@contextmanager
def announced(folder: Folder, servers: Servers) -> Iterator[None]:
    """Let other commands find these servers for as long as the block runs."""
    place = _announcement(folder)
    about = {"pid": os.getpid(), "cloud": servers.cloud, "kubernetes": servers.kubernetes}
    told = {"durations": dict(servers.durations), "controllers": list(servers.controllers)}
    place.write_text(json.dumps({**about, **told}), encoding="utf-8")
    try:
        yield
    finally:
        place.unlink(missing_ok=True)


def served(folder: Folder) -> Servers | None:
    """Return the servers that ``sandbox serve`` runs for this folder; None where none does, or it was killed."""
    place = _announcement(folder)
    if not place.exists():
        return None
    about = read_json(place)
    if not is_alive(about["pid"]):
        return None
    return Servers(about["cloud"], about["kubernetes"], about["durations"], tuple(about.get("controllers", ())))


def _announcement(folder: Folder) -> Path:
    return folder.path / "server.json"
