"""Published traces through simulated queues: what a larger reservation, weights and a fallback to spot change.

Settings name the traces, which are not part of this repository: ``TRAINING_PLATFORM_TRACE_GAVEL`` the folder
``scheduler`` of stanford-futuredata/gavel, ``TRAINING_PLATFORM_TRACE_ALIBABA`` the file ``openb_pod_list_default.csv``
of alibaba/clusterdata (cluster-trace-gpu-v2023). A trace without its setting is left out.
"""

from __future__ import annotations

import csv
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.measure import ROOT, table
from benchmarks.queues import GPU, queue_spec
from training_platform.parts.simulate.machines import DEFAULTS
from training_platform.parts.simulate.page import Bar, bars
from training_platform.parts.simulate.queues import Pods
from training_platform.parts.simulate.replay import play
from training_platform.parts.simulate.results import duration, figures
from training_platform.parts.simulate.stacks import Cluster, FlavorMachines
from training_platform.parts.simulate.traces import TraceJob

DAY: Final = 86_400.0
PICTURES: Final = ROOT / "docs" / "pictures"
USD: Final = {"reserved": 10.0, "spot": 4.0}  # a GPU and hour; invented, only to compare
TEAMS: Final = {"a": 8, "b": 4, "c": 2, "d": 1}  # of the trace without any: of 15 jobs, how many each has


class Published(NamedTuple):
    """A trace as jobs, how many of its rows cannot be used, and the GPUs that are reserved by its most in use."""

    name: str
    jobs: list[TraceJob]
    left_out: int
    scale: float


class Change(NamedTuple):
    """What is compared: reserved GPUs by those of the first row, weights of teams but the largest, and GPUs on spot."""

    words: str
    reserved: float = 1.0
    weight: int = 1
    spot: float = 0.0


CHANGES: Final = (
    Change("as it is"),
    Change("a reservation larger by a quarter", reserved=1.25),
    Change("weight 3 for all teams but the largest", weight=3),
    Change("a fallback to spot, a quarter of the reservation", spot=0.25),
)


