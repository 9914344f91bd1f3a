"""Compares the model with real Kueue on unseen scenarios: ``python -m tests.kueue_model.unseen SEED OUTPUT``.

Three generators draw them: that of the record, ``deep`` and ``manifests``. Every scenario is played once, and kept
with that play, whether the model agrees or not; those that OUTPUT has already are left out.
"""

from __future__ import annotations

import argparse
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final

from tests.kueue_model.record import Cluster, play_for_real, running_cluster
from tests.kueue_model.recorded_plays import SEEDS, agreeing, compact, expand, read_record
from tests.kueue_model.scenarios import (
    CPU_FLAVORS,
    GPU,
    MODES,
    Json,
    draw_steps,
    draw_team,
    draw_tree,
    flavor_labels,
    play,
    queues_of,
    random_scenario,
)

KINDS: Final = ("h100-reservation", "h100", "h100-spot")
PRIORITIES: Final = (-100, 0, 0, 100, 200)
FLAVORS: Final = ("reserved", "on-demand", "spot")
LAYOUTS: Final = (  # resource groups: their resources, and their flavors
    (((GPU,), FLAVORS),),
    ((("cpu", "memory", GPU), FLAVORS),),
    ((("cpu", "memory"), CPU_FLAVORS[:1]), ((GPU,), FLAVORS)),
    ((("cpu",), CPU_FLAVORS), (("memory", GPU), FLAVORS)),
)
STRATEGIES: Final = ("BestEffortFIFO",) * 9 + ("StrictFIFO",)


def deep_scenario(seed: int, mode: str) -> Json:
    """Return a scenario of stack files with four or five levels, and jobs of up to three kinds of pods."""
    draw = random.Random(f"deep {mode} {seed}")
    kinds = KINDS[: draw.randint(1, 3)]
    cohorts: Json = {}
    for name, parent in draw_tree(draw).items():
        cohorts[name] = {"weight": draw.choice((0, 1, 1, 2, 3))} | ({"parent": parent} if parent else {})
        if draw.random() < 0.4:
            cohorts[name]["shares"] = {draw.choice(kinds): {"nominal_quota": draw.randint(0, 6)}}
            if draw.random() < 0.4:
                cohorts[name]["shares"][kinds[0]] = {"nominal_quota": 4, "lending_limit": 2, "borrowing_limit": 4}
    names = [f"team-{letter}" for letter in "abcdefg"[: draw.randint(4, 7)]]
    teams = {name: draw_team(draw, mode, kinds, list(cohorts)) for name in names}

    def job() -> Json:
        team = draw.choice(names)
        pods: list[list[Any]] = [[GPU, draw.choice((1, 2, 2, 3, 4, 6))] for _ in range(draw.choice((1, 1, 1, 2, 3)))]
        if draw.random() < 0.1:
            pods[0].append(draw.choice(list(teams[team]["shares"])))
        return {"team": team, "priority": draw.choice(PRIORITIES), "pods": pods}

    rows, steps = draw_steps(draw, (25, 40), job)
    name = f"deep-{mode}-{seed}"
    return queues_of({"name": name, "mode": mode, "teams": teams, "cohorts": cohorts, "jobs": rows, "steps": steps})


def manifests_scenario(seed: int, mode: str) -> Json:
    """Return a scenario of manifests: several resources and roots, strict queues, preferences and thresholds."""
    draw = random.Random(f"manifests {mode} {seed}")
    layout = draw.choice(LAYOUTS)
    manifests = [_configuration(mode)]
    manifests += [_object("WorkloadPriorityClass", f"p{value}", value=value) for value in sorted(set(PRIORITIES))]
    for flavor in sorted({name for _, flavors in layout for name in flavors}):
        manifests.append(_object("ResourceFlavor", flavor, spec={"nodeLabels": flavor_labels(flavor)}))
    tree = draw_tree(draw) if draw.random() < 0.5 else dict.fromkeys(("east", "west")[: draw.randint(1, 2)])
    manifests += _cohorts(draw, layout, tree)
    names = [f"q{number}" for number in range(draw.randint(2, 6))]
    flavors: dict[str, list[str]] = {}
    for name in names:
        spec = _queue(draw, layout, list(tree))
        flavors[name] = [row["name"] for row in spec["resourceGroups"][-1]["flavors"]]
        manifests.append(_object("ClusterQueue", name, spec=spec))
        local = _object("LocalQueue", name, spec={"clusterQueue": name})
        local["metadata"]["namespace"] = "lab"
        manifests.append(local)
    covered = {resource for resources, _ in layout for resource in resources}

    def job() -> Json:
        queue = draw.choice(names)
        pods: list[list[Any]] = []
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            gpus = draw.choice((1, 2, 2, 4, 4, 6))
            requests = {GPU: str(gpus)}
            if "memory" in covered and draw.random() < 0.8:
                requests |= {"cpu": draw.choice(("500m", "2", "8", "12")), "memory": f"{8 * draw.randint(1, 6)}Gi"}
            pods.append([requests])
        if draw.random() < 0.2:
            pods[0] += draw.sample(flavors[queue], draw.randint(1, len(flavors[queue])))
        return {"team": queue, "priority": draw.choice(PRIORITIES), "pods": pods}

    rows, steps = draw_steps(draw, (12, 40), job)
    return {"name": f"manifests-{mode}-{seed}", "mode": mode, "manifests": manifests, "jobs": rows, "steps": steps}


