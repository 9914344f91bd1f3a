"""Rules about single node pools: their names, and how they are scaled, upgraded, replaced and placed."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog.locations import region_of
from training_platform.catalog.types import chips_in
from training_platform.config.expansion import SYSTEM_NAME, SYSTEM_TAINT
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.finding import Severity
from training_platform.rules.gke.clusters import NAME_LENGTH, PODS_SOURCE, SURGE_SOURCE, pods_beyond, surge_beyond
from training_platform.views.cluster import AutoProvisioningView, ClusterView, ResourcePolicyView, pools_of
from training_platform.views.node_pool import NodePoolView
from training_platform.views.whole_stack import Program

_LIMITS = "GKE docs, quotas and limits, copies of 2025; newer versions support 65,000 nodes (unverified)"
LONGEST_WAIT = 7 * 24 * 3600  # seconds
NODES_BY_DEFAULT = 5_000
MOST_NODES = 15_000
MOST_NODES_IN_A_ZONE = 1_000
_SCHEMA = "terraform-provider-google-beta 93c65b2, node pools, read 2026-08-21"


@rule("pool-name", ruleset="pools", source="GKE API, NodePool.name: at most 40 characters")
def pool_name(pool: NodePoolView) -> Iterator[Draft]:
    """Find a node pool whose name is longer than GKE allows."""
    name = pool.pool
    if name and len(name) > NAME_LENGTH:
        message = f"node pool {name} has a name of {len(name)} characters"
        yield finding(pool, "pool", message, allowed=f"at most {NAME_LENGTH}", nearest=name[:NAME_LENGTH].rstrip("-"))


@rule("pool-counts", ruleset="pools", owner="provider", source=f"{_SCHEMA}; Cluster Toolkit v1.95.0")
def pool_counts(pool: NodePoolView) -> Iterator[Draft]:
    """Find node counts that exclude each other. A fixed count combined with autoscaling is a warning."""
    zonal = [name for name in ("min_nodes", "max_nodes") if getattr(pool, name) is not None]
    total = [name for name in ("total_min_nodes", "total_max_nodes") if getattr(pool, name) is not None]
    if zonal and total:
        message = "autoscaling has both limits for each zone and limits for all zones together"
        yield finding(pool, total[0], message, allowed="one of the two pairs", nearest="the pair per zone")
    if pool.node_count is not None and pool.initial_nodes:  # the provider treats 0 as not written
        message = f"node_count is {pool.node_count} together with initial_node_count {pool.initial_nodes}"
        yield finding(pool, "node_count", message, allowed="one of the two", nearest="initial_node_count")
    if pool.node_count is not None and (zonal or total):
        message = "node_count is set together with autoscaling: each deployment would undo the autoscaler's changes"
        allowed = "initial_node_count, listed in ignore_changes"
        yield finding(pool, "node_count", message, allowed=allowed, nearest="initial_node_count", severity="warning")


@rule("pool-bounds", ruleset="pools", source=f"{_SCHEMA}; Cluster Toolkit v1.95.0")
def pool_bounds(pool: NodePoolView) -> Iterator[Draft]:
    """Find a minimum number of nodes that is above the maximum."""
    for low, high in (("min_nodes", "max_nodes"), ("total_min_nodes", "total_max_nodes")):
        minimum = getattr(pool, low)
        maximum = getattr(pool, high)
        if minimum is not None and maximum is not None and minimum > maximum:
            message = f"the minimum, {minimum}, is above the maximum, {maximum}"
            yield finding(pool, low, message, allowed=f"at most {maximum}", nearest=maximum)


@rule("max-pods", ruleset="pools", source=PODS_SOURCE)
def max_pods(pool: NodePoolView) -> Iterator[Draft]:
    """Find a number of pods per node that GKE does not support."""
    if pool.max_pods is not None:
        yield from pods_beyond(pool, pool.max_pods)


@rule("pool-nodes", ruleset="pools", severity="warning", owner="catalogue", source=_LIMITS)
def pool_nodes(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool that may have more VMs in a zone than GKE's documented limit.

    Slices are accepted, because Google lists larger ones. According to sources about A4, GKE may also accept more VMs
    of other machine types.
    """
    vms_per_zone = pool.most_vms // pool.zone_count
    if vms_per_zone > MOST_NODES_IN_A_ZONE and pool.hosts == 1:
        message = f"{vms_per_zone:,} VMs of one pool in one zone: GKE documents a limit of {MOST_NODES_IN_A_ZONE:,}"
        allowed = f"at most {MOST_NODES_IN_A_ZONE:,} per pool, or more if Google has granted it"
        yield finding(pool, "max_nodes", message, allowed=allowed, nearest=MOST_NODES_IN_A_ZONE)


