"""Quota as Kueue counts it: a tree of cohorts with ClusterQueues as leaves, each with quota and usage for each flavor.

The tree is built from the specs of Kueue's objects. A cell is a combination of a flavor and one of its resources. Its
number is its index in ``Quotas.flavors``. Amounts are integers: thousandths of CPUs, and units of any other resource.

Source: kubernetes-sigs/kueue v0.19.2, pkg/cache/scheduler (resource_node.go, fair_sharing.go) and the pages on cohorts
and fair sharing, read 2026-11-23.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

Json = Mapping[str, Any]
Usage = Mapping[int, int]
"""Amounts, keyed by cell."""
_QUANTITY: Final = re.compile(r"([0-9]{1,30}(?:\.[0-9]{0,30})?)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,2}|)")
_SUFFIXES: Final = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": Fraction(1000),
    **{letter: Fraction(1000**power) for power, letter in enumerate("MGTPE", 2)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}  # fmt: skip
Weighed = tuple[int, float]
"""A pair that orders queues and cohorts: 1 if they borrow with a weight of 0, else 0; then the dominant share."""


class Quota(NamedTuple):
    """The quota of one cell; None means unlimited."""

    nominal: int
    borrowing: int | None = None
    lending: int | None = None


class Member:
    """A ClusterQueue or a cohort: its quota and usage, and its parent and children in the tree.

    ``local`` is the amount that the member never lends. ``subtree`` is its own quota plus the amount that its children
    lend to it; ``usage`` counts against ``subtree``. ``height`` is the number of levels down to its lowest queue, 0 for
    a queue itself. ``lendable`` maps each resource to the amount that the parent could give if nothing was used. Shares
    are fractions of this amount, and are cached until the usage changes.
    """

    def __init__(self, name: str, weight: float, quotas: Mapping[int, Quota], resources: Sequence[str]) -> None:
        count = len(resources)
        rows = [quotas.get(cell, Quota(0)) for cell in range(count)]
        self.name = name
        self.weight = weight
        self.parent: Member | None = None
        self.children: list[Member] = []
        self.resources = resources
        self.height = 0
        self.borrowing = [row.borrowing for row in rows]
        self.lending = [row.lending for row in rows]
        self.cells = sorted(quotas)
        self.subtree = [row.nominal for row in rows]
        self.local = [0] * count
        self.usage = [0] * count
        self.potential = [0] * count
        self.lendable: Counter[str] = Counter()
        self.root = self
        self.kept_share: Weighed | None = None
        self.kept_beside: dict[Member, tuple[Member, Member]] = {}

    def path(self) -> Iterator[Member]:
        """Yield the cohorts above this member, from its parent to the root."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def beside(self, other: Member) -> tuple[Member, Member]:
        """Return the two children of the lowest common cohort: one leads to (or is) this queue, one the other."""
        if other not in self.kept_beside:
            above = [self, *self.path()]
            side = other
            while side.parent is not None and side.parent not in above:
                side = side.parent
            own_side = above[above.index(side.parent) - 1] if side.parent is not None else self
            self.kept_beside[other] = own_side, side
        return self.kept_beside[other]

    def local_available(self, cell: int) -> int:
        """Return the unused part of the amount that this member never lends."""
        return max(0, self.local[cell] - self.usage[cell])

    def available(self, cell: int) -> int:
        """Return the free amount, including what it may borrow. It is negative if usage exceeds quota."""
        if self.parent is None:
            return self.subtree[cell] - self.usage[cell]
        room = self.parent.available(cell)
        local = self.local[cell]
        used = self.usage[cell]
        limit = self.borrowing[cell]
        if limit is not None:
            room = min(room, self.subtree[cell] - local - max(0, used - local) + limit)
        return max(0, local - used) + room

    def add(self, usage: Usage) -> None:
        """Count amounts as used here. The part above the amount that is never lent also counts in the cohorts above."""
        for cell, amount in usage.items():
            member: Member | None = self
            remaining_amount = amount
            while member is not None and remaining_amount > 0:
                over = remaining_amount - max(0, member.local[cell] - member.usage[cell])
                member.usage[cell] += remaining_amount
                member.kept_share = None
                member, remaining_amount = member.parent, over

    def remove(self, usage: Usage) -> None:
        """Count amounts as free again, here and in the cohorts above."""
        for cell, amount in usage.items():
            member: Member | None = self
            remaining_amount = amount
            while member is not None and remaining_amount > 0:
                above = member.usage[cell] - member.local[cell]
                member.usage[cell] -= remaining_amount
                member.kept_share = None
                member, remaining_amount = member.parent, min(remaining_amount, above)

    def borrows_with(self, cell: int, amount: int) -> bool:
        """Return True if an additional amount would exceed the quota, so that the member would have to borrow."""
        return self.subtree[cell] < self.usage[cell] + amount

    def borrows(self, cells: Iterable[int]) -> bool:
        """Return True if the member borrows any of the given flavors' resources (cells)."""
        for cell in cells:  # noqa: SIM110 # any() takes twice as long, and this is much of the time of preemption
            if self.usage[cell] > self.subtree[cell]:
                return True
        return False

    def share(self) -> Weighed:
        """Return the dominant share: the largest borrowed part of any resource, in thousandths, over the weight."""
        if self.kept_share is None:
            over: dict[str, int] = {}
            ratio = 0.0
            for cell in self.cells:
                borrowed = self.usage[cell] - self.subtree[cell]
                if borrowed > 0:
                    resource = self.resources[cell]
                    over[resource] = over.get(resource, 0) + borrowed
                    lendable = self.lendable[resource]
                    if lendable:
                        ratio = max(ratio, over[resource] * 1000.0 / lendable)
            share = (0, ratio / self.weight) if self.weight else (1, ratio)
            self.kept_share = share if ratio else (0, 0.0)
        return self.kept_share

    def lowest_fit(self, cell: int, amount: int) -> tuple[int, bool]:
        """Return the height of the lowest member with enough quota for an amount, and whether it is below the root.

        If no member has enough, return the height of the root.
        """
        for member in (self, *self.path()):
            if not member.borrows_with(cell, amount):
                return member.height, member.parent is not None
            amount -= member.local_available(cell)
        return member.height, False


