"""Clusters, their nodes' account and their node pools, for programs in any language."""

from typing import NotRequired, TypedDict

import pulumi

from components.given import read, read_place
from components.models import NodePoolsSpec, Place
from components.specs import of_models
from modules import gke as modules
from modules.gke import ClusterPools, ClusterPoolsArgs, GkeCluster, GkeClusterArgs, SystemPool, SystemPoolArgs
from modules.network import ClusterSubnet, ClusterSubnetArgs
from training_platform.config.model import cluster
from training_platform.config.names import cpu_pool_name
from training_platform.config.pools import cluster_pools, cpu_pools
from training_platform.resources.node_pools import node_pool_name


@of_models
class NodeServiceAccountArgs(TypedDict):
    """Where the nodes are."""

    place: Place
    """Where it stands."""


class NodeServiceAccount(pulumi.ComponentResource):
    """The service account of all nodes of an environment, with no more than nodes need."""

    email: pulumi.Output[str]
    """Its e-mail, known once it may do what nodes need: nodes that start before do not join."""

    def __init__(self, name: str, args: NodeServiceAccountArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:index:NodeServiceAccount", name, {}, opts)
        account = modules.NodeServiceAccount(
            name, modules.NodeServiceAccountArgs(scope=read_place(name, args)), pulumi.ResourceOptions(parent=self)
        )
        self.email = account.email
        self.register_outputs({"email": self.email})


@of_models
class ClusterArgs(TypedDict):
    """What a cluster is, and what it is joined to."""

    place: Place
    """Where it stands."""

    spec: cluster.ClusterSpec
    """What a stack file says of a cluster, but for what is inside it."""

    network: pulumi.Input[str]
    """Id of the VPC that its subnet is made in."""

    service_account: pulumi.Input[str]
    """E-mail of the account that its nodes run as."""

    host_project: NotRequired[str]
    """Host project of a Shared VPC, whose subnet the spec names."""

    google_groups_domain: NotRequired[str]
    """Domain of the group gke-security-groups@, which lets RBAC in the cluster name Google Groups."""


class Cluster(pulumi.ComponentResource):
    """A private GKE cluster with its subnet, its system pool and its pools of accelerators; its name is the resource's.

    What runs in it is the program's own to install.
    """

    cluster_name: pulumi.Output[str]
    """Its name in Google Cloud: the place's environment, a dash, the resource's name."""

    endpoint: pulumi.Output[str]
    """Host name of the DNS-based control-plane endpoint."""

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:index:Cluster", name, {}, opts)
        scope, spec = read(name, args, cluster.ClusterSpec)
        child = pulumi.ResourceOptions(parent=self)
        nodes = modules.NodeIdentity(email=args["service_account"])
        subnet = ClusterSubnet(
            name,
            ClusterSubnetArgs(
                scope=scope,
                spec=spec,
                network=args["network"],
                node_service_account=nodes.email,
                host_project=args.get("host_project"),
            ),
            child,
        )
        gke = GkeCluster(
            name,
            GkeClusterArgs(
                scope=scope,
                spec=spec,
                network=args["network"],
                subnetwork=subnet.subnetwork_id,
                service_account=nodes,
                google_groups_domain=args.get("google_groups_domain"),
            ),
            child,
        )
        for pool in cpu_pools(spec):
            own = SystemPoolArgs(
                scope=scope, pool=pool, cluster=gke.cluster_name, location=spec.location, service_account=nodes
            )
            SystemPool(cpu_pool_name(name, pool.path), own, child)
        ClusterPools(ClusterPoolsArgs(scope=scope, key=name, spec=spec, cluster=gke.cluster_name, nodes=nodes), child)
        self.cluster_name, self.endpoint = gke.cluster_name, gke.endpoint
        self.register_outputs({"clusterName": self.cluster_name, "endpoint": self.endpoint})


@of_models
class NodePoolsArgs(TypedDict):
    """What pools are, and the cluster that they are of."""

    place: Place
    """Where they stand."""

    spec: NodePoolsSpec
    """What a stack file says of pools."""

    cluster: pulumi.Input[str]
    """Name of the cluster, which exists."""

    service_account: pulumi.Input[str]
    """E-mail of the account that the nodes run as."""


class NodePools(pulumi.ComponentResource):
    """Pools of TPUs or GPUs in a cluster that is there, with the networks that their VMs are joined by."""

    gke_pools: pulumi.Output[list[str]]
    """Names of the GKE node pools: each slice over several VMs is a pool of its own."""

    def __init__(self, name: str, args: NodePoolsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:index:NodePools", name, {}, opts)
        scope, spec = read(name, args, NodePoolsSpec)
        # Of the cluster, only its place counts here.
        home = cluster.ClusterSpec(
            location=spec.location, existing=name, node_pools=spec.node_pools, gpu_networks=spec.gpu_networks
        )
        nodes = modules.NodeIdentity(email=args["service_account"])
        ClusterPools(
            ClusterPoolsArgs(scope=scope, key=name, spec=home, cluster=args["cluster"], nodes=nodes),
            pulumi.ResourceOptions(parent=self),
        )
        expanded = cluster_pools(name, home)
        names = [node_pool_name(pool, gke_pool) for pool in expanded for gke_pool in pool.gke_pools]
        self.gke_pools = pulumi.Output.from_input(names)
        self.register_outputs({"gkePools": self.gke_pools})
