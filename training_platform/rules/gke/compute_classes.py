"""Custom compute classes: what their schema refuses, and priorities that never add a node."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.config.reading.finding import Severity
from training_platform.rules.gke_versions import below
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.cluster import AutoProvisioningView, ClusterView
from training_platform.views.cluster_pools import pools_of
from training_platform.views.compute_class import ClassPriority, ComputeClassView
from training_platform.views.program import Program

_TYPES = "compute-class-api 8067eae (2026-08-21), types of cloud.google.com/v1 and what they validate, read 2026-11-21"
_DOCS = "GKE docs, about custom ComputeClasses, read 2026-11-21"
CLASS_LABEL = "cloud.google.com/compute-class"
BESIDE_POOLS = frozenset({"allocationStrategy", "nodepools", "priorityScore"})
CLASSES = "1.30.3-gke.1451000"
AUTO_CREATION = "1.33.3-gke.1136000"


@rule("compute-class-priority", ruleset="compute-classes", facts=("CON-01",), source=_TYPES)
def compute_class_priority(each: ComputeClassView) -> Iterator[Draft]:
    """Find a priority whose fields exclude each other, or one of which needs another."""
    for place, priority in enumerate(each.priorities, 1):
        for message, allowed in _clashes(priority):
            yield finding(each, "priorities", f"priority {place}: {message}", allowed=allowed)
    scores = sum("priorityScore" in priority.written for priority in each.priorities)
    if 0 < scores < len(each.priorities):
        message = f"{scores} of {len(each.priorities)} priorities have a priorityScore"
        yield finding(each, "priorities", message, allowed="one in each priority, or in none")


def _clashes(priority: ClassPriority) -> Iterator[tuple[str, str]]:
    written = set(priority.written)
    others = written - BESIDE_POOLS
    if "nodepools" in written and others:
        yield f"nodepools excludes {', '.join(sorted(others))}", "nodepools alone"
    if {"machineType", "machineFamily"} <= written:
        yield "machineType and machineFamily exclude each other", "one of the two"
    if "machineType" in written and written & {"minCores", "minMemoryGb"}:
        yield (
            "a machine type already determines cores and memory",
            "machineType, or machineFamily with the least of each",
        )
    if priority.spot and priority.flex_start:
        yield "spot and flexStart exclude each other", "one of the two"
    if (priority.affinity == "Specific") != (priority.reservations > 0):
        yield "affinity Specific and reservations by name go together", "both, or None, or AnyBestEffort"
    if priority.wait_seconds is not None and not (priority.tpu or priority.flex_start):
        yield "GKE waits for capacity only with flex-start VMs and TPU slices", "no capacityCheckWaitTimeSeconds"


@rule("compute-class-capacity", ruleset="compute-classes", facts=("CON-07", "CON-12"), source=f"{_TYPES}; Compute docs")
def compute_class_capacity(each: ComputeClassView) -> Iterator[Draft]:
    """Find a priority whose machine type does not support its provisioning model, and so never adds a node."""
    for place, priority in enumerate(each.priorities, 1):
        machine = priority.machine
        if machine is not None and priority.capacity not in machine.capacities:
            message = f"priority {place}: {machine.name} does not support {priority.capacity}"
            nearest = next(iter(machine.capacities), None)
            # Without an affinity GKE may take VMs of any reservation, and goes on to the next priority where none fits:
            # owners write a3-highgpu-1g so (accelerated-platforms 9320f3b).
            unsaid = priority.capacity == "on-demand" and priority.affinity in (None, "AnyBestEffort")
            severity: Severity | None = "warning" if unsaid else None
            allowed = ", ".join(machine.capacities)
            yield finding(each, "priorities", message, allowed=allowed, nearest=nearest, severity=severity)


@rule(
    "compute-class-reservation",
    ruleset="compute-classes",
    facts=("CON-02", "CON-14"),
    source="GKE cluster-autoscaler 7d25050, reservation matcher; google/skills, gke-compute-classes, read 2026-11-21",
)
def compute_class_reservation(each: ComputeClassView) -> Iterator[Draft]:
    """Find TPUs, spot or flex-start VMs with affinity to any reservation: TPUs need its name, the others support none.

    The zones of a reservation by name stand beside its name: GKE refuses a priority that has zones of its own, too.
    """
    for place, priority in enumerate(each.priorities, 1):
        if priority.affinity == "Specific" and priority.zones:
            message = f"priority {place}: zones beside reservations by name"
            allowed = "reservations.specific[].zones alone"
            yield finding(each, "priorities", message, allowed=allowed, nearest="reservations.specific[].zones")
        if priority.tpu and priority.affinity in ("AnyBestEffort", "AnyThenFail"):
            message = f"priority {place}: TPU pools that GKE creates consume a reservation only by name"
            yield finding(each, "priorities", message, allowed="affinity Specific or None", nearest="Specific")
        if (priority.spot or priority.flex_start) and priority.affinity not in (None, "None"):
            message = f"priority {place}: {'spot' if priority.spot else 'flex-start'} VMs cannot use reservations"
            yield finding(each, "priorities", message, allowed="affinity None", nearest="None")


@rule("compute-class-pools", ruleset="compute-classes", across=True, facts=("CON-11",), source=_DOCS)
def compute_class_pools(each: ComputeClassView, program: Program) -> Iterator[Draft]:
    """Find a pool of a compute class that GKE would never scale for it: without its label, or with queuing."""
    cluster = _cluster(each, program)
    if cluster is None or not each.compute_class:
        return
    wanted = {pool for priority in each.priorities for pool in priority.node_pools}
    for pool in pools_of(cluster, program):
        if not pool.known("pool") or pool.pool not in wanted:
            continue
        if pool.node_labels.get(CLASS_LABEL) != each.compute_class:
            label = f"{CLASS_LABEL}: {each.compute_class}"
            message = f"pool {pool.pool} is in class {each.compute_class}, but its nodes lack the class's label"
            yield finding(pool, "node_labels", message, allowed=f"{label}, and a taint of the same", nearest=label)
        if pool.queued:
            message = f"nodes of pool {pool.pool} are added by ProvisioningRequests only, never for a compute class"
            yield finding(pool, "queued", message, allowed="flex-start, in a class", nearest="flex-start")


@rule("compute-class-floor", ruleset="compute-classes", across=True, facts=("TPU-12",), source=_DOCS)
def compute_class_floor(each: ComputeClassView, program: Program) -> Iterator[Draft]:
    """Find a compute class on a GKE version that does not support it, or not without auto-provisioning."""
    cluster = _cluster(each, program)
    if cluster is None:
        return
    needs = [(CLASSES, "custom compute classes")]
    if each.makes_pools and _limits(cluster, program) is None:
        needs.append((AUTO_CREATION, "pools that GKE creates for a class without auto-provisioning"))
    for floor, what in needs:
        severity = below(cluster.version, floor)
        if severity:
            message = f"{what} need GKE {floor}, but the cluster has {cluster.version}"
            yield finding(cluster, "version", message, allowed=f"{floor} or later", nearest=floor, severity=severity)


@rule(
    "compute-class-limits",
    ruleset="compute-classes",
    across=True,
    facts=("CLU-09",),
    source="GKE cluster-autoscaler 7d25050, limiter, read 2026-08-21; that a class without limits needs some is ours",
)
def compute_class_limits(each: ComputeClassView, program: Program) -> Iterator[Draft]:
    """Find a class that creates pools in a cluster without a limit on their accelerator."""
    cluster = _cluster(each, program)
    if cluster is None or not each.makes_pools:
        return
    limits = _limits(cluster, program)
    for accelerator in sorted({each for each in map(_made, each.priorities) if each}):
        if limits is None:
            message = f"there is no limit on how many {accelerator} GKE may add for class {each.compute_class}"
        elif limits.limit(accelerator) is None:
            message = (
                f"auto-provisioning has no limit of {accelerator}, so GKE adds none for class {each.compute_class}"
            )
        else:
            continue
        where = "auto_provisioning with accelerators" if each.origin else "a row of clusterAutoscaling.resourceLimits"
        allowed = f"{where}: {accelerator}"
        severity: Severity | None = "warning" if limits is None else None
        yield finding(each, "priorities", message, allowed=allowed, nearest=accelerator, severity=severity)


def _made(priority: ClassPriority) -> str | None:
    return None if priority.node_pools else priority.accelerator


def _limits(cluster: ClusterView, program: Program) -> AutoProvisioningView | None:
    return next((each for each in program.all(AutoProvisioningView) if each.cluster.name == cluster.name), None)


def _cluster(each: ComputeClassView, program: Program) -> ClusterView | None:
    """Return the cluster that a class is in: that of its section, or the only one of a program without stack files."""
    clusters = program.all(ClusterView)
    if not each.origin:
        return clusters[0] if len(clusters) == 1 else None
    return next((cluster for cluster in clusters if cluster.origin == each.origin[:2]), None)