class Quotas:
    """The tree of one cluster, built from the specs of its ClusterQueues and Cohorts, keyed by name.

    A cohort without a Cohort object is a root without quota. ``order`` shuffles the members, since Kueue iterates over
    them in the random order of a Go map, and this order decides between cohorts with equal shares. A cell is an index
    into ``flavors`` and ``labels``, which contain its flavor, and a label that also names the resource if the flavor
    has several.
    """

    def __init__(self, queues: Mapping[str, Json], cohorts: Mapping[str, Json], order: random.Random) -> None:
        specs = (*queues.values(), *cohorts.values())
        cells = list(dict.fromkeys((flavor, resource) for spec in specs for resource, flavor, _ in _rows(spec)))
        self.flavors = [flavor for flavor, _ in cells]
        self.cells = {cell: index for index, cell in enumerate(cells)}
        several = {name for name, count in Counter(self.flavors).items() if count > 1}
        self.labels = [f"{flavor} {resource}" if flavor in several else flavor for flavor, resource in cells]
        resources = [resource for _, resource in cells]
        self.queues = {name: self._member(name, spec, resources) for name, spec in queues.items()}
        self.cohorts = {name: self._member(name, spec, resources) for name, spec in cohorts.items()}
        for member, spec in zip([*self.queues.values(), *self.cohorts.values()], specs, strict=True):
            cohort = spec.get("cohortName") or spec.get("parentName")
            if cohort:
                member.parent = self.cohorts.setdefault(cohort, Member(cohort, 1.0, {}, resources))
                member.parent.children.append(member)
        members = [*self.cohorts.values(), *self.queues.values()]
        for member in members:
            member.root = [member, *member.path()][-1]
        for root in members:
            if root.parent is None:
                self._sum_up(root, order)
                self._potentials(root)

    def shuffle(self, order: random.Random) -> None:
        """Shuffle the members of each cohort."""
        for member in self.cohorts.values():
            order.shuffle(member.children)

    def _member(self, name: str, spec: Json, resources: Sequence[str]) -> Member:
        quotas = {self.cells[flavor, resource]: quota for resource, flavor, quota in _rows(spec)}
        return Member(name, float(spec.get("fairSharing", {}).get("weight", 1)), quotas, resources)

    def _sum_up(self, member: Member, order: random.Random) -> None:
        """Add the quota that each member lends to the quota of its cohort."""
        order.shuffle(member.children)
        cells = set(member.cells)
        for child in member.children:
            self._sum_up(child, order)
            member.height = max(member.height, child.height + 1)
            cells |= set(child.cells)
            for cell in child.cells:
                member.subtree[cell] += child.subtree[cell] - child.local[cell]
        for cell, limit in enumerate(member.lending):
            member.local[cell] = 0 if limit is None else max(0, member.subtree[cell] - limit)
        member.cells = sorted(cells)

    def _potentials(self, member: Member) -> None:
        """Compute the amount that each member could use if nothing was used."""
        parent = member.parent
        for cell in range(len(self.flavors)):
            if parent is None:
                member.potential[cell] = member.subtree[cell]
            else:
                maximum = member.local[cell] + parent.potential[cell]
                limit = member.borrowing[cell]
                member.potential[cell] = maximum if limit is None else min(maximum, member.subtree[cell] + limit)
                member.lendable[member.resources[cell]] += parent.potential[cell]
        for child in member.children:
            self._potentials(child)


def _rows(spec: Json) -> Iterator[tuple[str, str, Quota]]:
    """Yield resource, flavor and quota for each entry in the resource groups of a spec, in order."""
    for group in spec.get("resourceGroups", ()):
        for flavor in group["flavors"]:
            for row in flavor["resources"]:
                resource = row["name"]
                limits = (row.get("borrowingLimit"), row.get("lendingLimit"))
                borrowing, lending = (None if limit is None else amount(resource, limit) for limit in limits)
                yield (
                    resource,
                    flavor["name"],
                    Quota(amount(resource, row.get("nominalQuota", 0)), borrowing, lending=lending),
                )


def amount(resource: str, quantity: object) -> int:
    """Return a Kubernetes quantity as the integer that Kueue counts, rounded up. Raises ValueError if it is invalid."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"{quantity!r} is not a quantity")
    number, suffix = match.groups()
    unit = _SUFFIXES.get(suffix) or Fraction(10) ** int(suffix[1:])
    return math.ceil(Fraction(number) * unit * units(resource))


def units(resource: str) -> int:
    """Return the number by which Kueue's integer amounts of a resource are divided for display."""
    return 1000 if resource == "cpu" else 1


def flavors_of(spec: Json) -> dict[str, list[str]]:
    """Return the flavors of a ClusterQueue, keyed by resource, in the order in which Kueue tries them."""
    flavors: dict[str, list[str]] = {}
    for resource, flavor, _ in _rows(spec):
        flavors.setdefault(resource, []).append(flavor)
    return flavors
