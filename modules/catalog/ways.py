"""Ways to get a machine beside the four that are charged apart, as far as a source says.

Sources: GKE docs, flex-start with queued provisioning (2026-04): wherever flex-start is; Cluster Toolkit v1.95.0 for
blocks, by the labels that its machines have; Compute docs, future reservation requests in calendar mode, read
2026-11-21 from a stored copy whose list of GPU machines is missing, and TPU machines (2026-08-26) for TPU 7x.
"""

from __future__ import annotations

from typing import NamedTuple

from modules.catalog.types import MachineType

_CALENDAR = ("ct5lp-", "ct5p-", "ct6e-")  # TPU v5e, v5p and v6e
_CALENDAR_ON_REQUEST = ("tpu7x-",)


class Way(NamedTuple):
    """A way and whether a machine can be had in it, None where no source was found that says so.

    ``on_request``: Google opens it project by project.
    """

    name: str
    offered: bool | None
    unverified: bool = False
    on_request: bool = False


def has_blocks(machine: MachineType) -> bool:
    """Whether reservations of the machine are known to have blocks: those whose GPUs GPUDirect joins do."""
    return machine.gpudirect is not None


def further_ways(machine: MachineType) -> tuple[Way, ...]:
    """Return the further ways of a machine with accelerators, none of another.

    Sources disagree on queued TPUs. That every block has sub-blocks is not said anywhere.
    """
    if machine.accelerator is None:
        return ()
    queued = "flex-start" in machine.capacities
    blocks = (has_blocks(machine) or None) if "reservation" in machine.capacities else False
    return (
        Way("queued-provisioning", queued, unverified=queued and machine.kind == "tpu"),
        Way("reservation-block", blocks),
        Way("reservation-sub-block", blocks, unverified=bool(blocks)),
        Way("calendar", _calendar(machine), on_request=machine.name.startswith(_CALENDAR_ON_REQUEST)),
    )


def _calendar(machine: MachineType) -> bool | None:
    if "reservation" not in machine.capacities:
        return False
    return machine.name.startswith(_CALENDAR + _CALENDAR_ON_REQUEST) or None
