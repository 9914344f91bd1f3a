"""Provisioning models besides the four with their own charges, as far as a source says.

Sources: GKE docs, flex-start with queued provisioning (2026-04): wherever flex-start is; Cluster Toolkit v1.95.0 for
blocks, by the labels that its machines have. Calendar mode is in the machine's own row: Compute API reference,
Reservation.ReservationMode (2026-01-10), has it for A3 and later GPUs, and for TPUs; Cloud TPU docs, calendar mode,
name v5e, v5p and v6e (both read 2026-11-21); Compute docs, TPU machines (2026-08-26), TPU 7x for projects let in.
"""

from __future__ import annotations

from typing import NamedTuple

from training_platform.catalog.types import MachineType


class Way(NamedTuple):
    """A provisioning model, and whether a machine type supports it, or None without a source.

    ``on_request``: Google opens it project by project.
    """

    name: str
    offered: bool | None
    unverified: bool = False
    on_request: bool = False


def has_blocks(machine: MachineType) -> bool:
    """Whether reservations of the machine are known to have blocks, as those with GPUDirect have."""
    return machine.gpudirect is not None


def further_ways(machine: MachineType) -> tuple[Way, ...]:
    """Return the further provisioning models of a machine with accelerators; none for another.

    Sources disagree on queued TPUs. That every block has sub-blocks is not said anywhere.
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
