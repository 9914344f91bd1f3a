"""Views of what a plan alone says of clusters, pools, placement and reservations, from the inputs of pulumi-gcp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from training_platform.resources.planned import UNKNOWN
from training_platform.rules.adapters.inputs import Inputs, Resource, any_of, either, last_part
from training_platform.rules.views.gke import Cluster, NodePool
from training_platform.rules.views.gke_settings import (
    AutoProvisioning,
    ClusterSettings,
    Exclusion,
    Limit,
    Nic,
    PoolSettings,
    Reservation,
    ResourcePolicy,
    Taint,
    Window,
)
from training_platform.rules.views.view import View

ACCOUNT = "gcp:serviceaccount/account:Account"
NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
# What an Autopilot cluster decides by itself; the provider refuses these beside it.
_AUTOPILOT_DECIDES = (
    "clusterAutoscaling.enabled", "clusterAutoscaling.resourceLimits", "networkPolicy", "removeDefaultNodePool",
    "defaultMaxPodsPerNode", "enableShieldedNodes", "nodePools", "enableIntranodeVisibility",
    "addonsConfig.networkPolicyConfig", "addonsConfig.dnsCacheConfig", "addonsConfig.statefulHaConfig",
    "binaryAuthorization.enabled",
)  # fmt: skip


def cluster_settings(resource: Resource, cluster: Cluster) -> Iterator[View]:
    """Yield the view of a cluster's settings, and that of its auto-provisioning where it has any."""
    inputs = resource.inputs
    yield ClusterSettings(
        **resource.head,
        cluster=cluster,
        network=resource.reference(inputs.text("network"), NETWORK),
        datapath=inputs.text("datapathProvider"),
        networking_mode=inputs.text("networkingMode"),
        multi_networking=inputs.flag("enableMultiNetworking", default=False),
        network_policy=inputs.flag("networkPolicy", "enabled", default=False),
        dataplane_policies=any_of(
            inputs.flag("enableFqdnNetworkPolicy", default=False),
            inputs.flag("enableCiliumClusterwideNetworkPolicy", default=False),
        ),
        autopilot=inputs.flag("enableAutopilot", default=False),
        clashing=_clashing(inputs),
        zones=inputs.texts("nodeLocations"),
        node_version=inputs.text("nodeVersion"),
        remove_default_pool=inputs.flag("removeDefaultNodePool", default=False),
        initial_nodes=inputs.whole("initialNodeCount"),
        inline_pools=inputs.count("nodePools"),
        default_machine=inputs.text("nodeConfig", "machineType"),
        workload_pool=inputs.text("workloadIdentityConfig", "workloadPool"),
        tags=inputs.count("nodeConfig", "resourceManagerTags"),
        window=_window(Inputs(inputs.get("maintenancePolicy", "recurringWindow"))),
        exclusions=_exclusions(inputs),
    )
    yield from _auto_provisioning(resource, cluster)


def _window(window: Inputs) -> Any:
    if window.value is None or window.value is UNKNOWN:
        return window.value
    parts = (window.text("startTime"), window.text("endTime"), window.text("recurrence"))
    return UNKNOWN if UNKNOWN in parts else Window(*(part or "" for part in parts))


def _exclusions(inputs: Inputs) -> Any:
    rows: list[Any] = [
        Exclusion(
            each.text("exclusionName"),
            each.text("startTime"),
            each.text("endTime"),
            either(each.text("exclusionOptions", "scope"), "NO_UPGRADES"),
        )
        for each in inputs.items("maintenancePolicy", "maintenanceExclusions")
    ]
    return UNKNOWN if any(part is UNKNOWN for row in rows for part in row) else tuple(rows)


def _clashing(inputs: Inputs) -> Any:
    values = {name: inputs.get(*name.split(".")) for name in _AUTOPILOT_DECIDES}
    if UNKNOWN in values.values():
        return UNKNOWN
    return tuple(name for name, value in values.items() if value not in (None, False))


def _auto_provisioning(resource: Resource, cluster: Cluster) -> Iterator[View]:
    scaling = Inputs(resource.inputs.get("clusterAutoscaling"))
    if scaling.flag("enabled", default=False) is False:
        return
    defaults = Inputs(scaling.get("autoProvisioningDefaults"))
    limits: list[Any] = [
        Limit(each.text("resourceType"), each.whole("maximum")) for each in scaling.items("resourceLimits")
    ]
    known = not any(part is UNKNOWN for limit in limits for part in limit)
    yield AutoProvisioning(
        **resource.head,
        cluster=cluster,
        limits=tuple(limits) if known else UNKNOWN,  # type: ignore[arg-type]
        zones=scaling.texts("autoProvisioningLocations"),
        written=defaults.value is not None,
        disk_type=defaults.text("diskType"),
        disk_gb=defaults.whole("diskSize"),
        strategy=defaults.text("upgradeSettings", "strategy"),
        max_surge=defaults.whole("upgradeSettings", "maxSurge"),
    )


