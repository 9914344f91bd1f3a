"""Rules about pools that GKE creates: node auto-provisioning within a cluster's limits, and custom compute classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from training_platform.catalog import ACCELERATORS
from training_platform.catalog.locations import region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.finding import Severity
from training_platform.config.reading.section import enumeration
from training_platform.rules.gke.clusters import SURGE_SOURCE, default_account, narrow_scopes, surge_beyond
from training_platform.rules.gke.node_settings import COS
from training_platform.rules.gke.versions import below
from training_platform.views.cluster import (
    AutoProvisioningView,
    ClassPriority,
    ClusterView,
    ComputeClassView,
    pools_of,
)
from training_platform.views.whole_stack import Program

_CA = "GKE cluster-autoscaler 7d25050, limiter and disks.go, read 2026-08-21"
_SCHEMA = "terraform-provider-google-beta 93c65b2, cluster_autoscaling"
BUILT_IN = ("cpu", "memory")
DEFAULT_DISK = "pd-standard"  # the provider's, where a block of defaults names none
LEAST_HYPERDISK_GB = 100


@rule("auto-provisioning-limits", ruleset="auto-provisioning", source=f"xpk 367c838, nap.py; {_CA}")
def auto_provisioning_limits(view: AutoProvisioningView) -> Iterator[Draft]:
    """Find limits without vCPUs or memory, and limits that are too low for one machine with a limited accelerator."""
    for resource in BUILT_IN:
        if view.limit(resource) is None:
            message = f"auto-provisioning has no limit for {resource}, so it creates no pools"
            yield finding(view, "limits", message, allowed="limits for cpu and memory in addition to accelerators")
    for limit, machines in view.accelerators():
        smallest = min(machines, key=lambda machine: (machine.chips, machine.vcpus))
        needed = {limit.resource: smallest.chips, "cpu": smallest.vcpus, "memory": smallest.memory_gb}
        for resource, minimum in needed.items():
            maximum = view.limit(resource)
            if maximum is not None and maximum < minimum:
                message = f"the limit of {resource} is {maximum:,}, but one {smallest.name} has {minimum:,.0f}"
                yield finding(view, resource, message, allowed=f"at least {minimum:,.0f}", nearest=f"{minimum:.0f}")


@rule(
    "auto-provisioning-nodes",
    ruleset="auto-provisioning",
    severity="warning",
    source="the sources of the rules node-scopes, node-account and node-image",
)
def auto_provisioning_nodes(view: AutoProvisioningView) -> Iterator[Draft]:
    """Find defaults of auto-provisioned pools that a pool must not have: scopes, service account, and image type."""
    if not view.written:
        return
    yield from narrow_scopes(view)
    if view.known("service_account"):
        yield from default_account(view)
    has_tpus = any(machine.kind == "tpu" for _, machines in view.accelerators() for machine in machines)
    if has_tpus and (view.image_type or COS).upper().startswith("UBUNTU"):
        message = f"image {view.image_type} has no drivers for TPUs (inferred)"
        yield finding(view, "image_type", message, allowed=COS, nearest=COS)


@rule("auto-provisioning-type", ruleset="auto-provisioning", severity="warning", source=f"xpk 367c838, nap.py; {_CA}")
def auto_provisioning_type(view: AutoProvisioningView) -> Iterator[Draft]:
    """Find a limit for an unknown accelerator. GKE would create no pools for the intended accelerator."""
    labels = {accelerator.gke_label for accelerator in ACCELERATORS.values()}
    for limit in view.limits:
        if limit.resource and limit.resource not in labels and limit.resource not in BUILT_IN:
            message = f"{limit.resource!r} is not an accelerator in the catalogue"
            nearest = find_nearest(limit.resource, labels)
            yield finding(view, "limits", message, allowed=enumeration(sorted(labels), max_names=40), nearest=nearest)


@rule(
    "auto-provisioning-disk",
    ruleset="auto-provisioning",
    severity="warning",
    source=f"{_SCHEMA}; {_CA}; it is inferred that GKE then cannot create a pool",
)
def auto_provisioning_disk(view: AutoProvisioningView) -> Iterator[Draft]:
    """Find a default boot disk that does not fit the machines of a limit. GKE may override it (no source)."""
    if not view.written:
        return
    kind = view.disk_type or DEFAULT_DISK
    for limit, machines in view.accelerators():
        if not any(kind in machine.boot_disk_types for machine in machines):
            disk = f"is {kind}" if view.disk_type else f"is not set, so it is {kind}"
            allowed = machines[0].boot_disk_types
            message = (
                f"the disk type of auto-provisioned pools {disk}, which machines with {limit.resource} do not support"
            )
            yield finding(view, "disk_type", message, allowed=", ".join(allowed), nearest=allowed[0])
    if kind.startswith("hyperdisk") and view.disk_gb is not None and view.disk_gb < LEAST_HYPERDISK_GB:
        message = f"the disk of auto-provisioned pools is {view.disk_gb} GB of {kind}"
        yield finding(view, "disk_gb", message, allowed=f"at least {LEAST_HYPERDISK_GB} GB", nearest=LEAST_HYPERDISK_GB)


@rule(
    "auto-provisioning-zones",
    ruleset="auto-provisioning",
    severity="warning",
    source=f"{_CA}; zones: SkyPilot catalog v8 006059e; Cloud TPU docs",
)
def auto_provisioning_zones(view: AutoProvisioningView) -> Iterator[Draft]:
    """Find auto-provisioning if none of its zones offers one of the limited accelerators.

    This is a warning, because zone lists become outdated. A zone in another region than the cluster is an error.
    """
    region = region_of(view.cluster.location)
    outside = [zone for zone in view.zones if region_of(zone) != region]
    if outside:
        message = f"{enumeration(outside)} is not in {region}, the region of the cluster"
        yield finding(view, "zones", message, allowed=f"zones of {region}", severity="error")
        return
    for limit, machines in view.accelerators():
        offered = sorted({zone for machine in machines for zone in machine.zones})
        if view.zones and offered and not set(view.zones) & set(offered):
            message = f"{limit.resource} is not listed in {enumeration(view.zones)}"
            nearest = find_nearest(view.zones[0], offered)
            yield finding(view, "zones", message, allowed=enumeration(offered, max_names=40), nearest=nearest)


@rule("auto-provisioning-upgrades", ruleset="auto-provisioning", source=SURGE_SOURCE)
def auto_provisioning_upgrades(view: AutoProvisioningView) -> Iterator[Draft]:
    """Find surge upgrade settings that GKE refuses.

    Document rules check surge settings that are combined with blue-green upgrades.
    """
    if view.strategy != "BLUE_GREEN":
        yield from surge_beyond(view, view.max_surge, view.max_unavailable)


@rule("auto-provisioning-room", ruleset="together", across=True, source=f"{_CA}, limiter; acc. xpk nap.py")
def auto_provisioning_room(view: AutoProvisioningView, program: Program) -> Iterator[Draft]:
    """Find limits that the cluster's declared pools may exceed. GKE counts these pools towards the limits as well."""
    used: dict[str, float] = defaultdict(float)
    for pool in pools_of(view.cluster, program):
        machine = pool.machine
        nodes = pool.most_vms
        if machine is None:
            continue
        for resource, amount in zip(BUILT_IN, (machine.vcpus, machine.memory_gb), strict=True):
            used[resource] += amount * nodes
        if machine.accelerator is not None:
            used[machine.accelerator.gke_label] += machine.chips * nodes
    for resource, amount in used.items():
        limit = view.limit(resource)
        if limit is not None and amount > limit:
            message = f"the limit of {resource} is {limit:,}, but the declared pools may use {amount:,.0f}"
            allowed = f"at least {amount:,.0f}, plus the amount that new pools need"
            yield finding(view, resource, message, allowed=allowed, nearest=f"{amount:.0f}")


