"""Placement: compact pools, resource policies, workload policies."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog.locations import region_of
from training_platform.catalog.shapes import chips_in
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.node_pool import NodePoolView
from training_platform.views.placement import ResourcePolicyView
from training_platform.views.program import Program

_TOOLKIT = "Cluster Toolkit v1.95.0, gke-node-pool and resource-policy, read 2026-06-25"
_CA = "GKE cluster-autoscaler 7d25050, read 2026-08-21"
_API = "terraform-provider-google-beta 93c65b2, compute resource policy; gcloud reference"
COMPACT = "COMPACT"
HIGH_THROUGHPUT = "HIGH_THROUGHPUT"
PROVISION_ONLY = "PROVISION_ONLY"


@rule(
    "placement-type",
    ruleset="placement",
    when="placement_type",
    facts=("PLC-05",),
    source="NodePool.PlacementPolicy (googleapis f8291d2)",
)
def placement_type(pool: NodePoolView) -> Iterator[Draft]:
    """Find a placement type that GKE does not support."""
    if pool.placement_type not in (None, "", "TYPE_UNSPECIFIED", COMPACT):
        message = f"placement type {pool.placement_type} is unknown"
        yield finding(pool, "placement_type", message, allowed=COMPACT, nearest=COMPACT)


@rule("placement-machine", ruleset="placement", facts=("PLC-03",), source=f"{_CA}; dstack #2591")
def placement_machine(pool: NodePoolView) -> Iterator[Draft]:
    """Find compact placement on machine types that do not support it."""
    machine = pool.machine
    if pool.placement_type != COMPACT or machine is None or machine.kind == "tpu" or machine.workload_policy:
        return
    if machine.compact_max_nodes is None:
        message = f"{machine.name} does not support compact placement"
        yield finding(pool, "placement_type", message, allowed="no placement policy")


@rule("placement-size", ruleset="placement", facts=("PLC-04",), source=_CA)
def placement_size(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool with compact placement that may grow beyond the VMs that Google Cloud places together."""
    machine = pool.machine
    if pool.placement_type != COMPACT or machine is None or machine.compact_max_nodes is None:
        return
    if pool.most_vms > machine.compact_max_nodes:
        message = f"{pool.most_vms:,} {machine.name} cannot be placed together"
        most = machine.compact_max_nodes
        yield finding(
            pool, "max_nodes", message, allowed=f"at most {most:,} a pool", nearest=f"several pools of {most:,}"
        )


@rule("placement-capacity", ruleset="placement", facts=("PLC-02",), source=_TOOLKIT)
def placement_capacity(pool: NodePoolView) -> Iterator[Draft]:
    """Find compact placement with queued provisioning, or with flex-start on GPU machines without RDMA."""
    machine = pool.machine
    if pool.placement_type != COMPACT or machine is None or machine.kind != "gpu":
        return
    if pool.queued:
        message = "queued provisioning of GPUs does not support compact placement"
        yield finding(pool, "placement_type", message, allowed="no placement policy")
    elif pool.flex_start and not machine.rdma_nics:  # the Toolkit names a3-ultragpu and a4: the machines with RDMA
        message = f"{machine.name} with flex-start does not support compact placement"
        yield finding(pool, "placement_type", message, allowed="no placement policy")


@rule(
    "workload-policy-missing",
    ruleset="placement",
    facts=("TPU-09", "PLC-07"),
    source=f"{_TOOLKIT}; GKE docs, TPU Ironwood",
)
def workload_policy_missing(pool: NodePoolView) -> Iterator[Draft]:
    """Find hosts that only a workload policy can join, without one."""
    machine = pool.machine
    if machine is None or not machine.workload_policy or pool.policy:
        return
    topology = machine.nvlink_domain or (pool.tpu_topology if pool.hosts > 1 else None)
    if topology:
        message = f"several {machine.name} need a workload policy, but the placement policy names none"
        allowed = f"policy_name of a ResourcePolicy with workload policy {HIGH_THROUGHPUT} and topology {topology}"
        yield finding(pool, "policy", message, allowed=allowed)


