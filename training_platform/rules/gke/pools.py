"""Node pools by themselves: names, how they scale, how they are upgraded and replaced."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.config.reading.finding import Severity
from training_platform.rules.gke.clusters import NAME_LENGTH, PODS_SOURCE, pods_beyond
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.cluster import AutoProvisioningView, ClusterView
from training_platform.views.cluster_pools import pools_of
from training_platform.views.node_pool import NodePoolView
from training_platform.views.program import Program

_LIMITS = "GKE docs, quotas and limits, copies of 2025; that newer versions take 65,000 nodes is (unverified)"
MANAGED_COMPONENTS = "components.gke.io/gke-managed-components"  # which pods of GKE's own tolerate
LONGEST_WAIT = 7 * 24 * 3600  # seconds
NODES_UNASKED, MOST_NODES, MOST_NODES_IN_A_ZONE = 5_000, 15_000, 1_000
_SCHEMA = "terraform-provider-google-beta 93c65b2, node pools, read 2026-08-21"


@rule("pool-name", ruleset="pools", facts=("NAM-03",), source="GKE API, NodePool.name: at most 40 characters")
def pool_name(pool: NodePoolView) -> Iterator[Draft]:
    """Find a node pool whose name is longer than GKE allows."""
    name = pool.pool
    if name and len(name) > NAME_LENGTH:
        message = f"node pool {name} has a name of {len(name)} characters"
        yield finding(pool, "pool", message, allowed=f"at most {NAME_LENGTH}", nearest=name[:NAME_LENGTH].rstrip("-"))


@rule("pool-counts", ruleset="pools", owner="provider", facts=("CLU-11",), source=f"{_SCHEMA}; Cluster Toolkit v1.95.0")
def pool_counts(pool: NodePoolView) -> Iterator[Draft]:
    """Find node counts that exclude each other; a fixed count with autoscaling shows as a change in every preview."""
    zonal = [name for name in ("min_nodes", "max_nodes") if getattr(pool, name) is not None]
    total = [name for name in ("total_min_nodes", "total_max_nodes") if getattr(pool, name) is not None]
    if zonal and total:
        message = "autoscaling has limits per zone and limits over all zones"
        yield finding(pool, total[0], message, allowed="one of the two pairs", nearest="the pair per zone")
    if pool.node_count is not None and pool.initial_nodes is not None:
        message = f"node_count is {pool.node_count} beside initial_node_count {pool.initial_nodes}"
        yield finding(pool, "node_count", message, allowed="one of the two", nearest="initial_node_count")
    if pool.node_count is not None and (zonal or total):
        message = "node_count is set together with autoscaling: each deployment would undo what the autoscaler did"
        allowed = "initial_node_count, with its changes ignored"
        yield finding(pool, "node_count", message, allowed=allowed, nearest="initial_node_count", severity="warning")


@rule("pool-bounds", ruleset="pools", facts=("CLU-11",), source=f"{_SCHEMA}; Cluster Toolkit v1.95.0")
def pool_bounds(pool: NodePoolView) -> Iterator[Draft]:
    """Find a minimum of nodes above the maximum."""
    for low, high in (("min_nodes", "max_nodes"), ("total_min_nodes", "total_max_nodes")):
        least, most = getattr(pool, low), getattr(pool, high)
        if least is not None and most is not None and least > most:
            yield finding(
                pool,
                low,
                f"the minimum, {least}, is above the maximum, {most}",
                allowed=f"at most {most}",
                nearest=most,
            )


@rule("max-pods", ruleset="pools", facts=("CLU-13",), source=PODS_SOURCE)
def max_pods(pool: NodePoolView) -> Iterator[Draft]:
    """Find a number of pods per node that GKE does not support."""
    if pool.max_pods is not None:
        yield from pods_beyond(pool, pool.max_pods)


@rule("pool-nodes", ruleset="pools", severity="warning", owner="catalogue", source=_LIMITS)
def pool_nodes(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool that may have more VMs in a zone than GKE's documented limit.

    Slices are left alone, since Google lists larger ones; so may other machines be taken, as sources on A4 say.
    """
    most = pool.most_vms // pool.zone_count
    if most > MOST_NODES_IN_A_ZONE and pool.hosts == 1:
        message = f"{most:,} VMs of one pool in one zone: GKE documents a limit of {MOST_NODES_IN_A_ZONE:,}"
        allowed = f"at most {MOST_NODES_IN_A_ZONE:,} a pool, or more where Google says so"
        yield finding(pool, "max_nodes", message, allowed=allowed, nearest=MOST_NODES_IN_A_ZONE)


