"""The real engine: ``pulumi preview --policy-pack`` beside a check of one stack, and the sandbox beside its preview.

What the pack adds to a preview is the difference of two that follow each other, by the clock and in CPU of all
processes, the pack's own among them, which the engine kills and leaves to others. A part of the pack's work is done
on a second core while the program loads its SDK and the provider works.

Without the engine and its gcp plugin on PATH only the checks are measured. The preview is of a stack without state,
in a copy of the repository with the tests' organisation; a stand-in takes the Kubernetes objects.

Of the sandbox, ``sandbox up`` is measured beside ``sandbox preview``, and beside the chain of resources that it waits
for. With operations of no length the engine's own work is measured, with long ones whether a resource waits for
others that it does not need. The gcp provider's fixed wait after a new service account is taken from the time that is
compared with a preview, and is in the chain like every resource's own time.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from benchmarks.measure import ORGANISATION, PROGRAM, ROOT, run, spread, table
from tests.engine.workspace import Workspace
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.reading.clock import today
from training_platform.parts.sandbox.kubernetes.plugin import serve

RUNS = 5
STACK = "dev"
WITH, WITHOUT = "`pulumi preview --policy-pack`", "`pulumi preview`, no policies"
PACK_LIMIT = 1.2  # seconds that the pack may add to a preview of 255 resources
_PR_SET_CHILD_SUBREAPER = 36  # Linux's <sys/prctl.h>
TOOLS = ("pulumi", "pulumi-language-python", "pulumi-resource-gcp")


def measure() -> None:
    """Time each way, several times, and print a table."""
    ways: dict[str, Callable[[], object]] = {
        "`check`, a new process": lambda: run([PROGRAM, "check", STACK, "--root", str(ORGANISATION)]),
        "`check`, imported before": _check,
    }
    _check()
    if sys.platform == "linux":  # count processes whose parents have ended as this one's
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    with tempfile.TemporaryDirectory() as folder, serve() as port:
        if not missing:
            workspace = Workspace(Path(folder), port)
            workspace.init(STACK)
            workspace.environment.pop("PYTHONDONTWRITEBYTECODE", None)  # byte code is kept, as where people work
            ways[WITH] = lambda: _preview(workspace)
            ways[WITHOUT] = lambda: _preview(workspace, packs=())
            _preview(workspace)  # the pack's virtualenv is looked at once
        spent: dict[str, list[float]] = {name: [] for name in ways}
        cpu: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(RUNS):
            for name, way in ways.items():
                start, before = time.perf_counter(), _cpu_of_children()
                way()
                spent[name].append(time.perf_counter() - start)
                cpu[name].append(_cpu_of_children() - before)
    preview = min(spent.get(WITH, [0.0]))
    rows = [
        (name, spread(seconds), f"{preview / min(seconds):.1f} times as long" if preview else "")
        for name, seconds in spent.items()
    ]
    if missing:
        rows.append((WITH, f"not installed: {', '.join(missing)}", ""))
    table(
        f"One stack, {STACK}, {RUNS} runs each",
        ("way", "wall s, median (min to max)", "preview with the pack takes"),
        rows,
    )
    if not missing:
        print(f"\nThe pack adds {_added(spent)} s of wall clock, and {_added(cpu)} s of CPU (limit: {PACK_LIMIT}).")


def _added(of: dict[str, list[float]]) -> str:
    return spread([more - less for more, less in zip(of[WITH], of[WITHOUT], strict=True)])


def _cpu_of_children() -> float:
    with suppress(ChildProcessError):  # there is none any more
        for _ in range(100):
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.01)  # killed, and not dead yet
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _check() -> None:
    report = run_check(ORGANISATION, CheckOptions(today=today(ORGANISATION)), selected=[STACK])
    assert report.exit_code() == 0, report.failures


def _preview(workspace: Workspace, packs: Sequence[str] = ("--policy-pack", "policies")) -> None:
    ran = workspace.run("preview", "--stack", STACK, *packs)
    assert ran.returncode == 0, ran.stdout + ran.stderr


SANDBOX_STACK: Final = "dev"
DURATIONS: Final = ("*=0", "real/20", "real/10")
ACCOUNT_WAIT: Final = 10.0  # seconds that the provider sleeps after it made a service account


def measure_sandbox() -> None:
    """Bring the stack up once for each length of operations, each time from nothing, and print a table."""
    title = f"The sandbox, stack {SANDBOX_STACK}"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"\n## {title}\n\nNot installed: {', '.join(missing)}")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = folder / "checkout"
        shutil.copytree(ORGANISATION, root)
        for part in ("modules", "policies", "training_platform"):
            (root / part).symlink_to(ROOT / part)
        preview = _sandbox(root, folder / "preview", "preview")
        rows: list[tuple[str, ...]] = [("preview", f"{preview:.1f}", "", "", "", "")]
        for index, duration in enumerate(DURATIONS):
            place = folder / str(index)
            wall = _sandbox(root, place, "up", "--duration", duration)
            summary = json.loads((place / "stacks" / SANDBOX_STACK / "summary.json").read_text(encoding="utf-8"))
            times, seconds, chain = (wall - ACCOUNT_WAIT) / preview, summary["seconds"], summary["path_seconds"]
            figures = (f"{wall:.1f}", f"{times:.1f}", f"{seconds:.1f}", f"{chain:.1f}", f"{seconds / chain:.2f}")
            rows.append((f"up, {duration}", *figures))
    head = ("run", "wall s", "without the fixed wait, previews", "changes s", "chain s", "changes / chain")
    table(title, head, rows)


def _sandbox(root: Path, workspace: Path, command: str, *args: str) -> float:
    place = ("--root", str(root), "--workspace", str(workspace))
    return run([PROGRAM, "sandbox", command, SANDBOX_STACK, *place, *args]).wall
