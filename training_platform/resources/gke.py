"""A private GKE cluster without node pools: maintenance, auto-provisioning, kubeconfig, and node service account."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.model.cluster import AutoProvisioningSpec, ClusterSpec
from training_platform.resources import gcp
from training_platform.resources.network import own_ranges
from training_platform.resources.node_pools import IMAGE_TYPE, OAUTH_SCOPES
from training_platform.resources.plan import Component, Options, Resource
from training_platform.resources.provider_inputs import add_provider_inputs
from training_platform.resources.resource_types import CLUSTER
from training_platform.resources.scope import Scope, account_id

if TYPE_CHECKING:
    from pulumi_gcp import container
    from pulumi_gcp.container import ClusterClusterAutoscalingArgsDict as Autoscaling
    from pulumi_gcp.container import ClusterClusterAutoscalingAutoProvisioningDefaultsArgsDict as Defaults
    from pulumi_gcp.container import ClusterMaintenancePolicyMaintenanceExclusionArgsDict as Exclusion

# The list replaces GKE's default. DCGM has metrics of GPUs, JOBSET of training jobs, SYSTEM_COMPONENTS also of TPUs;
# Kueue's are scraped. KUBELET and CADVISOR need 1.29.3-gke.1093000, JOBSET 1.32.1-gke.1357001.
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
BINARY_POLICY = "PROJECT_SINGLETON_POLICY_ENFORCE"  # each project has one policy of this name
FREEZE = "upgrade-freeze"  # the name of the exclusion
LOGS = ("SYSTEM_COMPONENTS", "WORKLOADS")
# One VM in every zone, for minutes. It has the system pool's machine type and disk type, so the zones have them and the
# quota for the system pool, which does not exist yet, covers it.
THROW_AWAY_DISK_GB = 30


def gke_cluster(
    key: str,
    spec: ClusterSpec,
    scope: Scope,
    *,
    network: Any,
    subnetwork: Any,
    service_account: Any,
    google_groups_domain: str | None,
    lustre: bool = False,
) -> Resource:
    """Return a cluster; ``key`` is its key in the stack file. Other arguments may be outputs of resources.

    ``lustre`` says whether the cluster has the Managed Lustre driver.
    """
    ranges = own_ranges(spec)
    key_name = scope.key(spec.location)
    cluster = gcp.cluster(
        f"{key}-cluster",
        _options(scope, spec),
        project=scope.project,
        location=spec.location,
        name=cluster_name(scope, key, spec),
        resource_labels=scope.labels,
        deletion_protection=scope.deletion_protection and spec.deletion_protection,
        min_master_version=spec.version,
        release_channel={"channel": spec.release_channel},
        maintenance_policy=maintenance_policy(spec),
        network=network,
        subnetwork=subnetwork,
        networking_mode="VPC_NATIVE",
        ip_allocation_policy={
            "cluster_secondary_range_name": ranges.pods_range,
            "services_secondary_range_name": ranges.services_range,
        },
        # Both can only be chosen at creation, and machines with several network cards need both.
        datapath_provider="ADVANCED_DATAPATH",
        enable_multi_networking=True,
        enable_fqdn_network_policy=spec.fqdn_policies or None,
        # Kubernetes' Gateway API, if notebooks have a gateway; otherwise the setting stays as it is.
        gateway_api_config={"channel": "CHANNEL_STANDARD"} if spec.notebooks and spec.notebooks.gateway else None,
        private_cluster_config={"enable_private_nodes": True},
        # The control plane is reached by name and IAM, from anywhere; it has no IP address.
        control_plane_endpoints_config={
            "dns_endpoint_config": {"allow_external_traffic": True},
            "ip_endpoints_config": {"enabled": False},
        },
        # The domain whose groups Kubernetes may give rights to; without one, groups have no rights there.
        authenticator_groups_config=(
            {"security_group": f"gke-security-groups@{google_groups_domain}"} if google_groups_domain else None
        ),
        workload_identity_config={"workload_pool": f"{scope.project}.svc.id.goog"},
        enable_shielded_nodes=True,
        # Secrets are encrypted before they are stored. If left out, an earlier encryption stays on.
        database_encryption={"state": "ENCRYPTED", "key_name": key_name} if key_name else None,
        binary_authorization={"evaluation_mode": BINARY_POLICY} if spec.binary_authorization else None,
        security_posture_config={"mode": "BASIC"},
        vertical_pod_autoscaling={"enabled": True},
        cost_management_config={"enabled": True},
        logging_config={"enable_components": list(LOGS)},
        monitoring_config={"enable_components": list(METRICS), "managed_prometheus": {"enabled": True}},
        addons_config=_addons(lustre, "slice-controller" in spec.operators),
        # Profiles of training.
        managed_machine_learning_diagnostics_config={"enabled": True} if "ml-diagnostics" in spec.operators else None,
        # Image streaming for pools that people create by hand without another setting. Auto-provisioned pools have no
        # such default: of these, only pools of compute classes stream.
        # Source: terraform-provider-google #23978, read 2026-11-22.
        node_pool_defaults={"node_config_defaults": {"gcfs_config": {"enabled": True}}},
        cluster_autoscaling=cluster_autoscaling(spec, service_account, key_name),
        # GKE creates no cluster without a pool; ours are resources of their own.
        remove_default_node_pool=True,
        initial_node_count=1,
        node_config=_throw_away_pool(scope, spec, service_account),
        skip_node_pool_refresh=True,  # otherwise each refresh reads every pool and instance group twice
    )
    add_provider_inputs(cluster, spec.provider_inputs, ("clusters", key), spec.TAKEN_OVER, _REPLACEABLE)
    return cluster


_REPLACEABLE = (
    "cluster_autoscaling.autoscaling_profile",
    "cluster_autoscaling.auto_provisioning_defaults.image_type",
    "cluster_autoscaling.auto_provisioning_defaults.upgrade_settings.max_surge",
    "cluster_autoscaling.auto_provisioning_defaults.upgrade_settings.max_unavailable",
)  # defaults without a field


def cluster_name(scope: Scope, cluster: str, spec: ClusterSpec) -> str:
    """Return a cluster's name in Google Cloud: ``{environment}-{cluster}``, or the name of an existing cluster.

    It has at most 40 characters.
    """
    return spec.existing or f"{scope.environment}-{cluster}"


def is_frozen(cluster: ClusterSpec) -> bool:
    """Return True if node upgrades and minor version upgrades are postponed until the end of support."""
    freeze = cluster.maintenance.upgrade_freeze
    return bool(cluster.node_pools) if freeze is None else freeze


def maintenance_policy(cluster: ClusterSpec) -> container.ClusterMaintenancePolicyArgsDict:
    """Return the maintenance window and its exclusions, in UTC.

    With accelerators, node upgrades and minor version upgrades are postponed until the end of support, because an
    upgrade recreates slices while jobs run on them. The control plane still gets patches.
    """
    spec = cluster.maintenance
    freeze: Exclusion = {
        "exclusion_name": FREEZE,
        "start_time": spec.start,
        "end_time": None,
        "exclusion_options": {"scope": "NO_MINOR_OR_NODE_UPGRADES", "end_time_behavior": "UNTIL_END_OF_SUPPORT"},
    }
    exclusions: list[Exclusion] = [
        {
            "exclusion_name": name,
            "start_time": exclusion.start,
            "end_time": exclusion.end,
            "exclusion_options": {"scope": exclusion.scope.upper().replace("-", "_")},
        }
        for name, exclusion in sorted(spec.exclusions.items())
    ]
    if is_frozen(cluster) and FREEZE not in spec.exclusions:
        exclusions.append(freeze)
    return {
        "recurring_window": {"start_time": spec.start, "end_time": spec.end, "recurrence": spec.recurrence},
        "maintenance_exclusions": exclusions or None,
    }


def _addons(lustre: bool, slices: bool) -> container.ClusterAddonsConfigArgsDict:
    """Return the cluster's add-ons: storage drivers, Managed Lustre's driver if used, and TPU 7x's slice controller.

    The slice controller is included only if ``slices`` is set, and the driver only if ``lustre`` is set.
    """
    return {
        "gcs_fuse_csi_driver_config": {"enabled": True},
        "gcp_filestore_csi_driver_config": {"enabled": True},
        "gce_persistent_disk_csi_driver_config": {"enabled": True},
        "lustre_csi_driver_config": {"enabled": True} if lustre else None,
        "slice_controller_config": {"enabled": True} if slices else None,
    }


def _throw_away_pool(scope: Scope, spec: ClusterSpec, service_account: Any) -> container.ClusterNodeConfigArgsDict:
    """Return the node configuration of the default pool, which GKE removes after creating the cluster.

    The nodes use our own service account, because an organisation may have disabled the default one.
    """
    system = spec.system_pool
    return {
        "machine_type": system.machine_type,
        "boot_disk": {
            "size_gb": THROW_AWAY_DISK_GB,
            "disk_type": system.boot_disk.type_on(MACHINE_TYPES[system.machine_type]),
        },
        "boot_disk_kms_key": scope.key(spec.location),  # an organisation may refuse disks under other keys
        "service_account": service_account,
        "oauth_scopes": list(OAUTH_SCOPES),
        "resource_labels": scope.labels,
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
    }


def _options(scope: Scope, spec: ClusterSpec) -> Options:
    return Options(
        # All workloads run inside it.
        protect=scope.deletion_protection and spec.deletion_protection,
        # These describe the removed pool. GKE returns another pool's configuration and count instead, and each
        # difference would replace the cluster.
        ignore_changes=("initialNodeCount", "nodeConfig"),
        delete_before_replace=True,  # the name is taken until the old cluster is gone
    )


_PROFILE = "OPTIMIZE_UTILIZATION"  # idle nodes of all pools are deleted soon


def cluster_autoscaling(cluster: ClusterSpec, service_account: Any, key: str | None = None) -> Autoscaling:
    """Return a cluster's autoscaling profile and its auto-provisioning, which is off unless the file sets limits.

    ``key`` encrypts the disks of new pools; None means Google's own keys.
    """
    spec = cluster.auto_provisioning
    if spec is None:
        return {
            "enabled": False,
            "autoscaling_profile": _PROFILE,
            "auto_provisioning_locations": None,
            "auto_provisioning_defaults": None,
            "resource_limits": None,
        }
    limits = {"cpu": spec.cpu, "memory": spec.memory_gb, **spec.accelerators}
    return {
        "enabled": True,
        "autoscaling_profile": _PROFILE,
        "auto_provisioning_locations": list(spec.zones) or None,
        "auto_provisioning_defaults": _defaults(spec, service_account, key),
        "resource_limits": [{"resource_type": resource, "maximum": limit} for resource, limit in limits.items()],
    }


def _defaults(spec: AutoProvisioningSpec, service_account: Any, key: str | None) -> Defaults:
    """Return the settings that auto-provisioned pools share with our own, if GKE's defaults have these fields.

    The disk type is always set, because most accelerators do not accept the provider's default.
    """
    return {
        "service_account": service_account,
        "oauth_scopes": list(OAUTH_SCOPES),
        "image_type": IMAGE_TYPE,
        "disk_type": spec.boot_disk_type,
        "disk_size": spec.boot_disk.size_gb,
        "boot_disk_kms_key": key,
        "management": {"auto_repair": True, "auto_upgrade": True},
        "upgrade_settings": {
            "strategy": "SURGE",
            "max_surge": 0,
            "max_unavailable": 1,
        },
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
    }


def cluster_identifier(project: str, location: str, cluster_name: str) -> str:
    """Return the cluster's full name in the GKE API."""
    return f"projects/{project}/locations/{location}/clusters/{cluster_name}"


