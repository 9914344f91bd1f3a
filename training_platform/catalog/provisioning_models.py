"""Provisioning models other than the four that are charged separately, as far as they are documented.

Sources:

- Flex-start with queued provisioning: GKE docs (2026-04). It is available wherever flex-start is.
- Blocks: Cluster Toolkit v1.95.0, according to the labels on the machines.
- Calendar mode is a field of the machine's row. Compute API reference, Reservation.ReservationMode (2026-01-10): A3 and
  later GPUs, and TPUs. Cloud TPU docs, calendar mode: v5e, v5p and v6e (both read 2026-11-21). Compute docs, TPU
  machines (2026-08-26): TPU 7x for admitted projects.
"""

from __future__ import annotations

from typing import NamedTuple

from training_platform.catalog.types import MachineType


class Way(NamedTuple):
    """A provisioning model, and whether a machine type supports it; ``offered`` is None if no source says so.

    ``on_request`` means that Google enables it for individual projects.
    """

    name: str
    offered: bool | None
    unverified: bool = False
    on_request: bool = False


def has_blocks(machine: MachineType) -> bool:
    """Return True if reservations of the machine have blocks, which is known only for machines with GPUDirect."""
    return machine.gpudirect is not None


def further_ways(machine: MachineType) -> tuple[Way, ...]:
    """Return a machine's provisioning models beyond the four that are charged separately; empty without accelerators.

    Sources disagree on queued provisioning of TPUs. No source says that every block has sub-blocks.
    """
    if machine.accelerator is None:
        return ()
    calendar = machine.calendar if "reservation" in machine.capacities else "none"
    offered = None if calendar is None else calendar != "none"
    queued = "flex-start" in machine.capacities
    blocks = (has_blocks(machine) or None) if "reservation" in machine.capacities else False
    return (
        Way("queued-provisioning", queued, unverified=queued and machine.kind == "tpu"),
        Way("reservation-block", blocks),
        Way("reservation-sub-block", blocks, unverified=bool(blocks)),
        Way("calendar", offered, unverified="calendar" in machine.unverified, on_request=calendar == "on-request"),
    )
