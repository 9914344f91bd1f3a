"""Node pools: what a stack file says of machines in a cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from modules.catalog import ACCELERATORS, MACHINE_TYPES
from modules.catalog.attachments import as_asked, gpu_counts
from modules.catalog.types import Capacity as ChargedCapacity
from modules.catalog.types import MachineType
from modules.config.capacity import Capacity, ReservationRef, charged_as, check_reservation
from modules.config.node_options import GPU_ONLY, NodeOptions
from modules.config.section import DiskTypeName, MachineTypeName, Section, Zone, one_of

_GPUS = tuple(gpu for gpu in ACCELERATORS.values() if gpu.attachment is not None)
_WITH_CHIPS = {
    name: machine
    for name, machine in MACHINE_TYPES.items()
    if machine.kind != "cpu" or any(gpu_counts(machine, gpu) for gpu in _GPUS)
}
_CPU_ONLY = {name: machine for name, machine in MACHINE_TYPES.items() if machine.kind == "cpu"}
AcceleratorMachineName = Annotated[str, AfterValidator(one_of("machine type with TPUs or GPUs", _WITH_CHIPS))]
CpuMachineName = Annotated[str, AfterValidator(one_of("machine type without TPUs or GPUs", _CPU_ONLY))]


class BootDisk(Section):
    """A boot disk; what a machine type takes, and how large, is checked by the rules."""

    type: DiskTypeName | None = Field(default=None, description="Default: the machine type's own default.")
    size_gb: int = Field(default=100, ge=1, description="GB as the API counts them.")

    def type_on(self, machine: MachineType) -> str:
        """Return the type that a VM of ``machine`` gets: what the file says, or the machine type's default."""
        return self.type or machine.boot_disk_types[0]


class SystemPool(Section):
    """The pool for everything that is no training: controllers, notebooks' hub, system pods. Never scales to 0."""

    machine_type: CpuMachineName = "n2-standard-8"
    min_nodes: int = Field(default=2, ge=1, description="VMs over all zones of the cluster.")
    max_nodes: int = Field(default=6, ge=1, description="VMs over all zones of the cluster; quota is charged for it.")
    boot_disk: BootDisk = BootDisk()

    @model_validator(mode="after")
    def _ordered(self) -> SystemPool:
        _least_and_most("min_nodes", self.min_nodes, "max_nodes", self.max_nodes)
        return self


class NodePool(NodeOptions):
    """VMs with TPUs or GPUs that scale together; quota is charged for the most that the autoscaler may reach.

    A GPU pool counts VMs (``min_nodes``, ``max_nodes``); a TPU pool counts slices of one ``topology``
    (``min_slices``, ``slices``). A slice over several VMs becomes a GKE node pool of its own.
    """

    machine_type: AcceleratorMachineName
    zone: Zone | None = Field(default=None, description="Where its VMs are; needed in a regional cluster.")
    capacity: Capacity = Field(default="on-demand", description="How the VMs are had; decides the quota charged.")
    reservation: ReservationRef | None = Field(default=None, description="Whose VMs it takes, by its name or in full.")
    topology: str | None = Field(default=None, description="TPU: shape of a slice in chips, such as 4x8 or 2x2x4.")
    slices: int = Field(default=1, ge=1, description="TPU: most slices.")
    min_slices: int = Field(default=0, ge=0, description="TPU: slices that are always there.")
    max_nodes: int = Field(default=1, ge=1, description="GPU: most VMs.")
    min_nodes: int = Field(default=0, ge=0, description="GPU: VMs that are always there.")
    max_run_hours: int | None = Field(default=None, ge=1, description="flex-start, queued: longest life of a VM.")
    boot_disk: BootDisk = BootDisk()
    labels: dict[str, str] = Field(
        default={}, description="Kubernetes labels of the nodes, beside those that GKE sets."
    )
    deletion_protection: bool = Field(
        default=True, description="false lets a change replace or remove it, where the environment protects."
    )

    @property
    def machine(self) -> MachineType:
        """The machine type's row in the catalogue, with the GPUs that are attached to it."""
        if self.accelerator is None:
            return MACHINE_TYPES[self.machine_type]
        return as_asked(self.machine_type, self.accelerator, self.accelerator_count)

    @model_validator(mode="after")
    def _gpus_are_attached_where_there_are_none(self) -> NodePool:
        kind = MACHINE_TYPES[self.machine_type].kind
        wrong = sorted({"accelerator", "accelerator_count"} & self.model_fields_set)
        if kind != "cpu" and wrong:
            chips = "TPUs" if kind == "tpu" else "GPUs"
            raise ValueError(f"{', '.join(wrong)}: {self.machine_type} has {chips} of its own")
        if kind == "cpu" and self.accelerator is None:
            names = ", ".join(gpu.name for gpu in _GPUS)
            raise ValueError(f"accelerator is missing: {self.machine_type} has no GPUs of its own. Allowed: {names}")
        return self

    @property
    def charged(self) -> ChargedCapacity:
        """The capacity by which the catalogue lists the machine type and quotas are charged."""
        return charged_as(self.capacity)

    @model_validator(mode="after")
    def _counts_fit_the_kind(self) -> NodePool:
        tpu = self.machine.kind == "tpu"
        foreign = {"min_nodes", "max_nodes"} if tpu else {"topology", "slices", "min_slices"}
        if wrong := sorted(foreign & self.model_fields_set):
            instead = "topology, slices and min_slices" if tpu else "min_nodes and max_nodes"
            raise ValueError(f"{', '.join(wrong)} do not go with {self.machine_type}; it takes {instead}")
        if tpu and (of_gpus := sorted(GPU_ONLY & self.model_fields_set)):
            raise ValueError(f"{', '.join(of_gpus)} do not go with {self.machine_type}: it has no GPUs")
        if tpu and self.topology is None:
            raise ValueError(f"topology is missing: {self.machine_type} is a TPU, and a slice has a shape")
        _least_and_most("min_slices", self.min_slices, "slices", self.slices)
        _least_and_most("min_nodes", self.min_nodes, "max_nodes", self.max_nodes)
        return self

    @model_validator(mode="after")
    def _reservation_is_named(self) -> NodePool:
        check_reservation(self.capacity, self.reservation)
        return self


def _least_and_most(least_name: str, least: int, most_name: str, most: int) -> None:
    if least > most:
        raise ValueError(f"{least_name} ({least}) is more than {most_name} ({most})")


__all__ = ["BootDisk", "Capacity", "MachineTypeName", "NodePool", "SystemPool"]
