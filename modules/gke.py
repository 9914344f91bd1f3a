"""GKE: clusters, private and empty, their pools, the account of their nodes, and who administers them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi
from pulumi_gcp import container, projects

from modules.network import GpuNetworks, GpuNetworksArgs
from modules.register import children_of, register
from training_platform.config.gpu_fabric import fabric_name, gpu_fabrics
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.pools import CpuPool, ExpandedPool, GkePool, cluster_pools
from training_platform.resources.declared import Declared
from training_platform.resources.gke import cluster_identifier, gke_cluster, node_account_resources
from training_platform.resources.gpu_networks import gpu_nics
from training_platform.resources.node_pools import PoolPlace, accelerator_pool, cpu_pool, workload_policies
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class GkeClusterArgs:
    """A cluster's spec, and its network."""

    scope: Scope
    spec: ClusterSpec
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    service_account: NodeAccount
    google_groups_domain: str | None = None  # whose gke-security-groups@ gives Google Groups rights in the cluster
    lustre: bool = False  # the driver of Managed Lustre


class GkeCluster(pulumi.ComponentResource):
    """A regional or zonal cluster without public nodes or endpoint; the component's name is the stack file's key."""

    cluster_id: pulumi.Output[str]  # projects/*/locations/*/clusters/*
    cluster_name: pulumi.Output[str]  # pools that take it wait for the cluster
    endpoint: pulumi.Output[str]  # host name of the DNS-based control-plane endpoint

    def __init__(self, name: str, args: GkeClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:GkeCluster", name, {}, opts)
        declared = gke_cluster(
            name,
            args.spec,
            args.scope,
            network=args.network,
            subnetwork=args.subnetwork,
            service_account=args.service_account.email,
            google_groups_domain=args.google_groups_domain,
            lustre=args.lustre,
        )
        # The first nodes do not join without their roles.
        cluster = register(declared, self, args.service_account.bindings)
        self.cluster_id = cluster.id
        self.cluster_name = cluster.name
        self.endpoint = existing_endpoint(cluster)
        self.register_outputs({"cluster_id": self.cluster_id, "endpoint": self.endpoint})


@dataclass(frozen=True, kw_only=True)
class ExistingClusterArgs:
    """A cluster of the project in ``scope``."""

    scope: Scope
    location: str
    cluster: str  # its name in Google Cloud


class ExistingCluster(pulumi.ComponentResource):
    """A cluster that is somebody else's, only read, for its endpoint; the component's name is the stack file's key.

    Pools that take ``cluster_name`` wait for nothing.
    """

    cluster_name: pulumi.Output[str]
    endpoint: pulumi.Output[str]  # host name of the DNS-based control-plane endpoint

    def __init__(self, name: str, args: ExistingClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:ExistingCluster", name, {}, opts)
        cluster_id = cluster_identifier(args.scope.project, args.location, args.cluster)
        cluster = container.Cluster.get(f"{name}-existing", cluster_id, opts=pulumi.ResourceOptions(parent=self))
        self.cluster_name = pulumi.Output.from_input(args.cluster)
        self.endpoint = existing_endpoint(cluster)
        self.register_outputs({"endpoint": self.endpoint})


def existing_endpoint(cluster: container.Cluster) -> pulumi.Output[str]:
    """Return a cluster's endpoint, unknown until it has an id: its configuration is known before, without any."""

    def existing(_id: str) -> pulumi.Output[str]:
        return cluster.control_plane_endpoints_config.apply(dns_endpoint)

    return cluster.id.apply(existing)


def dns_endpoint(config: container.outputs.ClusterControlPlaneEndpointsConfig) -> str:
    """Return the host name in GKE's answer. Raises ValueError where there is none, which no reader could use."""
    host = config.dns_endpoint_config.endpoint if config.dns_endpoint_config else None
    if not host:
        raise ValueError("the cluster has no DNS-based control-plane endpoint")
    return host


# Everything in the clusters, and the right to connect to their DNS-based endpoints.
ADMIN_ROLE = "roles/container.admin"


@dataclass(frozen=True, kw_only=True)
class ClusterAccessArgs:
    """Who administers what."""

    scope: Scope
    admins: tuple[str, ...]  # IAM members; one that is named twice counts once


class ClusterAccess(pulumi.ComponentResource):
    """The administrators of all clusters in an environment's project."""

    def __init__(self, name: str, args: ClusterAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:ClusterAccess", name, {}, opts)
        for member in sorted(set(args.admins)):
            projects.IAMMember(
                f"{name}-{member_key(member)}",
                project=args.scope.project,
                role=ADMIN_ROLE,
                member=member,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def member_key(member: str) -> str:
    """Return a name for an IAM member that depends on nothing else, so that adding another member does not change it.

    ``group:ml-platform@example.com`` is ``ml-platform-`` and 8 digits of a hash of the whole.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", member.partition(":")[2].partition("@")[0].lower()).strip("-")
    return f"{readable}-{hashlib.sha256(member.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, kw_only=True)
class NodeServiceAccountArgs:
    """Which environment the nodes are of."""

    scope: Scope


class NodeServiceAccount(pulumi.ComponentResource):
    """The service account of all nodes of an environment, with no more than nodes need.

    A node that starts before ``bindings`` are there cannot join its cluster or pull an image: whatever starts nodes
    depends on them. They are not folded into ``email``, since a role added later would make that unknown during the
    preview, and every pool would look replaced.
    """

    email: pulumi.Output[str]
    bindings: list[projects.IAMMember]

    def __init__(self, name: str, args: NodeServiceAccountArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:NodeServiceAccount", name, {}, opts)
        account, self.bindings = node_account_resources(name, args.scope, children_of(self))
        self.email = account.email
        self.register_outputs({"email": self.email})


@dataclass(frozen=True, kw_only=True)
class NodeIdentity:
    """An account of nodes that is somebody else's: its e-mail, and what has to be there before nodes start."""

    email: pulumi.Input[str]
    bindings: Sequence[pulumi.Resource] = ()


NodeAccount = NodeServiceAccount | NodeIdentity


@dataclass(frozen=True, kw_only=True)
class ClusterPoolsArgs:
    """Which cluster; ``key`` is its key in the stack file, ``cluster`` its name in Google Cloud."""

    scope: Scope
    key: str
    spec: ClusterSpec
    cluster: pulumi.Input[str]
    nodes: NodeAccount


class ClusterPools:
    """The resources created for a cluster's pools: ``fabrics`` and their ``networks``, by the fabric's name."""

    def __init__(self, args: ClusterPoolsArgs, opts: pulumi.ResourceOptions) -> None:
        self.fabrics = gpu_fabrics(args.key, args.spec)
        self.networks = {
            fabric.name: GpuNetworks(
                fabric.component, GpuNetworksArgs(scope=args.scope, cluster=args.key, fabric=fabric), opts
            )
            for fabric in self.fabrics.values()
        }
        pools = tuple(cluster_pools(args.key, args.spec))
        declared = dict(workload_policies(args.scope, args.key, args.spec.location, pools))
        policies = WorkloadPolicies(f"{args.key}-slices", declared, opts).names if declared else {}
        for pool in pools:
            for gke_pool in pool.gke_pools:
                AcceleratorPool(
                    gke_pool.name,
                    AcceleratorPoolArgs(
                        scope=args.scope,
                        pool=pool,
                        gke_pool=gke_pool,
                        cluster=self._cluster(args.cluster, pool),
                        location=args.spec.location,
                        service_account=args.nodes,
                        nics=gpu_nics(args.scope, args.key, self.fabrics, pool),
                        workload_policy=policies.get(pool.policy_topology or ""),
                    ),
                    opts,
                )

    def _cluster(self, cluster: pulumi.Input[str], pool: ExpandedPool) -> pulumi.Input[str]:
        """Return the name of the cluster, known once the networks of a pool's cards are there.

        Waiting for the subnets replaces the pool when one of them is replaced. Unknown names in ``networkConfig`` would
        replace it as well, but the provider (10.2.0) panics on them.
        """
        name = fabric_name(pool)
        if name is None:
            return cluster
        subnets = self.networks[name].subnetworks
        joined = [subnets[nic.name] for _, nic in self.fabrics[name].nics(pool)]
        return pulumi.Output.all(cluster, *joined).apply(lambda known: str(known[0]))


if TYPE_CHECKING:
    from pulumi_gcp.container import NodePoolNetworkConfigAdditionalNodeNetworkConfigArgsDict as Nic


@dataclass(frozen=True, kw_only=True)
class AcceleratorPoolArgs:
    """Which pool of which cluster."""

    scope: Scope
    pool: ExpandedPool
    gke_pool: GkePool  # one of the pool's: each slice over several VMs is a GKE node pool of its own
    cluster: pulumi.Input[str]  # name
    location: str  # of the cluster
    service_account: NodeAccount
    nics: Sequence[Nic] = ()  # beside the first
    workload_policy: pulumi.Input[str] | None = None  # its name, where one joins the VMs


class AcceleratorPool(pulumi.ComponentResource):
    """One GKE node pool of a pool in the stack file; its name is ``gke_pool``'s."""

    node_pool_id: pulumi.Output[str]  # projects/*/locations/*/clusters/*/nodePools/*

    def __init__(self, name: str, args: AcceleratorPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:AcceleratorPool", name, {}, opts)
        place = PoolPlace(
            scope=args.scope,
            location=args.location,
            cluster=args.cluster,
            service_account=args.service_account.email,
            nics=args.nics,
            workload_policy=args.workload_policy,
        )
        declared = accelerator_pool(args.pool, args.gke_pool, place)
        # Nodes without their roles do not join or pull.
        self.node_pool_id = register(declared, self, args.service_account.bindings).id
        self.register_outputs({"node_pool_id": self.node_pool_id})


@dataclass(frozen=True, kw_only=True)
class SystemPoolArgs:
    """Which cluster the pool is for."""

    scope: Scope
    pool: CpuPool
    cluster: pulumi.Input[str]  # name
    location: str  # of the cluster
    service_account: NodeAccount


class SystemPool(pulumi.ComponentResource):
    """A pool without accelerators: where controllers, their webhooks and system pods run, heads, or teams' own pods."""

    node_pool_id: pulumi.Output[str]  # projects/*/locations/*/clusters/*/nodePools/*

    def __init__(self, name: str, args: SystemPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:SystemPool", name, {}, opts)
        place = PoolPlace(
            scope=args.scope,
            location=args.location,
            cluster=args.cluster,
            service_account=args.service_account.email,
        )
        declared = cpu_pool(name, args.pool, place)
        # Nodes without their roles do not join.
        self.node_pool_id = register(declared, self, args.service_account.bindings).id
        self.register_outputs({"node_pool_id": self.node_pool_id})


class WorkloadPolicies(pulumi.ComponentResource):
    """A cluster's workload policies; ``names`` are those in Google Cloud, by topology."""

    names: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, policies: Mapping[str, Declared], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:WorkloadPolicies", name, {}, opts)
        self.names = {topology: register(policy, self).name for topology, policy in policies.items()}
        self.register_outputs({})
