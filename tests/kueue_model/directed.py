"""Scenarios for single branches of the algorithm, found by planting a fault in the branch, or written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.kueue_model.scenarios import GPU, Json, queues_of, random_scenario

FOUND: Final = (
    ("evictions may always lead to borrowing", 2001, "classical"),
    ("the first rule is always the final share", 2001, "initial"),
    ("level does not order entries", 2005, "classical"),
    ("no claim by place", 2016, "classical"),
    ("borrowing takes nobody's place", 2023, "classical"),
    ("candidates stay candidates", 2159, "classical"),
    ("nothing is kept for who cannot reclaim", 2302, "classical"),
    ("priority does not order entries", 2318, "fair"),
    ("cohorts are not compared", 2389, "fair"),
)
"""Seeds of random scenarios, each with the fault of the model that it shows first."""


X = "h100-spot"
Y = "h100-flex-start"
RECLAIMING = ("Never", "Any")
Row = tuple[str, int, list[Any]]


def _team(shares: Mapping[str, int], preemption: tuple[str, str] = ("Never", "Never"), **more: object) -> Json:
    policies = dict(zip(("within_queue", "reclaim"), preemption, strict=True))
    quotas = {flavor: {"nominal_quota": quota} for flavor, quota in shares.items()}
    return {"shares": quotas, "preemption": policies, **more}


def _scenario(name: str, mode: str, teams: Json, jobs: dict[str, Row], steps: str, **more: object) -> Json:
    """Return a scenario; jobs are team, priority, and for each kind of pods its GPUs and perhaps a flavor."""
    rows = {}
    for job, (team, priority, kinds) in jobs.items():
        pods = [[GPU, *kind] if isinstance(kind, tuple) else [GPU, kind] for kind in kinds]
        rows[job] = {"team": team, "priority": priority, "pods": pods}
    return queues_of({"name": name, "mode": mode, "teams": teams, "jobs": rows, "steps": steps.split(), **more})


WRITTEN: Final = (
    # A queue that is held starts nothing, and others may use what is its own.
    _scenario(
        "held", "fair", {"team-a": _team({X: 4}, hold="Hold"), "team-b": _team({X: 4})},
        {"j0": ("team-a", 0, [2]), "j1": ("team-b", 0, [6]), "j2": ("team-a", 0, [4]), "j3": ("team-b", 0, [2])},
        "+j0 +j1 +j2 -j0 +j3 -j1",
    ),
    # a1 finds nobody to evict, since b is within its quota; b1 borrows. The new a2 could evict b0, but is not tried:
    # a1 was put aside and has the same shape.
    _scenario(
        "new-of-a-shape", "fair",
        {"team-a": _team({X: 4}, RECLAIMING, weight=3), "team-b": _team({X: 4}, RECLAIMING)},
        {"a0": ("team-a", 0, [1]), "b0": ("team-b", 0, [4]), "a1": ("team-a", 0, [4]), "b1": ("team-b", 100, [1]),
         "a2": ("team-a", 0, [4])},
        "+a0 +b0 +a1 +b1 +a2 -a0",
    ),
    # a2 cannot get within its quota even with b's jobs gone. The second attempt may borrow, and evicts a0 for that.
    _scenario(
        "second-attempt", "classical",
        {"team-a": _team({X: 4}, ("LowerPriority", "Any")), "team-b": _team({X: 4}), "team-c": _team({X: 2})},
        {"a0": ("team-a", 0, [1]), "a1": ("team-a", 100, [1]), "b0": ("team-b", 0, [4]), "b1": ("team-b", 0, [1]),
         "a2": ("team-a", 100, [4])},
        "+a0 +a1 +b0 +b1 +a2 -b0",
    ),
    # a and b borrow the same, each of another flavor: b's job is evicted for a1, not a's own.
    _scenario(
        "others-first", "fair",
        {"team-a": _team({X: 0, Y: 6}, ("LowerPriority", "Any")), "team-b": _team({Y: 2}), "team-c": _team({X: 4})},
        {"ax": ("team-a", 100, [(2, X)]), "a0": ("team-a", 0, [(2, Y)]), "b0": ("team-b", 0, [2]),
         "b1": ("team-b", 0, [2]), "a1": ("team-a", 100, [(4, Y)])},
        "+ax +a0 +b0 +b1 +a1 -b0",
    ),
    # d0 frees room in north for a0 or c0, which both could evict b0: a0 does, and c0 goes on at its next flavor.
    _scenario(
        "same-victim", "final",
        {"team-a": _team({X: 0}, RECLAIMING, cohort="north"),
         "team-c": _team({X: 0, Y: 0}, RECLAIMING, cohort="north",
                         fallback={"when_can_preempt": "MayStopSearch", "order": [X, Y]}),
         "team-d": _team({X: 3, Y: 2}, cohort="north"), "team-b": _team({X: 0}), "team-e": _team({X: 4})},
        {"d0": ("team-d", 0, [(1, X), (2, Y)]), "d1": ("team-d", 0, [(2, X)]), "b0": ("team-b", 0, [5]),
         "a0": ("team-a", 0, [2]), "c0": ("team-c", 0, [2])},
        "+d0 +d1 +b0 +a0 +c0 -d0 -d1", cohorts={"north": {"shares": {X: {"nominal_quota": 1}}}},
    ),
    # z0 frees room for two of three. a0 comes first, and raises the share of north above that of south: c0 is next.
    _scenario(
        "share-of-a-cohort", "fair",
        {"team-a": _team({X: 0}, cohort="north"), "team-b": _team({X: 0}, cohort="north"),
         "team-c": _team({X: 0}, cohort="south"), "team-z": _team({X: 6})},
        {"z0": ("team-z", 0, [6]), "a0": ("team-a", 0, [2]), "b0": ("team-b", 0, [2]), "c0": ("team-c", 0, [3])},
        "+z0 +a0 +b0 +c0 -z0 -a0", cohorts={"north": {}, "south": {}},
    ),
    # a0 fits nowhere and finds nobody to evict, but stands for north: with it, the share of north is above that of
    # south, and c0 starts. Alone, b0 would come before c0.
    _scenario(
        "first-of-a-cohort", "fair",
        {"team-a": _team({X: 0}, RECLAIMING, weight=3, cohort="north"), "team-b": _team({X: 0}, cohort="north"),
         "team-c": _team({X: 0}, cohort="south"), "team-d": _team({X: 4}), "team-z": _team({X: 0})},
        {"d0": ("team-d", 0, [4]), "z0": ("team-z", 0, [6]), "a0": ("team-a", 0, [8]), "b0": ("team-b", 0, [4]),
         "c0": ("team-c", 0, [5])},
        "+d0 +z0 +a0 +b0 +c0 -z0 -c0", cohorts={
            "north": {}, "south": {}, "training-platform": {"shares": {X: {"nominal_quota": 6}}},
        },
    ),
    # a0 never fits, but its first kind of pods counts: as the first of north it raises the share above that of c: c0
    # comes before b0, which has a higher priority and would come first without a0.
    _scenario(
        "never-fits-and-is-first-of-a-cohort", "fair",
        {"team-a": _team({X: 0}, weight=10, cohort="north"), "team-b": _team({X: 0}, cohort="north"),
         "team-c": _team({X: 0}), "team-z": _team({X: 0})},
        {"z0": ("team-z", 0, [6]), "a0": ("team-a", 0, [6, 8]), "b0": ("team-b", 100, [4]), "c0": ("team-c", 0, [4])},
        "+z0 +a0 +b0 +c0 -z0",
        cohorts={"north": {}, "training-platform": {"shares": {X: {"nominal_quota": 6}}}},
    ),
)  # fmt: skip


DIRECTED: Final = [
    *WRITTEN,
    *({**random_scenario(seed, mode, (7, 12)), "name": f"directed-{mode}-{seed}"} for _, seed, mode in FOUND),
]
