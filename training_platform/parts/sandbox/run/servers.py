"""The stand-ins of a run, either in this process or in the process of ``sandbox serve``."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

from local_google_cloud.api import REAL_DURATIONS, BrokenFile, CloudSettings, LocalCloud, Store, read_json
from local_google_cloud.api import serve as serve_cloud
from local_google_cloud.kubernetes import ObjectStore
from local_google_cloud.kubernetes import serve as serve_kubernetes
from training_platform.config.reading.clock import today
from training_platform.config.workspace import Workspace
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.parts.sandbox.run.existing import create_existing
from training_platform.parts.sandbox.run.folder import CannotRun, SandboxFolder, is_alive, start_of
from training_platform.quota.snapshot import read_snapshots

TOKEN: Final = "dummy"  # noqa: S105 # the local cloud accepts any token
# Share of the shortest operation: with more, a run noticeably waits between polls.
POLL_SHARE: Final = 0.02
SHORTEST_POLL: Final = 0.05  # seconds; with less, polling itself takes the CPU
LONGEST_POLL: Final = 10.0  # seconds, the provider's default
# The time for which the provider collects calls of a kind into a batch: by default 3 s, three times to enable an API.
# The calls of one step of a stack take less.
BATCHING: Final = '{"sendAfter":"500ms"}'


@dataclass(frozen=True)
class Servers:
    """The stand-ins' ports on the loopback interface, and their settings."""

    cloud: int
    kubernetes: int
    durations: Mapping[str, float]
    existing: Sequence[str] = ()  # lines about the resources that stack files name as existing


@contextmanager
def running(
    folder: SandboxFolder,
    workspace: Workspace,
    *,
    durations: Mapping[str, float],
    crds: Sequence[Path],
) -> Iterator[Servers]:
    """Yield the servers of ``sandbox serve`` if it runs. Otherwise serve during the ``with`` block.

    Raises CannotRun for options that have to be given to ``sandbox serve`` instead.
    """
    shared = served(folder)
    if shared is not None:
        options = [name for name, value in (("--duration", durations), ("--crds", crds)) if value]
        if options:
            raise CannotRun(
                f"{' and '.join(options)} cannot be set for one run while `training-platform sandbox serve` runs: "
                "stop it, or start it with the option."
            )
        yield shared
        return
    with folder.locked(), serving(folder, workspace, durations=durations, crds=crds) as servers:
        yield servers


@contextmanager
def serving(
    folder: SandboxFolder,
    workspace: Workspace,
    *,
    durations: Mapping[str, float],
    crds: Sequence[Path] = (),
    port: int = 0,
) -> Iterator[Servers]:
    """Serve both stand-ins on the loopback interface during the ``with`` block."""
    folder.prepare()
    cloud = make_cloud(folder, workspace, durations)
    existing = create_existing(cloud, workspace)
    try:
        with (
            serve_cloud(cloud, port) as cloud_port,
            serve_kubernetes(crds=crds, store=ObjectStore(folder.kubernetes)) as plugin_port,
        ):
            yield Servers(cloud_port, plugin_port, durations=durations, existing=existing)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES) or error.filename:
            raise
        raise CannotRun(f"the server cannot listen on port {port}: {error.strerror}.") from error


def make_cloud(folder: SandboxFolder, workspace: Workspace, durations: Mapping[str, float]) -> LocalCloud:
    """Return the local cloud that is saved in the folder, with quotas and with every project that stack files need.

    These are the projects of stacks, networks and keys. A project that no stack file names still exists while it has
    resources, so that its stacks can be destroyed.
    """
    snapshots = read_snapshots(folder.root, today(folder.root)).by_project
    store = Store(folder.cloud)
    projects = {workspace.project_of(stack) for stack in workspace.stacks.values()}
    for _, environment in workspace.environments():
        projects.add(environment.host_project)
        if environment.encryption:
            projects.update(environment.encryption.projects)
    projects.update(record.project for record in store.all())
    named = sorted(project for project in projects if project)
    return judged_cloud(named, snapshots, store=store, settings=CloudSettings(durations=dict(durations)))


@contextmanager
def announced(folder: SandboxFolder, servers: Servers) -> Iterator[None]:
    """Write a file with which other commands find these servers, for the duration of the ``with`` block."""
    file = _announcement(folder)
    ports = {
        "pid": os.getpid(),
        "started": start_of(os.getpid()),
        "cloud": servers.cloud,
        "kubernetes": servers.kubernetes,
    }
    settings = {
        "durations": dict(servers.durations),
        "existing": list(servers.existing),
    }
    file.write_text(json.dumps({**ports, **settings}), encoding="utf-8")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def served(folder: SandboxFolder) -> Servers | None:
    """Return the servers of this folder's ``sandbox serve``, or None if it does not run.

    Raises BrokenFile for a file that ``sandbox serve`` did not write.
    """
    file = _announcement(folder)
    if not file.exists():
        return None
    content = read_json(file)
    try:
        alive = is_alive(content["pid"]) and content["started"] == start_of(content["pid"])
        servers = Servers(
            cloud=content["cloud"],
            kubernetes=content["kubernetes"],
            durations=content["durations"],
            existing=tuple(content.get("existing", ())),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise BrokenFile(file, "it does not name the servers") from error
    return servers if alive else None


def _announcement(folder: SandboxFolder) -> Path:
    return folder.path / "server.json"


def provider_settings(durations: Mapping[str, float]) -> dict[str, str]:
    """Return settings of the gcp provider for the local cloud, which responds faster than Google's."""
    return {"gcp:batching": BATCHING, "gcp:pollInterval": poll_interval(durations)}


def poll_interval(durations: Mapping[str, float]) -> str:
    """Return ``gcp:pollInterval`` for operations with these durations in seconds, as a Go duration: ``200ms``."""
    shortest = min((seconds for seconds in durations.values() if seconds > 0), default=0)
    return f"{round(1000 * min(LONGEST_POLL, max(SHORTEST_POLL, POLL_SHARE * shortest)))}ms"


def settings_lines(servers: Servers, endpoints: Mapping[str, str]) -> Iterator[str]:
    """Yield the output of ``sandbox serve``: settings for a stack file, to use Pulumi directly with these servers."""
    yield f"# The local cloud listens on http://127.0.0.1:{servers.cloud}/ until interrupted."
    yield f"# The stand-in Kubernetes provider: export PULUMI_DEBUG_PROVIDERS=kubernetes:{servers.kubernetes}"
    yield "config:"
    for setting, url in endpoints.items():
        yield f"  {setting}: {url}"
    yield f"  gcp:accessToken: {TOKEN}"
    for setting, value in provider_settings(servers.durations).items():
        yield f"  {setting}: {value}"


def wait_for_signal() -> None:
    """Return after SIGINT or SIGTERM."""
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    stopped.wait()


def parse_durations(texts: Sequence[str]) -> dict[str, float]:
    """Parse durations in seconds for each kind: ``container.clusters=6``, ``*=1``, or ``real``.

    ``real`` means roughly the durations at Google, and ``real/100`` a hundredth of these. Later texts override earlier
    ones. Raises CannotRun for any other text.
    """
    durations: dict[str, float] = {}
    for text in texts:
        kind, _, seconds = text.partition("=")
        base, _, divisor = text.partition("/")
        number = _number(divisor or "1") if base == "real" else _number(seconds)
        if number is None or (base == "real" and not number):
            raise CannotRun(
                f"--duration {text}: write a kind and seconds (container.clusters=6, *=1), real, or real/100."
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
