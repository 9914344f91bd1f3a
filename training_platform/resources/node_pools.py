"""GKE node pools with and without TPUs or GPUs, and the workload policies that join VMs.

Workload policies join VMs into TPU 7x slices or GB200 NVLink domains, which a placement policy cannot do on its own.
Each region and topology has one policy, which pools with the same topology share. Sources: GKE docs, TPU Ironwood;
Cluster Toolkit v1.95.0, resource-policy and examples gke-tpu-7x and gke-a4x (2026-06-25).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import is_zone, region_of
from training_platform.catalog.types import MachineType
from training_platform.config.expansion import (
    CLASS_LABEL,
    SYSTEM_POOL_SURGE,
    ZONES_OF_A_REGIONAL_CLUSTER,
    CpuPool,
    ExpandedPool,
    GkePool,
    pool_labels,
)
from training_platform.config.model.node_pool import (
    BootDiskSpec,
    CpuPoolSpec,
    NodePoolSpec,
)
from training_platform.resources import gcp
from training_platform.resources.plan import Options, Resource
from training_platform.resources.provider_inputs import add_provider_inputs
from training_platform.resources.scope import NAME_LIMIT, Scope, short_name

if TYPE_CHECKING:
    from pulumi_gcp.container import NodePoolBestEffortProvisioningArgsDict as BestEffort
    from pulumi_gcp.container import NodePoolManagementArgsDict as Management
    from pulumi_gcp.container import NodePoolNetworkConfigAdditionalNodeNetworkConfigArgsDict as Nic
    from pulumi_gcp.container import NodePoolNetworkConfigArgsDict as NetworkConfig
    from pulumi_gcp.container import NodePoolNodeConfigArgsDict as NodeConfig
    from pulumi_gcp.container import NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgsDict as EphemeralSsd
    from pulumi_gcp.container import NodePoolNodeConfigGuestAcceleratorArgsDict as Gpu
    from pulumi_gcp.container import NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgsDict as Sharing
    from pulumi_gcp.container import NodePoolNodeConfigLocalNvmeSsdBlockConfigArgsDict as BlockSsd
    from pulumi_gcp.container import NodePoolNodeConfigReservationAffinityArgsDict as Affinity
    from pulumi_gcp.container import NodePoolNodeConfigSecondaryBootDiskArgsDict as SecondaryDisk
    from pulumi_gcp.container import NodePoolNodeConfigTaintArgsDict as Taint
    from pulumi_gcp.container import NodePoolPlacementPolicyArgsDict as PlacementPolicy
    from pulumi_gcp.container import NodePoolQueuedProvisioningArgsDict as Queued
    from pulumi_gcp.container import NodePoolUpgradeSettingsArgsDict as UpgradeSettings
    from pulumi_gcp.container import NodePoolUpgradeSettingsBlueGreenSettingsArgsDict as BlueGreen

# A VM's block of the pods' range is twice its pods, rounded up to a power of two: a /27 for 16, so that a /16 holds
# 2,048 VMs, and a /26 for 32, 1,024 VMs. A host of a slice runs one training pod beside some ten of GKE's own (xpk
# allows 15 in all); other hosts may run a pod per chip or GPU.
MAX_PODS_OF_A_SLICE_HOST = 16
MAX_PODS = 32
# An update replaces VM by VM, each waiting up to an hour for its pods to leave.
UPDATE_TIMEOUT = {"update": "8h"}


@dataclass(frozen=True, kw_only=True)
class PoolPlace:
    """The cluster, networks and accounts that a pool uses. Names and addresses may be outputs of resources."""

    scope: Scope
    location: str  # of the cluster
    cluster: Any  # name
    service_account: Any  # e-mail
    nics: Sequence[Nic] = ()  # beside the first
    workload_policy: Any = None  # the name of the policy that joins the VMs, if any


_DEFAULTS = ("upgrade_settings.blue_green_settings.node_pool_soak_duration",)


def accelerator_pool(pool: ExpandedPool, gke_pool: GkePool, place: PoolPlace) -> Resource:
    """Return a GKE node pool for a pool of the stack file; each multi-host slice is a separate GKE node pool.

    The autoscaler gets the minimum and maximum per zone and never the totals, which GKE refuses for slices. A permanent
    slice has the same minimum and maximum. If it were created with a node count, it would be replaced when its minimum
    is changed to 0.
    """
    minimum, maximum = nodes_per_zone(pool, gke_pool)
    resource = gcp.node_pool(
        f"{gke_pool.name}-pool",
        _options(pool, place),
        name=node_pool_name(pool, gke_pool),
        initial_node_count=minimum,
        autoscaling={
            "min_node_count": minimum,
            "max_node_count": maximum,
            "total_min_node_count": None,
            "total_max_node_count": None,
            "location_policy": "ANY",
        },
        project=place.scope.project,
        cluster=place.cluster,
        location=place.location,
        node_locations=[pool.zone] if pool.zone else None,
        max_pods_per_node=pool.spec.max_pods or (MAX_PODS_OF_A_SLICE_HOST if pool.multi_host else MAX_PODS),
        management=management(pool.spec),
        upgrade_settings=upgrade_settings(pool.spec),
        placement_policy=placement_policy(pool, place.workload_policy),
        queued_provisioning=queued_provisioning(pool.spec),
        best_effort_provisioning=best_effort_provisioning(pool.spec),
        network_config=network_config(pool, place),
        node_config=node_config(pool, place),
    )
    add_provider_inputs(resource, pool.spec.provider_inputs, pool.path, pool.spec.TAKEN_OVER, _DEFAULTS)
    return resource


def node_pool_name(pool: ExpandedPool, gke_pool: GkePool) -> str:
    """Return the pool's name in GKE, ``{pool}[-{slice}]``, at most 40 characters."""
    return gke_pool.name.removeprefix(f"{pool.cluster}-")