_TYPES = "compute-class-api 8067eae (2026-08-21), types of cloud.google.com/v1 and their validation, read 2026-11-21"
_DOCS = "GKE docs, about custom ComputeClasses, read 2026-11-21"
CLASS_LABEL = "cloud.google.com/compute-class"
BESIDE_POOLS = frozenset({"allocationStrategy", "nodepools", "priorityScore"})
CLASSES = "1.30.3-gke.1451000"
AUTO_CREATION = "1.33.3-gke.1136000"


@rule("compute-class-priority", ruleset="compute-classes", source=_TYPES)
def compute_class_priority(view: ComputeClassView) -> Iterator[Draft]:
    """Find a priority with fields that exclude each other, or without a required field."""
    for number, priority in enumerate(view.priorities, 1):
        for message, allowed in _clashes(priority):
            yield finding(view, "priorities", f"priority {number}: {message}", allowed=allowed)
    scores = sum("priorityScore" in priority.written for priority in view.priorities)
    if 0 < scores < len(view.priorities):
        message = f"{scores} of {len(view.priorities)} priorities have a priorityScore"
        yield finding(view, "priorities", message, allowed="a priorityScore in every priority, or in none")


def _clashes(priority: ClassPriority) -> Iterator[tuple[str, str]]:
    written = set(priority.written)
    excluded_fields = written - BESIDE_POOLS
    if "nodepools" in written and excluded_fields:
        yield f"nodepools excludes {', '.join(sorted(excluded_fields))}", "only nodepools"
    if {"machineType", "machineFamily"} <= written:
        yield "machineType and machineFamily exclude each other", "one of the two"
    if "machineType" in written and written & {"minCores", "minMemoryGb"}:
        instead = "machineType, or machineFamily with minimums"
        yield "a machine type already determines cores and memory", instead
    if priority.spot and priority.flex_start:
        yield "spot and flexStart exclude each other", "one of the two"
    if (priority.affinity == "Specific") != (priority.reservations > 0):
        yield "affinity Specific and reservations with a name require each other", "both, or None, or AnyBestEffort"
    if priority.wait_seconds is not None and not (priority.tpu or priority.flex_start):
        yield "GKE waits for capacity only for flex-start VMs and TPU slices", "no capacityCheckWaitTimeSeconds"


