"""Model, ledgers and rules in one process, without Pulumi, over organisations of growing size."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.fleet import TODAY, Shape, write_fleet
from benchmarks.measure import ROOT, table
from training_platform.checks.outcome import rule_findings
from training_platform.config.model.stack import parse_stack, stack_name
from training_platform.config.reading.source import read_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.quota.charges import Charge
from training_platform.quota.demand import stack_demand
from training_platform.quota.ledger import capacity_ledger, project_ledgers
from training_platform.quota.ledger_findings import ledger_findings
from training_platform.quota.requests import requested
from training_platform.quota.snapshot import read_snapshots
from training_platform.rules import views_of_model

RUNS = 3
SIZES = (1_000, 5_000, 10_000)
POOLS = 50  # of an environment
TARGETS = {1_000: 0.3, 10_000: 3.0}
PARTS = ("read YAML", "model", "ledgers", "rules")
T = TypeVar("T")


def measure() -> None:
    """Measure each size in processes of their own, and print a table."""
    rows = []
    first = None
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            write_fleet(Path(folder), Shape(environments=size // POOLS, pools=POOLS))
            runs = [_in_a_process(Path(folder)) for _ in range(RUNS)]
        best = {part: min(run[part] for run in runs) for part in PARTS}
        judged = best["model"] + best["ledgers"] + best["rules"]
        each = judged / size * 1e6
        first = first or each
        target = f"{TARGETS[size]:.1f}" if size in TARGETS else ""
        times = [f"{best[part]:.2f}" for part in PARTS]
        memory = f"{max(run['peak MiB'] for run in runs):.0f}"
        rows.append((f"{size:,}", *times, f"**{judged:.2f}**", target, f"{each:.0f}", f"{each / first:.2f}", memory))
    table(
        f"Rules and ledgers in process, CPU seconds, best of {RUNS} runs",
        ("pools", *PARTS, "model + ledgers + rules", "target", "µs a pool", "times the first row", "peak MiB"),
        rows,
    )


def main(root: Path) -> None:
    """Check a fleet step by step, and print what each step took."""
    assert not any(name.split(".")[0] == "pulumi" for name in sys.modules)
    spent, findings = _timed(root)
    assert not findings, findings[:3]
    # VmHWM is this process's alone; Linux' ru_maxrss starts from that of the process that began it.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    spent["peak MiB"] = int(status["VmHWM"].split()[0]) / 1024
    print(json.dumps(spent))


def _timed(root: Path) -> tuple[dict[str, float], list[object]]:
    spent = dict.fromkeys(PARTS, 0.0)

    def of(part: str, step: Callable[[], T]) -> T:
        start = time.process_time()
        result = step()
        spent[part] += time.process_time() - start
        return result

    paths = sorted((root / "stacks").glob("Pulumi.*.yaml"))
    sources = of("read YAML", lambda: {stack_name(path) or "": read_source(path, path.name) for path in paths})
    snapshots = of("read YAML", lambda: read_snapshots(root, TODAY))
    stacks = of("model", lambda: {name: parse_stack(name, source) for name, source in sources.items()})
    workspace = of("model", lambda: cross_check(Workspace(root, stacks)))
    found: list[object] = []
    charges: list[Charge] = []
    for stack in workspace.stacks.values():  # as a check does, which counts a stack's charges at once
        views = of("rules", partial(views_of_model, stack, workspace))
        found += [*stack.findings, *of("rules", partial(rule_findings, stack, views))]
        charges += of("ledgers", partial(stack_demand, stack, workspace, views))
    ledgers = of("ledgers", lambda: project_ledgers(charges, snapshots, requested(workspace)))
    capacity = of("ledgers", lambda: capacity_ledger(workspace))
    found += of("ledgers", lambda: ledger_findings(workspace, ledgers.values(), capacity))
    return spent, found


def _in_a_process(root: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.rules", str(root)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    spent: dict[str, float] = json.loads(done.stdout)
    return spent


if __name__ == "__main__":
    main(Path(sys.argv[1]))