def _cohorts(draw: random.Random, layout: Sequence[Any], tree: Mapping[str, str | None]) -> Iterator[Json]:
    for name, parent in tree.items():
        if parent or name in tree.values() or draw.random() < 0.6:  # another root may have no object
            spec: Json = {"fairSharing": {"weight": draw.choice(("0", "500m", "1", "1", "2"))}}
            if parent:
                spec["parentName"] = parent
            if draw.random() < 0.4:
                spec["resourceGroups"] = _groups(draw, layout, may_limit=bool(parent))
            yield _object("Cohort", name, spec=spec)


def _object(kind: str, name: str, **body: object) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, **body}


def _configuration(mode: str) -> Json:
    sharing = {"fairSharing": {"preemptionStrategies": list(strategies)}} if (strategies := MODES[mode]) else {}
    return {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **sharing}


def _groups(draw: random.Random, layout: Sequence[Any], *, may_limit: bool) -> list[Json]:
    """Return resource groups with quota of some flavors."""
    groups = []
    for resources, flavors in layout:
        chosen = draw.sample(flavors, draw.randint(1, len(flavors)))
        rows = []
        for flavor in chosen:
            quotas = [_quota(draw, resource, may_limit=may_limit) for resource in resources]
            rows.append({"name": flavor, "resources": quotas})
        groups.append({"coveredResources": list(resources), "flavors": rows})
    return groups


def _quota(draw: random.Random, resource: str, *, may_limit: bool) -> Json:
    unit, suffix = {"cpu": (6, ""), "memory": (24, "Gi"), GPU: (1, "")}[resource]
    nominal = draw.choice((0, 2, 4, 4, 6, 8))
    quota = {"name": resource, "nominalQuota": f"{nominal * unit}{suffix}"}
    if may_limit and draw.random() < 0.2:
        quota["borrowingLimit"] = f"{draw.choice((0, 2, 4, 8)) * unit}{suffix}"
    if may_limit and draw.random() < 0.2:
        quota["lendingLimit"] = f"{draw.randint(0, nominal) * unit}{suffix}"
    return quota


def _queue(draw: random.Random, layout: Sequence[Any], cohorts: Sequence[str]) -> Json:
    cohort = draw.choice(cohorts) if draw.random() < 0.9 else None
    reclaim = draw.choice(("Any", "Any", "LowerPriority", "Never"))
    preemption: Json = {
        "withinClusterQueue": draw.choice(("LowerPriority", "LowerOrNewerEqualPriority", "Never")),
        "reclaimWithinCohort": reclaim,
    }
    if reclaim != "Never" and draw.random() < 0.4:
        preemption["borrowWithinCohort"] = {"policy": "LowerPriority"}
        if draw.random() < 0.5:
            preemption["borrowWithinCohort"]["maxPriorityThreshold"] = draw.choice((-100, 0, 100))
    fungibility = {
        name: draw.choice(("MayStopSearch", "TryNextFlavor")) for name in ("whenCanBorrow", "whenCanPreempt")
    }
    if set(fungibility.values()) == {"TryNextFlavor"} and draw.random() < 0.5:
        fungibility["preference"] = draw.choice(("BorrowingOverPreemption", "PreemptionOverBorrowing"))
    spec: Json = {"cohortName": cohort} if cohort else {}
    return spec | {
        "resourceGroups": _groups(draw, layout, may_limit=cohort is not None),
        "queueingStrategy": draw.choice(STRATEGIES),
        "preemption": preemption,
        "flavorFungibility": fungibility,
        "fairSharing": {"weight": draw.choice(("0", "500m", "1", "1", "1", "2", "3"))},
    }


GENERATORS: Final[dict[str, tuple[Callable[[int, str], Json], int]]] = {
    "manifests": (manifests_scenario, 50),
    "deep": (deep_scenario, 30),
    "random": (random_scenario, 20),
}
"""Generators by name, and how many of 100 scenarios each draws."""


def drawn(seed: int) -> list[Json]:
    """Return 100 scenarios, those of each generator divided among the modes."""
    modes = list(MODES)
    return [
        {**generate(seed + number, modes[number % len(modes)]), "generator": name}
        for name, (generate, count) in GENERATORS.items()
        for number in range(count)
    ]


def verdict(row: Json) -> tuple[int, int]:
    """Return how many steps the model agrees with at best, over several orders of ties, and the number of steps."""
    real = list(expand(row["play"]))
    return max(agreeing(play(row, seed), real) for seed in range(SEEDS)), len(real)


def main() -> None:
    """Play the missing scenarios, one mode after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("output", type=Path)
    parser.add_argument("--side-by-side", type=int, default=10)
    options = parser.parse_args()
    recorded = {row["name"] for row in read_record(options.output)}
    lock = threading.Lock()

    def keep(cluster: Cluster, number: int, scenario: Json) -> str:
        row = {**scenario, "play": compact(play_for_real(cluster, scenario, f"s{number}"))}
        with lock, options.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
        return str(scenario["name"])

    for mode in MODES:
        missing = [row for row in drawn(options.seed) if row["mode"] == mode and row["name"] not in recorded]
        if not missing:
            continue
        with running_cluster(mode) as cluster, ThreadPoolExecutor(options.side_by_side) as pool:
            started = time.monotonic()
            plays = {pool.submit(keep, cluster, number, row): row["name"] for number, row in enumerate(missing)}
            for count, play_done in enumerate(as_completed(plays), 1):
                failure = play_done.exception()
                words = f" failed: {failure!r}"[:300] if failure else ""
                took = f"{time.monotonic() - started:.0f} s"
                print(f"{mode}: {count} of {len(plays)}, {took}: {plays[play_done]}{words}", flush=True)


if __name__ == "__main__":
    main()