@rule("compute-class-capacity", ruleset="compute-classes", source=f"{_TYPES}; Compute docs")
def compute_class_capacity(view: ComputeClassView) -> Iterator[Draft]:
    """Find a priority that never adds a node, because its machine type does not support its provisioning model."""
    for number, priority in enumerate(view.priorities, 1):
        machine = priority.machine
        if machine is not None and priority.capacity not in machine.capacities:
            message = f"priority {number}: {machine.name} does not support {priority.capacity}"
            nearest = next(iter(machine.capacities), None)
            # Without an affinity GKE may use any reservation that fits, else it tries the next priority: owners deploy
            # a3-highgpu-1g this way (accelerated-platforms 9320f3b).
            any_reservation = priority.capacity == "on-demand" and priority.affinity in (None, "AnyBestEffort")
            severity: Severity | None = "warning" if any_reservation else None
            allowed = ", ".join(machine.capacities)
            yield finding(view, "priorities", message, allowed=allowed, nearest=nearest, severity=severity)


@rule(
    "compute-class-reservation",
    ruleset="compute-classes",
    source="GKE cluster-autoscaler 7d25050, reservation matcher; google/skills, gke-compute-classes, read 2026-11-21",
)
def compute_class_reservation(view: ComputeClassView) -> Iterator[Draft]:
    """Find affinity to any reservation for TPUs, spot or flex-start VMs, which do not support it.

    TPUs need the name of the reservation. A named reservation has its own zones, so GKE refuses zones in its priority.
    """
    for number, priority in enumerate(view.priorities, 1):
        if priority.affinity == "Specific" and priority.zones:
            message = f"priority {number}: zones cannot be set together with reservations by name"
            allowed = "only reservations.specific[].zones"
            yield finding(view, "priorities", message, allowed=allowed, nearest="reservations.specific[].zones")
        if priority.tpu and priority.affinity in ("AnyBestEffort", "AnyThenFail"):
            message = f"priority {number}: TPU pools that GKE creates consume a reservation only by name"
            yield finding(view, "priorities", message, allowed="affinity Specific or None", nearest="Specific")
        if (priority.spot or priority.flex_start) and priority.affinity not in (None, "None"):
            message = f"priority {number}: {'spot' if priority.spot else 'flex-start'} VMs cannot use reservations"
            yield finding(view, "priorities", message, allowed="affinity None", nearest="None")


