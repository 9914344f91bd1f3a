"""A GKE cluster, private and empty; pools and in-cluster software are components of their own."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import container

from modules.gke.auto_provisioning import cluster_autoscaling
from modules.gke.node_config import OAUTH_SCOPES
from modules.gke.service_account import NodeServiceAccount
from modules.network.cluster_subnet import PODS_RANGE, SERVICES_RANGE
from training_platform.catalog import MACHINE_TYPES
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.config.spec.maintenance import Maintenance
from training_platform.config.spec.node_pool import SystemPoolSpec
from training_platform.resources.scope import Scope

# The list replaces GKE's default. DCGM is GPUs, JOBSET is training jobs; those of TPUs are in SYSTEM_COMPONENTS, and
# Kueue has none: it is scraped. KUBELET and CADVISOR want 1.29.3-gke.1093000, JOBSET 1.32.1-gke.1357001.
METRICS = (
    "SYSTEM_COMPONENTS",
    "STORAGE",
    "HPA",
    "POD",
    "DAEMONSET",
    "DEPLOYMENT",
    "STATEFULSET",
    "KUBELET",
    "CADVISOR",
    "DCGM",
    "JOBSET",
)
LOGS = ("SYSTEM_COMPONENTS", "WORKLOADS")
# One VM in every zone, for minutes. Of the system pool's machine and disk, so that the zones have it and the quota that
# the system pool will need covers it: before that pool is there, nothing else holds any.
THROW_AWAY_DISK_GB = 30


@dataclass(frozen=True, kw_only=True)
class GkeClusterArgs:
    """What a cluster is, and the network that it stands in."""

    scope: Scope
    spec: ClusterSpec
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    service_account: NodeServiceAccount
    google_groups_domain: str | None = None  # whose gke-security-groups@ gives Google Groups rights in the cluster


class GkeCluster(pulumi.ComponentResource):
    """A regional or zonal cluster without public nodes or endpoint; the component's name is the stack file's key."""

    cluster_id: pulumi.Output[str]  # projects/*/locations/*/clusters/*
    cluster_name: pulumi.Output[str]  # pools that take it wait for the cluster
    endpoint: pulumi.Output[str]  # host name of the DNS-based control-plane endpoint

    def __init__(self, name: str, args: GkeClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:GkeCluster", name, {}, opts)
        scope, spec = args.scope, args.spec
        cluster = container.Cluster(
            f"{name}-cluster",
            project=scope.project,
            location=spec.location,
            name=cluster_name(scope, name),
            resource_labels=scope.labels,
            deletion_protection=scope.deletion_protection and spec.deletion_protection,
            min_master_version=spec.version,
            release_channel=container.ClusterReleaseChannelArgs(channel=spec.release_channel),
            maintenance_policy=maintenance_policy(spec.maintenance),
            network=args.network,
            subnetwork=args.subnetwork,
            networking_mode="VPC_NATIVE",
            ip_allocation_policy=container.ClusterIpAllocationPolicyArgs(
                cluster_secondary_range_name=PODS_RANGE, services_secondary_range_name=SERVICES_RANGE
            ),
            # Both can only be chosen at creation, and machines with several network cards want both.
            datapath_provider="ADVANCED_DATAPATH",
            enable_multi_networking=True,
            private_cluster_config=container.ClusterPrivateClusterConfigArgs(enable_private_nodes=True),
            control_plane_endpoints_config=control_plane_endpoints(),
            authenticator_groups_config=groups(args.google_groups_domain),
            workload_identity_config=container.ClusterWorkloadIdentityConfigArgs(
                workload_pool=f"{scope.project}.svc.id.goog"
            ),
            enable_shielded_nodes=True,
            security_posture_config=container.ClusterSecurityPostureConfigArgs(mode="BASIC"),
            vertical_pod_autoscaling=container.ClusterVerticalPodAutoscalingArgs(enabled=True),
            cost_management_config=container.ClusterCostManagementConfigArgs(enabled=True),
            logging_config=container.ClusterLoggingConfigArgs(enable_components=list(LOGS)),
            monitoring_config=monitoring(),
            addons_config=addons(),
            node_pool_defaults=node_pool_defaults(),
            cluster_autoscaling=cluster_autoscaling(spec.auto_provisioning, args.service_account.email),
            # GKE makes no cluster without a pool; ours are resources of their own.
            remove_default_node_pool=True,
            initial_node_count=1,
            node_config=throw_away_pool(scope, spec.system_pool, args.service_account.email),
            skip_node_pool_refresh=True,  # or each refresh reads every pool and instance group twice
            opts=_options(self, args),
        )
        self.cluster_id = cluster.id
        self.cluster_name = cluster.name
        self.endpoint = existing_endpoint(cluster)
        self.register_outputs({"cluster_id": self.cluster_id, "endpoint": self.endpoint})


def cluster_name(scope: Scope, cluster: str) -> str:
    """Return a cluster's name in Google Cloud, ``{environment}-{cluster}``; GKE takes at most 40 characters."""
    return f"{scope.environment}-{cluster}"