def pool_settings(resource: Resource, pool: NodePool) -> View:
    """Return the view of a node pool's settings."""
    inputs = resource.inputs
    node = Inputs(inputs.get("nodeConfig"))
    upgrades, options = inputs.get("upgradeSettings"), resource.options
    return PoolSettings(
        **resource.head,
        pool=pool,
        spot_twice=node.flag("spot", default=False) is True and node.flag("preemptible", default=False) is True,
        min_cpu_platform=node.text("minCpuPlatform"),
        image_type=node.text("imageType"),
        gvnic=node.flag("gvnic", "enabled", default=False),
        fast_socket=node.flag("fastSocket", "enabled", default=False),
        image_streaming=node.flag("gcfsConfig", "enabled", default=False),
        secondary_disks=node.count("secondaryBootDisks"),
        **_gpu(node),
        confidential=node.text("confidentialNodes", "confidentialInstanceType"),
        maintenance=node.text("hostMaintenancePolicy", "maintenanceInterval"),
        shutdown_seconds=node.whole("kubeletConfig", "shutdownGracePeriodSeconds"),
        upgrades=UNKNOWN if upgrades is UNKNOWN else upgrades is not None,
        max_surge=inputs.whole("upgradeSettings", "maxSurge"),
        max_unavailable=inputs.whole("upgradeSettings", "maxUnavailable"),
        policy=last_part(inputs.text("placementPolicy", "policyName")),
        reservation_path=node.text("reservationAffinity", "values", 0),
        nics=_nics(inputs),
        network_profile=inputs.text("networkConfig", "acceleratorNetworkProfile"),
        metadata_mode=node.text("workloadMetadataConfig", "mode"),
        scopes=node.texts("oauthScopes"),
        service_account=resource.reference(node.text("serviceAccount"), ACCOUNT),
        tags=node.count("resourceManagerTags"),
        taints=_taints(node),
        ignored=tuple(options.get("ignoreChanges", ())) if options else None,
        replaced_first=options.get("deleteBeforeReplace", False) if options else None,
        **_disk(node),
    )


def _gpu(node: Inputs) -> dict[str, Any]:
    guests = node.get("guestAccelerators")
    one = Inputs(UNKNOWN) if guests is UNKNOWN else next(node.items("guestAccelerators"), Inputs(None))
    return {
        "driver": one.text("gpuDriverInstallationConfig", "gpuDriverVersion"),
        "partition": one.text("gpuPartitionSize"),
        "sharing": one.text("gpuSharingConfig", "gpuSharingStrategy"),
        "sharing_clients": one.whole("gpuSharingConfig", "maxSharedClientsPerGpu"),
    }


def _nics(inputs: Inputs) -> Any:
    nics = inputs.get("networkConfig", "additionalNodeNetworkConfigs")
    if nics is UNKNOWN:
        return UNKNOWN
    listed = inputs.items("networkConfig", "additionalNodeNetworkConfigs")
    return tuple(Nic(last_part(each.text("network")), last_part(each.text("subnetwork"))) for each in listed)


def _taints(node: Inputs) -> Any:
    taints: tuple[Any, ...] = tuple(Taint(each.text("key"), each.text("effect")) for each in node.items("taints"))
    return UNKNOWN if any(UNKNOWN in taint for taint in taints) else taints


def _disk(node: Inputs) -> dict[str, Any]:
    pairs = (("sizeGb", "diskSizeGb", Inputs.whole), ("diskType", "diskType", Inputs.text))
    spelled = [(read(node, "bootDisk", inner), read(node, outer)) for inner, outer, read in pairs]
    speed = (node.get("bootDisk", "provisionedIops"), node.get("bootDisk", "provisionedThroughput"))
    return {
        "provisioned": any(each not in (None, 0) for each in speed),
        "disk_type": either(node.text("bootDisk", "diskType"), node.text("diskType")),
        "storage_pools": node.count("storagePools"),
        "disk_twice": any(None not in pair and UNKNOWN not in pair and pair[0] != pair[1] for pair in spelled),
    }


def resource_policy(resource: Resource) -> Iterator[View]:
    """Yield the view of a resource policy."""
    inputs = resource.inputs
    workload, group = inputs.get("workloadPolicy"), inputs.get("groupPlacementPolicy")
    yield ResourcePolicy(
        **resource.head,
        project=resource.project,
        region=resource.place("region"),
        policy=inputs.text("name"),
        workload=workload is not None,
        workload_type=inputs.text("workloadPolicy", "type"),
        topology=inputs.text("workloadPolicy", "acceleratorTopology"),
        topology_mode=inputs.text("workloadPolicy", "acceleratorTopologyMode"),
        topology_distance=inputs.text("workloadPolicy", "maxTopologyDistance"),
        group=group is not None,
        max_distance=inputs.whole("groupPlacementPolicy", "maxDistance"),
        gpu_topology=inputs.text("groupPlacementPolicy", "gpuTopology"),
    )


def reservation(resource: Resource) -> Iterator[View]:
    """Yield the view of a reservation."""
    inputs = resource.inputs
    vm = Inputs(inputs.get("specificReservation", "instanceProperties"))
    gpus = next(vm.items("guestAccelerators"), Inputs(None))
    yield Reservation(
        **resource.head,
        project=resource.project,
        zone=resource.place("zone"),
        reservation=inputs.text("name"),
        machine_type=vm.text("machineType"),
        accelerator_type=gpus.text("acceleratorType"),
        accelerator_count=gpus.whole("acceleratorCount"),
        min_cpu_platform=vm.text("minCpuPlatform"),
        local_ssds=vm.count("localSsds"),
        count=inputs.whole("specificReservation", "count"),
        specific=inputs.flag("specificReservationRequired", default=False),
    )