@rule("cluster-nodes", ruleset="together", severity="warning", across=True, owner="catalogue", source=_LIMITS)
def cluster_nodes(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a cluster whose pools may have more VMs than GKE supports by default, or more than it supports at all."""
    nodes = sum(pool.most_vms for pool in pools_of(cluster, program))
    if nodes <= NODES_BY_DEFAULT:
        return
    if nodes > MOST_NODES:
        message = f"its pools may have {nodes:,} VMs, but GKE documents a limit of {MOST_NODES:,}"
        yield finding(cluster, "cluster", message, allowed=f"at most {MOST_NODES:,}, or several clusters")
    else:
        message = f"its pools may have {nodes:,} VMs: for more than {NODES_BY_DEFAULT:,}, Google has to raise the limit"
        yield finding(cluster, "cluster", message, allowed="a regional cluster, and a limit that Google has raised")


@rule("surge-upgrades", ruleset="pools", source=SURGE_SOURCE)
def surge_upgrades(pool: NodePoolView) -> Iterator[Draft]:
    """Find surge upgrades that may not upgrade any node, or that upgrade more nodes at a time than GKE does."""
    if pool.upgrades and pool.upgrade_strategy in (None, "SURGE"):
        yield from surge_beyond(pool, pool.max_surge, pool.max_unavailable)


@rule(
    "blue-green-settings",
    ruleset="pools",
    source="GKE API v1beta1, BlueGreenSettings and its rollout policies (discovery document), read 2026-11-22",
)
def blue_green_settings(pool: NodePoolView) -> Iterator[Draft]:
    """Find blue-green upgrades with a percentage or a wait that is out of range, and settings that have no effect.

    Document rules check which settings exclude each other.
    """
    share = pool.batch_share
    if share is not None and not 0 < share <= 1 and not (share == 0 and pool.batch_nodes):
        message = f"a batch is the fraction {share:g} of the pool's nodes"
        yield finding(pool, "batch_share", message, allowed="more than 0, at most 1", nearest=1 if share > 1 else None)
    for field, when in (
        ("drain_wait_seconds", "before nodes are drained"),
        ("batch_soak_seconds", "after a batch is drained"),
        ("pool_soak_seconds", "before the old nodes are deleted"),
    ):
        if (wait := getattr(pool, field)) is not None and wait > LONGEST_WAIT:
            message = f"an upgrade waits {wait:,} seconds {when}"
            # The document has the limit of the first; the others' are general knowledge.
            severity: Severity | None = None if field == "drain_wait_seconds" else "warning"
            yield finding(
                pool, field, message, allowed=f"at most {LONGEST_WAIT}s, 7 days", nearest=f"{LONGEST_WAIT}s",
                severity=severity,
            )  # fmt: skip
    if pool.blue_green and pool.upgrade_strategy != "BLUE_GREEN":  # that this has no effect is (inferred)
        message = (
            f"the strategy is {pool.upgrade_strategy or 'SURGE by default'}, for which blue-green settings have no "
            f"effect"
        )
        yield finding(pool, "blue_green", message, allowed="BLUE_GREEN", nearest="BLUE_GREEN", severity="warning")
    if pool.autoscaled_rollout and not pool.autoscales:  # (inferred)
        message = "the rollout is autoscaled, but the pool does not autoscale"
        allowed = "standardRolloutPolicy"
        yield finding(pool, "autoscaled_rollout", message, allowed=allowed, nearest=allowed, severity="warning")


@rule(
    "upgrade-room",
    ruleset="pools",
    severity="warning",
    source=f"{_SCHEMA}, upgrade_settings; Cluster Toolkit v1.95.0, whose default adds no VM",
)
def upgrade_room(pool: NodePoolView) -> Iterator[Draft]:
    """Find upgrades of reserved TPUs or GPUs that need more VMs than the pool's maximum. These VMs also use quota.

    A multi-host slice is recreated as a whole and needs no additional VMs.
    """
    machine = pool.machine
    if machine is None or machine.accelerator is None or not pool.upgrades:
        return
    if pool.capacity != "reservation" or pool.hosts > 1:
        return
    if pool.upgrade_strategy == "BLUE_GREEN":
        message = f"blue-green upgrades need {2 * pool.most_vms} {machine.name} in the reservation"
        yield finding(pool, "upgrade_strategy", message, allowed="surge without extra VMs", nearest="surge")
    elif pool.max_surge:
        message = f"upgrades need {pool.max_surge} {machine.name} of the reservation in addition to the pool's maximum"
        yield finding(pool, "max_surge", message, allowed="0", nearest=0)


@rule(
    "slice-upgrades",
    ruleset="pools",
    severity="warning",
    source="GKE docs, TPUs in GKE: a multi-host slice is repaired and upgraded as a whole",
)
def slice_upgrades(pool: NodePoolView) -> Iterator[Draft]:
    """Find surge settings on a multi-host slice, whose hosts GKE always recreates together."""
    if pool.hosts > 1 and pool.max_surge:
        message = f"GKE always recreates the {pool.hosts} hosts of a slice together, so max_surge has no effect"
        yield finding(pool, "max_surge", message, allowed="0, and checkpoints before upgrades", nearest=0)


@rule(
    "pool-replacement",
    ruleset="pools",
    severity="warning",
    source="terraform-provider-google-beta 93c65b2, ForceNew fields of node pools; Pulumi's order of replacement",
)
def pool_replacement(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool whose replacement Pulumi creates before it deletes the old pool.

    The name and capacity of the old pool are not free until it is deleted.
    """
    if pool.replaced_first is not False:
        return
    machine = pool.machine
    scarce = machine is not None and machine.accelerator is not None
    if scarce or pool.pool is not None:
        why = "capacity for both" if scarce else "room for a second pool of that name"
        message = f"the replacement would be created before the old pool is deleted, but there is no {why}"
        yield finding(
            pool, "replaced_first", message, allowed="delete_before_replace", nearest="delete_before_replace=True"
        )


@rule("system-pool", ruleset="together", across=True, source="GKE docs, GPUs and ProvisioningRequest")
def system_pool(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a cluster without a pool on which controllers, their webhooks and system pods can always run."""
    pools = pools_of(cluster, program)
    if not pools or cluster.autopilot or not cluster.remove_default_pool or cluster.inline_pools:
        return
    if any(limits.cluster.name == cluster.name for limits in program.all(AutoProvisioningView)):
        return  # GKE creates a pool for pods without a node
    untainted = all(row.accelerator_type and not row.taints for row in pools)  # without a CPU pool GKE adds no taint
    plain = pools if untainted else [row for row in pools if _takes_any_pod(row)]
    allowed = "a pool without accelerators and taints, with at least 1 node"
    if not plain:
        message = f"every pool of cluster {cluster.name} has accelerators, queued provisioning or taints"
        yield finding(cluster, "remove_default_pool", message, allowed=allowed, nearest="e2-standard-4, 2 nodes")
    elif not any(row.least_vms for row in plain):
        message = f"all pools of cluster {cluster.name} without accelerators or taints can scale to zero"
        # If all pools have GPUs, pods only wait for their first node: nothing is refused.
        severity: Severity | None = "warning" if untainted else None
        nearest = f"{'min_nodes' if cluster.origin else 'a minimum of'} 1 for {plain[0].name}"
        yield finding(cluster, "remove_default_pool", message, allowed=allowed, nearest=nearest, severity=severity)


@rule(
    "system-pool-shared",
    ruleset="together",
    across=True,
    severity="warning",
    owner="house",
    source="house rule: Kueue and JobSet refuse all jobs while their webhooks have no node",
)
def system_pool_shared(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a production cluster in which teams' pods can fill the system pool and leave no room for controllers."""
    system = [pool for pool in pools_of(cluster, program) if pool.pool == SYSTEM_NAME]
    if not program.production or not system or SYSTEM_TAINT[0] in {taint.key for taint in system[0].taints}:
        return
    message = f"pods of teams that request no TPUs or GPUs run on the same nodes as the controllers of {cluster.name}"
    allowed = "a pool for these pods, and a taint on the system pool that keeps them away"
    nearest = "cpu_pools: {general: {max_nodes: 2}}" if cluster.origin else f"the taint {SYSTEM_TAINT[0]}"
    yield finding(cluster, "remove_default_pool", message, allowed=allowed, nearest=nearest)


def _takes_any_pod(pool: NodePoolView) -> bool:
    tolerated = all(row.effect == "PREFER_NO_SCHEDULE" or row.key == SYSTEM_TAINT[0] for row in pool.taints)
    return tolerated and not pool.queued and (pool.machine is None or pool.machine.accelerator is None)


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
    source="NodePool.PlacementPolicy (googleapis f8291d2)",
)
def placement_type(pool: NodePoolView) -> Iterator[Draft]:
    """Find a placement type that GKE does not support."""
    if pool.placement_type not in (None, "", "TYPE_UNSPECIFIED", COMPACT):
        message = f"placement type {pool.placement_type} is unknown"
        yield finding(pool, "placement_type", message, allowed=COMPACT, nearest=COMPACT)


@rule("placement-machine", ruleset="placement", source=f"{_CA}; dstack #2591")
def placement_machine(pool: NodePoolView) -> Iterator[Draft]:
    """Find compact placement on machine types that do not support it."""
    machine = pool.machine
    if pool.placement_type != COMPACT or machine is None or machine.kind == "tpu" or machine.workload_policy:
        return
    if machine.compact_max_nodes is None:
        message = f"{machine.name} does not support compact placement"
        yield finding(pool, "placement_type", message, allowed="no placement policy")


@rule("placement-size", ruleset="placement", source=_CA)
def placement_size(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool with compact placement that may have more VMs than Google Cloud can place together."""
    machine = pool.machine
    if pool.placement_type != COMPACT or machine is None or machine.compact_max_nodes is None:
        return
    if pool.most_vms > machine.compact_max_nodes:
        message = f"{pool.most_vms:,} {machine.name} cannot be placed together"
        max_vms = machine.compact_max_nodes
        yield finding(
            pool, "max_nodes", message, allowed=f"at most {max_vms:,} per pool", nearest=f"several pools of {max_vms:,}"
        )


@rule("placement-capacity", ruleset="placement", source=f"{_TOOLKIT}; of reservations xpk #1073 and #1075, 2026-02")
def placement_capacity(pool: NodePoolView) -> Iterator[Draft]:
    """Find compact placement with queued provisioning, or with flex-start on GPU machines without RDMA.

    Compact placement with a reservation causes a warning: VMs use a reservation only if they have the same placement
    policy, and GKE creates a different policy unless the pool names one. xpk's A3 Mega pools failed for this reason.
    """
    machine = pool.machine
    if pool.placement_type != COMPACT or machine is None or machine.kind != "gpu":
        return
    if pool.queued:
        message = "queued provisioning of GPUs does not support compact placement"
        yield finding(pool, "placement_type", message, allowed="no placement policy")
    elif pool.flex_start and not machine.rdma_nics:  # the Toolkit names a3-ultragpu and a4: the machines with RDMA
        message = f"{machine.name} with flex-start does not support compact placement"
        yield finding(pool, "placement_type", message, allowed="no placement policy")
    elif pool.consume_reservation == "SPECIFIC_RESERVATION" and not pool.policy:
        message = "GKE creates a placement policy for the pool, and VMs with that policy do not consume the reservation"
        allowed = "no placement policy: the reservation places the VMs"
        yield finding(pool, "placement_type", message, allowed=allowed, severity="warning")


@rule("workload-policy-missing", ruleset="placement", source=f"{_TOOLKIT}; GKE docs, TPU Ironwood")
def workload_policy_missing(pool: NodePoolView) -> Iterator[Draft]:
    """Find hosts that need a workload policy to be joined but have none."""
    machine = pool.machine
    if machine is None or not machine.workload_policy or pool.policy:
        return
    topology = machine.nvlink_domain or (pool.tpu_topology if pool.hosts > 1 else None)
    if topology:
        message = f"several {machine.name} need a workload policy, but the placement policy names none"
        allowed = f"policy_name of a ResourcePolicy with workload policy {HIGH_THROUGHPUT} and topology {topology}"
        yield finding(pool, "policy", message, allowed=allowed)


@rule("nvlink-domain", ruleset="placement", severity="warning", source="Cluster Toolkit v1.95.0, gke-a4x")
def nvlink_domain(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool that is not one whole NVLink domain. Its GPUs would communicate over the network."""
    machine = pool.machine
    gpus = chips_in(machine.nvlink_domain) if machine is not None and machine.nvlink_domain else None
    if machine is None or not gpus:
        return
    hosts = gpus // machine.chips
    if pool.most_vms != hosts:
        message = f"{pool.most_vms} {machine.name} do not fill an NVLink domain of {machine.nvlink_domain}"
        yield finding(pool, "max_nodes", message, allowed=f"{hosts} VMs in each pool", nearest=hosts)


@rule(
    "workload-policy-drift",
    ruleset="placement",
    severity="warning",
    source="vllm ci-infra #547, against Cluster Toolkit v1.95.0, resource-policy/outputs.tf",
)
def workload_policy_drift(pool: NodePoolView) -> Iterator[Draft]:
    """Find type COMPACT together with a workload policy. Each update may replace the slice; sources disagree."""
    machine = pool.machine
    if machine is None or machine.kind != "tpu" or not machine.workload_policy or pool.placement_type != COMPACT:
        return
    if pool.hosts > 1 and pool.ignored is not None and "placementPolicy" not in pool.ignored:
        message = "according to one source GKE does not store type COMPACT here, so each update would replace the slice"
        nearest = 'ignore_changes=["placementPolicy"]'
        yield finding(pool, "policy", message, allowed="changes of placementPolicy ignored", nearest=nearest)


@rule("resource-policy", ruleset="placement", source=_API)
def resource_policy(policy: ResourcePolicyView) -> Iterator[Draft]:
    """Find settings of a resource policy that exclude each other."""
    if policy.topology and policy.topology_distance:
        message = "accelerator topology and topology distance exclude each other"
        yield finding(policy, "topology_distance", message, allowed="one of the two")
    if policy.workload and policy.workload_type != HIGH_THROUGHPUT:
        written = [name for name in ("topology", "topology_mode", "topology_distance") if getattr(policy, name)]
        if written:
            field = written[0]
            message = f"a workload policy of type {policy.workload_type} does not support {field.replace('_', ' ')}"
            yield finding(policy, field, message, allowed=f"type {HIGH_THROUGHPUT}", nearest=HIGH_THROUGHPUT)
    if policy.max_distance is not None and policy.gpu_topology:
        message = "the distance and the GPU topology of a group placement exclude each other"
        yield finding(policy, "max_distance", message, allowed="one of the two")


@rule("provision-only", ruleset="placement", source=_TOOLKIT)
def provision_only(policy: ResourcePolicyView) -> Iterator[Draft]:
    """Find a provision-only policy without the type and topology of its slices."""
    if policy.topology_mode == PROVISION_ONLY and not (policy.workload_type and policy.topology):
        message = f"mode {PROVISION_ONLY} needs a type and a topology"
        allowed = f"type {HIGH_THROUGHPUT} and accelerator_topology"
        yield finding(policy, "topology_mode", message, allowed=allowed, nearest=HIGH_THROUGHPUT)


@rule("placement-policy", ruleset="together", across=True, source=f"{_TOOLKIT}; {_CA}")
def placement_policy(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool whose placement policy has the wrong region, project, kind or topology."""
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
    topology = machine.nvlink_domain or pool.tpu_topology
    if topology and policy.topology != topology:
        message = f"policy {policy.name} has topology {policy.topology or 'none'}, but the pool has {topology}"
        yield finding(pool, "policy", message, allowed=topology, nearest=topology)


@rule("provision-only-pool", ruleset="together", when="policy", across=True, source=_TOOLKIT)
def provision_only_pool(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool with a provision-only policy that has queued provisioning or no named reservation."""
    policy = program.once(_policies).get(pool.policy) if pool.policy else None
    if policy is None or policy.topology_mode != PROVISION_ONLY:
        return
    if pool.queued or pool.consume_reservation != "SPECIFIC_RESERVATION":
        message = f"policy {policy.name} is provision-only: it needs a named reservation and excludes queuing"
        yield finding(pool, "policy", message, allowed="SPECIFIC_RESERVATION", nearest="SPECIFIC_RESERVATION")


def _policies(program: Program) -> dict[str, ResourcePolicyView]:
    policies = program.all(ResourcePolicyView)
    by_cloud_name = {policy.policy: policy for policy in policies if policy.known("policy") and policy.policy}
    return {policy.name: policy for policy in policies} | by_cloud_name
