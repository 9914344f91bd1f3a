"""Resources beside each other: pools and their cluster, policies and accounts of one program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from training_platform.catalog.locations import region_of
from training_platform.rules.adapters.inputs import named
from training_platform.rules.gke.auto_provisioning import BUILT_IN
from training_platform.rules.gke.clusters import ROUTES
from training_platform.rules.gke.placement import PROVISION_ONLY
from training_platform.rules.registry import Draft, finding, rule
from training_platform.rules.views.cluster_pools import pool_settings_of, pools_of, settings_of_pool
from training_platform.rules.views.gke import NodePool
from training_platform.rules.views.gke_settings import AutoProvisioning, ClusterSettings, PoolSettings, ResourcePolicy
from training_platform.rules.views.network import Account, RoleGrant
from training_platform.rules.views.view import Program

_TOOLKIT = "Cluster Toolkit v1.95.0, gke-node-pool and gke-cluster, read 2026-06-25"
_SCHEMA = "terraform-provider-google-beta 93c65b2"
_CA = "GKE cluster-autoscaler 7d25050, read 2026-08-21"
NODE_ROLES = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
BROAD_ROLES = frozenset({"roles/editor", "roles/owner"})


@rule(
    "system-pool", ruleset="together", across=True, facts=("GPU-08",), source="GKE docs, GPUs and ProvisioningRequest"
)
def system_pool(each: ClusterSettings, program: Program) -> Iterator[Draft]:
    """Find a cluster without a pool where controllers, their webhooks and system pods can always run."""
    pools = pool_settings_of(each.cluster, program)
    if not pools or each.autopilot or not each.remove_default_pool or each.inline_pools:
        return
    plain = [row for row in pools if _takes_any_pod(row)]
    allowed = "a pool without accelerators and taints, with at least 1 node"
    if not plain:
        message = f"every pool of cluster {each.cluster.name} is for accelerators, queued or tainted"
        yield finding(each, "remove_default_pool", message, allowed=allowed, nearest="e2-standard-4, 2 nodes")
    elif not any(_least(row.pool) for row in plain):
        message = f"the only pools of cluster {each.cluster.name} for other pods can shrink to no node"
        yield finding(each, "remove_default_pool", message, allowed=allowed, nearest=f"min_nodes 1 for {plain[0].name}")


@rule(
    "inline-pools",
    ruleset="together",
    across=True,
    facts=("CLU-05",),
    source=f"{_SCHEMA}, resource_container_cluster.go",
)
def inline_pools(each: ClusterSettings, program: Program) -> Iterator[Draft]:
    """Find pools written in the cluster beside pools of their own: each update undoes the others."""
    if each.inline_pools and pools_of(each.cluster, program):
        message = f"cluster {each.cluster.name} lists {each.inline_pools} pools inside, and has others beside"
        yield finding(each, "inline_pools", message, allowed="NodePool resources alone")


@rule("autopilot-pools", ruleset="together", across=True, facts=("CLU-06",), source=f"{_SCHEMA}, ConflictsWith")
def autopilot_pools(each: ClusterSettings, program: Program) -> Iterator[Draft]:
    """Find a node pool of a cluster that makes its own."""
    for pool in pools_of(each.cluster, program) if each.autopilot else ():
        message = f"{each.cluster.name} is an Autopilot cluster, and takes no node pools"
        yield finding(pool, "cluster", message, allowed="pods with selectors, or a ComputeClass")


@rule("routes-max-pods", ruleset="together", across=True, facts=("CLU-13",), source=f"{_SCHEMA}, max_pods_per_node")
def routes_max_pods(each: ClusterSettings, program: Program) -> Iterator[Draft]:
    """Find pods per node of a pool whose cluster gives pods no range of their own."""
    for pool in pools_of(each.cluster, program) if each.networking_mode == ROUTES else ():
        if pool.max_pods is not None:
            message = f"pods per node are set, and cluster {each.cluster.name} gives pods no range of their own"
            yield finding(pool, "max_pods", message, allowed="a VPC-native cluster, or no max_pods_per_node")


@rule("dranet-cluster", ruleset="together", across=True, facts=("NET-04",), source=_TOOLKIT)
def dranet_cluster(each: PoolSettings, program: Program) -> Iterator[Draft]:
    """Find an accelerator network profile, or further interfaces, in a cluster that was not made for them."""
    if each.network_profile is None and not each.nics:
        return
    settings = settings_of_pool(each.pool, program)
    if settings is not None and settings.datapath != "ADVANCED_DATAPATH":
        message = f"further networks of nodes need Dataplane V2, which {settings.cluster.name} lacks"
        yield finding(each, "nics", message, allowed="datapath_provider ADVANCED_DATAPATH, at creation")
    elif settings is not None and each.nics and not settings.multi_networking:
        message = f"further networks of nodes need multi-networking, which {settings.cluster.name} lacks"
        yield finding(each, "nics", message, allowed="enable_multi_networking, at creation")


@rule(
    "workload-identity",
    ruleset="together",
    across=True,
    facts=("IAM-01",),
    source=f"{_SCHEMA}; {_TOOLKIT}; cloud-foundation-fabric",
)
def workload_identity(each: PoolSettings, program: Program) -> Iterator[Draft]:
    """Find nodes that hide their account from pods in a cluster that gives pods none."""
    if each.metadata_mode != "GKE_METADATA":
        return
    settings = settings_of_pool(each.pool, program)
    if settings is not None and not settings.workload_pool:
        message = f"mode GKE_METADATA needs a workload pool, and cluster {settings.cluster.name} has none"
        project = settings.cluster.project or "PROJECT"
        yield finding(
            each, "metadata_mode", message, allowed="workload_pool of the project", nearest=f"{project}.svc.id.goog"
        )


@rule("workload-pool", ruleset="together", across=True, facts=("IAM-01",), source=f"{_SCHEMA}; cloud-foundation-fabric")
def workload_pool(each: ClusterSettings) -> Iterator[Draft]:
    """Find a workload pool of another project than the cluster's."""
    if not each.workload_pool or not each.cluster.project:
        return
    wanted = f"{each.cluster.project}.svc.id.goog"
    if each.workload_pool != wanted:
        message = f"workload pool {each.workload_pool} is not of the cluster's project"
        yield finding(each, "workload_pool", message, allowed=wanted, nearest=wanted)


