"""Scenarios of queues: their contents, how the model plays them, and random ones.

A scenario is plain data, as it is kept in ``recorded/``: specs of ClusterQueues and Cohorts as Kueue has them, jobs,
and steps that submit or end one. In place of specs it may have ``manifests``, which the model reads as users' manifests
are read, and its jobs as rows of a trace.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kueue_model.cluster import Cluster
from kueue_model.cluster_queues import Eviction, Job, Pods
from kueue_model.manifests import read_manifests
from kueue_model.scheduler import Scheduler
from kueue_model.traces import TraceJob, read_rows

Json = dict[str, Any]
MODES: Mapping[str, tuple[str, ...] | None] = {
    "fair": ("LessThanOrEqualToFinalShare", "LessThanInitialShare"),
    "final": ("LessThanOrEqualToFinalShare",),
    "initial": ("LessThanInitialShare",),
    "classical": None,
}
"""Kueue's strategies of fair sharing, by the name that scenarios have for each configuration; None is without it."""
STEP_SECONDS = 10.0  # between two steps of the model, of which requeuing takes a part
GPU = "nvidia.com/gpu"
TPU = "google.com/tpu"
CPU_FLAVORS = ("default", "burst")
ROOT = "training-platform"
"""The cohort at the top, which has an object of its own only where a scenario gives it quota."""
FLAVORS = ("h100-reservation", "h100", "tpu-v5e-2x2", "h100-flex-start", "h100-spot", "tpu-v5e-2x2-spot")
"""The flavors of random scenarios, in the order in which queues try them."""


class Step(NamedTuple):
    """The result of a step: each admitted job's flavors, the evicted jobs, and whether it loops."""

    admitted: dict[str, str]
    evicted: list[str]
    loops: bool = False


