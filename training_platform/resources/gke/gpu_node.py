"""What a pool's VMs have inside: GPUs and who shares them, local SSD, disks with images; and what taints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_platform.catalog.types import MachineType
from training_platform.config.model.node_pool import GpuSharing, NodePoolSpec
from training_platform.resources.declared import shared

if TYPE_CHECKING:
    from pulumi_gcp.container import NodePoolNodeConfigConfidentialNodesArgsDict as Confidential
    from pulumi_gcp.container import NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgsDict as EphemeralSsd
    from pulumi_gcp.container import NodePoolNodeConfigGuestAcceleratorArgsDict as Gpu
    from pulumi_gcp.container import NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgsDict as Sharing
    from pulumi_gcp.container import NodePoolNodeConfigLocalNvmeSsdBlockConfigArgsDict as BlockSsd
    from pulumi_gcp.container import NodePoolNodeConfigSecondaryBootDiskArgsDict as SecondaryDisk
    from pulumi_gcp.container import NodePoolNodeConfigTaintArgsDict as Taint

_DRIVERS = {"default": "DEFAULT", "latest": "LATEST", "disabled": "INSTALLATION_DISABLED"}
_STRATEGIES = {"time-sharing": "TIME_SHARING", "mps": "MPS"}
IMAGE_CACHE = "CONTAINER_IMAGE_CACHE"


def guest_accelerators(spec: NodePoolSpec, machine: MachineType) -> list[Gpu] | None:
    """Return the GPUs of a VM, their driver, and how pods share them; TPUs are implied by the machine type."""
    if machine.kind != "gpu" or machine.accelerator is None:
        return None
    return [_gpu(machine.accelerator.gke_label, machine.chips, spec.driver, spec.partition, spec.sharing)]


@shared
def _gpu(label: str, count: int, driver: str, partition: str | None, sharing: GpuSharing | None) -> Gpu:
    return {
        "type": label,
        "count": count,
        # Left out, GKE fills it in, and the difference would replace the pool.
        "gpu_driver_installation_config": {"gpu_driver_version": _DRIVERS[driver]},
        "gpu_partition_size": partition,
        "gpu_sharing_config": _sharing(sharing),
    }


def taints(spec: NodePoolSpec, machine: MachineType) -> list[Taint]:
    """Return the taint that keeps other pods off GPUs, and those of the stack file.

    GKE adds the first by itself only once the cluster has a pool without GPUs, and no order is kept between the two; it
    always adds that of TPUs.
    """
    own: list[Taint] = [
        {"key": key, "value": taint.value, "effect": taint.effect} for key, taint in sorted(spec.taints.items())
    ]
    return [_of_gpus(), *own] if machine.kind == "gpu" else own


@shared
def _of_gpus() -> Taint:
    return {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}


def local_ssds(spec: NodePoolSpec, machine: MachineType) -> tuple[EphemeralSsd | None, BlockSsd | None]:
    """Return a VM's local SSDs, as room for pods or as block devices; one of the two at most.

    Those that come with a machine type are written too: left out, GKE fills them in, and the difference would replace
    the pool.
    """
    count = spec.local_ssd.count or machine.local_ssd.bundled
    if not count:
        return None, None
    if spec.local_ssd.use == "block":
        return None, {"local_ssd_count": count}
    return _ephemeral(count), None


@shared
def _ephemeral(count: int) -> EphemeralSsd:
    return {"local_ssd_count": count}


def secondary_boot_disks(spec: NodePoolSpec) -> list[SecondaryDisk] | None:
    """Return the disks that bring container images with them; they need image streaming, which every pool has."""
    disks: list[SecondaryDisk] = [{"disk_image": image, "mode": IMAGE_CACHE} for image in spec.preload_images]
    return disks or None


def confidential_nodes(spec: NodePoolSpec) -> Confidential | None:
    """Return the technology that keeps a VM's memory from its host."""
    if spec.confidential is None:
        return None
    return {"enabled": True, "confidential_instance_type": spec.confidential}


def _sharing(sharing: GpuSharing | None) -> Sharing | None:
    if sharing is None:
        return None
    return {
        "gpu_sharing_strategy": _STRATEGIES[sharing.strategy],
        "max_shared_clients_per_gpu": sharing.max_clients,
    }
