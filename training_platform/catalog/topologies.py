"""Which slice shapes fit which machine, how many hosts they take, and the shape that was probably meant."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from training_platform import catalog
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import MachineType, TopologyRule, chips_in, parse_topology, render_topology

SHOWN = 16  # shapes that a finding lists


def hosts(machine: MachineType, topology: str) -> int | None:
    """Return the number of VMs in a slice, or None when its chips do not divide into whole machines of this type."""
    chips = chips_in(topology)
    if _rule(machine) is None or chips is None or chips % machine.chips:
        return None
    return chips // machine.chips


def legal_for(machine: MachineType, topology: str) -> bool:
    """Whether the family has the shape and this machine can form it, by itself or with others."""
    rule = _rule(machine)
    if rule is None or not rule.legal(topology):
        return False
    count = hosts(machine, topology)
    if count == 1:
        return topology == machine.single_host
    return count is not None and machine.multi_host


def legal_topologies(machine: MachineType) -> Iterator[str]:
    """Yield every shape that this machine can make, sides rising, in order of chips."""
    rule = _rule(machine)
    if rule is not None:
        yield from (shape for shape in rule.legal_shapes() if legal_for(machine, shape))


def topologies_text(machine: MachineType) -> str:
    """Return the shapes that this machine can make as one line, the first ``SHOWN`` of them."""
    first = list(islice(legal_topologies(machine), SHOWN + 1))
    return ", ".join(first[:SHOWN]) + (" and larger ones" if len(first) > SHOWN else "")


def other_machine(machine: MachineType, topology: str) -> str | None:
    """Return the machine type of the same family that can make a shape which this one cannot, None where none can."""
    of_family = (row for row in catalog.MACHINE_TYPES.values() if row.accelerator is machine.accelerator)
    return next((row.name for row in of_family if legal_for(row, topology)), None)


def nearest_topology(machine: MachineType, topology: str) -> str | None:
    """Return the legal shape that was probably meant, or None for a machine without any, or a text unlike any.

    The same sides in rising order, if that is legal; otherwise the fewest chips that are enough, in the most compact
    box; otherwise the largest there is.
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