def control_plane_endpoints() -> container.ClusterControlPlaneEndpointsConfigArgs:
    """Return how the control plane is reached: by name and IAM, from anywhere, and by no address at all."""
    return container.ClusterControlPlaneEndpointsConfigArgs(
        dns_endpoint_config=container.ClusterControlPlaneEndpointsConfigDnsEndpointConfigArgs(
            allow_external_traffic=True
        ),
        ip_endpoints_config=container.ClusterControlPlaneEndpointsConfigIpEndpointsConfigArgs(enabled=False),
    )


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


def groups(domain: str | None) -> container.ClusterAuthenticatorGroupsConfigArgs | None:
    """Return whose groups Kubernetes may give rights to; without a domain, groups have none there."""
    if domain is None:
        return None
    return container.ClusterAuthenticatorGroupsConfigArgs(security_group=f"gke-security-groups@{domain}")


def maintenance_policy(spec: Maintenance) -> container.ClusterMaintenancePolicyArgs:
    """Return when GKE may upgrade, and when it may not, in UTC."""
    exclusions = [
        container.ClusterMaintenancePolicyMaintenanceExclusionArgs(
            exclusion_name=name,
            start_time=each.start,
            end_time=each.end,
            exclusion_options=container.ClusterMaintenancePolicyMaintenanceExclusionExclusionOptionsArgs(
                scope=each.scope.upper().replace("-", "_")
            ),
        )
        for name, each in sorted(spec.exclusions.items())
    ]
    return container.ClusterMaintenancePolicyArgs(
        recurring_window=container.ClusterMaintenancePolicyRecurringWindowArgs(
            start_time=spec.start, end_time=spec.end, recurrence=spec.recurrence
        ),
        maintenance_exclusions=exclusions or None,
    )


def monitoring() -> container.ClusterMonitoringConfigArgs:
    """Return what is measured: GKE's packages, and managed Prometheus for everything else."""
    return container.ClusterMonitoringConfigArgs(
        enable_components=list(METRICS),
        managed_prometheus=container.ClusterMonitoringConfigManagedPrometheusArgs(enabled=True),
    )


def addons() -> container.ClusterAddonsConfigArgs:
    """Return the storage drivers: buckets, Filestore and disks as volumes."""
    return container.ClusterAddonsConfigArgs(
        gcs_fuse_csi_driver_config=container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs(enabled=True),
        gcp_filestore_csi_driver_config=container.ClusterAddonsConfigGcpFilestoreCsiDriverConfigArgs(enabled=True),
        gce_persistent_disk_csi_driver_config=container.ClusterAddonsConfigGcePersistentDiskCsiDriverConfigArgs(
            enabled=True
        ),
    )


def node_pool_defaults() -> container.ClusterNodePoolDefaultsArgs:
    """Return what pools have that somebody else makes, such as auto-provisioned ones: image streaming."""
    gcfs = container.ClusterNodePoolDefaultsNodeConfigDefaultsGcfsConfigArgs(enabled=True)
    return container.ClusterNodePoolDefaultsArgs(
        node_config_defaults=container.ClusterNodePoolDefaultsNodeConfigDefaultsArgs(gcfs_config=gcfs)
    )


def throw_away_pool(
    scope: Scope, system: SystemPoolSpec, service_account: pulumi.Input[str]
) -> container.ClusterNodeConfigArgs:
    """Return the nodes of the default pool, which GKE removes once the cluster is there.

    The account is ours, since an organisation may have switched the default one off.
    """
    return container.ClusterNodeConfigArgs(
        machine_type=system.machine_type,
        boot_disk=container.ClusterNodeConfigBootDiskArgs(
            size_gb=THROW_AWAY_DISK_GB,
            disk_type=system.boot_disk.type_on(MACHINE_TYPES[system.machine_type]),
        ),
        service_account=service_account,
        oauth_scopes=list(OAUTH_SCOPES),
        resource_labels=scope.labels,
        shielded_instance_config=container.ClusterNodeConfigShieldedInstanceConfigArgs(
            enable_secure_boot=True, enable_integrity_monitoring=True
        ),
    )


def _options(parent: pulumi.Resource, args: GkeClusterArgs) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(
        parent=parent,
        # Everything that runs is inside it.
        protect=args.scope.deletion_protection and args.spec.deletion_protection,
        depends_on=args.service_account.bindings,  # the first nodes do not join without their roles
        # Of the pool that is removed: GKE answers with another pool's configuration and another count, and each
        # difference would replace the cluster.
        ignore_changes=["initialNodeCount", "nodeConfig"],
        delete_before_replace=True,  # the name is taken while the old cluster is there
    )