def nodes_per_zone(pool: ExpandedPool, gke_pool: GkePool) -> tuple[int, int]:
    """Return the minimum and the maximum number of VMs in each zone, as GKE counts them."""
    zones = 1 if pool.zone else ZONES_OF_A_REGIONAL_CLUSTER
    return gke_pool.min_nodes // zones, gke_pool.max_nodes // zones


NETWORK_PROFILE = "auto"  # GKE creates the VPCs and subnets of the further network cards, and their Network objects


def network_config(pool: ExpandedPool, place: PoolPlace) -> NetworkConfig:
    """Return the network settings of a pool's VMs, which have no public addresses."""
    return {
        "enable_private_nodes": True,
        "additional_node_network_configs": list(place.nics) or None,
        "accelerator_network_profile": NETWORK_PROFILE if pool.network_devices else None,
    }


def placement_policy(pool: ExpandedPool, workload_policy: Any) -> PlacementPolicy | None:
    """Return the placement policy that joins the hosts of one slice or places GPUs close together.

    GKE refuses a topology on one-host slices and sets it itself. In both cases a workload policy may be set in
    addition, as Cluster Toolkit does. GKE stores the policy without its type; ``_options`` ignores this difference.
    """
    if not pool.multi_host and not pool.spec.compact and workload_policy is None:
        return None
    topology = pool.spec.topology if pool.multi_host else None
    return {"type": "COMPACT", "tpu_topology": topology, "policy_name": workload_policy}


def node_config(pool: ExpandedPool, place: PoolPlace) -> NodeConfig:
    """Return the configuration of a pool's VMs."""
    spec = pool.spec
    machine = pool.machine
    ephemeral, block = local_ssds(spec, machine)
    accelerator_config: NodeConfig = {
        "labels": pool_labels(pool),
        "taints": [*taints(spec, machine), *class_taints(pool)] or None,
        "guest_accelerators": guest_accelerators(spec, machine),
        "fast_socket": {"enabled": True} if machine.fast_socket else None,
        "ephemeral_storage_local_ssd_config": ephemeral,
        "local_nvme_ssd_block_config": block,
        "secondary_boot_disks": secondary_boot_disks(spec),
        "reservation_affinity": reservation_affinity(spec),
        "spot": True if spec.capacity == "spot" else None,
        # Queued VMs are flex-start VMs that all start together.
        "flex_start": True if spec.charged == "flex-start" else None,
        "max_run_duration": f"{spec.max_run_hours * 3600}s" if spec.max_run_hours else None,
    }
    common = common_node_config(machine, spec.boot_disk, place.service_account, place.scope, place.location)
    return {**common, **accelerator_config}


