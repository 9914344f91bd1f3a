"""Views of clusters and node pools from the inputs of pulumi-gcp's ``container`` module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from training_platform.resources.planned import UNKNOWN
from training_platform.rules.adapters.gke_settings import SUBNETWORK, cluster_settings, pool_settings
from training_platform.rules.adapters.inputs import Inputs, Resource, any_of, either, last_part
from training_platform.rules.views.gke import BootDisk, Cluster, NodePool
from training_platform.rules.views.view import View

CLUSTER = "gcp:container/cluster:Cluster"
_SECONDS = re.compile(r"([0-9]+)s\Z")


def cluster(resource: Resource) -> Iterator[View]:
    """Yield the views of a cluster: what a stack file decides of it, and its other settings."""
    inputs = resource.inputs
    private = inputs.get("privateClusterConfig")
    view = Cluster(
        **resource.head,
        project=resource.project,
        cluster=inputs.text("name"),
        location=resource.place("location"),
        private_nodes=UNKNOWN if private is UNKNOWN else inputs.flag("privateClusterConfig", "enablePrivateNodes"),
        public_endpoint=_public_endpoint(inputs),
        deletion_protection=inputs.flag("deletionProtection", default=True),  # the provider's default
        labels=inputs.labels("resourceLabels"),
        version=inputs.text("minMasterVersion"),
        release_channel=inputs.text("releaseChannel", "channel"),
        subnetwork=resource.reference(inputs.text("subnetwork"), SUBNETWORK),
        pods_range=inputs.text("ipAllocationPolicy", "clusterSecondaryRangeName"),
        max_pods=inputs.whole("defaultMaxPodsPerNode"),
    )
    yield view
    yield from cluster_settings(resource, view)


def _public_endpoint(inputs: Inputs) -> Any:
    enabled = inputs.flag("controlPlaneEndpointsConfig", "ipEndpointsConfig", "enabled", default=True)
    private = inputs.flag("privateClusterConfig", "enablePrivateEndpoint", default=False)
    if enabled is False or private is True:
        return False
    return UNKNOWN if UNKNOWN in (enabled, private) else True


def node_pool(resource: Resource) -> Iterator[View]:
    """Yield the views of a node pool: machines, boot disk (which the API spells in two ways), and other settings."""
    inputs = resource.inputs
    node = Inputs(inputs.get("nodeConfig"))
    machine_type = node.text("machineType")
    view = NodePool(
        **resource.head,
        project=resource.project,
        cluster=resource.reference(inputs.text("cluster"), CLUSTER),
        pool=inputs.text("name"),
        version=inputs.text("version"),
        max_pods=inputs.whole("maxPodsPerNode"),
        location=resource.place("location"),
        machine_type=machine_type,
        zones=inputs.texts("nodeLocations"),
        spot=any_of(node.flag("spot", default=False), node.flag("preemptible", default=False)),
        flex_start=node.flag("flexStart", default=False),
        queued=inputs.flag("queuedProvisioning", "enabled", default=False),
        consume_reservation=node.text("reservationAffinity", "consumeReservationType"),
        reservation=last_part(node.text("reservationAffinity", "values", 0)),
        placement_type=inputs.text("placementPolicy", "type"),
        tpu_topology=inputs.text("placementPolicy", "tpuTopology"),
        local_ssd_count=_local_ssds(node),
        private_nodes=inputs.flag("networkConfig", "enablePrivateNodes"),
        node_labels=either(node.labels("labels"), {}),
        labels=node.labels("resourceLabels"),
        **_scaling(inputs),
        **_upkeep(inputs, node),
        **_accelerator(node),
    )
    yield view
    yield pool_settings(resource, view)
    yield BootDisk(
        **resource.head,
        of="gke",
        machine_type=machine_type,
        size_gb=either(node.whole("bootDisk", "sizeGb"), node.whole("diskSizeGb")),
        disk_type=either(node.text("bootDisk", "diskType"), node.text("diskType")),
    )


def _scaling(inputs: Inputs) -> dict[str, Any]:
    scaling = Inputs(inputs.get("autoscaling"))
    return {
        "initial_nodes": inputs.whole("initialNodeCount"),
        "node_count": inputs.whole("nodeCount"),
        "min_nodes": scaling.whole("minNodeCount"),
        "max_nodes": scaling.whole("maxNodeCount"),
        "total_min_nodes": scaling.whole("totalMinNodeCount"),
        "total_max_nodes": scaling.whole("totalMaxNodeCount"),
        "location_policy": scaling.text("locationPolicy"),
    }


def _upkeep(inputs: Inputs, node: Inputs) -> dict[str, Any]:
    return {
        "auto_repair": inputs.flag("management", "autoRepair", default=True),  # the provider's defaults
        "auto_upgrade": inputs.flag("management", "autoUpgrade", default=True),
        "upgrade_strategy": inputs.text("upgradeSettings", "strategy"),
        "max_run_seconds": _seconds(node.text("maxRunDuration")),
    }


def _accelerator(node: Inputs) -> dict[str, Any]:
    guests = node.get("guestAccelerators")
    one = Inputs(UNKNOWN) if guests is UNKNOWN else next(node.items("guestAccelerators"), Inputs(None))
    return {"accelerator_type": one.text("type"), "accelerator_count": one.whole("count")}


def _local_ssds(node: Inputs) -> Any:
    ephemeral = node.whole("ephemeralStorageLocalSsdConfig", "localSsdCount")
    block = node.whole("localNvmeSsdBlockConfig", "localSsdCount")
    return either(either(ephemeral, block), node.whole("localSsdCount"))


def _seconds(text: Any) -> Any:
    """Return the seconds of ``3600s``, None as it is; -1 for a text that is no duration, so that a rule sees it."""
    if not isinstance(text, str):
        return text
    match = _SECONDS.match(text)
    return int(match[1]) if match else -1
