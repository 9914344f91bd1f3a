"""Views of storage, Vertex AI and network from the inputs of pulumi-gcp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from training_platform.resources.planned import UNKNOWN
from training_platform.rules.adapters.inputs import Inputs, Resource
from training_platform.rules.views.gke import (
    BootDisk,
    Bucket,
    ExternalAddress,
    Filestore,
    FilestorePerformance,
    Gateway,
    PersistentPool,
)
from training_platform.rules.views.view import View


def filestore(resource: Resource) -> Iterator[View]:
    """Yield the view of a Filestore instance; only its first share is read, since it has one."""
    inputs = resource.inputs
    share = next(inputs.items("fileShares"), Inputs(None))
    network = next(inputs.items("networks"), Inputs(None))
    view = Filestore(
        **resource.head,
        project=resource.project,
        tier=inputs.text("tier"),
        location=resource.place("location", "zone"),
        capacity_gib=share.whole("capacityGb"),
        protocol=inputs.text("protocol"),
        connect_mode=network.text("connectMode"),
        reserved_range=network.text("reservedIpRange"),
        network_project=_project_of(network.text("network")),
        deletion_protection=inputs.flag("deletionProtectionEnabled", default=False),  # the provider's default
        labels=inputs.labels("labels"),
    )
    yield view
    performance = Inputs(inputs.get("performanceConfig"))
    yield FilestorePerformance(
        **resource.head,
        filestore=view,
        iops_per_tb=performance.whole("iopsPerTb", "maxIopsPerTb"),
        fixed_iops=performance.whole("fixedIops", "maxIops"),
        directory_services=inputs.get("directoryServices") is not None,
    )


def _project_of(network: Any) -> Any:
    """Return the project of a network's path; one that is unknown is taken for the program's own."""
    parts = network.split("/") if isinstance(network, str) else ()
    return parts[parts.index("projects") + 1] if "projects" in parts[:-1] else None


def persistent_resource(resource: Resource) -> Iterator[View]:
    """Yield two views for each pool of a persistent resource: its machines and their boot disk."""
    inputs = resource.inputs
    for pool in inputs.items("resourcePools"):
        machine_type = pool.text("machineSpec", "machineType")
        yield PersistentPool(
            **resource.head,
            project=resource.project,
            region=inputs.text("location"),
            resource_id=inputs.text("name"),
            machine_type=machine_type,
            accelerator_type=pool.text("machineSpec", "acceleratorType"),
            accelerator_count=pool.whole("machineSpec", "acceleratorCount"),
            replica_count=pool.whole("replicaCount"),
            min_replicas=pool.whole("autoscalingSpec", "minReplicaCount"),
            max_replicas=pool.whole("autoscalingSpec", "maxReplicaCount"),
            labels=inputs.labels("labels"),
        )
        yield BootDisk(
            **resource.head,
            of="vertex",
            machine_type=machine_type,
            size_gb=pool.whole("diskSpec", "bootDiskSizeGb"),
            disk_type=pool.text("diskSpec", "bootDiskType"),
        )


def bucket(resource: Resource) -> Iterator[View]:
    """Yield the view of a bucket."""
    inputs = resource.inputs
    yield Bucket(
        **resource.head, location=inputs.text("location"), force_destroy=inputs.flag("forceDestroy", default=False)
    )


def gateway(resource: Resource) -> Iterator[View]:
    """Yield the view of a NAT gateway."""
    inputs = resource.inputs
    addresses = inputs.get("natIps")
    count = UNKNOWN if addresses is UNKNOWN else len(addresses or ())
    yield Gateway(**resource.head, project=resource.project, region=resource.place("region"), addresses=count)


def interfaces(resource: Resource) -> Iterator[View]:
    """Yield a view for every address on the internet that a VM, or a template of VMs, asks for."""
    for interface in resource.inputs.items("networkInterfaces"):
        for _ in (*interface.items("accessConfigs"), *interface.items("ipv6AccessConfigs")):
            yield ExternalAddress(**resource.head, what="network interface")