@rule(
    "nvlink-domain",
    ruleset="placement",
    severity="warning",
    facts=("PLC-07",),
    source="Cluster Toolkit v1.95.0, gke-a4x",
)
def nvlink_domain(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool that is not one whole NVLink domain: its GPUs would communicate over the network."""
    machine = pool.machine
    gpus = chips_in(machine.nvlink_domain) if machine is not None and machine.nvlink_domain else None
    if machine is None or not gpus:
        return
    hosts = gpus // machine.chips
    if pool.most_vms != hosts:
        message = f"{pool.most_vms} {machine.name} do not fill an NVLink domain of {machine.nvlink_domain}"
        yield finding(pool, "max_nodes", message, allowed=f"{hosts} in each pool", nearest=hosts)


@rule(
    "workload-policy-drift",
    ruleset="placement",
    severity="warning",
    facts=("TPU-11",),
    source="vllm ci-infra #547, against Cluster Toolkit v1.95.0, resource-policy/outputs.tf",
)
def workload_policy_drift(pool: NodePoolView) -> Iterator[Draft]:
    """Find type COMPACT with a workload policy, said to replace the slice on each update; sources disagree."""
    machine = pool.machine
    if machine is None or machine.kind != "tpu" or not machine.workload_policy or pool.placement_type != COMPACT:
        return
    if pool.hosts > 1 and pool.ignored is not None and "placementPolicy" not in pool.ignored:
        message = "according to one source GKE does not store type COMPACT here, so each update would replace the slice"
        nearest = 'ignore_changes=["placementPolicy"]'
        yield finding(pool, "policy", message, allowed="changes of placementPolicy ignored", nearest=nearest)


@rule("resource-policy", ruleset="placement", facts=("PLC-06",), source=_API)
def resource_policy(policy: ResourcePolicyView) -> Iterator[Draft]:
    """Find settings of a resource policy that exclude each other."""
    if policy.topology and policy.topology_distance:
        message = "accelerator topology and topology distance exclude each other"
        yield finding(policy, "topology_distance", message, allowed="one of the two")
    if policy.workload and policy.workload_type != HIGH_THROUGHPUT:
        set_ = [name for name in ("topology", "topology_mode", "topology_distance") if getattr(policy, name)]
        if set_:
            message = f"a workload policy of type {policy.workload_type} does not support {set_[0].replace('_', ' ')}"
            yield finding(policy, set_[0], message, allowed=f"type {HIGH_THROUGHPUT}", nearest=HIGH_THROUGHPUT)
    if policy.max_distance is not None and policy.gpu_topology:
        message = "distance and GPU topology of a group exclude each other"
        yield finding(policy, "max_distance", message, allowed="one of the two")


@rule("provision-only", ruleset="placement", facts=("TPU-13",), source=_TOOLKIT)
def provision_only(policy: ResourcePolicyView) -> Iterator[Draft]:
    """Find a policy that provisions hosts before joining them, without the type and topology of their slices."""
    if policy.topology_mode == PROVISION_ONLY and not (policy.workload_type and policy.topology):
        message = f"mode {PROVISION_ONLY} needs a type and a topology"
        allowed = f"type {HIGH_THROUGHPUT} and accelerator_topology"
        yield finding(policy, "topology_mode", message, allowed=allowed, nearest=HIGH_THROUGHPUT)


@rule(
    "placement-policy",
    ruleset="together",
    across=True,
    facts=("PLC-05", "TPU-10", "PLC-07"),
    source=f"{_TOOLKIT}; {_CA}",
)
def placement_policy(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool whose placement policy has another region, project, kind or topology."""
    machine = pool.machine
    policy = program.once(_policies).get(pool.policy) if pool.policy else None
    if policy is None:
        return
    region = region_of(pool.location)
    if policy.region and policy.region != region:
        message = f"policy {policy.name} is in {policy.region}, but the pool is in {region}"
        yield finding(pool, "policy", message, allowed=f"a policy of {region}", nearest=region)
    if policy.project and pool.project and policy.project != pool.project:
        message = f"policy {policy.name} belongs to project {policy.project}, but the pool to {pool.project}"
        yield finding(pool, "policy", message, allowed=f"a policy of {pool.project}")
    if not policy.workload and not policy.group:
        message = f"policy {policy.name} is not a placement policy"
        yield finding(pool, "policy", message, allowed="a workload policy or a group placement policy")
    if machine is None or not machine.workload_policy:
        return
    wanted = machine.nvlink_domain or pool.tpu_topology
    if wanted and policy.topology != wanted:
        message = f"policy {policy.name} has topology {policy.topology or 'none'}, but the pool has {wanted}"
        yield finding(pool, "policy", message, allowed=wanted, nearest=wanted)


@rule("provision-only-pool", ruleset="together", when="policy", across=True, facts=("TPU-13",), source=_TOOLKIT)
def provision_only_pool(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find hosts that are provisioned before they are joined, with queued provisioning or no named reservation."""
    policy = program.once(_policies).get(pool.policy) if pool.policy else None
    if policy is None or policy.topology_mode != PROVISION_ONLY:
        return
    if pool.queued or pool.consume_reservation != "SPECIFIC_RESERVATION":
        message = f"policy {policy.name} is provision-only: it needs a named reservation and excludes queuing"
        yield finding(pool, "policy", message, allowed="SPECIFIC_RESERVATION", nearest="SPECIFIC_RESERVATION")


def _policies(program: Program) -> dict[str, ResourcePolicyView]:
    found = {policy.name: policy for policy in program.all(ResourcePolicyView)}
    found.update(
        {each.policy: each for each in program.all(ResourcePolicyView) if each.known("policy") and each.policy}
    )
    return found
