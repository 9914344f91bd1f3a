"""Simulated queues: the time that jobs take to be played, with and without preemption, at growing sizes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, table
from kueue_model import NEVER, Cluster, FlavorMachines, Pods, TraceJob, play
from training_platform.catalog.types import ChargedCapacity
from training_platform.parts.simulate.provisioning_times import DEFAULTS

GPU = "nvidia.com/gpu"
TEAMS = 20
FLAVORS = 10
SHARES = 4  # flavors of each team
QUOTA = 16  # GPUs of each flavor
SIZES = (1, 2, 4, 8, 8, 16, 32)
MEDIAN_SECONDS = 5000
RUNS = ((10_000, False, 0.8), (100_000, False, 0.8), (10_000, True, 0.7), (10_000, True, 0.95))


def queue_spec(quotas: Mapping[str, int], preemption: tuple[str, str], weight: int = 1) -> dict[str, Any]:
    """Return a ClusterQueue of some flavors' GPUs; ``preemption`` is that within the queue, and to reclaim."""
    rows = [{"name": name, "resources": [{"name": GPU, "nominalQuota": str(quota)}]} for name, quota in quotas.items()]
    return {
        "cohortName": "all",
        "resourceGroups": [{"coveredResources": [GPU], "flavors": rows}],
        "preemption": dict(zip(("withinClusterQueue", "reclaimWithinCohort"), preemption, strict=True)),
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "fairSharing": {"weight": str(weight)},
    }


def organisation(jobs: int, *, preempting: bool, load: float) -> tuple[Cluster, list[TraceJob]]:
    """Return a cluster, and as many jobs as ask for ``load`` of its GPUs over their time."""
    names = [f"f{number}" for number in range(FLAVORS)]
    capacities: list[ChargedCapacity] = ["reservation", "on-demand"]
    chips = TEAMS * SHARES * QUOTA // FLAVORS
    flavors = {
        name: FlavorMachines(
            name, GPU, accelerator="h100", capacity=capacities[number % 2], chips=chips, per_slice=1, usd=10.0
        )
        for number, name in enumerate(names)
    }
    policy = ("LowerPriority", "Any") if preempting else ("Never", "Never")
    queues = {}
    for team in range(TEAMS):
        shares = [names[(team + place) % FLAVORS] for place in range(SHARES)]
        queues[f"team-{team}"] = queue_spec(dict.fromkeys(shares, QUOTA), policy)
    strategies = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    cluster = Cluster("main", queues, cohorts={}, flavors=flavors, priorities={}, fair_sharing=strategies)
    draw = random.Random(1)  # noqa: S311 # the same every time
    gap = sum(SIZES) / len(SIZES) * MEDIAN_SECONDS * 1.65 / (TEAMS * SHARES * QUOTA * load)  # 1.65: mean by median
    now = 0.0
    trace: list[TraceJob] = []
    for number in range(jobs):
        now += draw.expovariate(1 / gap)
        pods = (Pods(GPU, draw.choice(SIZES)),)
        seconds = draw.lognormvariate(8.517, 1.0)
        queue = f"team-{draw.randrange(TEAMS)}"
        priority = draw.choice((0, 0, 100))
        trace.append(
            TraceJob(f"j{number}", now, team=queue, cluster="main", pods=pods, seconds=seconds, priority=priority)
        )
    return cluster, trace


def measure() -> None:
    """Play each size in a process of its own, and print a table."""
    rows = []
    for jobs, preempting, load in RUNS:
        command = [sys.executable, "-m", "benchmarks.queues", str(jobs), str(int(preempting)), str(load)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        figures = json.loads(done.stdout)
        rows.append((f"{jobs:,}", "yes" if preempting else "no", f"{load:.0%}", *figures.values()))
    table(
        f"Simulated queues, {TEAMS} teams, {FLAVORS} flavors, CPU seconds",
        ("jobs", "preemption", "load", "CPU s", "µs a job", "most pending", "evictions", "loops", "peak MiB"),
        rows,
    )


def main(jobs: int, *, preempting: bool, load: float) -> None:
    """Play one size, and print what it took."""
    cluster, trace = organisation(jobs, preempting=preempting, load=load)
    start = time.process_time()
    played = play(cluster, trace, DEFAULTS)
    spent = time.process_time() - start
    moments = sorted([(run.of.submitted, 1) for run in played.runs] + [(run.started, -1) for run in played.runs])
    pending = max_pending = 0
    for moment, change in moments:
        pending += change if moment != NEVER else 0
        max_pending = max(max_pending, pending)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    figures = {
        "cpu": f"{spent:.1f}", "each": f"{spent / jobs * 1e6:.0f}", "pending": max_pending,
        "evictions": sum(run.evictions for run in played.runs), "loops": played.loop_moments,
        "peak": f"{int(status['VmHWM'].split()[0]) / 1024:.0f}",
    }  # fmt: skip
    print(json.dumps(figures))


if __name__ == "__main__":
    main(int(sys.argv[1]), preempting=sys.argv[2] == "1", load=float(sys.argv[3]))