def context_name(project: str, location: str, cluster_name: str) -> str:
    """Return the name of the context that ``gcloud container clusters get-credentials`` writes into a kubeconfig."""
    return f"gke_{project}_{location}_{cluster_name}"


def kubeconfig(endpoint: str) -> str:
    """Return a kubeconfig, as JSON, for a DNS-based endpoint with this host name.

    It contains no secret: gke-gcloud-auth-plugin gets a token of the identity that runs Pulumi. It contains no
    certificate authority either, because the endpoint presents a certificate that every machine trusts (unverified).
    """
    login = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
        "installHint": "Install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin",
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {"server": f"https://{endpoint}"}}],
        "users": [{"name": "caller", "user": {"exec": login}}],
        "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": "caller"}}],
        "current-context": "cluster",
    }
    return json.dumps(config, sort_keys=True)


# A node needs these to pull images from the project's repositories, to join, log and report, and to stream images:
# without the last, it silently falls back to whole pulls. Pods have accounts of their own by Workload Identity.
# Sources: GKE docs on hardening, least-privilege node accounts; on image streaming, troubleshooting.
NODE_ROLES = (
    "roles/artifactregistry.reader",
    "roles/container.defaultNodeServiceAccount",
    "roles/serviceusage.serviceUsageConsumer",
)


