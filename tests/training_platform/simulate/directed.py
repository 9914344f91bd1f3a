"""Scenarios for single branches of the algorithm: found by what a mutation of that branch does to them, or written."""

from __future__ import annotations

from typing import Any, Final

from tests.training_platform.simulate.scenarios import GPU, random_scenario

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
"""Seeds of random scenarios, each by the mutation that changes it first."""


def _held() -> dict[str, Any]:
    """A queue that is held starts nothing, and others may use what is its own."""
    shares = {"shares": {"h100-spot": {"nominal_quota": 4}}}
    jobs = {name: {"team": team, "pods": [[GPU, amount]]} for name, team, amount in (
        ("j0", "team-a", 2), ("j1", "team-b", 6), ("j2", "team-a", 4), ("j3", "team-b", 2))}  # fmt: skip
    teams = {"team-a": {**shares, "hold": "Hold"}, "team-b": shares}
    steps = ["+j0", "+j1", "+j2", "-j0", "+j3", "-j1"]
    return {"name": "held", "mode": "fair", "teams": teams, "jobs": jobs, "steps": steps}


DIRECTED: Final = [
    _held(),
    *({**random_scenario(seed, mode, (7, 12)), "name": f"directed-{mode}-{seed}"} for _, seed, mode in FOUND),
]