@rule(
    "node-account-roles",
    ruleset="together",
    across=True,
    severity="warning",
    facts=("IAM-04",),
    source="GKE docs, hardening: least-privilege node accounts",
)
def node_account_roles(account: Account, program: Program) -> Iterator[Draft]:
    """Find an account of nodes, made by this program, without the roles that nodes need."""
    if account.email not in program.once(_node_accounts) and account.name not in program.once(_node_accounts):
        return
    roles = {
        grant.role
        for grant in program.of(RoleGrant)
        if grant.known("account") and named(grant.account, account, "email")
    }
    missing = [role for role in NODE_ROLES if role not in roles]
    if missing and not roles & BROAD_ROLES:
        message = f"account {account.name} runs nodes without {' and '.join(missing)}"
        yield finding(account, "email", message, allowed="both roles, before the first pool", nearest=missing[0])


@rule(
    "placement-policy",
    ruleset="together",
    across=True,
    facts=("PLC-05", "TPU-10", "PLC-07"),
    source=f"{_TOOLKIT}; {_CA}",
)
def placement_policy(each: PoolSettings, program: Program) -> Iterator[Draft]:
    """Find a pool placed by a policy of this program that is elsewhere, of another kind or for another topology."""
    pool, machine = each.pool, each.pool.machine
    policy = program.once(_policies).get(each.policy) if each.policy else None
    if policy is None:
        return
    region = region_of(pool.location)
    if policy.region and policy.region != region:
        message = f"policy {policy.name} is in {policy.region}, and the pool in {region}"
        yield finding(each, "policy", message, allowed=f"a policy of {region}", nearest=region)
    if policy.project and pool.project and policy.project != pool.project:
        message = f"policy {policy.name} is of project {policy.project}, and the pool of {pool.project}"
        yield finding(each, "policy", message, allowed=f"a policy of {pool.project}")
    if not policy.workload and not policy.group:
        message = f"policy {policy.name} places nothing"
        yield finding(each, "policy", message, allowed="a workload policy or a group placement policy")
    if machine is None or not machine.workload_policy:
        return
    wanted = machine.nvlink_domain or pool.tpu_topology
    if wanted and policy.topology != wanted:
        message = f"policy {policy.name} is of topology {policy.topology or 'none'}, and the pool of {wanted}"
        yield finding(each, "policy", message, allowed=wanted, nearest=wanted)


