"""TPU node pools: the topology of a slice, and one GKE node pool for each multi-host slice."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog.shapes import chips_in
from training_platform.catalog.topologies import legal_for, nearest_topology, other_machine, topologies_text
from training_platform.catalog.types import MachineType
from training_platform.config.reading.finding import Severity
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.node_pool import NodePoolView

_DEPLOYED_WITH_TOPOLOGY = frozenset({"tpu-v6e", "tpu-7x"})
_XPK = "xpk 367c838, nodepool.py and system_characteristics.py, read 2026-06-25"


@rule(
    "tpu-topology",
    ruleset="tpu",
    facts=("TPU-03", "TPU-08"),
    source=f"{_XPK}; Vertex AI docs, configure compute, read 2026-08-22",
)
def tpu_topology(pool: NodePoolView) -> Iterator[Draft]:
    """Find a topology that is not valid for the machine type, on one VM or several."""
    machine, topology = pool.machine, pool.tpu_topology
    if machine is None or topology is None:
        return
    if machine.kind != "tpu":
        yield finding(pool, "tpu_topology", f"{machine.name} is not a TPU and has no topology", allowed="none")
    elif not legal_for(machine, topology):
        yield illegal(pool, machine, topology)


@rule(
    "tpu-single-host-placement",
    ruleset="tpu",
    facts=("TPU-01",),
    source=f"{_XPK}; xpk #825; daily tests of Cluster Toolkit at 104708037, which deploy v6e 2x2 and 7x 2x2x1 so",
)
def tpu_single_host_placement(pool: NodePoolView) -> Iterator[Draft]:
    """Find a topology on a pool whose VMs are whole slices by themselves; sources disagree on v6e and 7x."""
    machine, topology = pool.machine, pool.tpu_topology
    if machine is None or topology is None or machine.kind != "tpu":
        return
    if chips_in(topology) == machine.chips:
        disputed = machine.accelerator is not None and machine.accelerator.name in _DEPLOYED_WITH_TOPOLOGY
        said = "sources disagree on whether GKE refuses" if disputed else "GKE refuses"
        message = f"one {machine.name} is the whole slice {topology}, and {said} a TPU topology for it"
        allowed = "no placement policy: GKE labels such nodes with the topology by itself"
        severity: Severity | None = "warning" if disputed else None
        yield finding(pool, "tpu_topology", message, allowed=allowed, nearest="no placement_policy", severity=severity)


@rule(
    "tpu-slice-nodes",
    ruleset="tpu",
    facts=("TPU-04", "TPU-05", "TPU-06", "TPU-07"),
    source=f"{_XPK}; xpk #751; terraform-provider-google-beta 93c65b2, autoscaling",
)
def tpu_slice_nodes(pool: NodePoolView) -> Iterator[Draft]:
    """Find a multi-host pool whose size is neither 0 nor all hosts of its slice: a slice scales as a whole."""
    machine, hosts = pool.machine, pool.hosts
    if machine is None or machine.kind != "tpu" or hosts == 1:
        return
    allowed = f"0 or {hosts}, the hosts of one {pool.tpu_topology}"
    for field in ("node_count", "initial_nodes", "min_nodes"):
        count = getattr(pool, field)
        if count not in (None, 0, hosts):
            yield finding(pool, field, f"{field.replace('_', ' ')} is {count}", allowed=allowed, nearest=hosts)
    if pool.max_nodes not in (None, hosts):
        message = f"max nodes is {pool.max_nodes}"
        yield finding(pool, "max_nodes", message, allowed=f"{hosts}, the hosts of one slice", nearest=hosts)
    for field in ("total_min_nodes", "total_max_nodes"):
        if getattr(pool, field) is not None:
            message = f"{field.replace('_', ' ')} counts over all zones, which GKE refuses for a slice"
            yield finding(pool, field, message, allowed=f"counts per zone: 0 and {hosts}")


@rule(
    "placement-one-zone",
    ruleset="tpu",
    when="placement_type",
    facts=("PLC-01",),
    source="Cluster Toolkit v1.95.0, gke-node-pool main.tf, preconditions, read 2026-06-25",
)
def placement_one_zone(pool: NodePoolView) -> Iterator[Draft]:
    """Find compact placement over several zones, or with blue-green upgrades."""
    if pool.placement_type != "COMPACT":
        return
    if pool.zone_count != 1:
        message = f"compact placement needs one zone, and the pool is in {pool.zone_count}"
        yield finding(pool, "zones", message, allowed="exactly one zone", nearest=next(iter(pool.zones), None))
    if pool.upgrade_strategy == "BLUE_GREEN":
        message = "compact placement does not support blue-green upgrades"
        yield finding(pool, "upgrade_strategy", message, allowed="surge", nearest="surge")


def illegal(pool: NodePoolView, machine: MachineType, topology: str) -> Draft:
    """Return the finding about a topology that is not valid for the machine type."""
    message = f"{topology!r} is not a valid topology for {machine.name}"
    allowed, nearest = topologies_text(machine), nearest_topology(machine, topology)
    if other := other_machine(machine, topology):
        nearest = f"{nearest}; or machine type {other} for {topology}"
    return finding(pool, "tpu_topology", message, allowed=allowed, nearest=nearest)
