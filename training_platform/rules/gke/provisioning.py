"""Rules about how pools get VMs: on-demand, spot, flex-start, queued provisioning, and the program's reservations."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.provisioning_models import has_blocks
from training_platform.config.expansion import QUEUED_LABEL, RESERVED_LABELS
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.finding import Severity
from training_platform.views.cluster import ReservationView
from training_platform.views.node_pool import SURGE_BY_DEFAULT, NodePoolView
from training_platform.views.view import View
from training_platform.views.whole_stack import Program

_TOOLKIT = "Cluster Toolkit v1.95.0, gke-node-pool main.tf, preconditions, read 2026-06-25"
_DWS = "GKE docs, flex-start and queued provisioning, read 2026-04"
DAY = 86_400  # seconds
FLEX_SECONDS = (600, 7 * DAY)
RUN_SECONDS = (30, 120 * DAY)


@rule("one-provisioning-model", ruleset="consumption", source=f"{_TOOLKIT}; xpk 367c838")
def one_provisioning_model(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool with two provisioning models. Queued provisioning can only be combined with flex-start."""
    models = [name for name in ("spot", "flex_start", "queued") if getattr(pool, name)]
    if "spot" in models and len(models) > 1:
        message = f"{' and '.join(models).replace('_', '-')} exclude each other"
        yield finding(pool, "spot", message, allowed="one provisioning model", nearest=models[1].replace("_", "-"))
    if pool.spot_twice:
        yield finding(pool, "spot", "spot and preemptible exclude each other", allowed="only spot", nearest="spot")


@rule("no-reservation-affinity", ruleset="consumption", source=_TOOLKIT)
def no_reservation_affinity(pool: NodePoolView) -> Iterator[Draft]:
    """Find flex-start or queued VMs that do not exclude reservations, or spot VMs with an affinity to reservations.

    The affinity that excludes reservations is NO_RESERVATION. Spot VMs without an affinity are commonly deployed. Only
    the Toolkit says that GKE refuses them with an affinity.
    """
    affinity = pool.consume_reservation
    spot = pool.capacity == "spot"
    accepted = ("NO_RESERVATION", None) if spot else ("NO_RESERVATION",)
    if pool.capacity in ("spot", "flex-start") and affinity not in accepted:
        message = f"{pool.capacity} VMs cannot use reservations, but the affinity is {affinity or 'not set'}"
        severity: Severity | None = "warning" if spot and affinity == "ANY_RESERVATION" else None
        yield finding(
            pool, "consume_reservation", message, allowed="NO_RESERVATION", nearest="NO_RESERVATION", severity=severity
        )


@rule("reservation-named", ruleset="consumption", source="terraform-provider-google-beta 93c65b2, reservation_affinity")
def reservation_named(pool: NodePoolView) -> Iterator[Draft]:
    """Find affinity to a specific reservation that names no reservation, or several.

    Several names are a warning: it is only inferred that GKE refuses them.
    """
    if pool.consume_reservation == "SPECIFIC_RESERVATION" and not pool.reservation:
        yield finding(
            pool, "reservation", "is missing: SPECIFIC_RESERVATION needs a reservation's name", allowed="its name"
        )
    elif pool.reservations > 1:
        message = f"{pool.reservations} reservations are named, but a pool can consume only one"
        allowed = "one name; use a separate pool for each reservation"
        yield finding(pool, "reservations", message, allowed=allowed, nearest=pool.reservation, severity="warning")


@rule(
    "tpu-reservation-name",
    ruleset="consumption",
    severity="warning",
    source="GKE cluster-autoscaler 7d25050, reservation matcher, for pools that GKE creates; inferred for other pools",
)
def tpu_reservation_name(pool: NodePoolView) -> Iterator[Draft]:
    """Find TPUs with affinity to any reservation. As far as is known, TPUs use a reservation only if it is named."""
    machine = pool.machine
    if machine is not None and machine.kind == "tpu" and pool.consume_reservation == "ANY_RESERVATION":
        message = (
            f"{machine.name} consumes a reservation only by name: its slices would be on-demand, or would never be "
            f"created"
        )
        allowed = "the reservation's name, or capacity on-demand without a reservation"
        yield finding(pool, "reservation", message, allowed=allowed, nearest="the reservation's name")


