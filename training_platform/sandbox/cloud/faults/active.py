"""The faults that a server has: which are there, which hit, and what they hit. Without faults nothing changes.

They are not kept in the server's file: after a restart nothing goes wrong any more, and what went wrong stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from training_platform.sandbox.cloud.faults.spec import Fault, Scenario
from training_platform.sandbox.cloud.state.clock import Clock, stamp

Json = dict[str, Any]
KEPT_EVENTS = 100  # of each fault; the number of all of them is counted

Some = TypeVar("Some", bound=Fault)


class NameTaken(Exception):
    """A fault of that name is there already."""


@dataclass(kw_only=True)
class Added:
    """A fault, when it was added, how many fitting requests or operations there were, and which it hit."""

    section: str
    name: str
    fault: Fault
    at: float
    fitting: int = 0
    fired: int = 0
    events: deque[Json] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))

    def under_way(self, now: float) -> bool:
        """Whether it can hit now."""
        begins = self.at + self.fault.from_seconds
        return begins <= now and not self.past(now)

    def past(self, now: float) -> bool:
        """Whether its time is over."""
        seconds = self.fault.for_seconds
        return seconds is not None and now >= self.at + self.fault.from_seconds + seconds

    def hits(self) -> bool:
        """Count one that fits, and return whether it is hit."""
        self.fitting += 1
        return self.fitting > self.fault.skip and (self.fault.times is None or self.fired < self.fault.times)


class Faults:
    """Faults by name, in the order in which they were added."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._added: dict[str, Added] = {}

    def add(self, scenario: Scenario) -> list[str]:
        """Add every fault of a scenario, from now on, and return their names. Raises NameTaken, and then adds none."""
        found = list(scenario.faults())
        taken = [name for _, name, _ in found if name in self._added]
        if taken:
            raise NameTaken(f"there already: {', '.join(taken)}; clear them first")
        now = self._clock.now()
        self._added |= {name: Added(section=section, name=name, fault=fault, at=now) for section, name, fault in found}
        return [name for _, name, _ in found]

    def names(self) -> list[str]:
        """Return the names of all that are there."""
        return list(self._added)

    def clear(self, name: str) -> None:
        """Remove a fault. Raises KeyError for an unknown name."""
        del self._added[name]

    def clear_all(self, project: str | None = None) -> None:
        """Remove every fault, or those that are limited to a project."""
        kept = {name: each for name, each in self._added.items() if project not in (None, each.fault.project)}
        self._added = kept

    def over(self, name: str, at: float) -> bool:
        """Whether a fault was cleared, or its time is past at another."""
        added = self._added.get(name)
        return added is None or added.past(at)

    def first(self, kind: type[Some], project: str, what: str, fits: Callable[[Some], bool]) -> tuple[str, Some] | None:
        """Return name and fault of the first of a kind that hits, and write down ``what`` it hit."""
        for added, fault in self._of(kind, project):
            if fits(fault) and added.hits():
                added.fired += 1
                added.events.append({"time": stamp(self._clock.now()), "what": what})
                return added.name, fault
        return None

    def shown(self) -> list[Json]:
        """Return every fault as the control API answers it."""
        now = self._clock.now()
        return [
            {
                "name": each.name, "section": each.section, "under_way": each.under_way(now), "fired": each.fired,
                "events": list(each.events), "fault": each.fault.model_dump(exclude_unset=True),
            }
            for each in self._added.values()
        ]  # fmt: skip

    def _of(self, kind: type[Some], project: str) -> Iterator[tuple[Added, Some]]:
        now = self._clock.now()
        for added in self._added.values():
            fault = added.fault
            if isinstance(fault, kind) and fault.project in (None, project) and added.under_way(now):
                yield added, fault
