"""Node auto-provisioning: node pools that GKE creates by itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.config.reading.section import NOTHING, OneOf, Section, Zone, unique
from training_platform.config.spec.node_pool import BootDiskSpec

_LABELS = frozenset(accelerator.gke_label for accelerator in ACCELERATORS.values())
_DISKS = ("pd-balanced", "hyperdisk-balanced", "pd-ssd")  # the first that suits every limit is the default
AcceleratorLabel = Annotated[str, OneOf("TPU or GPU type as GKE spells it", _LABELS)]


class AutoProvisioningSpec(Section):
    """Node pools that GKE creates for pending pods and deletes when they are empty, within limits of the cluster.

    The limits count all node pools of the cluster, those of this file too. Of each accelerator, quota is charged for
    the whole limit. Names are GKE's own: ``nvidia-h100-80gb`` counts GPUs, ``tpu-v5-lite-podslice`` counts chips.
    """

    cpu: int = Field(ge=1, description="Limit for the vCPUs of all node pools together.", examples=[1000])
    memory_gb: int = Field(ge=1, description="Limit for the memory of all node pools together, in GB.", examples=[8000])
    accelerators: dict[AcceleratorLabel, Annotated[int, Field(ge=0)]] = Field(
        default=NOTHING,
        description="Limits for the chips or GPUs of all node pools together, by accelerator type.",
        examples=[{"nvidia-h100-80gb": 16}],
    )
    zones: Annotated[tuple[Zone, ...], AfterValidator(unique)] = Field(
        default=(), description="Zones of the node pools it creates; default: the zones of the cluster."
    )
    boot_disk: BootDiskSpec = Field(default=BootDiskSpec(), description="Boot disks of the nodes.")
    image_type: Literal["COS_CONTAINERD", "UBUNTU_CONTAINERD"] = Field(
        default="COS_CONTAINERD", description="Operating system image of the nodes."
    )
    max_surge: int = Field(default=0, ge=0, description="Extra nodes of a created pool during upgrades.")
    max_unavailable: int = Field(
        default=1, ge=0, description="Nodes of a created pool that may be down at once during upgrades."
    )

    @property
    def boot_disk_type(self) -> str:
        """The type for new node pools: the file's, else the first that every limited accelerator supports."""
        if self.boot_disk.type:
            return self.boot_disk.type
        taken = [_disk_types(label) for label, most in self.accelerators.items() if most]
        return next((kind for kind in _DISKS if all(kind in kinds for kinds in taken)), _DISKS[0])


def _disk_types(label: str) -> set[str]:
    """Return the boot disk types that machines with an accelerator support; any type where it has no machines."""
    machines = [each for each in MACHINE_TYPES.values() if each.accelerator and each.accelerator.gke_label == label]
    return {kind for machine in machines for kind in machine.boot_disk_types} or set(_DISKS)