@rule("provision-only-pool", ruleset="together", across=True, facts=("TPU-13",), source=_TOOLKIT)
def provision_only_pool(each: PoolSettings, program: Program) -> Iterator[Draft]:
    """Find hosts to be provisioned before they are joined that come by queue, or from no named reservation."""
    policy = program.once(_policies).get(each.policy) if each.policy else None
    if policy is None or policy.topology_mode != PROVISION_ONLY:
        return
    if each.pool.queued or each.pool.consume_reservation != "SPECIFIC_RESERVATION":
        message = f"policy {policy.name} provisions only, which takes a named reservation and no queue"
        yield finding(each, "policy", message, allowed="SPECIFIC_RESERVATION", nearest="SPECIFIC_RESERVATION")


@rule(
    "auto-provisioning-room",
    ruleset="together",
    across=True,
    facts=("CLU-09",),
    source=f"{_CA}, limiter; acc. xpk nap.py",
)
def auto_provisioning_room(each: AutoProvisioning, program: Program) -> Iterator[Draft]:
    """Find limits that the pools of the cluster use up by themselves: they count all pools, those made by hand too."""
    used: dict[str, float] = defaultdict(float)
    for pool in pools_of(each.cluster, program):
        machine, nodes = pool.machine, pool.most_vms
        if machine is None:
            continue
        for resource, amount in zip(BUILT_IN, (machine.vcpus, machine.memory_gb), strict=True):
            used[resource] += amount * nodes
        if machine.accelerator is not None:
            used[machine.accelerator.gke_label] += machine.chips * nodes
    for resource, amount in used.items():
        limit = each.limit(resource)
        if limit is not None and amount > limit:
            message = f"the limit of {resource} is {limit:,}, and the declared pools may use {amount:,.0f}"
            allowed = f"at least {amount:,.0f}, and what new pools need"
            yield finding(each, resource, message, allowed=allowed, nearest=f"{amount:.0f}")


def _takes_any_pod(each: PoolSettings) -> bool:
    machine = each.pool.machine
    return not each.taints and not each.pool.queued and (machine is None or machine.accelerator is None)


def _least(pool: NodePool) -> int:
    counts = (pool.total_min_nodes, pool.min_nodes)
    if not pool.autoscales:
        counts = (pool.node_count, pool.initial_nodes)
        if counts == (None, None):
            return 1  # GKE's own default for a pool that says nothing
    return max(count or 0 for count in counts)


def _node_accounts(program: Program) -> frozenset[str]:
    return frozenset(
        each.service_account
        for each in program.of(PoolSettings)
        if each.known("service_account") and each.service_account
    )


def _policies(program: Program) -> dict[str, ResourcePolicy]:
    found = {policy.name: policy for policy in program.of(ResourcePolicy)}
    found.update({each.policy: each for each in program.of(ResourcePolicy) if each.known("policy") and each.policy})
    return found
