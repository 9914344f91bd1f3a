"""Node pools of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, model_validator

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.attachments import as_asked, gpu_counts
from training_platform.catalog.provisioning_models import has_blocks
from training_platform.catalog.topologies import legal_topologies, topologies_text
from training_platform.catalog.types import Capacity as ChargedCapacity
from training_platform.catalog.types import MachineType
from training_platform.config.reading.conflicts import Conflict, above, refuse_conflicts
from training_platform.config.reading.section import (
    NOTHING,
    DeletionProtection,
    DiskTypeName,
    OneOf,
    Section,
    Zone,
)
from training_platform.config.spec.capacity import Capacity, ReservationRef, charged_as, reservation_conflicts
from training_platform.config.spec.node_options import GPU_ONLY, NodeOptions, included_gpus

_GPUS = tuple(gpu for gpu in ACCELERATORS.values() if gpu.attachment is not None)
_WITH_CHIPS = {
    name: machine
    for name, machine in MACHINE_TYPES.items()
    if machine.kind != "cpu" or any(gpu_counts(machine, gpu) for gpu in _GPUS)
}
MOST_SLICES = 100_000  # of a stack, with its pools: more than any project could hold, and each is a resource
_BLOCK, _HOST = "cloud.google.com/gce-topology", "kubernetes.io/hostname"
BLOCK_LEVELS = (f"{_BLOCK}-block", f"{_BLOCK}-subblock", f"{_BLOCK}-host", _HOST)
SLICE_LEVELS = ("cloud.google.com/gke-nodepool", _HOST)  # a slice over several VMs is a node pool of its own
_NO_FIELD, _LEAVE_OUT = "the field left out", "leave it out"
_IN_SLICES = {"max_nodes": "slices", "min_nodes": "min_slices"}  # what counts GPU VMs, and what counts slices
_SYSTEM = "n2-standard-8"
_HEADS = "n2-standard-64"  # Source: AI Hypercomputer docs, create a GKE cluster with Pathways, read 2026-11-22
_CPU_ONLY = {name: machine for name, machine in MACHINE_TYPES.items() if machine.kind == "cpu"}
AcceleratorMachineName = Annotated[str, OneOf("machine type with TPUs or GPUs", _WITH_CHIPS, MACHINE_TYPES)]
CpuMachineName = Annotated[str, OneOf("CPU-only machine type", _CPU_ONLY, MACHINE_TYPES, _SYSTEM)]


class BootDiskSpec(Section):
    """A boot disk."""

    type: DiskTypeName | None = Field(
        default=None, description="Disk type; default: the first that the machine type supports."
    )
    size_gb: int = Field(default=100, ge=1, description="Size in GB.")

    def type_on(self, machine: MachineType) -> str:
        """Return the type that a VM of ``machine`` gets: what the file says, or the machine type's default."""
        return self.type or machine.boot_disk_types[0]


class SystemPoolSpec(Section):
    """The node pool for everything but training: controllers, JupyterHub, system pods. It never scales to 0."""

    machine_type: CpuMachineName = Field(default=_SYSTEM, description="Machine type, without TPUs or GPUs.")
    min_nodes: int = Field(default=2, ge=1, description="Fewest VMs over all zones of the cluster.")
    max_nodes: int = Field(
        default=6, ge=1, description="Most VMs over all zones of the cluster; quota is charged for them."
    )
    boot_disk: BootDiskSpec = Field(default=BootDiskSpec(), description="Boot disks of the VMs.")

    @model_validator(mode="after")
    def _ordered(self) -> SystemPoolSpec:
        refuse_conflicts(above("min_nodes", self.min_nodes, "max_nodes", self.max_nodes))
        return self


class PathwaysPoolSpec(SystemPoolSpec):
    """The node pool for heads of Pathways jobs: each head has a VM to itself, and no other pods run there."""

    machine_type: CpuMachineName = Field(default=_HEADS, description="Machine type, without TPUs or GPUs.")
    min_nodes: int = Field(default=0, ge=0, description="Fewest VMs over all zones of the cluster.")
    max_nodes: int = Field(
        default=1,
        ge=1,
        description="Most VMs over all zones of the cluster, one for each running job; quota is charged for them.",
    )


