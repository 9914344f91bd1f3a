"""Reservations of a program beside the pools that consume them."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.provisioning_models import has_blocks
from training_platform.config.pools import RESERVED_LABELS
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.node_pool import NodePoolView
from training_platform.views.placement import ReservationView
from training_platform.views.program import Program
from training_platform.views.view import View

_TOOLKIT = "Cluster Toolkit v1.95.0, gke-node-pool, read 2026-06-25"
_CA = "GKE cluster-autoscaler 7d25050, read 2026-08-21"
SURGE_BY_DEFAULT = 1


@rule("reservation-fits", ruleset="reservations", across=True, facts=("CON-14",), source=f"{_CA}, reservation matcher")
def reservation_fits(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool and a reservation of this program that do not match: its nodes would never come."""
    reservation = _reservation_of(pool, program)
    if reservation is None:
        return
    zones = pool.zones or (pool.location,)
    if reservation.zone and zones != (reservation.zone,):
        message = f"reservation {reservation.name} is in {reservation.zone}, and the pool in {', '.join(zones)}"
        yield finding(pool, "zones", message, allowed=reservation.zone, nearest=reservation.zone)
    if reservation.machine_type and reservation.machine_type != pool.machine_type:
        message = (
            f"reservation {reservation.name} is of {reservation.machine_type}, and the pool of {pool.machine_type}"
        )
        yield finding(pool, "machine_type", message, allowed=reservation.machine_type, nearest=reservation.machine_type)
    else:
        yield from _of_other_vms(pool, reservation)
    if not reservation.specific:
        message = f"reservation {reservation.name} is open to all: specific_reservation_required is false"
        yield finding(pool, "reservation", message, allowed="specific_reservation_required", nearest="true")


@rule(
    "reservation-room",
    ruleset="reservations",
    severity="warning",
    across=True,
    facts=("CON-14", "CON-16"),
    source=f"{_CA}; {_TOOLKIT}: its default",
)
def reservation_room(reservation: ReservationView, program: Program) -> Iterator[Draft]:
    """Find a reservation that does not hold what its pools may reach, or no node beside them for upgrades by surge."""
    pools = [each for each in program.all(NodePoolView) if _reservation_of(each, program) is reservation]
    count = reservation.count if pools else None
    if count is None:
        return
    most = sum(each.most_vms for each in pools)
    if most > count:
        message = f"reservation {reservation.name} has {count} VMs, and its pools may have {most}"
        yield finding(pools[0], "max_nodes", message, allowed=f"at most {count}", nearest=count)
    elif most == count:
        for each in pools:
            if _surge(each) and each.hosts == 1:
                message = f"reservation {reservation.name} has no VM beside the pool's, and upgrades want one more"
                yield finding(
                    each, "max_surge", message, allowed="max_surge 0, max_unavailable 1", nearest="max_surge=0"
                )


@rule(
    "reservation-blocks",
    ruleset="reservations",
    severity="warning",
    facts=("CON-14",),
    source="Cluster Toolkit v1.95.0: block labels of A3 High, A3 Mega, A3 Ultra, A4 and A4X; for others none was read",
)
def reservation_blocks(pool: NodePoolView) -> Iterator[Draft]:
    """Find a block of a reservation of machines that no source says have blocks: those not joined by GPUDirect."""
    machine = pool.machine
    if machine is not None and not has_blocks(machine) and "/reservationBlocks/" in (pool.reservation_path or ""):
        message = f"reservations of {machine.name} are not known to have blocks"
        yield finding(pool, "reservation_path", message, allowed="the reservation without a block")


@rule(
    "reservation-ahead",
    ruleset="reservations",
    severity="warning",
    facts=("CON-16",),
    source=f"{_CA}; GKE docs, TPUs with future reservation in calendar mode, read 2026-11-21",
)
def reservation_ahead(pool: NodePoolView) -> Iterator[Draft]:
    """Find VMs that are always there from a future reservation: made before it opens, the pool ends in an error."""
    opens = pool.node_labels.get(RESERVED_LABELS[0])
    least = pool.total_min_nodes or pool.min_nodes or 0
    if opens and least:
        message = f"the reservation opens on {opens}, and {least:,} VMs are to be there at once"
        yield finding(pool, "min_nodes", message, allowed="0 until it is open", nearest=0)


def _of_other_vms(pool: NodePoolView, reservation: ReservationView) -> Iterator[Draft]:
    """Find VMs of the machine type that differ otherwise; what comes with it may be left out of a reservation."""
    machine = MACHINE_TYPES.get(pool.machine_type or "")
    attached = machine is not None and machine.kind == "cpu"
    gpus = (pool.accelerator_type, pool.accelerator_count)
    reserved = (reservation.accelerator_type, reservation.accelerator_count)
    if gpus != reserved and (attached or reservation.accelerator_type is not None):
        yield _differ(pool, "accelerator_type", reservation, _count(reserved), _count(gpus))
    if pool.min_cpu_platform != reservation.min_cpu_platform:
        have, want = (platform or "none" for platform in (pool.min_cpu_platform, reservation.min_cpu_platform))
        yield _differ(pool, "min_cpu_platform", reservation, f"CPU platform {want}", f"CPU platform {have}")
    bundled = machine.local_ssd.bundled if machine is not None else None
    ssds = pool.local_ssd_count or 0
    if ssds != reservation.local_ssds and (reservation.local_ssds or not bundled):
        have, want = f"{ssds} local SSDs", f"{reservation.local_ssds} local SSDs"
        yield _differ(pool, "local_ssd_count", reservation, want, have)


def _differ(view: View, field: str, reservation: ReservationView, want: str, have: str) -> Draft:
    message = f"VMs of reservation {reservation.name} have {want}, and the pool's {have}"
    return finding(view, field, message, allowed=want, nearest=want)


def _count(gpus: tuple[str | None, int | None]) -> str:
    return f"{gpus[1]} of {gpus[0]}" if gpus[0] else "no GPUs"


def _surge(pool: NodePoolView) -> bool:
    surge = pool.max_surge if pool.upgrades else SURGE_BY_DEFAULT
    return bool(SURGE_BY_DEFAULT if surge is None else surge)


def _reservation_of(pool: NodePoolView, program: Program) -> ReservationView | None:
    path = pool.reservation_path if program.all(ReservationView) else None
    if not path or pool.consume_reservation != "SPECIFIC_RESERVATION":
        return None
    return program.once(_reservations).get(path.partition("/reservationBlocks/")[0].rpartition("/")[2])


def _reservations(program: Program) -> dict[str, ReservationView]:
    return {
        each.reservation: each
        for each in program.all(ReservationView)
        if each.known("reservation") and each.reservation
    }