@rule("cluster-nodes", ruleset="together", severity="warning", across=True, owner="catalogue", source=_LIMITS)
def cluster_nodes(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a cluster whose pools may reach more VMs than GKE supports by default, or at all."""
    nodes = sum(pool.most_vms for pool in pools_of(cluster, program))
    if nodes <= NODES_UNASKED:
        return
    if nodes > MOST_NODES:
        message = f"its pools may have {nodes:,} VMs, but GKE documents a limit of {MOST_NODES:,}"
        yield finding(cluster, "cluster", message, allowed=f"at most {MOST_NODES:,}, or several clusters")
    else:
        message = f"its pools may have {nodes:,} VMs: more than {NODES_UNASKED:,} need a limit that Google has raised"
        yield finding(cluster, "cluster", message, allowed="a regional cluster, and a limit that Google has raised")


@rule("surge-upgrades", ruleset="pools", facts=("CON-16",), source=f"{_SCHEMA}, upgrade_settings")
def surge_upgrades(pool: NodePoolView) -> Iterator[Draft]:
    """Find surge upgrades that cannot proceed: neither extra nodes nor unavailable ones are allowed."""
    surge = pool.upgrade_strategy in (None, "SURGE")
    if pool.upgrades and surge and pool.max_surge == 0 and not pool.max_unavailable:
        message = "surge upgrades may neither add a node nor take one down"
        allowed = "max_surge and max_unavailable above 0 together"
        yield finding(pool, "max_unavailable", message, allowed=allowed, nearest="max_unavailable=1")


@rule(
    "blue-green-settings",
    ruleset="pools",
    source="GKE API v1beta1, BlueGreenSettings and its rollout policies (discovery document), read 2026-11-22",
)
def blue_green_settings(pool: NodePoolView) -> Iterator[Draft]:
    """Find blue-green upgrades with a share or a wait outside its range, and settings that have no effect.

    Which of them exclude each other is judged by documents.
    """
    share = pool.batch_share
    if share is not None and not 0 < share <= 1 and not (share == 0 and pool.batch_nodes):
        message = f"a batch is {share:g} of the pool's nodes"
        yield finding(pool, "batch_share", message, allowed="more than 0, at most 1", nearest=1 if share > 1 else None)
    for field, said in (
        ("drain_wait_seconds", "before nodes are drained"),
        ("batch_soak_seconds", "after a batch is drained"),
        ("pool_soak_seconds", "before the old nodes are deleted"),
    ):
        if (wait := getattr(pool, field)) is not None and wait > LONGEST_WAIT:
            message = f"an upgrade waits {wait:,} seconds {said}"
            # The document has it of the first; of the others it is general knowledge.
            severity: Severity | None = None if field == "drain_wait_seconds" else "warning"
            yield finding(
                pool, field, message, allowed=f"at most {LONGEST_WAIT}s, 7 days", nearest=f"{LONGEST_WAIT}s",
                severity=severity,
            )  # fmt: skip
    idle: list[tuple[str, str, str]] = []
    if pool.blue_green and pool.upgrade_strategy != "BLUE_GREEN":
        strategy = pool.upgrade_strategy or "SURGE by default"
        idle.append(("blue_green", f"the strategy is {strategy}, which has no blue-green settings", "BLUE_GREEN"))
    if pool.autoscaled_rollout and not pool.autoscales:
        why = "the rollout is by the autoscaler, and the pool does not autoscale"
        idle.append(("autoscaled_rollout", why, "standardRolloutPolicy"))
    for field, message, allowed in idle:  # (inferred)
        yield finding(pool, field, message, allowed=allowed, nearest=allowed, severity="warning")


@rule(
    "upgrade-room",
    ruleset="pools",
    severity="warning",
    facts=("CON-16",),
    source=f"{_SCHEMA}, upgrade_settings; Cluster Toolkit v1.95.0, whose default adds no VM",
)
def upgrade_room(pool: NodePoolView) -> Iterator[Draft]:
    """Find upgrades of reserved TPUs or GPUs that need more than the pool's maximum; quota is charged for them.

    A slice over several hosts is recreated as one and needs no more.
    """
    machine = pool.machine
    if machine is None or machine.accelerator is None or not pool.upgrades:
        return
    if pool.capacity != "reservation" or pool.hosts > 1:
        return
    if pool.upgrade_strategy == "BLUE_GREEN":
        message = f"blue-green upgrades need room for {2 * pool.most_vms} {machine.name} in the reservation"
        yield finding(pool, "upgrade_strategy", message, allowed="surge without extra VMs", nearest="surge")
    elif pool.max_surge:
        message = f"upgrades take {pool.max_surge} {machine.name} beyond the pool's maximum from the reservation"
        yield finding(pool, "max_surge", message, allowed="0", nearest=0)


@rule(
    "slice-upgrades",
    ruleset="pools",
    severity="warning",
    facts=("TPU-16",),
    source="GKE docs, TPUs in GKE: a multi-host slice is repaired and upgraded as a whole",
)
def slice_upgrades(pool: NodePoolView) -> Iterator[Draft]:
    """Find surge settings on a multi-host slice: GKE recreates all its hosts together."""
    if pool.hosts > 1 and pool.max_surge:
        message = f"GKE recreates the {pool.hosts} hosts of a slice together, whatever max_surge says"
        yield finding(pool, "max_surge", message, allowed="0, and checkpoints before upgrades", nearest=0)


@rule(
    "pool-replacement",
    ruleset="pools",
    severity="warning",
    facts=("REG-04",),
    source="terraform-provider-google-beta 93c65b2, ForceNew fields of node pools; Pulumi's order of replacement",
)
def pool_replacement(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool that Pulumi deletes after its replacement is created: name and capacity are not free until then."""
    if pool.replaced_first is not False:
        return
    machine = pool.machine
    scarce = machine is not None and machine.accelerator is not None
    if scarce or pool.pool is not None:
        why = "capacity for both" if scarce else "a second pool of that name"
        message = f"the replacement would be created before the old pool is deleted, but there is no {why}"
        yield finding(
            pool, "replaced_first", message, allowed="delete_before_replace", nearest="delete_before_replace=True"
        )


@rule(
    "system-pool", ruleset="together", across=True, facts=("GPU-08",), source="GKE docs, GPUs and ProvisioningRequest"
)
def system_pool(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a cluster without a pool on which controllers, their webhooks and system pods can always run."""
    pools = pools_of(cluster, program)
    if not pools or cluster.autopilot or not cluster.remove_default_pool or cluster.inline_pools:
        return
    if any(each.cluster.name == cluster.name for each in program.all(AutoProvisioningView)):
        return  # GKE makes a pool for what has no node
    untainted = all(row.accelerator_type and not row.taints for row in pools)  # beside no CPU pool GKE adds no taint
    plain = pools if untainted else [row for row in pools if _takes_any_pod(row)]
    allowed = "a pool without accelerators and taints, with at least 1 node"
    if not plain:
        message = f"every pool of cluster {cluster.name} has accelerators, queued provisioning or taints"
        yield finding(cluster, "remove_default_pool", message, allowed=allowed, nearest="e2-standard-4, 2 nodes")
    elif not any(row.least_vms for row in plain):
        message = f"all pools of cluster {cluster.name} without accelerators or taints can scale to zero"
        # Pods wait for their first node then, where all that starts from nothing has GPUs: nothing is refused.
        severity: Severity | None = "warning" if untainted else None
        nearest = f"{'min_nodes' if cluster.origin else 'a minimum of'} 1 for {plain[0].name}"
        yield finding(cluster, "remove_default_pool", message, allowed=allowed, nearest=nearest, severity=severity)


def _takes_any_pod(pool: NodePoolView) -> bool:
    machine = pool.machine
    keeps_off = [
        taint for taint in pool.taints if taint.effect != "PREFER_NO_SCHEDULE" and taint.key != MANAGED_COMPONENTS
    ]
    return not keeps_off and not pool.queued and (machine is None or machine.accelerator is None)