class NodePoolSpec(NodeOptions):
    """A node pool with TPUs or GPUs; quota is charged for the most VMs that the autoscaler may create.

    A GPU pool counts VMs (``min_nodes``, ``max_nodes``); a TPU pool counts slices of one ``topology``
    (``min_slices``, ``slices``). A slice over several VMs becomes a GKE node pool of its own.
    """

    machine_type: AcceleratorMachineName = Field(description="Machine type.", examples=["a3-highgpu-8g"])
    zone: Zone | None = Field(default=None, description="Zone of the VMs; required in a regional cluster.")
    capacity: Capacity = Field(
        default="on-demand", description="Provisioning model; it decides which quota is charged."
    )
    reservation: ReservationRef | None = Field(
        default=None, description="Reservation that the VMs come from: its name, any, or in full."
    )
    topology: str | None = Field(
        default=None, description="TPU: topology of a slice, in chips; required.", examples=["4x8", "2x2x4"]
    )
    slices: int = Field(default=1, ge=1, le=MOST_SLICES, description="TPU: most slices of the pool.")
    min_slices: int = Field(default=0, ge=0, le=MOST_SLICES, description="TPU: slices that are always running.")
    max_nodes: int = Field(default=1, ge=1, description="GPU: most VMs; in a regional cluster without zone, per zone.")
    min_nodes: int = Field(
        default=0, ge=0, description="GPU: VMs that are always running; in a regional cluster without zone, per zone."
    )
    max_run_hours: int | None = Field(
        default=None, ge=1, description="flex-start and queued-provisioning: hours after which a VM is deleted."
    )
    boot_disk: BootDiskSpec = Field(default=BootDiskSpec(), description="Boot disks of the VMs.")
    labels: dict[str, str] = Field(
        default=NOTHING,
        description="Kubernetes labels of the nodes, beside those of GKE.",
        examples=[{"team": "vision"}],
    )
    deletion_protection: DeletionProtection = True

    @property
    def machine(self) -> MachineType:
        """The machine type's row in the catalogue, with the GPUs that are attached to it."""
        return as_asked(self.machine_type, self.accelerator, self.accelerator_count)

    @property
    def charged(self) -> ChargedCapacity:
        """The provisioning model that is charged."""
        return charged_as(self.capacity)

    @property
    def topology_levels(self) -> tuple[str, ...]:
        """Labels by which Kueue may place jobs on its nodes, the widest first; none where there are no such labels.

        Source: Cluster Toolkit v1.95.0 and xpk 367c838 for those of GPUs, read 2026; no source has them on A100.
        """
        if self.machine.hosts_of(self.topology) > 1:
            return SLICE_LEVELS
        return BLOCK_LEVELS if has_blocks(self.machine) else ()

    @model_validator(mode="after")
    def _fields_go_together(self) -> NodePoolSpec:
        refuse_conflicts(self._conflicts())
        return self

    def _conflicts(self) -> Iterator[Conflict]:
        own = MACHINE_TYPES[self.machine_type]
        tpu = own.kind == "tpu"
        yield from self._conflicts_of_attachment(own)
        wrong_counts = list(self._conflicts_of_counts(own))
        yield from wrong_counts
        if tpu:
            yield from self._conflicts_of_slices(own)
        if not wrong_counts:  # else the count that was meant is written in the other kind's field
            least, most = ("min_slices", "slices") if tpu else ("min_nodes", "max_nodes")
            yield from above(least, getattr(self, least), most, getattr(self, most))
        yield from reservation_conflicts(self.capacity, self.reservation)
        if self.topology_aware and not self.topology_levels:
            message = f"does not go with {own.name}, whose nodes have no labels of blocks, nor slices over several VMs"
            yield Conflict(("topology_aware",), message, _NO_FIELD, _LEAVE_OUT)

    def _conflicts_of_attachment(self, own: MachineType) -> Iterator[Conflict]:
        """Yield GPUs attached to a machine with chips of its own, and a machine without to which none are."""
        if own.kind == "cpu" and self.accelerator is None:
            names = [gpu.name for gpu in _GPUS]
            message = f"is missing: {own.name} does not include GPUs"
            yield Conflict(("accelerator",), message, ", ".join(names), f"accelerator: {names[0]}")
        yield from included_gpus(own, self.model_fields_set)

    def _conflicts_of_counts(self, own: MachineType) -> Iterator[Conflict]:
        """Yield counts of VMs for TPUs, and of slices for GPUs, with the counts that they would be."""
        if own.kind == "tpu":
            hosts = own.hosts_of(self.topology)
            counts = {nodes: f"{slices}: {-(-getattr(self, nodes) // hosts)}" for nodes, slices in _IN_SLICES.items()}
            message, allowed = "which has TPUs", "topology, slices and min_slices"
        else:
            counts = {slices: f"{nodes}: {getattr(self, slices)}" for nodes, slices in _IN_SLICES.items()}
            counts["topology"] = _LEAVE_OUT
            message, allowed = "which has GPUs", "min_nodes and max_nodes"
        for field, nearest in counts.items():
            if field in self.model_fields_set:
                yield Conflict((field,), f"does not go with {own.name}, {message}", allowed, nearest)

    def _conflicts_of_slices(self, own: MachineType) -> Iterator[Conflict]:
        """Yield settings of GPUs, and a missing topology."""
        for field in sorted(GPU_ONLY & self.model_fields_set):
            yield Conflict((field,), f"does not go with {own.name}, which has TPUs", _NO_FIELD, _LEAVE_OUT)
        if self.topology is None:
            smallest = next(legal_topologies(own), None)
            message = f"is missing: {own.name} has TPUs, and a slice needs a topology"
            yield Conflict(("topology",), message, topologies_text(own), f"topology: {smallest}" if smallest else None)
