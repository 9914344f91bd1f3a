"""Node auto-provisioning: what a stack file says of the pools that GKE makes by itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.config.reading.section import Section, Zone, one_of, unique
from training_platform.config.spec.node_pool import BootDiskSpec

_LABELS = frozenset(accelerator.gke_label for accelerator in ACCELERATORS.values())
_DISKS = ("pd-balanced", "hyperdisk-balanced", "pd-ssd")  # the first that suits every limit is the default
AcceleratorLabel = Annotated[str, AfterValidator(one_of("TPU or GPU type as GKE spells it", _LABELS))]


class AutoProvisioningSpec(Section):
    """Pools that GKE makes for pods that wait, and deletes when they are empty, within limits of the whole cluster.

    The limits count every pool of the cluster, those of this file too. Of each accelerator, quota is charged for the
    whole limit. Names are GKE's own: ``nvidia-h100-80gb`` in GPUs, ``tpu-v5-lite-podslice`` in chips.
    """

    cpu: int = Field(ge=1, description="Most vCPUs of all pools together.")
    memory_gb: int = Field(ge=1, description="Most memory of all pools together, in GB.")
    accelerators: dict[AcceleratorLabel, Annotated[int, Field(ge=0)]] = Field(
        default={}, description="Most chips or GPUs of all pools together, by their type as GKE spells it."
    )
    zones: Annotated[tuple[Zone, ...], AfterValidator(unique)] = Field(
        default=(), description="Zones of new pools; default: those of the cluster."
    )
    boot_disk: BootDiskSpec = BootDiskSpec()
    image_type: Literal["COS_CONTAINERD", "UBUNTU_CONTAINERD"] = "COS_CONTAINERD"
    profile: Literal["BALANCED", "OPTIMIZE_UTILIZATION"] = Field(
        default="BALANCED", description="OPTIMIZE_UTILIZATION lets idle nodes go sooner."
    )
    max_surge: int = Field(default=0, ge=0, description="Nodes beside a new pool's own during its upgrades.")
    max_unavailable: int = Field(default=1, ge=0, description="Nodes of a new pool that its upgrades take at once.")

    @property
    def boot_disk_type(self) -> str:
        """What new pools have: what the file says, else the first type that some machine of every limit takes."""
        if self.boot_disk.type:
            return self.boot_disk.type
        taken = [_disk_types(label) for label, most in self.accelerators.items() if most]
        return next((kind for kind in _DISKS if all(kind in kinds for kinds in taken)), _DISKS[0])


def _disk_types(label: str) -> set[str]:
    """Return the boot disk types that machines with an accelerator take; none of it has machines: any will do."""
    machines = [each for each in MACHINE_TYPES.values() if each.accelerator and each.accelerator.gke_label == label]
    return {kind for machine in machines for kind in machine.boot_disk_types} or set(_DISKS)
