"""What a pool of TPUs or GPUs may say beyond machine, place and count; every field has a default that most keep."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from training_platform.catalog import ACCELERATORS
from training_platform.config.reading.section import DISK_IMAGE, Section, enumeration, one_of

_ATTACHED = {name: gpu for name, gpu in ACCELERATORS.items() if gpu.attachment is not None}
AttachedGpuName = Annotated[str, AfterValidator(one_of("GPU that is attached to other machines", _ATTACHED))]
GPU_ONLY = frozenset({"compact", "driver", "gpu_direct", "partition", "sharing"})


class TaintSpec(Section):
    """What keeps pods that do not tolerate it off the nodes; jobs by Kueue tolerate the taints of their flavor."""

    value: str
    effect: Literal["NO_SCHEDULE", "PREFER_NO_SCHEDULE", "NO_EXECUTE"] = "NO_SCHEDULE"


class GpuSharing(Section):
    """Several pods on one GPU; Kueue then counts places on GPUs, and not GPUs."""

    strategy: Literal["time-sharing", "mps"] = "time-sharing"
    max_clients: int = Field(ge=1, description="Pods that share one GPU, or one of its partitions.")


class LocalSsdSpec(Section):
    """Local SSD: what the machine type bundles comes without asking, as ephemeral storage."""

    count: int | None = Field(
        default=None, ge=1, description="Partitions a VM; default: those that the machine type bundles."
    )
    use: Literal["ephemeral", "block"] = Field(
        default="ephemeral", description="As room for images and emptyDir volumes, or as raw block devices."
    )


class Upgrades(Section):
    """How GKE keeps the VMs of a pool whole and up to date; a slice over several hosts is recreated as one, always."""

    auto_repair: bool | None = Field(default=None, description="Default: yes, but by flex-start, which refuses it.")
    auto_upgrade: bool = Field(default=True, description="Clusters in a release channel take nothing else.")
    strategy: Literal["surge", "blue-green"] = "surge"
    max_surge: int = Field(default=0, ge=0, description="VMs more while upgrading: quota and reservation need room.")
    max_unavailable: int = Field(default=1, ge=0, description="VMs fewer while upgrading.")
    soak_minutes: int = Field(default=60, ge=0, description="blue-green: the old VMs' stay after the last batch.")

    @property
    def says_how(self) -> bool:
        """Whether the stack file says how a pool is upgraded, rather than whether."""
        return bool({"strategy", "max_surge", "max_unavailable", "soak_minutes"} & self.model_fields_set)


class NodeOptions(Section):
    """GPUs attached to machines that have none of their own, networks between GPUs, placement, disks, upkeep."""

    accelerator: AttachedGpuName | None = Field(
        default=None, description=f"GPU attached to a machine that has none of its own: {enumeration(_ATTACHED)}."
    )
    accelerator_count: int = Field(default=1, ge=1, description="GPUs attached to each VM.")
    gpu_direct: bool = Field(
        default=True, description="Networks for GPUDirect on machines that have it; without, jobs stay within a VM."
    )
    compact: bool = Field(default=False, description="GPU: place the VMs close together; a change recreates the pool.")
    driver: Literal["default", "latest", "disabled"] = Field(
        default="default", description="GPU driver that GKE installs; a change recreates the pool."
    )
    partition: str | None = Field(default=None, description="Size of the partitions (MIG) of each GPU, as 1g.10gb.")
    sharing: GpuSharing | None = None
    local_ssd: LocalSsdSpec = LocalSsdSpec()
    preload_images: tuple[Annotated[str, Field(pattern=DISK_IMAGE)], ...] = Field(
        default=(), description="Disk images with container images, projects/P/global/images/NAME, that start at once."
    )
    confidential: Literal["TDX", "SEV", "SEV_SNP"] | None = Field(
        default=None, description="Confidential nodes of this technology."
    )
    max_pods: int | None = Field(default=None, ge=1, description="Pods a VM; default: 16 on hosts of slices, else 32.")
    taints: dict[str, TaintSpec] = Field(default={}, description="Taints of the nodes by key, beside those of GKE.")
    upgrades: Upgrades = Upgrades()
