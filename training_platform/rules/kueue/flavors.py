"""Kueue's flavors, against the node pools that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.topologies import legal_for, nearest_topology
from training_platform.catalog.types import Kind, MachineType
from training_platform.config.pools import ARCHITECTURE_LABEL, FLAVOR_LABEL, QUEUED_LABEL
from training_platform.config.reading.section import enumeration
from training_platform.rules.gke.tpu import illegal
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.kueue import FlavorQuotaView, FlavorView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.program import Program

TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"
TPU_LABEL = "cloud.google.com/gke-tpu-accelerator"
ACCELERATOR_LABELS: Mapping[str, Kind] = {
    TPU_LABEL: "tpu",
    "cloud.google.com/gke-accelerator": "gpu",
}
_ARM = {
    each.accelerator.gke_label for each in MACHINE_TYPES.values() if each.accelerator and each.architecture == "arm64"
}


@rule(
    "tpu-flavor-topology",
    ruleset="flavors",
    across=True,
    facts=("TPU-02", "KUE-07"),
    source="GKE docs, TPU concepts: labels that GKE sets; Kueue ff69552, ResourceFlavor, read 2026-08-22",
)
def tpu_flavor_topology(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool with another slice topology than its ResourceFlavor selects: its jobs would never start."""
    machine = pool.machine
    if machine is None or machine.kind != "tpu":
        return
    actual = pool.tpu_topology or machine.single_host
    wanted = _selected(pool.node_labels.get(FLAVOR_LABEL), program)
    if wanted is not None and wanted != actual:
        if not legal_for(machine, wanted):
            yield illegal(pool, machine, wanted)
        else:
            message = f"the pool's slices have topology {actual}, but its flavor selects {wanted}"
            yield finding(pool, "tpu_topology", message, allowed=wanted, nearest=wanted)


@rule(
    "flavor-accelerator",
    ruleset="flavors",
    across=True,
    facts=("TPU-15",),
    source="xpk #1173; ray #53914; GKE cluster-autoscaler 7d25050, system labels",
)
def flavor_accelerator(flavor: FlavorView, program: Program) -> Iterator[Draft]:
    """Find a flavor that selects an accelerator or slice topology that no node has as a label.

    A pool of the same shape is found by a rule of its own.
    """
    for label, kind in ACCELERATOR_LABELS.items():
        value = flavor.node_labels.get(label)
        names = _labels_of(kind) if value is not None else ()
        if value is not None and value not in names:
            message = f"flavor {flavor.flavor} selects {label} {value}, which no node carries"
            nearest = find_nearest(value, names)
            yield finding(flavor, "node_labels", message, allowed=enumeration(names, most=40), nearest=nearest)
    topology = flavor.node_labels.get(TOPOLOGY_LABEL)
    model = flavor.node_labels.get(TPU_LABEL)
    machines = _machines_of(model) if topology and model else ()
    if not topology or not machines or any(legal_for(machine, topology) for machine in machines):
        return
    if not any(pool.known("tpu_topology") and pool.tpu_topology == topology for pool in program.all(NodePoolView)):
        message = f"flavor {flavor.flavor} selects topology {topology}, which {model} does not support"
        nearest = nearest_topology(max(machines, key=lambda machine: machine.multi_host), topology)
        yield finding(flavor, "node_labels", message, allowed="a topology that it supports", nearest=nearest)