def _options(pool: ExpandedPool, place: PoolPlace) -> Options:
    ignored = ["initialNodeCount"]  # it matters only at creation, and a change of it would replace the pool
    if upgrades_unsaid(pool.spec):
        ignored.append("upgradeSettings")  # the provider cannot send back the values that GKE writes there
    if place.workload_policy is not None:
        ignored.append("placementPolicy")  # GKE keeps it without its type, and each difference would replace the pool
    return Options(
        # A replacement releases capacity that may not be available again, and ends every job on it.
        protect=place.scope.deletion_protection and pool.spec.deletion_protection,
        # To the provider these are updates. It does not send a new topology or strategy of GPUDirect (which GKE's API
        # has no update of); with a new machine type, GKE recreates every VM of the pool while jobs run there. As
        # replacements, all are stopped by the protection.
        replace_on_changes=("placementPolicy", "nodeConfig.machineType", "nodeConfig.gpudirectStrategy"),
        # If changes of the placement are ignored, another slice still has to be another pool.
        replacement_trigger=pool.policy_topology if place.workload_policy is not None else None,
        ignore_changes=tuple(ignored),
        # Neither the name nor the capacity is available twice.
        delete_before_replace=True,
        timeouts=UPDATE_TIMEOUT,
    )


_DRIVERS = {"default": "DEFAULT", "latest": "LATEST", "disabled": "INSTALLATION_DISABLED"}
_STRATEGIES = {"time-sharing": "TIME_SHARING", "mps": "MPS"}
IMAGE_CACHE = "CONTAINER_IMAGE_CACHE"


def guest_accelerators(spec: NodePoolSpec, machine: MachineType) -> list[Gpu] | None:
    """Return the GPUs of a VM, their driver, and how pods share them. TPUs follow from the machine type."""
    if machine.kind != "gpu" or machine.accelerator is None:
        return None
    sharing: Sharing | None = None
    if spec.sharing:
        sharing = {
            "gpu_sharing_strategy": _STRATEGIES[spec.sharing.strategy],
            "max_shared_clients_per_gpu": spec.sharing.max_clients,
        }
    return [
        {
            "type": machine.accelerator.gke_label,
            "count": machine.chips,
            # If left out, GKE fills it in, and the difference would replace the pool.
            "gpu_driver_installation_config": {"gpu_driver_version": _DRIVERS[spec.driver]},
            "gpu_partition_size": spec.partition,
            "gpu_sharing_config": sharing,
        }
    ]


def taints(spec: NodePoolSpec, machine: MachineType) -> list[Taint]:
    """Return the taint that keeps other pods away from GPUs, and the taints of the stack file.

    GKE itself adds the GPU taint only if the cluster already has a pool without GPUs, and pools are created in no
    particular order. GKE always adds the TPU taint.
    """
    pool_taints: list[Taint] = []
    if machine.kind == "gpu":
        pool_taints.append({"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"})
    for key, taint in sorted(spec.taints.items()):
        pool_taints.append({"key": key, "value": taint.value, "effect": taint.effect})
    return pool_taints


def local_ssds(spec: NodePoolSpec, machine: MachineType) -> tuple[EphemeralSsd | None, BlockSsd | None]:
    """Return a VM's local SSDs: ephemeral storage for pods, block devices, or neither.

    SSDs that are bundled with a machine type are included. If they were left out, GKE would add them, and the
    difference would replace the pool.
    """
    count = spec.local_ssd.count or machine.local_ssd.bundled
    if not count:
        return None, None
    if spec.local_ssd.use == "block":
        return None, {"local_ssd_count": count}
    return {"local_ssd_count": count}, None


def secondary_boot_disks(spec: NodePoolSpec) -> list[SecondaryDisk] | None:
    """Return the disks with preloaded container images. They require image streaming, which every pool has."""
    disks: list[SecondaryDisk] = [{"disk_image": image, "mode": IMAGE_CACHE} for image in spec.preload_images]
    return disks or None


