"""What a pool's VMs have inside: GPUs and who shares them, local SSD, disks with images; and what taints them."""

from __future__ import annotations

from pulumi_gcp import container

from training_platform.catalog.types import MachineType
from training_platform.config.spec.node_options import GpuSharing
from training_platform.config.spec.node_pool import NodePoolSpec

_DRIVERS = {"default": "DEFAULT", "latest": "LATEST", "disabled": "INSTALLATION_DISABLED"}
_STRATEGIES = {"time-sharing": "TIME_SHARING", "mps": "MPS"}
IMAGE_CACHE = "CONTAINER_IMAGE_CACHE"

EphemeralSsd = container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs
BlockSsd = container.NodePoolNodeConfigLocalNvmeSsdBlockConfigArgs


def guest_accelerators(
    spec: NodePoolSpec, machine: MachineType
) -> list[container.NodePoolNodeConfigGuestAcceleratorArgs] | None:
    """Return the GPUs of a VM, their driver, and how pods share them; TPUs are implied by the machine type."""
    if machine.kind != "gpu" or machine.accelerator is None:
        return None
    driver = container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
        gpu_driver_version=_DRIVERS[spec.driver]  # left out, GKE fills it in, and the difference would replace the pool
    )
    return [
        container.NodePoolNodeConfigGuestAcceleratorArgs(
            type=machine.accelerator.gke_label,
            count=machine.chips,
            gpu_driver_installation_config=driver,
            gpu_partition_size=spec.partition,
            gpu_sharing_config=_sharing(spec.sharing),
        )
    ]


def taints(spec: NodePoolSpec, machine: MachineType) -> list[container.NodePoolNodeConfigTaintArgs] | None:
    """Return the taint that keeps other pods off GPUs, and those of the stack file.

    GKE adds the first by itself only once the cluster has a pool without GPUs, and no order is kept between the two; it
    always adds that of TPUs.
    """
    of_gpus = [container.NodePoolNodeConfigTaintArgs(key="nvidia.com/gpu", value="present", effect="NO_SCHEDULE")]
    own = [
        container.NodePoolNodeConfigTaintArgs(key=key, value=taint.value, effect=taint.effect)
        for key, taint in sorted(spec.taints.items())
    ]
    return [*(of_gpus if machine.kind == "gpu" else []), *own] or None


def local_ssds(spec: NodePoolSpec, machine: MachineType) -> tuple[EphemeralSsd | None, BlockSsd | None]:
    """Return a VM's local SSDs, as room for pods or as block devices; one of the two at most.

    Those that come with a machine type are written too: left out, GKE fills them in, and the difference would replace
    the pool.
    """
    count = spec.local_ssd.count or machine.local_ssd.bundled
    if not count:
        return None, None
    if spec.local_ssd.use == "block":
        return None, BlockSsd(local_ssd_count=count)
    return EphemeralSsd(local_ssd_count=count), None


def secondary_boot_disks(spec: NodePoolSpec) -> list[container.NodePoolNodeConfigSecondaryBootDiskArgs] | None:
    """Return the disks that bring container images with them; they need image streaming, which every pool has."""
    return [
        container.NodePoolNodeConfigSecondaryBootDiskArgs(disk_image=image, mode=IMAGE_CACHE)
        for image in spec.preload_images
    ] or None


def confidential_nodes(spec: NodePoolSpec) -> container.NodePoolNodeConfigConfidentialNodesArgs | None:
    """Return the technology that keeps a VM's memory from its host."""
    if spec.confidential is None:
        return None
    return container.NodePoolNodeConfigConfidentialNodesArgs(enabled=True, confidential_instance_type=spec.confidential)


def _sharing(sharing: GpuSharing | None) -> container.NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgs | None:
    if sharing is None:
        return None
    return container.NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgs(
        gpu_sharing_strategy=_STRATEGIES[sharing.strategy], max_shared_clients_per_gpu=sharing.max_clients
    )