@rule("flex-start-scaling", ruleset="consumption", source=f"{_TOOLKIT}; {_DWS}")
def flex_start_scaling(pool: NodePoolView) -> Iterator[Draft]:
    """Find a flex-start or queued pool that does not scale from zero."""
    if pool.capacity != "flex-start":
        return
    if not pool.autoscales:
        yield finding(pool, "max_nodes", "flex-start pools must use autoscaling", allowed="autoscaling from 0")
    for field in ("initial_nodes", "node_count", "min_nodes", "total_min_nodes"):
        count = getattr(pool, field)
        if count:
            message = f"flex-start pools start at 0, but {field.replace('_', ' ')} is {count}"
            yield finding(pool, field, message, allowed="0", nearest=0)


@rule("flex-start-repair", ruleset="consumption", when="flex_start", source=f"{_TOOLKIT}; xpk 367c838")
def flex_start_repair(pool: NodePoolView) -> Iterator[Draft]:
    """Find a flex-start pool with node auto-repair, set explicitly or by the default of its ``management`` block."""
    if pool.flex_start and pool.auto_repair:
        yield finding(pool, "auto_repair", "flex-start nodes cannot be repaired", allowed="false", nearest="false")


@rule("max-run-duration", ruleset="consumption", source=f"GKE cluster-autoscaler 7d25050; {_DWS}")
def max_run_duration(pool: NodePoolView) -> Iterator[Draft]:
    """Find a maximum run duration that the provisioning model does not allow."""
    seconds = pool.max_run_seconds
    if seconds is None:
        return
    if pool.queued and not pool.flex_start:
        yield finding(pool, "max_run_seconds", "a maximum run duration needs flex-start", allowed="none")
        return
    low, high = FLEX_SECONDS if pool.flex_start else RUN_SECONDS
    if seconds < low or seconds > high:
        message = "is not a valid number of seconds" if seconds < 0 else f"is {seconds:,} seconds"
        allowed = f"{low} seconds to {high // DAY} days"
        hours = high // 3600 if seconds > high else 1
        nearest = str(hours) if pool.origin else f"{hours * 3600}s"
        yield finding(pool, "max_run_seconds", message, allowed=allowed, nearest=nearest)


@rule(
    "max-run-on-demand",
    ruleset="consumption",
    when="max_run_seconds",
    severity="warning",
    owner="house",
    source="house rule: the person who pays for on-demand VMs decides when they stop; GKE cluster-autoscaler 7d25050",
)
def max_run_on_demand(pool: NodePoolView) -> Iterator[Draft]:
    """Find on-demand or reserved VMs with a maximum run duration. When it ends, VMs and their jobs are deleted."""
    if pool.max_run_seconds and not pool.flex_start and not pool.queued and not pool.spot:
        message = f"each VM is deleted {pool.max_run_seconds:,} seconds after its start, even if a job runs on it"
        yield finding(pool, "max_run_seconds", message, allowed="none, or flex-start")