def gavel(folder: Path) -> Published:
    """Read Philly's virtual clusters as teams; steps become seconds on V100s by the throughputs beside the traces."""
    speeds = json.loads((folder / "simulation_throughputs.json").read_text(encoding="utf-8"))["v100"]
    jobs, left_out = [], 0
    for path in sorted((folder / "traces" / "msr" / "seed=0").glob("*.trace")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            kind, *_, steps, arrival, gpus = line.split("\t")
            speed = speeds.get(str((kind, int(gpus))))
            if path.stem == "philly" or speed is None:
                left_out += path.stem != "philly"
                continue
            seconds = max(1.0, float(steps) / speed["null"])
            jobs.append(_job(f"{path.stem}-{number}", float(arrival), path.stem, int(gpus), seconds))
    return Published("gavel, Philly's virtual clusters", jobs, left_out, scale=0.7)


def alibaba(path: Path) -> Published:
    """Read Alibaba's pods with GPUs that were scheduled; teams are invented, and a part of a GPU is a whole one."""
    draw = random.Random(1)  # noqa: S311 # the same every time
    jobs, left_out = [], 0
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if not int(row["num_gpu"]) or not row["scheduled_time"]:
                left_out += 1
                continue
            team = draw.choices(list(TEAMS), list(TEAMS.values()))[0]
            seconds = max(1.0, float(row["deletion_time"]) - float(row["scheduled_time"]))
            jobs.append(_job(row["name"], float(row["creation_time"]), team, int(row["num_gpu"]), seconds))
    return Published("Alibaba 2023, invented teams", jobs, left_out, scale=0.6)


def _job(name: str, submitted: float, team: str, gpus: int, seconds: float) -> TraceJob:
    return TraceJob(name, submitted, team, "main", (Pods(GPU, gpus),), seconds)


def demand_of(jobs: list[TraceJob]) -> Counter[str]:
    """Return the GPU-seconds that each team asks for."""
    demand: Counter[str] = Counter()
    for job in jobs:
        demand[job.team] += int(job.chips * job.seconds)
    return demand


def most_in_use(jobs: list[TraceJob]) -> int:
    """Return the most GPUs that are in use at one moment if no job waits."""
    starts = [(job.submitted, job.chips) for job in jobs]
    moments = sorted([*starts, *((job.submitted + job.seconds, -job.chips) for job in jobs)])
    used = most = 0
    for _, change in moments:
        used += change
        most = max(most, used)
    return most


def cluster(published: Published, change: Change) -> Cluster:
    """Return a cluster whose reservation is shared out by what teams ask for; every team can have all of it."""
    demand = demand_of(published.jobs)
    largest = max(demand, key=lambda team: demand[team])
    gpus = {"reserved": change.reserved, "spot": change.spot}
    flavors: dict[str, FlavorMachines] = {}
    quotas: dict[str, dict[str, int]] = {team: {} for team in demand}
    for name, share in gpus.items():
        chips = round(most_in_use(published.jobs) * published.scale * share)
        if chips:
            flavors[name] = FlavorMachines(
                name, GPU, "gpu", "spot" if name == "spot" else "reservation", chips, 1, USD[name]
            )
            for team in demand:
                quotas[team][name] = int(chips * demand[team] / demand.total())
            quotas[largest][name] += chips - sum(row[name] for row in quotas.values())
    queues = {
        team: queue_spec(own, ("LowerPriority", "Any"), 1 if team == largest else change.weight)
        for team, own in quotas.items()
    }
    strategies = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    return Cluster("main", queues, {}, flavors, {}, strategies)


def rows(published: Published, groups: dict[str, list[Bar]]) -> Iterator[tuple[object, ...]]:
    """Yield figures of each change: waits of the largest team and of all others, and costs; waits are bars as well."""
    demand = demand_of(published.jobs)
    largest = max(demand, key=lambda team: demand[team])
    days = max(job.submitted for job in published.jobs) / DAY
    for change in CHANGES:
        part = cluster(published, change)
        played = play(part, sorted(published.jobs, key=lambda job: job.submitted), DEFAULTS)
        found = figures([played], days)
        waits = sorted(
            run.started - run.of.submitted for run in played.runs if run.of.team != largest and run.started >= 0
        )
        others, own = waits[int(len(waits) * 0.9)], found.wait(("main", largest), "p90_seconds") or 0
        words = ((f"{duration(own)}, largest team", own), (f"{duration(others)}, others", others))
        groups[change.words] = list(words)
        never = found.sum("never", "jobs")
        yield (
            change.words, f"{sum(row.chips for row in part.flavors.values()):,}",
            duration(own), duration(others), f"{sum(run.evictions for run in played.runs):,}",
            f"{played.loop_moments:,}", f"{never:,.0f}", f"${found.usd():,.0f}",
        )  # fmt: skip


def measure() -> None:
    """Play each trace that a setting names, print a table, and draw the waits for the page on simulated queues."""
    for setting, read in (("TRAINING_PLATFORM_TRACE_GAVEL", gavel), ("TRAINING_PLATFORM_TRACE_ALIBABA", alibaba)):
        if not os.environ.get(setting):
            print(f"{setting} names no trace.")
            continue
        published, groups = read(Path(os.environ[setting])), dict[str, list[Bar]]()
        table(
            f"{published.name}: {len(published.jobs):,} jobs, {published.left_out:,} left out",
            (
                "change",
                "GPUs",
                "largest team, p90 wait",
                "others, p90 wait",
                "evictions",
                "loops",
                "never start",
                "USD a day",
            ),
            list(rows(published, groups)),
        )
        label = f"90th percentile of waits: {published.name}"
        drawing = bars(
            groups,
            label,
            xmlns="http://www.w3.org/2000/svg",
            style="color: #1f4e79; background: #fff; font-family: sans-serif",
        )
        PICTURES.mkdir(exist_ok=True)
        (PICTURES / f"{read.__name__}.svg").write_text(f"{drawing}\n", encoding="utf-8")
