"""A GKE cluster, private and empty; pools and in-cluster software are components of their own."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import container

from modules.gke.service_account import NodeAccount
from modules.register import register
from training_platform.config.model.cluster import ClusterSpec
from training_platform.resources.gke.cluster import gke_cluster
from training_platform.resources.gke.control_plane import cluster_identifier
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class GkeClusterArgs:
    """What a cluster is, and the network that it stands in."""

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
        cluster = register(container.Cluster, declared, self, args.service_account.bindings)
        self.cluster_id = cluster.id
        self.cluster_name = cluster.name
        self.endpoint = existing_endpoint(cluster)
        self.register_outputs({"cluster_id": self.cluster_id, "endpoint": self.endpoint})


@dataclass(frozen=True, kw_only=True)
class ExistingClusterArgs:
    """Which cluster, of the project that ``scope`` says."""

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
    """Return the host name in what GKE answers. Raises ValueError where it answers none, which no reader could use."""
    host = config.dns_endpoint_config.endpoint if config.dns_endpoint_config else None
    if not host:
        raise ValueError("the cluster has no DNS-based control-plane endpoint")
    return host