@rule(
    "capacity-offered",
    ruleset="consumption",
    source="Compute docs, accelerator-optimized machines and TPU machines; GKE cluster-autoscaler 7d25050, dwsDisabled",
)
def capacity_offered(pool: NodePoolView) -> Iterator[Draft]:
    """Find a machine type that is not offered with the pool's provisioning model.

    ``gpu-fixed-pair`` reports CPU machines with GPUs that they do not support.
    """
    machine = pool.machine
    if machine is None or (machine.kind == "cpu" and pool.accelerator_type is not None):
        return
    if pool.capacity not in machine.capacities:
        model = "queued-provisioning" if pool.queued else pool.capacity
        message = f"{machine.name} does not support {model}"
        if pool.consume_reservation == "ANY_RESERVATION":
            message += ", the fallback of a pool with affinity to any reservation"
        nearest = next(iter(machine.capacities), None)
        # No source lists the provisioning models of CPU machines, and owners deploy n1 by flex-start. The provider's
        # tests (93c65b2) queue for a3-edgegpu-8g, and create a3-ultragpu-8g that may consume any reservation.
        reserved = pool.consume_reservation is None and "reservation" in machine.capacities  # by any that fits
        tried = (pool.queued and not pool.flex_start) or (pool.capacity == "on-demand" and reserved)
        severity: Severity | None = "warning" if machine.kind == "cpu" or tried else None
        allowed = ", ".join(machine.capacities)
        yield finding(pool, "capacity", message, allowed=allowed, nearest=nearest, severity=severity)


@rule("location-policy-any", ruleset="consumption", severity="warning", source=f"xpk 367c838; {_TOOLKIT}")
def location_policy_any(pool: NodePoolView) -> Iterator[Draft]:
    """Find scarce VMs that the autoscaler spreads over zones. A job of several VMs would wait for the scarcest zone."""
    machine = pool.machine
    several = pool.capacity in ("spot", "flex-start") or len(pool.zones) > 1
    if machine is None or machine.accelerator is None or not several or not pool.autoscales:
        return
    if pool.location_policy != "ANY":
        message = f"{pool.capacity} VMs are spread over zones ({pool.location_policy or 'BALANCED by default'})"
        yield finding(pool, "location_policy", message, allowed="ANY", nearest="ANY")


@rule(
    "capacity-on-request",
    ruleset="consumption",
    severity="warning",
    source="Compute docs, TPU machines, read 2026-08-26",
)
def capacity_on_request(pool: NodePoolView) -> Iterator[Draft]:
    """Find a provisioning model that Google enables for a project only on request."""
    machine = pool.machine
    if machine is not None and pool.capacity in machine.allowlisted:
        message = f"{machine.name} with {pool.capacity} is available only to projects that have got access from Google"
        open_to_all = [capacity for capacity in machine.capacities if capacity not in machine.allowlisted]
        yield finding(pool, "capacity", message, allowed=", ".join(open_to_all), nearest=next(iter(open_to_all), None))


@rule(
    "flex-start-upgrades",
    ruleset="consumption",
    severity="warning",
    source="upjet-gcp #1028 and #1029; GKE cluster-autoscaler 7d25050",
)
def flex_start_upgrades(pool: NodePoolView) -> Iterator[Draft]:
    """Find upgrade settings on a flex-start pool. GKE overwrites them, so every preview shows a difference."""
    if pool.capacity == "flex-start" and pool.upgrades and "upgradeSettings" not in (pool.ignored or ()):
        message = "GKE sets its own upgrade settings on flex-start pools, so every preview would show a change"
        allowed = "no upgrade_settings"
        nearest = 'ignore_changes=["upgradeSettings"]'
        if pool.origin:
            allowed = "auto_repair and auto_upgrade"
            nearest = "leave out strategy, max_surge and max_unavailable"
        yield finding(pool, "upgrades", message, allowed=allowed, nearest=nearest)


@rule(
    "queued-label",
    ruleset="consumption",
    when="queued",
    severity="warning",
    source=f"{_DWS}; terraform-provider-google-beta 93c65b2; {_TOOLKIT}",
)
def queued_label(pool: NodePoolView) -> Iterator[Draft]:
    """Find queued nodes without the label by which Kueue's flavors select them. GKE sets only the taint."""
    if pool.queued and pool.node_labels.get(QUEUED_LABEL) != "true":
        message = f"label {QUEUED_LABEL} is not set, and GKE does not set it"
        yield finding(pool, "node_labels", message, allowed=f"{QUEUED_LABEL}: true", nearest=f"{QUEUED_LABEL}: true")


