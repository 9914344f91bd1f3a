"""Options of a node pool beyond machine type, zone and count; most pools keep the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.attachments import as_asked
from training_platform.catalog.types import MachineType
from training_platform.config.reading.conflicts import Conflict, refuse_conflicts
from training_platform.config.reading.section import DISK_IMAGE, NOTHING, MachineTypeName, OneOf, Section

_ATTACHED = {name: gpu for name, gpu in ACCELERATORS.items() if gpu.attachment is not None}
_INCLUDED = "leave it out where the machine type includes its GPUs"
AttachedGpuName = Annotated[str, OneOf("GPU that is attached to other machines", _ATTACHED, instead=_INCLUDED)]
GPU_ONLY = frozenset({"compact", "driver", "gpu_direct", "partition", "sharing"})


def included_gpus(own: MachineType, written: set[str]) -> Iterator[Conflict]:
    """Yield GPUs that a file attaches to a machine with chips of its own; ``written`` are the fields that it has."""
    if own.kind != "cpu":
        chips = "TPUs" if own.kind == "tpu" else "GPUs"
        for field in sorted({"accelerator", "accelerator_count"} & written):
            message = f"does not go with {own.name}, which includes {chips}"
            yield Conflict((field,), message, "the field left out", "leave it out")


class VmSpec(Section):
    """A VM of Vertex AI: a machine type, and GPUs that are attached to it."""

    machine_type: MachineTypeName = Field(
        description="Machine type; its GPUs come with it.", examples=["a2-highgpu-1g", "n1-standard-8"]
    )
    accelerator: AttachedGpuName | None = Field(
        default=None, description="GPU that is attached to an N1 machine type; default: none.", examples=["t4"]
    )
    accelerator_count: int = Field(default=1, ge=1, description="Number of attached GPUs.")

    @model_validator(mode="after")
    def _gpus_go_together(self) -> Self:
        refuse_conflicts(included_gpus(MACHINE_TYPES[self.machine_type], self.model_fields_set))
        if self.accelerator is None and "accelerator_count" in self.model_fields_set:
            raise ValueError("accelerator_count needs accelerator")
        return self

    @property
    def machine(self) -> MachineType:
        """The machine type's row in the catalogue, with the GPUs that are attached to it."""
        return as_asked(self.machine_type, self.accelerator, self.accelerator_count)

    @property
    def title(self) -> str:
        """The machine type, and what is attached to it: what two VMs have in common that are alike."""
        gpus = f" with {self.accelerator_count} {self.accelerator}" if self.accelerator else ""
        return self.machine_type + gpus


class TaintSpec(Section):
    """A taint of the nodes; jobs that Kueue admits tolerate the taints of their flavor."""

    value: str = Field(description="Value of the taint.", examples=["vision"])
    effect: Literal["NO_SCHEDULE", "PREFER_NO_SCHEDULE", "NO_EXECUTE"] = Field(
        default="NO_SCHEDULE", description="What happens to pods that do not tolerate it."
    )


class GpuSharing(Section):
    """Several pods on one GPU; the team's quota then counts those shares of a GPU."""

    strategy: Literal["time-sharing", "mps"] = Field(default="time-sharing", description="How pods share a GPU.")
    max_clients: int = Field(ge=1, description="Pods that share one GPU, or one of its partitions.", examples=[4])


class LocalSsdSpec(Section):
    """Local SSD; what the machine type includes is ephemeral storage by default."""

    count: int | None = Field(
        default=None, ge=1, description="Local SSD partitions per VM; default: those that the machine type includes."
    )
    use: Literal["ephemeral", "block"] = Field(
        default="ephemeral", description="ephemeral: for images and emptyDir volumes; block: raw block devices."
    )


class Hugepages(Section):
    """Memory of each VM that is set aside in large pages; pods ask for ``hugepages-2Mi`` and ``hugepages-1Gi``."""

    size_2m: int | None = Field(default=None, ge=1, description="Pages of 2 MiB on each VM; default: none.")
    size_1g: int | None = Field(
        default=None, ge=1, description="Pages of 1 GiB on each VM, where the machine type has them; default: none."
    )


class Upgrades(Section):
    """How GKE repairs and upgrades the VMs of a node pool; a multi-host TPU slice is always recreated as a whole."""

    auto_repair: bool | None = Field(
        default=None,
        description="Repair broken nodes; default: true, but false for flex-start, which does not support it.",
    )
    auto_upgrade: bool = Field(default=True, description="Upgrade nodes; clusters in a release channel require true.")
    strategy: Literal["surge", "blue-green"] = Field(default="surge", description="Upgrade strategy.")
    max_surge: int = Field(
        default=0, ge=0, description="surge: extra VMs during upgrades; they need quota, and room in the reservation."
    )
    max_unavailable: int = Field(default=1, ge=0, description="surge: VMs that may be down at once during upgrades.")
    soak_minutes: int = Field(
        default=60, ge=0, description="blue-green: minutes for which the old VMs stay after the last batch."
    )

    @property
    def says_how(self) -> bool:
        """Whether the stack file says how a pool is upgraded, rather than whether."""
        return bool({"strategy", "max_surge", "max_unavailable", "soak_minutes"} & self.model_fields_set)


class NodeOptions(Section):
    """Options of a node pool: attached GPUs, GPUDirect, placement, local SSD, upgrades."""

    accelerator: AttachedGpuName | None = Field(
        default=None, description="GPU that is attached to a machine type without GPUs of its own."
    )
    accelerator_count: int = Field(default=1, ge=1, description="GPUs that are attached to each VM.")
    gpu_direct: bool = Field(
        default=True,
        description="Networks for GPUDirect, where the machine type supports it; without, use one VM per job.",
    )
    topology_aware: bool = Field(
        default=False,
        description="Kueue picks the VMs of a job: GPUs near each other, TPU slices whole; only of VMs that are there.",
    )
    compact: bool = Field(
        default=False, description="GPU: compact placement of the VMs; changing it recreates the node pool."
    )
    driver: Literal["default", "latest", "disabled"] = Field(
        default="default", description="GPU driver that GKE installs; changing it recreates the node pool."
    )
    partition: str | None = Field(
        default=None, description="GPU: size of the MIG partitions of each GPU.", examples=["1g.10gb"]
    )
    sharing: GpuSharing | None = Field(default=None, description="GPU: lets several pods share a GPU; default: no.")
    local_ssd: LocalSsdSpec = Field(default=LocalSsdSpec(), description="Local SSD of each VM.")
    preload_images: tuple[Annotated[str, Field(pattern=DISK_IMAGE)], ...] = Field(
        default=(),
        description="Disk images with preloaded container images, as secondary boot disks.",
        examples=[["projects/example-train/global/images/torch"]],
    )
    confidential: Literal["TDX", "SEV", "SEV_SNP"] | None = Field(
        default=None, description="Technology of confidential nodes; default: nodes are not confidential."
    )
    max_pods: int | None = Field(
        default=None, ge=1, description="Most pods per VM; default: 16 on hosts of multi-host slices, else 32."
    )
    sysctls: dict[str, str] = Field(
        default=NOTHING,
        description="Kernel parameters of the nodes; changing them recreates the VMs, one after another.",
        examples=[{"net.core.somaxconn": "4096"}],
    )
    hugepages: Hugepages = Field(default=Hugepages(), description="Large memory pages; default: none.")
    taints: dict[str, TaintSpec] = Field(
        default=NOTHING, description="Taints of the nodes, by key, beside those of GKE."
    )
    upgrades: Upgrades = Field(default=Upgrades(), description="Repairs and upgrades of the nodes.")
