"""A full check of one stack beside ``pulumi preview --policy-pack`` of it by the real engine, turn by turn.

Without the engine and its gcp plugin on PATH only the checks are measured. The preview is of a stack without state, in
a copy of the repository with the tests' organisation; a stand-in takes the Kubernetes objects.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import ORGANISATION, PROGRAM, run, spread, table
from tests.engine.workspace import Workspace
from training_platform.checks.planning.planner import Planner
from training_platform.checks.run import run_check
from training_platform.checks.stacks import Options
from training_platform.config.reading.clock import today
from training_platform.sandbox.kubernetes.server import serve

RUNS = 5
STACK = "dev"
TOOLS = ("pulumi", "pulumi-language-python", "pulumi-resource-gcp")


def measure() -> None:
    """Time each way, several times, and print a table."""
    ways: dict[str, Callable[[], object]] = {
        "`check`, a new process": lambda: run([PROGRAM, "check", STACK, "--no-cache", "--root", str(ORGANISATION)]),
        "`check`, a warm worker": _check,
    }
    _check()  # loads Pulumi
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    with tempfile.TemporaryDirectory() as folder, serve() as port:
        if not missing:
            workspace = Workspace(Path(folder), port)
            workspace.init(STACK)
            ways["`pulumi preview --policy-pack`"] = lambda: _preview(workspace)
            ways["`pulumi preview`, no policies"] = lambda: _preview(workspace, packs=())
            _preview(workspace)  # the pack's virtualenv is looked at once
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(RUNS):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                spent[name].append(time.perf_counter() - start)
    rows = [(name, spread(seconds), _times(seconds, spent)) for name, seconds in spent.items()]
    if missing:
        rows.append(("`pulumi preview --policy-pack`", f"not installed: {', '.join(missing)}", ""))
    table(
        f"One stack, {STACK}, {RUNS} runs each",
        ("way", "wall s, median (min to max)", "preview with the pack takes"),
        rows,
    )


def _check() -> None:
    report = run_check(ORGANISATION, Options(today=today(ORGANISATION), planner=Planner(jobs=1)), selected=[STACK])
    assert report.exit_code() == 0, report.failures


def _preview(workspace: Workspace, packs: Sequence[str] = ("--policy-pack", "policies")) -> None:
    ran = workspace.run("preview", "--stack", STACK, *packs)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _times(seconds: list[float], spent: dict[str, list[float]]) -> str:
    preview = spent.get("`pulumi preview --policy-pack`")
    return f"{min(preview) / min(seconds):.1f} times as long" if preview else ""
