"""The stand-ins that a run needs, in this process or in the one of ``sandbox serve``."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final

from training_platform.config.reading.clock import today
from training_platform.config.workspace import Workspace
from training_platform.parts.sandbox.cloud.http.server import serve as serve_cloud
from training_platform.parts.sandbox.cloud.local_cloud import LocalCloud
from training_platform.parts.sandbox.cloud.state.cloud import REAL_DURATIONS, CloudSettings
from training_platform.parts.sandbox.cloud.state.quota_use import Projects
from training_platform.parts.sandbox.cloud.state.store import Store
from training_platform.parts.sandbox.files import BrokenFile, read_json
from training_platform.parts.sandbox.kubernetes.api_servers import API_SERVER, ETCD, ControlPlanes
from training_platform.parts.sandbox.kubernetes.controller_programs import ApiStore, find_binaries
from training_platform.parts.sandbox.kubernetes.nodes import SimulatedPool, node_objects
from training_platform.parts.sandbox.kubernetes.object_store import ObjectStore
from training_platform.parts.sandbox.kubernetes.plugin import serve as serve_kubernetes
from training_platform.parts.sandbox.run.existing import make_existing
from training_platform.parts.sandbox.run.folder import CannotRun, SandboxFolder, is_alive, start_of
from training_platform.quota.snapshot import read_snapshots

ASSETS: Final = "KUBEBUILDER_ASSETS"  # as the tools of kubernetes-sigs/controller-runtime call it
TOKEN: Final = "dummy"  # noqa: S105 # the local cloud asks for a token, whichever
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
    existing: Sequence[str] = ()  # what was made since the stack files say that it exists


@contextmanager
def running(
    folder: SandboxFolder,
    workspace: Workspace,
    *,
    durations: Mapping[str, float],
    crds: Sequence[Path],
    programs: Path | None,
) -> Iterator[Servers]:
    """Give the servers of ``sandbox serve`` where it runs, else serve for as long as the block runs.

    Raises CannotRun for options that only a server of one's own could be given.
    """
    shared = served(folder)
    if shared is not None:
        options = [name for name, value in (("--duration", durations), ("--crds", crds)) if value]
        if options:
            raise CannotRun(
                f"{' and '.join(options)} cannot be set for one run while `training-platform sandbox serve` runs: "
                "stop it, or give it the option."
            )
        yield shared
        return
    with folder.alone(), serving(folder, workspace, durations=durations, crds=crds, programs=programs) as own:
        yield own


@contextmanager
def serving(
    folder: SandboxFolder,
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
    existing = make_existing(cloud, workspace)
    try:
        store = ObjectStore(folder.kubernetes)
        with (
            _api_store(folder, programs, crds, store, cloud) as objects,
            serve_cloud(cloud, port) as bound,
            serve_kubernetes(crds=crds, store=store, objects=objects) as plugin,
        ):
            if objects is not None and at_once:
                objects.start(store.clusters())
            yield Servers(bound, plugin, durations, objects.controllers if objects else (), existing)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES) or error.filename:
            raise
        raise CannotRun(f"the server cannot listen on port {port}: {error.strerror}.") from error


def make_cloud(folder: SandboxFolder, workspace: Workspace, durations: Mapping[str, float]) -> LocalCloud:
    """Return the local cloud as its file has it: projects of all stacks, networks and keys, the repository's quotas.

    A project that no file names any more exists for as long as it holds something: a stack may be on its way out.
    """
    snapshots = read_snapshots(folder.root, today(folder.root)).by_project
    store = Store(folder.cloud)
    known = {project for stack in workspace.stacks.values() if (project := workspace.project_of(stack))}
    known |= {
        project for _, home in workspace.environments() if home.encryption for project in home.encryption.projects
    }
    known |= {home.host_project for _, home in workspace.environments() if home.host_project}
    known |= {record.project for record in store.all() if record.project}
    return LocalCloud(Projects(snapshots, known), store=store, settings=CloudSettings(durations=dict(durations)))


@contextmanager
def _api_store(
    folder: SandboxFolder, programs: Path | None, crds: Sequence[Path], releases: ObjectStore, cloud: LocalCloud
) -> Iterator[ApiStore | None]:
    if programs is None:
        yield None
        return
    with (
        ControlPlanes(programs, folder.api_servers) as planes,
        ApiStore(planes, crds, releases, find_binaries(programs), partial(cluster_nodes, cloud.store)) as store,
    ):
        yield store


def cluster_nodes(store: Store, cluster: str) -> dict[str, dict[str, Any]]:
    """Return the Node objects of a cluster of the local cloud by name; ``cluster`` is its full name in the GKE API."""
    prefix = f"container/{cluster}/nodePools/"
    pools = (record for record in store.all() if record.name.startswith(prefix))
    name = cluster.rpartition("/")[2]
    return node_objects(SimulatedPool(name, pool.id, pool.body, pool.meta.get("nodes", 0)) for pool in pools)


def api_server_programs(folder: SandboxFolder, *, asked_for: bool) -> Path | None:
    """Return the folder of etcd and kube-apiserver, or None where the stand-in keeps objects in its own file.

    A sandbox keeps the kind of store that it began with. Raises CannotRun where objects are in the file, or a program
    is missing from the folder that ``KUBEBUILDER_ASSETS`` names.
    """
    if not asked_for and not folder.api_servers.exists():
        return None
    if not folder.api_servers.exists() and ObjectStore(folder.kubernetes).clusters():
        raise CannotRun(
            f"{folder.path} has its Kubernetes objects in the stand-in: name another --workspace for --api-server."
        )
    programs = Path(os.environ.get(ASSETS) or "-")
    missing = [name for name in (ETCD, API_SERVER) if shutil.which(name, path=str(programs)) is None]
    if missing:
        raise CannotRun(
            f"a real API server needs {' and '.join(missing)} in the folder that {ASSETS} names: run "
            f"`setup-envtest use -p env` of kubernetes-sigs/controller-runtime, which gets them and prints the setting."
        )
    return programs.resolve()


@contextmanager
def announced(folder: SandboxFolder, servers: Servers) -> Iterator[None]:
    """Let other commands find these servers for as long as the block runs."""
    file = _announcement(folder)
    ports = {
        "pid": os.getpid(),
        "started": start_of(os.getpid()),
        "cloud": servers.cloud,
        "kubernetes": servers.kubernetes,
    }
    settings = {
        "durations": dict(servers.durations),
        "controllers": list(servers.controllers),
        "existing": list(servers.existing),
    }
    file.write_text(json.dumps({**ports, **settings}), encoding="utf-8")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def served(folder: SandboxFolder) -> Servers | None:
    """Return the servers that ``sandbox serve`` runs for this folder; None where none does, or it was killed.

    Raises BrokenFile for a file that no ``sandbox serve`` wrote.
    """
    file = _announcement(folder)
    if not file.exists():
        return None
    content = read_json(file)
    try:
        alive = is_alive(content["pid"]) and content["started"] == start_of(content["pid"])
        controllers, existing = tuple(content.get("controllers", ())), tuple(content.get("existing", ()))
        servers = Servers(content["cloud"], content["kubernetes"], content["durations"], controllers, existing)
    except (AttributeError, KeyError, TypeError) as error:
        raise BrokenFile(file, "it does not name the servers") from error
    return servers if alive else None


def _announcement(folder: SandboxFolder) -> Path:
    return folder.path / "server.json"


def provider_settings(durations: Mapping[str, float]) -> dict[str, str]:
    """Return the settings of a gcp provider that waits for this cloud, and not as it would wait for Google's."""
    return {"gcp:batching": BATCHING, "gcp:pollInterval": poll_interval(durations)}


