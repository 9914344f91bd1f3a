"""Slice shapes of machine types: which shapes exist, their number of hosts, and the shape that was probably meant."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from training_platform import catalog
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import MachineType, TopologyRule, chips_in, parse_topology, render_topology

SHOWN = 16  # most shapes that a finding lists


def hosts(machine: MachineType, topology: str) -> int | None:
    """Return the number of VMs in a slice, or None if its chips do not make up whole machines of this type."""
    chips = chips_in(topology)
    if _rule(machine) is None or chips is None or chips % machine.chips:
        return None
    return chips // machine.chips


def legal_for(machine: MachineType, topology: str) -> bool:
    """Return True if the shape exists for the accelerator family and machines of this type can form it."""
    rule = _rule(machine)
    if rule is None or not rule.legal(topology):
        return False
    count = hosts(machine, topology)
    if count == 1:
        return topology == machine.single_host
    return count is not None and machine.multi_host


def legal_topologies(machine: MachineType) -> Iterator[str]:
    """Yield every shape that this machine can form, by number of chips. The sides of each shape are in rising order."""
    rule = _rule(machine)
    if rule is not None:
        yield from (shape for shape in rule.legal_shapes() if legal_for(machine, shape))


def topologies_text(machine: MachineType) -> str:
    """Return the first ``SHOWN`` shapes that this machine can form, as one line."""
    first = list(islice(legal_topologies(machine), SHOWN + 1))
    return ", ".join(first[:SHOWN]) + (" and larger ones" if len(first) > SHOWN else "")


def other_machine(machine: MachineType, topology: str) -> str | None:
    """Return another machine type of the same family that can form the shape, or None."""
    of_family = (row for row in catalog.MACHINE_TYPES.values() if row.accelerator is machine.accelerator)
    return next((row.name for row in of_family if legal_for(row, topology)), None)


def nearest_topology(machine: MachineType, topology: str) -> str | None:
    """Return the valid shape that was probably meant; None if the machine has no shapes or the string resembles none.

    This is the first of these that exists:

    - the same sides in rising order
    - the smallest shape with enough chips, in its most compact form
    - the largest shape
    """
    if legal_for(machine, topology):
        return topology
    shapes = list(legal_topologies(machine))
    sides = parse_topology(topology)
    if sides is None or not shapes:
        return find_nearest(topology, shapes)
    if (rising := render_topology(tuple(sorted(sides)))) in shapes:
        return rising
    chips = chips_in(topology) or 0
    enough = [shape for shape in shapes if (chips_in(shape) or 0) >= chips]
    return min(enough, key=lambda shape: (chips_in(shape), max(parse_topology(shape) or (0,))), default=shapes[-1])


def _rule(machine: MachineType) -> TopologyRule | None:
    return machine.accelerator.topologies if machine.accelerator is not None else None