class NodeAccount(NamedTuple):
    """The service account of an environment's nodes: its e-mail, and the bindings that must exist before nodes start.

    A node that starts without the bindings cannot join its cluster or pull an image, so everything that starts nodes
    waits for them. The e-mail does not depend on the bindings. If it did, a role added later would make it unknown
    during the preview, and every pool would appear to be replaced.
    """

    email: Any
    bindings: Sequence[Resource] = ()


def node_account_resources(name: str, scope: Scope, into: Component) -> NodeAccount:
    """Add the service account of an environment's nodes, with only the roles that nodes need."""
    account = into.add(node_account(name, scope))
    roles = [into.add(role) for role in node_roles(name, scope, account.output("member"))]
    return NodeAccount(account.output("email"), roles)


def node_account(name: str, scope: Scope) -> Resource:
    """Return the service account of an environment's nodes; ``name`` is the component's name."""
    return gcp.service_account(
        f"{name}-account",
        project=scope.project,
        account_id=account_id(scope.environment, "gke-nodes"),
        display_name=f"GKE nodes of {scope.environment}",
        create_ignore_already_exists=True,  # the set-up creates it with the deployer's right to act as it
    )


def node_roles(name: str, scope: Scope, member: Any) -> Iterator[Resource]:
    """Yield the roles of the node service account, which are only the roles that nodes need."""
    for role in NODE_ROLES:
        yield gcp.iam_member(f"{name}-{role.removeprefix('roles/')}", project=scope.project, role=role, member=member)