RESERVATION_KEY = "compute.googleapis.com/reservation-name"


def reservation_affinity(spec: NodePoolSpec) -> Affinity:
    """Return the reservation of a pool's VMs: a named one, any if the file allows it, or none.

    Without this field, GKE would use any matching reservation. This would make GKE refuse spot and flex-start VMs, and
    on-demand VMs would use up a reservation that was made for something else.
    """
    if spec.reservation is None:
        return {"consume_reservation_type": "NO_RESERVATION", "key": None, "values": None}
    path = spec.reservation.path
    return {
        "consume_reservation_type": spec.reservation.affinity,
        "key": RESERVATION_KEY if path else None,
        "values": [path] if path else None,
    }


def queued_provisioning(spec: NodePoolSpec) -> Queued | None:
    """Return the setting for queued pools, or None.

    VMs of a queued pool start only through a ProvisioningRequest, which Kueue creates for a whole job.
    """
    return {"enabled": True} if spec.capacity == "queued-provisioning" else None


def best_effort_provisioning(spec: NodePoolSpec) -> BestEffort | None:
    """Return how many of a pool's initial VMs must exist for its creation to succeed; None if all are needed.

    Source: pulumi-gcp 10.2.0, NodePool. google-beta 93c65b2 of 2026-08-21 did not have it, so it was not tried.
    """
    if spec.min_provision_nodes is None:
        return None
    return {"enabled": True, "min_provision_nodes": spec.min_provision_nodes}


def class_taints(pool: ExpandedPool) -> list[Taint]:
    """Return the taint that reserves a pool for jobs of its compute class. GKE requires it in addition to the label."""
    if pool.compute_class is None:
        return []
    return [{"key": CLASS_LABEL, "value": pool.compute_class, "effect": "NO_SCHEDULE"}]


# The default scopes have read-only storage: writing a checkpoint would fail, whatever IAM grants.
OAUTH_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
IMAGE_TYPE = "COS_CONTAINERD"  # image streaming and driver installation need it


def common_node_config(
    machine: MachineType, disk: BootDiskSpec, service_account: Any, scope: Scope, location: str
) -> NodeConfig:
    """Return the base of a pool's ``node_config``; ``location`` is the location of the cluster."""
    return {
        "machine_type": machine.name,
        "image_type": IMAGE_TYPE,
        # Both are always set, and only in this form: GKE has two forms, and a default type that differs by machine.
        "boot_disk": {"size_gb": disk.size_gb, "disk_type": disk.type_on(machine)},
        "boot_disk_kms_key": scope.key(location),
        "service_account": service_account,
        "oauth_scopes": list(OAUTH_SCOPES),
        "resource_labels": scope.labels,
        "gcfs_config": {"enabled": True},  # images of 10 to 20 GB start at once
        "gvnic": {"enabled": True},
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
        # Pods see their own account, not the node's.
        "workload_metadata_config": {"mode": "GKE_METADATA"},
    }


# A /25 of the pods' range per VM: half of what GKE's default of 110 pods takes, and more than controllers fill.
MAX_PODS_OF_A_CPU_HOST = 64
_CPU_OPTIONS = Options(
    # It matters at creation alone, and a change of it would replace the pool.
    ignore_changes=("initialNodeCount",),
    # The name is taken while the old pool is there. Running jobs stay; new ones wait for the controllers.
    delete_before_replace=True,
    timeouts=UPDATE_TIMEOUT,
)