def poll_interval(durations: Mapping[str, float]) -> str:
    """Return ``gcp:pollInterval`` for operations of these lengths in seconds, as Go writes it: ``0.2s``."""
    shortest = min((seconds for seconds in durations.values() if seconds > 0), default=0)
    return f"{round(1000 * min(LONGEST_POLL, max(SHORTEST_POLL, POLL_SHARE * shortest)))}ms"


def settings_lines(servers: Servers, endpoints: Mapping[str, str]) -> Iterator[str]:
    """Yield the output of ``sandbox serve``: settings for a stack file that is run by hand against these servers."""
    yield f"# The local cloud listens on http://127.0.0.1:{servers.cloud}/ until interrupted."
    yield f"# The stand-in Kubernetes provider: export PULUMI_DEBUG_PROVIDERS=kubernetes:{servers.kubernetes}"
    yield "config:"
    for setting, url in endpoints.items():
        yield f"  {setting}: {url}"
    yield f"  gcp:accessToken: {TOKEN}"
    for setting, value in provider_settings(servers.durations).items():
        yield f"  {setting}: {value}"


def wait_for_the_end() -> None:
    """Return when the process is told to stop."""
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    stopped.wait()


def parse_durations(texts: Sequence[str]) -> dict[str, float]:
    """Return seconds by kind from ``container.clusters=6``, ``*=1``, or ``real``, roughly the times at Google.

    ``real/100`` is a hundredth of that. Later ones win. Raises CannotRun for anything else.
    """
    durations: dict[str, float] = {}
    for text in texts:
        kind, _, seconds = text.partition("=")
        base, _, divisor = text.partition("/")
        number = _number(divisor or "1") if base == "real" else _number(seconds)
        if number is None or (base == "real" and not number):
            raise CannotRun(
                f"--duration {text}: write a kind and seconds, container.clusters=6 or *=1, or real, or real/100."
            )
        if base == "real":
            durations |= {name: value / number for name, value in REAL_DURATIONS.items()}
        else:
            durations[kind] = number
    return durations


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number >= 0 else None
