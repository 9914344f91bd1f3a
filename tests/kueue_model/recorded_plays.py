"""The record: scenarios with the plays of real Kueue, and how far the model agrees with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.kueue_model.scenarios import Json, Step, play

RECORDED = Path(__file__).parent / "recorded"
SEEDS = 24  # ties that are tried before a play counts as one that the model never gives


def kueue_version() -> str:
    """Return the newest version of Kueue that is recorded."""
    return max(path.stem.removeprefix("kueue-") for path in RECORDED.glob("kueue-*.jsonl"))


def record_path() -> Path:
    """Return the file of the record."""
    return RECORDED / f"kueue-{kueue_version()}.jsonl"


def read_record(path: Path) -> list[Json]:
    """Return the rows of a record: scenarios, each with the plays of it."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def is_tied(scenario: Json) -> bool:
    """Whether ties matter in a scenario, by the model."""
    first = list(play(scenario, 0))
    return any(list(play(scenario, seed)) != first for seed in range(1, 8))


def agreeing(model: Iterable[Step], real: Iterable[Step]) -> int:
    """Return how many steps agree before the first that does not; a loop ends the comparison."""
    count = 0
    for ours, theirs in zip(model, real, strict=False):
        if ours != theirs and not (ours.loops and theirs.loops):
            break
        count += 1
        if theirs.loops:
            break
    return count


def is_played(scenario: Json, real: Sequence[Step]) -> bool:
    """Whether the model plays a scenario as real Kueue did, for some order of ties."""
    return any(agreeing(play(scenario, seed), real) == len(real) for seed in range(SEEDS))


def compact(steps: Iterable[Step]) -> list[Json]:
    """Return steps as rows of changes: new flavors of jobs, and evicted jobs."""
    rows = []
    before = dict[str, str]()
    for step in steps:
        row: Json = {}
        if changed := {name: on for name, on in step.admitted.items() if before.get(name) != on}:
            row["on"] = changed
        if gone := sorted(before.keys() - step.admitted.keys()):
            row["off"] = gone
        if step.evicted:
            row["evicted"] = step.evicted
        if step.loops:
            row["loops"] = True
        rows.append(row)
        before = step.admitted
    return rows


def expand(rows: Iterable[Json]) -> Iterator[Step]:
    """Yield the steps of rows."""
    admitted: dict[str, str] = {}
    for row in rows:
        admitted = {name: on for name, on in admitted.items() if name not in row.get("off", ())} | row.get("on", {})
        yield Step(admitted, row.get("evicted", []), row.get("loops", False))