def specs(scenario: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the specs of a scenario's ClusterQueues and Cohorts by name."""
    if "manifests" not in scenario:
        return scenario["queues"], scenario.get("cohorts", {})
    specs_by_kind: dict[str, dict[str, Json]] = {"ClusterQueue": {}, "Cohort": {}}
    for body in scenario["manifests"]:
        if body["kind"] in specs_by_kind:
            specs_by_kind[body["kind"]][body["metadata"]["name"]] = body["spec"]
    return specs_by_kind["ClusterQueue"], specs_by_kind["Cohort"]


def queues_of(drawn: Json) -> Json:
    """Return a scenario with the specs of Kueue's objects in place of drawn ``teams`` and ``cohorts``."""
    scenario = {key: drawn[key] for key in ("name", "mode")}
    scenario["queues"] = {name: _queue_spec(team) for name, team in drawn["teams"].items()}
    if cohorts := drawn.get("cohorts"):
        scenario["cohorts"] = {name: _cohort_spec(name, cohort) for name, cohort in cohorts.items()}
    return scenario | {key: drawn[key] for key in ("jobs", "steps")}


def _queue_spec(team: Json) -> Json:
    policies = {"within_queue": "LowerPriority", "reclaim": "Any"} | team.get("preemption", {})
    preemption: Json = {
        "withinClusterQueue": policies["within_queue"], "reclaimWithinCohort": policies["reclaim"],
    }  # fmt: skip
    if "borrow_within_cohort" in policies:
        preemption["borrowWithinCohort"] = {"policy": policies["borrow_within_cohort"]}
    fallback = team.get("fallback", {})
    return {
        "cohortName": team.get("cohort", ROOT),
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": _resource_groups(team.get("shares", {}), fallback.get("order", ())),
        "preemption": preemption,
        "flavorFungibility": {
            "whenCanBorrow": fallback.get("when_can_borrow", "MayStopSearch"),
            "whenCanPreempt": fallback.get("when_can_preempt", "TryNextFlavor"),
        },
        "fairSharing": {"weight": str(team.get("weight", 1))},
        "stopPolicy": team.get("hold", "None"),
    }


def _cohort_spec(name: str, cohort: Json) -> Json:
    parent = {} if name == ROOT else {"parentName": cohort.get("parent", ROOT)}
    groups = _resource_groups(cohort.get("shares", {}), ())
    return {**parent, "resourceGroups": groups, "fairSharing": {"weight": str(cohort.get("weight", 1))}}


def _resource_groups(shares: Json, first: Sequence[str]) -> list[Json]:
    groups: dict[str, list[Json]] = {}
    for flavor in dict.fromkeys((*first, *FLAVORS)):
        if flavor not in shares:
            continue
        resource = TPU if flavor.startswith("tpu") else GPU
        share = shares[flavor]
        quota = {"name": resource, "nominalQuota": str(share["nominal_quota"])}
        for key, field in (("borrowing_limit", "borrowingLimit"), ("lending_limit", "lendingLimit")):
            if key in share:
                quota[field] = str(share[key])
        groups.setdefault(resource, []).append({"name": flavor, "resources": [quota]})
    return [{"coveredResources": [resource], "flavors": flavors} for resource, flavors in groups.items()]


def pods_of(row: Json) -> tuple[Pods, ...]:
    """Return the kinds of pods of a job: each is a resource, an amount, and the flavor if it names one."""
    return tuple(
        Pods(resource, amount, frozenset(flavor) if flavor else None) for resource, amount, *flavor in row["pods"]
    )


@cache
def _read(text: str) -> tuple[Cluster, Mapping[str, TraceJob]]:
    """Return the queues of a scenario's manifests, and its jobs by name, each read as users' files are."""
    scenario = json.loads(text)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "queues.yaml"
        file.write_text(yaml.safe_dump_all(scenario["manifests"]), encoding="utf-8")
        cluster = read_manifests(file).cluster
    rows = [
        {"submitted": 0, "seconds": 1, "job": name, "team": row["team"], "needs": needs_of(row),
         "priority": f"p{row['priority']}"}
        for name, row in scenario["jobs"].items()
    ]  # fmt: skip
    trace = read_rows(Path("jobs.csv"), rows, [cluster])
    assert not trace.findings
    return cluster, {job.name: job for job in trace.jobs}


def needs_of(row: Json) -> str:
    """Return a job's kinds of pods as a trace has them: requests, and the flavors that they may use."""
    kinds = []
    for requests, *names in row["pods"]:
        words = [f"{quantity} {resource}" for resource, quantity in requests.items()]
        kinds.append(" ".join(words) + (f" on {' or '.join(names)}" if names else ""))
    return " + ".join(kinds)


def model(scenario: Json, seed: int = 0) -> tuple[Scheduler, dict[str, Job]]:
    """Return a scheduler with a scenario's queues, and its jobs by name; ``seed`` decides ties."""
    if "manifests" in scenario:
        cluster, rows = _read(json.dumps(scenario))
        scheduler = Scheduler(cluster.queues, cluster.cohorts, cluster.fair_sharing, seed)
        jobs = {name: Job(name, row.team, row.pods, row.priority) for name, row in rows.items()}
    else:
        queues, cohorts = specs(scenario)
        scheduler = Scheduler(queues, cohorts, MODES[scenario["mode"]], seed)
        jobs = {
            name: Job(name, row["team"], tuple(pods_of(row)), row.get("priority", 0))
            for name, row in scenario["jobs"].items()
        }
    return scheduler, jobs


def play(scenario: Json, seed: int = 0) -> Iterator[Step]:
    """Yield the model's result of each step."""
    scheduler, jobs = model(scenario, seed)
    for number, step in enumerate(scenario["steps"]):
        now = number * STEP_SECONDS
        if step[0] == "+":
            scheduler.submit(jobs[step[1:]], now)
        else:
            scheduler.end(jobs.pop(step[1:]), now)
        evicted = set()
        loops = False
        while True:
            moves = scheduler.settle(now)
            evicted |= {move.job.name for move in moves.steps if isinstance(move, Eviction)}
            loops |= bool(moves.loops)
            if loops or scheduler.next_at == math.inf:
                break
            now = scheduler.next_at
        admitted = {
            name: ",".join(scheduler.quotas.flavors[cell] for cell in job.cells)
            for name, job in jobs.items()
            if job.cells
        }
        yield Step(admitted, sorted(evicted), loops)


ORDERS = ("h100-reservation", "h100", "h100-flex-start", "h100-spot")


def random_scenario(seed: int, mode: str = "fair", jobs: tuple[int, int] = (12, 20)) -> Json:
    """Return a random scenario: queues, cohorts, weights, policies, and jobs that come and go."""
    draw = random.Random(f"{mode} {seed}")
    names = [f"team-{letter}" for letter in "abcdef"[: draw.randint(2, 5)]]
    kinds = draw.sample(ORDERS, draw.randint(1, 3))
    tpus = ["tpu-v5e-2x2", "tpu-v5e-2x2-spot"] if draw.random() < 0.25 else []
    cohorts = _random_cohorts(draw, kinds)
    teams = {name: draw_team(draw, mode, [*kinds, *tpus], list(cohorts)) for name in names}
    rows, steps = draw_steps(draw, jobs, lambda: _random_job(draw, names, teams, bool(tpus)))
    drawn = {"name": f"{mode}-{seed}", "mode": mode, "teams": teams, "cohorts": cohorts, "jobs": rows, "steps": steps}
    return queues_of(drawn)


def draw_steps(
    draw: random.Random, jobs: tuple[int, int], new_job: Callable[[], Json]
) -> tuple[dict[str, Json], list[str]]:
    """Return jobs by name, and the steps that submit and end them."""
    rows: dict[str, Json] = {}
    steps: list[str] = []
    alive: list[str] = []
    for number in range(draw.randint(*jobs)):
        name = f"j{number}"
        rows[name] = new_job()
        steps.append(f"+{name}")
        alive.append(name)
        while alive and draw.random() < 0.35:
            steps.append(f"-{alive.pop(draw.randrange(len(alive)))}")
    draw.shuffle(alive)
    steps += [f"-{name}" for name in alive[: len(alive) // 2]]
    return rows, steps


def draw_tree(draw: random.Random) -> dict[str, str | None]:
    """Return cohorts of three or four levels, each with its parent; None for the top."""
    tree: dict[str, str | None] = {}
    above = None
    for level in range(draw.randint(3, 4)):
        tree[f"c{level}"] = above
        above = f"c{level}"
    for letter in "xy"[: draw.randint(0, 2)]:
        tree[letter] = draw.choice(list(tree))
    return tree


def _random_cohorts(draw: random.Random, kinds: Sequence[str]) -> Json:
    cohorts: Json = {}
    for name in draw.choice(((), (), ("north",), ("north", "south"), ("north", "north-lab"))):
        cohorts[name] = {"weight": draw.choice((1, 1, 2, 3))}
        if name == "north-lab":
            cohorts[name]["parent"] = "north"
        if draw.random() < 0.5:
            cohorts[name]["shares"] = {draw.choice(kinds): _random_share(draw)}
    if draw.random() < 0.3:
        cohorts[ROOT] = {"shares": {draw.choice(kinds): {"nominal_quota": draw.randint(1, 6)}}}
    return cohorts


def _random_share(draw: random.Random) -> Json:
    share: Json = {"nominal_quota": draw.choice((0, 2, 4, 4, 6, 8))}
    if draw.random() < 0.2:
        share["borrowing_limit"] = draw.choice((0, 2, 4, 8))
    if draw.random() < 0.2:
        share["lending_limit"] = draw.randint(0, share["nominal_quota"])
    return share


def draw_team(draw: random.Random, mode: str, kinds: Sequence[str], cohorts: Sequence[str]) -> Json:
    """Return a team's section: shares of some flavors, policies, and perhaps a cohort."""
    team_kinds = [kind for kind in kinds if draw.random() < 0.85] or [kinds[0]]
    gpus = [kind for kind in team_kinds if kind.startswith("h100")]
    reclaim = draw.choice(("Any", "Any", "Any", "LowerPriority", "Never"))
    preemption: Json = {
        "within_queue": draw.choice(("LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority", "Never")),
        "reclaim": reclaim,
    }
    if mode == "classical" and reclaim != "Never" and draw.random() < 0.4:
        preemption["borrow_within_cohort"] = "LowerPriority"
    fallback: Json = {
        "when_can_borrow": draw.choice(("MayStopSearch", "TryNextFlavor")),
        "when_can_preempt": draw.choice(("MayStopSearch", "TryNextFlavor")),
    }
    if len(gpus) > 1 and draw.random() < 0.5:
        draw.shuffle(gpus)
        fallback["order"] = gpus
    team: Json = {
        "shares": {kind: _random_share(draw) for kind in team_kinds},
        "weight": draw.choice((1, 1, 1, 2, 3, 0)),
        "preemption": preemption,
        "fallback": fallback,
    }
    below = [name for name in cohorts if name != ROOT]
    return {**team, "cohort": draw.choice(below)} if below and draw.random() < 0.8 else team


def _random_job(draw: random.Random, names: Sequence[str], teams: Json, tpus: bool) -> Json:
    team = draw.choice(names)
    pods: list[Any] = [[GPU, draw.choice((1, 2, 2, 4, 4, 6, 8))]]
    if draw.random() < 0.15:
        pods.append([draw.choice((GPU, TPU)) if tpus else GPU, draw.choice((1, 2, 4))])
    elif tpus and draw.random() < 0.3:
        pods = [[TPU, draw.choice((2, 4))]]
    if draw.random() < 0.1:
        pods[0] = [*pods[0], draw.choice(list(teams[team]["shares"]))]
    return {"team": team, "priority": draw.choice((0, 0, 0, 100, 100, 200)), "pods": pods}


def flavor_labels(name: str) -> dict[str, str]:
    """Return the node labels of a flavor of manifests; CPU flavors have another key than GPU flavors."""
    key = "pool" if name in CPU_FLAVORS else "capacity"
    return {f"cloud.example.com/{key}": name}