def cpu_pool(name: str, pool: CpuPool, place: PoolPlace) -> Resource:
    """Return a node pool without TPUs or GPUs; ``name`` is the component's name.

    GKE changes the taints of a pool in place, and pods that already run there stay. Source: GKE docs, node taints, read
    2026-11-23 in an excerpt; not tried on a cluster.
    """
    spec = pool.spec
    node = common_node_config(
        MACHINE_TYPES[spec.machine_type], spec.boot_disk, place.service_account, place.scope, place.location
    )
    if pool.taint:
        key, value = pool.taint
        node["taints"] = [{"key": key, "value": value, "effect": "NO_SCHEDULE"}]
    return gcp.node_pool(
        f"{name}-pool",
        _CPU_OPTIONS,
        project=place.scope.project,
        cluster=place.cluster,
        location=place.location,
        name=pool.name,
        initial_node_count=initial_nodes_per_zone(spec, place.location),
        # Over all zones, so that a minimum of 2 is 2 VMs in a region as in a zone.
        autoscaling={
            "total_min_node_count": spec.min_nodes,
            "total_max_node_count": spec.max_nodes,
            "location_policy": "BALANCED",
        },
        max_pods_per_node=MAX_PODS_OF_A_CPU_HOST,
        management={"auto_repair": True, "auto_upgrade": True},
        # A new VM before an old one is deleted: webhooks fail closed, and with them every job.
        upgrade_settings={"strategy": "SURGE", "max_surge": SYSTEM_POOL_SURGE, "max_unavailable": 0},
        network_config={"enable_private_nodes": True},
        node_config=node,
    )


def initial_nodes_per_zone(spec: CpuPoolSpec, location: str) -> int:
    """Return the initial number of VMs in each zone. Their sum is at least the minimum but not above the maximum."""
    zones = 1 if is_zone(location) else ZONES_OF_A_REGIONAL_CLUSTER
    return min(-(-spec.min_nodes // zones), spec.max_nodes // zones)


HIGH_THROUGHPUT = "HIGH_THROUGHPUT"
# A pool that uses it keeps it from going, and the name is taken meanwhile.
_POLICY_OPTIONS = Options(delete_before_replace=True)


def workload_policies(
    scope: Scope, cluster: str, location: str, pools: Iterable[ExpandedPool]
) -> Iterator[tuple[str, Resource]]:
    """Yield the workload policies that a cluster's pools need, each with its topology; ``cluster`` is its key."""
    topologies = dict.fromkeys(pool.policy_topology for pool in pools if pool.policy_topology)
    for topology in topologies:
        name = f"{cluster}-slices-{topology}-policy"
        yield (
            topology,
            gcp.resource_policy(
                name,
                _POLICY_OPTIONS,
                project=scope.project,
                region=region_of(location),
                name=short_name(f"{scope.environment}-{cluster}-{topology}", NAME_LIMIT),
                workload_policy={"type": HIGH_THROUGHPUT, "accelerator_topology": topology},
            ),
        )


def management(spec: NodePoolSpec) -> Management:
    """Return whether GKE repairs and upgrades VMs automatically; it does not repair flex-start VMs."""
    repair = spec.upgrades.auto_repair
    auto_repair = spec.charged != "flex-start" if repair is None else repair
    return {"auto_repair": auto_repair, "auto_upgrade": spec.upgrades.auto_upgrade}


def upgrades_unsaid(spec: NodePoolSpec) -> bool:
    """Return True if the file sets no upgrade settings and the provider does not support GKE's default for the pool."""
    return spec.charged == "flex-start" and not spec.upgrades.says_how


def upgrade_settings(spec: NodePoolSpec) -> UpgradeSettings | None:
    """Return how VMs are upgraded. By default a VM is deleted before its successor starts, so no extra quota is needed.

    Flex-start VMs have no settings. If the stack file contains some anyway, they are kept, and a rule reports them. A
    slice is always recreated as a whole, whatever the settings are.
    """
    upgrades = spec.upgrades
    if upgrades_unsaid(spec):
        return None
    if upgrades.strategy == "blue-green":
        soak: BlueGreen = {
            "standard_rollout_policy": {"batch_node_count": 1, "batch_soak_duration": "0s"},
            "node_pool_soak_duration": "3600s",  # in which the old VMs stay after the last batch
        }
        return {
            "strategy": "BLUE_GREEN",
            "max_surge": None,
            "max_unavailable": None,
            "blue_green_settings": soak,
        }
    return {
        "strategy": "SURGE",
        "max_surge": upgrades.max_surge,
        "max_unavailable": upgrades.max_unavailable,
        "blue_green_settings": None,
    }