@rule(
    "reservation-block",
    ruleset="consumption",
    when="reservation_path",
    source="Cluster Toolkit v1.95.0, reservation data checks",
)
def reservation_block(pool: NodePoolView) -> Iterator[Draft]:
    """Find a reservation block on a pool without zones, and a sub-block without its block."""
    path = pool.reservation_path or ""
    if "/reservationSubBlocks/" in path and "/reservationBlocks/" not in path:
        message = "a sub-block is named without its block"
        allowed = "RESERVATION/reservationBlocks/BLOCK/reservationSubBlocks/SUB_BLOCK"
        if pool.origin:
            allowed = "{name: RESERVATION, block: BLOCK, sub_block: SUB_BLOCK}"
        yield finding(pool, "reservation_path", message, allowed=allowed)
    elif "/reservationBlocks/" in path and not pool.zones:
        message = "a block of a reservation is in one zone, but the pool names no zone"
        yield finding(pool, "zones", message, allowed="the zone of the reservation")


@rule(
    "host-maintenance",
    ruleset="consumption",
    when="maintenance",
    severity="warning",
    source="xpk #434 and Cluster Toolkit #4058; the cause is suspected, not proven",
)
def host_maintenance(pool: NodePoolView) -> Iterator[Draft]:
    """Find periodic host maintenance on VMs that are not reserved. Reports disagree about what fails."""
    if pool.maintenance == "PERIODIC" and pool.capacity != "reservation":
        message = f"periodic host maintenance on {pool.capacity} VMs is reported to cause a scheduling error"
        yield finding(
            pool,
            "maintenance",
            message,
            allowed="none, unless the reservation has periodic maintenance",
            nearest="AS_NEEDED",
        )


_TOOLKIT_POOL = "Cluster Toolkit v1.95.0, gke-node-pool, read 2026-06-25"
_CA = "GKE cluster-autoscaler 7d25050, read 2026-08-21"


