"""The real engine: ``pulumi preview --policy-pack`` beside a check of one stack.

What the pack adds to a preview is the difference of two that follow each other, by the clock and in CPU of all
processes, the pack's own among them, which the engine kills and leaves to others. A part of the pack's work is done
on a second core while the program loads its SDK and the provider works.

Without the engine and its gcp plugin on PATH only the checks are measured. The preview is of a stack without state,
in a copy of the repository with the tests' organisation; a stand-in takes the Kubernetes objects.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.measure import ORGANISATION, PROGRAM, run, spread, table
from local_google_cloud.kubernetes import serve
from tests.engine.workspace import Workspace
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.reading.clock import today

RUNS = 5
STACK = "dev"
WITH = "`pulumi preview --policy-pack`"
WITHOUT = "`pulumi preview`, no policies"
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
                start = time.perf_counter()
                before = _cpu_of_children()
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