@rule("compute-class-pools", ruleset="compute-classes", across=True, source=_DOCS)
def compute_class_pools(view: ComputeClassView, program: Program) -> Iterator[Draft]:
    """Find a pool that GKE would never scale for its compute class, because its label is missing or it is queued."""
    cluster = _cluster(view, program)
    if cluster is None or not view.compute_class:
        return
    class_pools = {pool for priority in view.priorities for pool in priority.node_pools}
    for pool in pools_of(cluster, program):
        if not pool.known("pool") or pool.pool not in class_pools:
            continue
        if pool.node_labels.get(CLASS_LABEL) != view.compute_class:
            label = f"{CLASS_LABEL}: {view.compute_class}"
            message = (
                f"pool {pool.pool} is in class {view.compute_class}, but its nodes do not have the label of the class"
            )
            yield finding(
                pool, "node_labels", message, allowed=f"{label}, and a taint with the same key and value", nearest=label
            )
        if pool.queued:
            message = f"only ProvisioningRequests add nodes to pool {pool.pool}, and a compute class never does"
            yield finding(
                pool, "queued", message, allowed="flex-start, if the pool is in a class", nearest="flex-start"
            )


@rule("compute-class-floor", ruleset="compute-classes", across=True, source=_DOCS)
def compute_class_floor(view: ComputeClassView, program: Program) -> Iterator[Draft]:
    """Find a compute class on a GKE version that does not support it, or supports it only with auto-provisioning."""
    cluster = _cluster(view, program)
    if cluster is None:
        return
    needs = [(CLASSES, "custom compute classes")]
    if view.makes_pools and _limits(cluster, program) is None:
        needs.append((AUTO_CREATION, "pools that GKE creates for a class without auto-provisioning"))
    for floor, feature in needs:
        severity = below(cluster.version, floor)
        if severity:
            message = f"{feature} need GKE {floor}, but the cluster has {cluster.version}"
            yield finding(cluster, "version", message, allowed=f"{floor} or later", nearest=floor, severity=severity)


@rule(
    "compute-class-limits",
    ruleset="compute-classes",
    across=True,
    source="GKE cluster-autoscaler 7d25050, limiter, read 2026-08-21; our own rule is that a class needs limits",
)
def compute_class_limits(view: ComputeClassView, program: Program) -> Iterator[Draft]:
    """Find a compute class that creates pools in a cluster that has no limit for their accelerator.

    A class whose cluster is not in the program is accepted, because its limits are unknown.
    """
    cluster = _cluster(view, program)
    if cluster is None or not view.makes_pools:
        return
    limits = _limits(cluster, program)
    accelerators = {row.accelerator for row in view.priorities if row.accelerator and not row.node_pools}
    for accelerator in sorted(accelerators):
        if limits is None:
            message = f"there is no limit for the {accelerator} that GKE may add for class {view.compute_class}"
        elif limits.limit(accelerator) is None:
            message = (
                f"auto-provisioning has no limit for {accelerator}, so GKE adds none for class {view.compute_class}"
            )
        else:
            continue
        where = "auto_provisioning with accelerators" if view.origin else "a row of clusterAutoscaling.resourceLimits"
        allowed = f"{where}: {accelerator}"
        severity: Severity | None = "warning" if limits is None else None
        yield finding(view, "priorities", message, allowed=allowed, nearest=accelerator, severity=severity)


def _limits(cluster: ClusterView, program: Program) -> AutoProvisioningView | None:
    views = program.all(AutoProvisioningView)
    return next((limits for limits in views if limits.cluster.name == cluster.name), None)


def _cluster(view: ComputeClassView, program: Program) -> ClusterView | None:
    """Return the cluster of a class: the cluster of its section, or the only one in a program without stack files."""
    clusters = program.all(ClusterView)
    if not view.origin:
        return clusters[0] if len(clusters) == 1 else None
    return next((cluster for cluster in clusters if cluster.origin == view.origin[:2]), None)