@rule("reservation-fits", ruleset="reservations", across=True, source=f"{_CA}, reservation matcher")
def reservation_fits(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool that does not match its reservation in this program. Its nodes would never be created."""
    reservation = _reservation_of(pool, program)
    if reservation is None:
        return
    zones = pool.zones or (pool.location,)
    if reservation.zone and zones != (reservation.zone,):
        message = f"reservation {reservation.name} is in {reservation.zone}, but the pool is in {', '.join(zones)}"
        yield finding(pool, "zones", message, allowed=reservation.zone, nearest=reservation.zone)
    if reservation.machine_type and reservation.machine_type != pool.machine_type:
        message = (
            f"reservation {reservation.name} is for {reservation.machine_type}, but the pool has {pool.machine_type}"
        )
        yield finding(pool, "machine_type", message, allowed=reservation.machine_type, nearest=reservation.machine_type)
    else:
        yield from _other_differences(pool, reservation)
    if not reservation.specific:
        message = f"reservation {reservation.name} is open to all: specific_reservation_required is false"
        yield finding(pool, "reservation", message, allowed="specific_reservation_required", nearest="true")


@rule(
    "reservation-room",
    ruleset="reservations",
    severity="warning",
    across=True,
    source=f"{_CA}; {_TOOLKIT_POOL}: its default",
)
def reservation_room(reservation: ReservationView, program: Program) -> Iterator[Draft]:
    """Find a reservation with too few VMs for the maximum size of its pools, or for their surge upgrades."""
    pools = [pool for pool in program.all(NodePoolView) if _reservation_of(pool, program) is reservation]
    count = reservation.count if pools else None
    if count is None:
        return
    max_vms = sum(pool.most_vms for pool in pools)
    if max_vms > count:
        message = f"reservation {reservation.name} has {count} VMs, but its pools may have {max_vms}"
        yield finding(pools[0], "max_nodes", message, allowed=f"at most {count}", nearest=count)
    if max_vms != count:
        return
    for pool in pools:
        surge = pool.max_surge if pool.upgrades else SURGE_BY_DEFAULT
        if (SURGE_BY_DEFAULT if surge is None else surge) and pool.hosts == 1:
            message = f"reservation {reservation.name} has exactly the VMs of the pool, but upgrades need one more"
            yield finding(pool, "max_surge", message, allowed="max_surge 0, max_unavailable 1", nearest="max_surge=0")


@rule(
    "reservation-blocks",
    ruleset="reservations",
    severity="warning",
    source="Cluster Toolkit v1.95.0: block labels of A3 High, A3 Mega, A3 Ultra, A4 and A4X; no source was read for "
    "other machine types",
)
def reservation_blocks(pool: NodePoolView) -> Iterator[Draft]:
    """Find a reservation block for machines whose reservations are not known to have blocks."""
    machine = pool.machine
    if machine is not None and not has_blocks(machine) and "/reservationBlocks/" in (pool.reservation_path or ""):
        message = f"it is not known whether reservations of {machine.name} have blocks"
        yield finding(pool, "reservation_path", message, allowed="the reservation without a block")


@rule(
    "reservation-ahead",
    ruleset="reservations",
    severity="warning",
    source=f"{_CA}; GKE docs, TPUs with future reservation in calendar mode, read 2026-11-21",
)
def reservation_ahead(pool: NodePoolView) -> Iterator[Draft]:
    """Find a future reservation on a pool whose minimum is above 0.

    If the pool is created before the reservation starts, the creation fails.
    """
    opens = pool.node_labels.get(RESERVED_LABELS[0])
    min_vms = pool.total_min_nodes or pool.min_nodes or 0
    if opens and min_vms:
        message = f"the reservation opens on {opens}, but the pool needs {min_vms:,} VMs immediately"
        yield finding(pool, "min_nodes", message, allowed="0 until it is open", nearest=0)


def _other_differences(pool: NodePoolView, reservation: ReservationView) -> Iterator[Draft]:
    """Find differences between a pool and its reservation other than the machine type.

    A reservation may leave out what the machine type includes.
    """
    machine = MACHINE_TYPES.get(pool.machine_type or "")
    attached = machine is not None and machine.kind == "cpu"
    gpus = (pool.accelerator_type, pool.accelerator_count)
    reserved = (reservation.accelerator_type, reservation.accelerator_count)
    if gpus != reserved and (attached or reservation.accelerator_type is not None):
        yield _difference(pool, "accelerator_type", reservation, _gpus_text(*reserved), _gpus_text(*gpus))
    if pool.min_cpu_platform != reservation.min_cpu_platform:
        reserved_platform = f"CPU platform {reservation.min_cpu_platform or 'none'}"
        platform = f"CPU platform {pool.min_cpu_platform or 'none'}"
        yield _difference(pool, "min_cpu_platform", reservation, reserved_platform, platform)
    bundled = machine.local_ssd.bundled if machine is not None else None
    ssds = pool.local_ssd_count or 0
    if ssds != reservation.local_ssds and (reservation.local_ssds or not bundled):
        reserved_ssds = f"{reservation.local_ssds} local SSDs"
        yield _difference(pool, "local_ssd_count", reservation, reserved_ssds, f"{ssds} local SSDs")


def _gpus_text(kind: str | None, count: int | None) -> str:
    return f"{count} of {kind}" if kind else "no GPUs"


def _difference(view: View, field: str, reservation: ReservationView, reserved: str, actual: str) -> Draft:
    message = f"VMs of reservation {reservation.name} have {reserved}, but the pool's have {actual}"
    return finding(view, field, message, allowed=reserved, nearest=reserved)


def _reservation_of(pool: NodePoolView, program: Program) -> ReservationView | None:
    path = pool.reservation_path if program.all(ReservationView) else None
    if not path or pool.consume_reservation != "SPECIFIC_RESERVATION":
        return None
    return program.once(_reservations).get(path.partition("/reservationBlocks/")[0].rpartition("/")[2])


def _reservations(program: Program) -> dict[str, ReservationView]:
    named = (row for row in program.all(ReservationView) if row.known("reservation"))
    return {row.reservation: row for row in named if row.reservation}
