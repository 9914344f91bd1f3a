"""Identities: what nodes and pods may do, and as whom."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.access import AccountView, RoleGrantView
from training_platform.views.cluster import ClusterView
from training_platform.views.cluster_pools import cluster_of
from training_platform.views.node_pool import NodePoolView
from training_platform.views.program import Program

_TOOLKIT = "Cluster Toolkit v1.95.0, gke-node-pool and gke-cluster, read 2026-06-25"
_SCHEMA = "terraform-provider-google-beta 93c65b2"
NODE_ROLES = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
BROAD_ROLES = frozenset({"roles/editor", "roles/owner"})
CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
WRITING_SCOPES = frozenset(
    (
        CLOUD_PLATFORM,
        "cloud-platform",
        "storage-rw",
        "storage-full",
        "https://www.googleapis.com/auth/devstorage.read_write",
        "https://www.googleapis.com/auth/devstorage.full_control",
    )
)


@rule(
    "workload-identity",
    ruleset="together",
    across=True,
    facts=("IAM-01",),
    source=f"{_SCHEMA}; {_TOOLKIT}; cloud-foundation-fabric",
)
def workload_identity(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find nodes with metadata mode GKE_METADATA in a cluster without a workload pool."""
    if pool.metadata_mode != "GKE_METADATA":
        return
    cluster = cluster_of(pool, program)
    if cluster is not None and not cluster.workload_pool:
        message = f"mode GKE_METADATA needs a workload pool, but cluster {cluster.name} has none"
        project = cluster.project or "PROJECT"
        yield finding(
            pool, "metadata_mode", message, allowed="workload_pool of the project", nearest=f"{project}.svc.id.goog"
        )


@rule("workload-pool", ruleset="together", across=True, facts=("IAM-01",), source=f"{_SCHEMA}; cloud-foundation-fabric")
def workload_pool(cluster: ClusterView) -> Iterator[Draft]:
    """Find a workload pool of another project than the cluster's."""
    if not cluster.workload_pool or not cluster.project:
        return
    wanted = f"{cluster.project}.svc.id.goog"
    if cluster.workload_pool != wanted:
        message = f"workload pool {cluster.workload_pool} does not belong to the cluster's project"
        yield finding(cluster, "workload_pool", message, allowed=wanted, nearest=wanted)


@rule(
    "node-scopes",
    ruleset="nodes",
    severity="warning",
    facts=("IAM-03",),
    source=f"{_SCHEMA}, oauth_scopes; third-party notes of 2026",
)
def node_scopes(pool: NodePoolView) -> Iterator[Draft]:
    """Find nodes whose OAuth scopes allow reading storage at most: writing checkpoints fails whatever IAM allows."""
    if pool.scopes and not WRITING_SCOPES.isdisjoint(pool.scopes):
        return
    said = (
        "do not let pods write to Cloud Storage" if pool.scopes else "are not written: the default reads storage only"
    )
    message = f"OAuth scopes {said}; a later change replaces the pool"
    yield finding(pool, "scopes", message, allowed=f"{CLOUD_PLATFORM}, and roles by IAM", nearest=CLOUD_PLATFORM)


@rule(
    "node-account",
    ruleset="nodes",
    severity="warning",
    facts=("IAM-04",),
    source="GKE docs, hardening; terraform-provider-google issues",
)
def node_account(pool: NodePoolView) -> Iterator[Draft]:
    """Find nodes that run as the default Compute account, which new organisations have disabled."""
    if pool.service_account in (None, "", "default"):
        message = "the nodes run as the default Compute account, which may be disabled or without roles"
        yield finding(pool, "service_account", message, allowed="an account made for nodes, with its roles")


@rule(
    "node-account-roles",
    ruleset="together",
    across=True,
    severity="warning",
    facts=("IAM-04",),
    source="GKE docs, hardening: least-privilege node accounts",
)
def node_account_roles(account: AccountView, program: Program) -> Iterator[Draft]:
    """Find an account of nodes, made by this program, without the roles that nodes need."""
    if account.email not in program.once(_node_accounts) and account.name not in program.once(_node_accounts):
        return
    roles = {
        grant.role
        for grant in program.all(RoleGrantView)
        if grant.known("account") and account.is_meant(grant.account, "email")
    }
    missing = [role for role in NODE_ROLES if role not in roles]
    if missing and not roles & BROAD_ROLES:
        message = f"account {account.name} runs nodes without {' and '.join(missing)}"
        yield finding(account, "email", message, allowed="both roles, before the first pool", nearest=missing[0])


def _node_accounts(program: Program) -> frozenset[str]:
    return frozenset(
        each.service_account
        for each in program.all(NodePoolView)
        if each.known("service_account") and each.service_account
    )