@rule(
    "topology-autoscaled",
    ruleset="flavors",
    severity="warning",
    owner="kueue",
    across=True,
    source="Kueue v0.19.2, tas_flavor_snapshot.go and its page on topology-aware scheduling, read 2026-11-22; tried",
)
def topology_autoscaled(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool that grows by waiting pods, in a flavor whose jobs Kueue places on the VMs that are there alone."""
    flavor = pool.node_labels.get(FLAVOR_LABEL)
    placed = any(each.topology and each.flavor == flavor for each in program.once(_placing))
    if placed and not pool.queued and pool.least_vms < pool.most_vms:
        message = f"has {pool.least_vms} of its {pool.most_vms} VMs at first; Kueue places jobs of {flavor} on VMs that"
        yield finding(
            pool, "min_nodes", f"{message} are there, so that nothing would ever start more",
            allowed="as many as at most, queued provisioning, or a flavor without topology",
            nearest=pool.most_vms if pool.machine and pool.machine.kind == "gpu" else None,
        )  # fmt: skip


@rule(
    "queued-flavor-check",
    ruleset="flavors",
    across=True,
    facts=("CON-11",),
    source="Kueue v0.19.2, ProvisioningRequest admission check; GKE docs, queued provisioning, read 2026-04",
)
def queued_flavor_check(quota: FlavorQuotaView, program: Program) -> Iterator[Draft]:
    """Find a queue that admits jobs to queued nodes without an admission check: nothing would ever scale the pool."""
    queued = any(each.flavor == quota.flavor and QUEUED_LABEL in each.node_labels for each in program.all(FlavorView))
    if queued and not quota.checks:
        message = f"queue {quota.queue} has no admission check on {quota.flavor}, whose nodes need ProvisioningRequests"
        yield finding(quota, "checks", message, allowed="a check of kueue.x-k8s.io/provisioning-request on the flavor")


@rule(
    "queued-flavor-toleration",
    ruleset="flavors",
    facts=("CON-11",),
    source="GKE docs, queued provisioning: taint of queued nodes, read 2026-04; Cluster Toolkit v1.95.0",
)
def queued_flavor_toleration(flavor: FlavorView) -> Iterator[Draft]:
    """Find a flavor of queued nodes whose pods do not tolerate the taint that GKE puts on them."""
    if QUEUED_LABEL in flavor.node_labels and QUEUED_LABEL not in flavor.tolerated:
        message = f"flavor {flavor.flavor} selects queued nodes and does not tolerate their taint"
        yield finding(flavor, "tolerated", message, allowed=f"{QUEUED_LABEL}=true:NoSchedule", nearest=QUEUED_LABEL)


@rule(
    "arm-flavor-toleration",
    ruleset="flavors",
    severity="warning",
    facts=("GPU-07",),
    source="GKE docs, prepare to deploy an Arm workload in a Standard cluster, read 2026-11-21",
)
def arm_flavor_toleration(flavor: FlavorView) -> Iterator[Draft]:
    """Find a flavor of Arm nodes whose pods do not tolerate the taint that GKE puts on them.

    Pods that select the architecture are given the toleration by GKE.
    """
    selected = {flavor.node_labels.get(label) for label in ACCELERATOR_LABELS} & _ARM
    if selected and ARCHITECTURE_LABEL not in {*flavor.tolerated, *flavor.node_labels}:
        message = f"flavor {flavor.flavor} selects Arm nodes and does not tolerate their taint"
        taint = f"{ARCHITECTURE_LABEL}=arm64:NoSchedule"
        yield finding(flavor, "tolerated", message, allowed=taint, nearest=ARCHITECTURE_LABEL)


@cache
def _labels_of(kind: Kind) -> tuple[str, ...]:
    return tuple(sorted({each.gke_label for each in ACCELERATORS.values() if each.kind == kind}))


@cache
def _machines_of(model: str) -> tuple[MachineType, ...]:
    rows = MACHINE_TYPES.values()
    return tuple(each for each in rows if each.accelerator and each.accelerator.gke_label == model)


def _selected(flavor: str | None, program: Program) -> str | None:
    """Return the topology that the flavor of this name selects; names say the shape, so clusters agree on it."""
    selecting = program.once(_by_name).get(flavor)
    return selecting.node_labels.get(TOPOLOGY_LABEL) if selecting else None


def _by_name(program: Program) -> dict[str | None, FlavorView]:
    """Return the first flavor of each name that is known."""
    found: dict[str | None, FlavorView] = {}
    for each in program.all(FlavorView):
        if each.known("flavor"):
            found.setdefault(each.flavor, each)
    return found


def _placing(program: Program) -> list[FlavorView]:
    """Return the flavors with a topology, and those of which it is not known."""
    return [each for each in program.all(FlavorView) if not each.known("topology") or each.topology]
