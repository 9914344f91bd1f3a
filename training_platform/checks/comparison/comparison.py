"""What a change does, as plain data: reports are made from this alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from training_platform.checks.comparison.changes import (
    AcceleratorChange,
    Amount,
    CapacityChange,
    QuotaChange,
    ResourceChange,
)

NOTHING = Amount(0, 0)


@dataclass(frozen=True, kw_only=True)
class StackChange:
    """One stack that the change touches.

    ``was`` is its name in the base, where that is another. ``unknown`` says why its resources were not compared.
    """

    name: str
    kind: Literal["added", "removed", "renamed", "changed"]
    was: str | None = None
    resources: tuple[ResourceChange, ...] = ()
    accelerators: tuple[AcceleratorChange, ...] = ()
    least_usd: Amount = NOTHING
    most_usd: Amount = NOTHING
    unknown: str | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing that is deployed differs."""
        same_cost = self.least_usd.before == self.least_usd.after and self.most_usd.before == self.most_usd.after
        nothing = not (self.resources or self.accelerators or self.unknown)
        return self.kind == "changed" and nothing and same_cost


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The work tree against ``commit``, which it has in common with ``ref``.

    ``stacks`` are those that the change can affect, ``others`` is how many there are beside. ``own_program`` says
    that the base was planned by its own program. ``unknown`` says why nothing of the base is known, where that is so.
    """

    ref: str
    commit: str
    stacks: tuple[StackChange, ...] = ()
    others: int = 0
    quotas: tuple[QuotaChange, ...] = ()
    capacity: tuple[CapacityChange, ...] = ()
    own_program: bool = False
    unknown: str | None = field(default=None)
