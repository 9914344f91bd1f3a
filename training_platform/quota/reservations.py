"""Findings about reservations that are too small for the pools that use them, across all environments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from training_platform.config.expansion import ExpandedPool, pools
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.reading.declaration import Draft, declare, finding
from training_platform.config.reading.finding import Path, Place, dotted
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace


class _Consumer(NamedTuple):
    """A pool that uses a reservation, its stack, and the reservation's number of chips if the pool states it."""

    stack: Stack
    pool: ExpandedPool
    size: int | None

    @property
    def label(self) -> str:
        return f"{self.pool.name} of {self.stack.name}"

    @property
    def field(self) -> str:
        """The field that sets the number of the pool's VMs or slices."""
        return "max_nodes" if self.pool.machine.kind == "gpu" else "slices"

    @property
    def reservation(self) -> Path:
        return (*self.pool.path, "reservation")


RESERVATION_EXCEEDED = declare(
    "reservation-exceeded",
    "Find pools that together have more chips than their reservation.",
    ruleset="capacity",
    refused_by="`check` only. GKE creates the pools, but VMs for which the reservation has no room never start",
    excuse="exemption",
)


def reservation_findings(workspace: Workspace) -> Iterator[Draft]:
    """Yield findings about reservations that are too small, have two sizes or none, or have pools in two zones.

    A reservation is identified by project, location and name. Pools that GKE creates for compute classes have no
    maximum of their own, so they are reported as not evaluated. Vertex AI jobs are left out, because they end.
    """
    consumers: dict[tuple[str, str, str], list[_Consumer]] = defaultdict(list)
    for stack, environment in workspace.environments():
        for pool in pools(environment):
            reservation = pool.spec.reservation
            if reservation and not reservation.any:
                key = (reservation.project or environment.project, pool.zone or pool.region, reservation.name)
                consumers[key].append(_Consumer(stack, pool, size=reservation.chips))
        yield from _of_classes(stack, environment)
    first_of: dict[tuple[str, str], _Consumer] = {}
    for (project, location, name), members in consumers.items():
        sizes = {member.size for member in members if member.size is not None}
        if len(sizes) > 1:
            yield _two_sizes(name, members)
        elif sizes:
            yield from _exceeded(f"reservation {name} in {location}", members, *sizes)
        else:
            yield _unknown_size(f"reservation {name} in {location}", members)
        first = first_of.setdefault((project, name), members[0])
        if first is not members[0]:
            yield _two_zones(name, members[0], first)


def _two_sizes(name: str, members: Sequence[_Consumer]) -> Draft:
    first, *other_members = [member for member in members if member.size is not None]
    other = next(member for member in other_members if member.size != first.size)
    message = (
        f"is {other.size:,}, but {first.stack.place(first.reservation)} has {first.size:,} for the same reservation, "
        f"{name}"
    )
    return finding(
        other.stack,
        (*other.reservation, "chips"),
        message,
        rule=RESERVATION_EXCEEDED,
        allowed="one size",
        nearest=first.size,
        rests_on=_others(other, members),
    )


def _exceeded(subject: str, members: Sequence[_Consumer], size: int) -> Iterator[Draft]:
    """Yield a finding, at the largest pool that can be shrunk, if pools need more chips than their reservation has."""
    promised = sum(member.pool.max_chips for member in members)
    if promised <= size:
        return
    by_size = sorted(members, key=lambda member: member.pool.max_chips, reverse=True)
    fitting = {member.label: _fitting(member, size - promised + member.pool.max_chips) for member in by_size}
    member = next((row for row in by_size if fitting[row.label]), by_size[0])
    fits = fitting[member.label]
    message = f"{subject} has {size:,} chips, but its pools need {promised:,}: {_amounts(members)}"
    allowed = f"at most {fits:,} in addition to the others" if fits else "smaller pools"
    yield finding(
        member.stack,
        (*member.pool.path, member.field),
        message,
        rule=RESERVATION_EXCEEDED,
        amount=promised,
        holders=((row.stack.name, dotted((*row.pool.path, row.field))) for row in members),
        allowed=allowed,
        nearest=fits or None,
        rests_on=[row.stack.at(row.pool.path) for row in members],
    )


def _fitting(member: _Consumer, chips: int) -> int:
    """Return the maximum number of a pool's slices or VMs whose chips fit into ``chips``."""
    count: int = getattr(member.pool.spec, member.field)
    chips_each = member.pool.max_chips // count
    return max(0, chips) // chips_each


def _unknown_size(subject: str, members: Sequence[_Consumer]) -> Draft:
    last = members[-1]
    promised = sum(member.pool.max_chips for member in members)
    message = f"the size of {subject} is unknown; its pools need {promised:,} chips: {_amounts(members)}"
    return finding(
        last.stack,
        last.reservation,
        message,
        rule=RESERVATION_EXCEEDED,
        severity="note",
        unjudged="reservation of unknown size",
        allowed="the field `chips` in the reservation of one of these pools",
        rests_on=_others(last, members),
    )


def _two_zones(name: str, member: _Consumer, first: _Consumer) -> Draft:
    zones = [row.pool.zone or row.pool.region for row in (member, first)]
    message = (
        f"{name} is in {zones[0]} here and in {zones[1]} for {first.label}: a reservation is in only one zone, so "
        f"either there are two reservations of that name, or one pool is in the wrong zone"
    )
    return finding(
        member.stack,
        member.reservation,
        message,
        rule=RESERVATION_EXCEEDED,
        severity="note",
        unjudged="reservation of unclear zone",
        allowed="a different name for each reservation",
        rests_on=_others(first, [member]),
    )


def _of_classes(stack: Stack, environment: Environment) -> Iterator[Draft]:
    """Yield findings about reservations that compute classes use. The pools of these classes have no maximum."""
    for cluster_name, cluster in environment.clusters.items():
        for class_name, compute_class in cluster.compute_classes.items():
            path = ("clusters", cluster_name, "compute_classes", class_name, "priorities")
            for number, priority in enumerate(compute_class.priorities):
                if priority.reservation and priority.names_reservation:
                    message = (
                        f"no rule checks whether reservation {priority.reservation.name} has enough VMs, because the "
                        f"pools of a compute class have no maximum"
                    )
                    yield finding(
                        stack,
                        (*path, number, "reservation"),
                        message,
                        rule=RESERVATION_EXCEEDED,
                        severity="note",
                        unjudged="reservation of a compute class",
                    )


def _amounts(members: Sequence[_Consumer]) -> str:
    return enumeration([f"{member.label} {member.pool.max_chips:,}" for member in members])


def _others(member: _Consumer, members: Sequence[_Consumer]) -> list[Place]:
    """Return the positions of the other pools that use the reservation and so contribute to the finding."""
    return [row.stack.at(row.pool.path) for row in members if row != member]
