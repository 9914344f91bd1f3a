"""The stand-ins that a run needs, in this process or the ones that ``sandbox serve`` serves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from modules.config.clock import today
from modules.config.workspace import Workspace
from modules.quota.snapshot import read_snapshots
from sandbox.cloud.cloud import Cloud
from sandbox.cloud.projects import Projects
from sandbox.cloud.server import serve as serve_cloud
from sandbox.cloud.settings import Settings
from sandbox.cloud.store import Store
from sandbox.kubernetes.server import serve as serve_kubernetes
from sandbox.kubernetes.store import Store as ObjectStore
from sandbox.run.folder import Folder, is_alive
from sandbox.run.problems import CannotRun

# Of the shortest operation: with more, a run spends a noticeable part of its time asleep between two polls.
POLL_SHARE: Final = 0.02
SHORTEST_POLL: Final = 0.05  # seconds; below it, polling itself is what keeps the processors busy
LONGEST_POLL: Final = 10.0  # seconds, the provider's own choice


@dataclass(frozen=True)
class Servers:
    """Where the stand-ins listen on the loopback interface; ``kubernetes`` is None where the released plugin runs."""

    cloud: int
    kubernetes: int | None
    durations: Mapping[str, float]


def poll_interval(durations: Mapping[str, float]) -> str:
    """Return ``gcp:pollInterval`` for operations of these lengths in seconds, as Go writes it: ``0.2s``."""
    real = [each for each in durations.values() if each > 0]
    seconds = min(LONGEST_POLL, max(SHORTEST_POLL, POLL_SHARE * min(real, default=0)))
    return f"{round(seconds * 1000)}ms"


def make_cloud(folder: Folder, workspace: Workspace, durations: Mapping[str, float]) -> Cloud:
    """Return the local cloud as its file has it, with the projects of all stacks and the quotas of the repository."""
    snapshots = read_snapshots(folder.root, today(folder.root)).by_project
    known = {project for stack in workspace.stacks.values() if (project := workspace.project_of(stack))}
    return Cloud(Projects(snapshots, known), store=Store(folder.cloud), settings=Settings(durations=dict(durations)))


@contextmanager
def running(
    folder: Folder, workspace: Workspace, *, durations: Mapping[str, float], crds: Sequence[Path], stand_in: bool = True
) -> Iterator[Servers]:
    """Give the servers that ``sandbox serve`` runs, else serve for as long as the block runs."""
    shared = served(folder)
    if shared is not None:
        yield Servers(shared.cloud, shared.kubernetes if stand_in else None, shared.durations)
        return
    with folder.alone(), serving(folder, workspace, durations=durations, crds=crds) as own:
        yield Servers(own.cloud, own.kubernetes if stand_in else None, own.durations)


@contextmanager
def serving(
    folder: Folder,
    workspace: Workspace,
    *,
    durations: Mapping[str, float],
    crds: Sequence[Path] = (),
    port: int = 0,
) -> Iterator[Servers]:
    """Serve both stand-ins on the loopback interface for as long as the block runs."""
    folder.prepare()
    cloud = make_cloud(folder, workspace, durations)
    try:
        objects = ObjectStore(folder.kubernetes)
        with serve_cloud(cloud, port) as bound, serve_kubernetes(crds=crds, store=objects) as plugin:
            yield Servers(bound, plugin, durations)
    except OSError as error:
        raise CannotRun(f"the server cannot listen on port {port}: {error.strerror}.") from error


@contextmanager
def announced(folder: Folder, servers: Servers) -> Iterator[None]:
    """Let other commands find these servers for as long as the block runs."""
    place = _announcement(folder)
    about = {"pid": os.getpid(), "cloud": servers.cloud, "kubernetes": servers.kubernetes}
    place.write_text(json.dumps({**about, "durations": dict(servers.durations)}), encoding="utf-8")
    try:
        yield
    finally:
        place.unlink(missing_ok=True)


def served(folder: Folder) -> Servers | None:
    """Return the servers that ``sandbox serve`` runs for this folder; None where none does, or it was killed."""
    place = _announcement(folder)
    if not place.exists():
        return None
    about = json.loads(place.read_text(encoding="utf-8"))
    if not is_alive(about["pid"]):
        return None
    return Servers(about["cloud"], about["kubernetes"], about["durations"])


def _announcement(folder: Folder) -> Path:
    return folder.path / "server.json"
