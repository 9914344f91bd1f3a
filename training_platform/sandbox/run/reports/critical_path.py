"""Which chain of resources a run had to wait for, from each one's own time and what it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from graphlib import TopologicalSorter
from typing import Any, NamedTuple


class Leg(NamedTuple):
    """One resource of the path: its own ``seconds``, and at which second it could have been done at the earliest."""

    urn: str
    seconds: float
    done: float


def critical_path(seconds: Mapping[str, float], needs: Mapping[str, Collection[str]]) -> list[Leg]:
    """Return the longest chain, first resource first, of resources that each need the one before.

    ``needs`` may name resources that took no part; they cost nothing, and lead on to what they need themselves.
    """
    legs: dict[str, Leg] = {}
    before: dict[str, str | None] = {}
    for urn in TopologicalSorter({urn: needs.get(urn, ()) for urn in {*seconds, *needs}}).static_order():
        last = max(needs.get(urn, ()), key=lambda need: legs[need].done, default=None)
        own = seconds.get(urn, 0.0)
        before[urn] = last
        legs[urn] = Leg(urn, own, own + (legs[last].done if last else 0.0))
    end = max(legs, key=lambda each: legs[each].done, default=None)
    path: list[Leg] = []
    while end is not None:
        path.append(legs[end])
        end = before[end]
    return [leg for leg in reversed(path) if leg.urn in seconds]


def needs_of(resources: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Return what each resource of a state waits for: dependencies, its provider, its parent."""
    return {each["urn"]: set(_needs(each)) - {each["urn"]} for each in resources}


def reversed_needs(needs: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """Return the order of a destroy: a resource goes when all that need it are gone."""
    found: dict[str, set[str]] = {urn: set() for urn in needs}
    for urn, each in needs.items():
        for need in each:
            found.setdefault(need, set()).add(urn)
    return found


def width(needs: Mapping[str, Collection[str]]) -> int:
    """Return how many resources could be under way at once when each takes as long as any other."""
    level: dict[str, int] = {}
    for urn in TopologicalSorter(needs).static_order():
        level[urn] = 1 + max((level[need] for need in needs.get(urn, ())), default=0)
    levels = list(level.values())
    return max((levels.count(each) for each in set(levels)), default=0)


def _needs(resource: Mapping[str, Any]) -> Iterable[str]:
    yield from resource.get("dependencies") or ()
    for urns in (resource.get("propertyDependencies") or {}).values():
        yield from urns or ()
    if provider := resource.get("provider"):
        yield provider.rpartition("::")[0]  # its id follows the URN
    if parent := resource.get("parent"):
        yield parent