# Everything in the clusters, and the right to connect to their DNS-based endpoints.
ADMIN_ROLE = "roles/container.admin"
# For `job usage`, `trace pull`, `quota pull` and `verify`, which read metrics, quotas and resources of the project, by
# calls that may have a quota project. Viewers read neither objects of buckets nor values of secrets; `job logs` of
# ended runs reads log views.
FURTHER_ADMIN_ROLES = ("roles/viewer", "roles/serviceusage.serviceUsageConsumer", "roles/logging.viewAccessor")


def cluster_admins(into: Component, scope: Scope, admins: Iterable[str]) -> None:
    """Add the administrators of all clusters in an environment's project, without duplicates."""
    for member in sorted(set(admins)):
        name = f"{into.name}-{member_key(member)}"
        into.add(gcp.iam_member(name, project=scope.project, role=ADMIN_ROLE, member=member))
        for role in FURTHER_ADMIN_ROLES:
            further = f"{name}-{role.removeprefix('roles/')}"
            into.add(gcp.iam_member(further, project=scope.project, role=role, member=member))


def member_key(member: str) -> str:
    """Return a name for an IAM member that depends only on the member, so adding others does not change it.

    ``group:ml-platform@example.com`` becomes ``ml-platform-`` and 8 digits of a hash of the whole member.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", member.partition(":")[2].partition("@")[0].lower()).strip("-")
    return f"{readable}-{hashlib.sha256(member.encode()).hexdigest()[:8]}"


def read_cluster(name: str, scope: Scope, location: str, cluster: str) -> Resource:
    """Return an existing cluster that this stack does not manage; ``name`` is the resource's name."""
    return Resource(type=CLUSTER, name=name, inputs={}, read_id=cluster_identifier(scope.project, location, cluster))


def dns_endpoint(config: Mapping[str, Any] | None, _id: str) -> str:
    """Return the host name in GKE's response. It is empty only for mocks in tests; every planned cluster has one."""
    dns_config = (config or {}).get("dns_endpoint_config") or {}
    return str(dns_config.get("endpoint") or "")


def existing_endpoint(config: Mapping[str, Any] | None, cluster_id: str) -> str:
    """Return the endpoint of an existing cluster. Raises ValueError if its owner disabled the endpoint."""
    endpoint = dns_endpoint(config, cluster_id)
    if not endpoint:
        raise ValueError(f"{cluster_id} has no DNS-based control-plane endpoint")
    return endpoint
