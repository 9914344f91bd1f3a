"""Node pools of a cluster, their less common options, and VMs of Vertex AI."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES, ZONES
from training_platform.catalog.attachments import as_asked, gpu_counts
from training_platform.catalog.locations import region_of
from training_platform.catalog.provisioning_models import has_blocks
from training_platform.catalog.topologies import legal_topologies, topologies_text
from training_platform.catalog.types import ChargedCapacity, MachineType
from training_platform.config.model.capacity import Capacity, ReservationRef, charged_as, reservation_conflicts
from training_platform.config.reading.section import (
    DISK_IMAGE,
    NOTHING,
    Consistent,
    DeletionProtection,
    DiskTypeName,
    MachineTypeName,
    NamesWhere,
    NodeLabelKey,
    NodeLabelValue,
    OneOf,
    Problem,
    ProviderInputs,
    Section,
    Zone,
    above,
    refuse_conflicts,
    unique,
    unknown_name,
)

_ATTACHED = NamesWhere(ACCELERATORS, lambda gpu: gpu.attachment is not None)
_INCLUDED = "leave it out if the machine type includes its GPUs"
AttachedGpuName = Annotated[
    str, OneOf("GPU that is attached only to other machine types", _ATTACHED, instead=_INCLUDED)
]
GPU_ONLY = frozenset({"compact", "driver", "gpu_direct", "min_provision_nodes", "partition", "sharing"})


def included_gpus(machine: MachineType, written: set[str]) -> Iterator[Problem]:
    """Yield a problem for GPUs attached to a machine with built-in chips. ``written`` are the fields in the file."""
    if machine.kind != "cpu":
        chips = "TPUs" if machine.kind == "tpu" else "GPUs"
        for field in sorted({"accelerator", "accelerator_count"} & written):
            message = f"is not compatible with {machine.name}, which includes {chips}"
            yield Problem((field,), message, allowed="the field left out", nearest="leave it out")


class VmSpec(Section):
    """A VM of Vertex AI: a machine type, and the GPUs attached to it."""

    machine_type: MachineTypeName = Field(
        description="Machine type, including its GPUs.", examples=["a2-highgpu-1g", "n1-standard-8"]
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
        """The machine type's row in the catalogue, including attached GPUs."""
        return as_asked(self.machine_type, self.accelerator, self.accelerator_count)

    @property
    def title(self) -> str:
        """The machine type and the attached GPUs. VMs with the same title are equal."""
        gpus = f" with {self.accelerator_count} {self.accelerator}" if self.accelerator else ""
        return self.machine_type + gpus


class TaintSpec(Section):
    """A taint of the nodes. Jobs that Kueue admits tolerate the taints of their flavor."""

    value: NodeLabelValue = Field(description="Value of the taint.", examples=["vision"])
    effect: Literal["NO_SCHEDULE", "PREFER_NO_SCHEDULE", "NO_EXECUTE"] = Field(
        default="NO_SCHEDULE", description="What happens to pods that do not tolerate the taint."
    )


class GpuSharing(Section):
    """Sharing of one GPU by several pods. The team's quota then counts these shares of a GPU."""

    strategy: Literal["time-sharing", "mps"] = Field(default="time-sharing", description="How pods share a GPU.")
    max_clients: int = Field(
        ge=1, description="Number of pods that share one GPU, or one of its partitions.", examples=[4]
    )


class LocalSsdSpec(Section):
    """Local SSD. By default, the local SSD that the machine type includes is used for ephemeral storage."""

    count: int | None = Field(
        default=None,
        ge=1,
        description="Number of local SSD partitions per VM; default: the number that the machine type includes.",
    )
    use: Literal["ephemeral", "block"] = Field(
        default="ephemeral", description="ephemeral: storage for images and emptyDir volumes; block: raw block devices."
    )


class Upgrades(Section):
    """How GKE repairs and upgrades the VMs of a node pool. A multi-host TPU slice is always recreated as a whole."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "soak_minutes": "provider_inputs of the pool: "
        "{upgrade_settings: {blue_green_settings: {node_pool_soak_duration: 3600s}}}"
    }

    auto_repair: bool | None = Field(
        default=None,
        description="Repairs broken nodes. Default: true, but false for flex-start, which does not support repairs.",
    )
    auto_upgrade: bool = Field(default=True, description="Upgrades nodes. Clusters in a release channel require true.")
    strategy: Literal["surge", "blue-green"] = Field(default="surge", description="Upgrade strategy.")
    max_surge: int = Field(
        default=0,
        ge=0,
        description="surge: number of extra VMs during upgrades; they need quota, and free VMs in the reservation.",
    )
    max_unavailable: int = Field(
        default=1, ge=0, description="surge: number of VMs that may be down at the same time during upgrades."
    )

    @property
    def says_how(self) -> bool:
        """Whether the stack file sets the method of upgrades, as opposed to only enabling or disabling them."""
        return bool({"strategy", "max_surge", "max_unavailable"} & self.model_fields_set)


class NodeOptions(Consistent):
    """Options of a node pool: attached GPUs, GPUDirect, placement, local SSD, upgrades."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "confidential": "provider_inputs: {node_config: {confidential_nodes: ...}}",
        "hugepages": "provider_inputs: {node_config: {linux_node_config: {hugepages_config: ...}}}",
        "sysctls": "provider_inputs: {node_config: {linux_node_config: {sysctls: ...}}}",
    }
    accelerator: AttachedGpuName | None = Field(
        default=None, description="GPU to attach to a machine type that includes no GPUs."
    )
    accelerator_count: int = Field(default=1, ge=1, description="Number of GPUs to attach to each VM.")
    gpu_direct: bool = Field(
        default=True,
        description="Creates networks for GPUDirect, if the machine type supports it. Without them, use one VM per "
        "job.",
    )
    topology_aware: bool | None = Field(
        default=None,
        description="Lets Kueue choose the VMs of a job among existing VMs: GPUs close to each other, and whole TPU "
        "slices. Default: true for pools of several GPU VMs that are all always running.",
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
    sharing: GpuSharing | None = Field(
        default=None, description="GPU: lets several pods share a GPU; default: one pod per GPU."
    )
    local_ssd: LocalSsdSpec = Field(default=LocalSsdSpec(), description="Local SSD of each VM.")
    preload_images: tuple[Annotated[str, Field(pattern=DISK_IMAGE)], ...] = Field(
        default=(),
        description="Disk images with preloaded container images; each becomes a secondary boot disk.",
        examples=[["projects/example-train/global/images/torch"]],
    )
    max_pods: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of pods per VM; default: 16 on hosts of multi-host slices, otherwise 32.",
    )
    taints: dict[NodeLabelKey, TaintSpec] = Field(
        default=NOTHING, description="Taints of the nodes, keyed by taint key, in addition to GKE's taints."
    )
    upgrades: Upgrades = Field(default=Upgrades(), description="How GKE repairs and upgrades the nodes.")
    provider_inputs: ProviderInputs = Field(
        default=NOTHING,
        description="Inputs of the GKE node pool that have no field here, under their Python names in pulumi-gcp.",
        examples=[{"node_config": {"linux_node_config": {"sysctls": {"net.core.somaxconn": "4096"}}}}],
    )


_WITH_CHIPS = NamesWhere(
    MACHINE_TYPES,
    lambda machine: machine.kind != "cpu" or any(gpu_counts(machine, ACCELERATORS[gpu]) for gpu in _ATTACHED),
)
MOST_SLICES = 100_000  # of a stack, with its pools: more than any project could hold, and each is a resource
_BLOCK = "cloud.google.com/gce-topology"
_HOST = "kubernetes.io/hostname"
BLOCK_LEVELS = (f"{_BLOCK}-block", f"{_BLOCK}-subblock", f"{_BLOCK}-host", _HOST)
POOL_LABEL = "cloud.google.com/gke-nodepool"
SLICE_LEVELS = (POOL_LABEL, _HOST)  # a slice over several VMs is a node pool of its own
_NO_FIELD = "the field left out"
_LEAVE_OUT = "leave it out"
_IN_SLICES = {"max_nodes": "slices", "min_nodes": "min_slices"}  # what counts GPU VMs, and what counts slices
_SYSTEM = "n2-standard-8"
_HEADS = "n2-standard-64"  # Source: AI Hypercomputer docs, create a GKE cluster with Pathways, read 2026-11-22
_CPU_ONLY = NamesWhere(MACHINE_TYPES, lambda machine: machine.kind == "cpu")
_MOST_USUAL = 8  # chips of a VM: more GPUs are in a2-megagpu-16g alone


def usual_machines() -> dict[str, MachineType]:
    """Return the usual machine type of each accelerator, keyed by accelerator.

    If an accelerator has machine types for multi-host slices, it is one of these. Otherwise, it is the type with the
    most GPUs, up to 8.
    """

    def rank(machine: MachineType) -> tuple[bool, int, int]:
        return machine.multi_host, min(machine.chips, _MOST_USUAL), len(machine.capacities)

    usual: dict[str, MachineType] = {}  # of several that are alike, the first
    for machine in sorted(MACHINE_TYPES.values(), key=rank, reverse=True):
        if machine.accelerator is not None:
            usual.setdefault(machine.accelerator.name, machine)
    return usual


def _by_accelerator() -> dict[str, str]:
    """Return usual machine types, keyed by an accelerator's name or by the start of several names, such as ``a100``."""
    usual = {name: machine.name for name, machine in usual_machines().items()}
    stems = {name.rpartition("-")[0] for name in usual} - {*usual, "", "tpu"}
    alike = {stem: " or ".join(usual[name] for name in sorted(usual) if name.startswith(f"{stem}-")) for stem in stems}
    return {**alike, **usual, **{name.removeprefix("tpu-"): machine for name, machine in usual.items()}}


AcceleratorMachineName = Annotated[
    str,
    OneOf(
        "machine type with TPUs or GPUs",
        _WITH_CHIPS,
        names_elsewhere=MACHINE_TYPES,
        elsewhere="machine_type of the cluster's system_pool",
        called=_by_accelerator,
    ),
]
CpuMachineName = Annotated[
    str, OneOf("CPU-only machine type", _CPU_ONLY, names_elsewhere=MACHINE_TYPES, instead=_SYSTEM)
]


def _topology(value: str) -> str:
    """Return a topology unchanged. Raises PydanticCustomError if it is malformed, since flavors are named after it."""
    if not re.fullmatch(r"[1-9][0-9]*(x[1-9][0-9]*){0,2}", value):
        axes = "x".join(re.findall("[1-9][0-9]*", value))
        context = {"allowed": "the number of chips along each axis, such as 4x8 or 4x4x4", "nearest": axes or None}
        raise PydanticCustomError("malformed", f"{value!r} is not a topology".replace("{", "{{"), context)
    return value


class BootDiskSpec(Section):
    """A boot disk."""

    type: DiskTypeName | None = Field(
        default=None,
        description="Disk type; default: pd-balanced if the machine type supports it, otherwise the machine type's "
        "default.",
    )
    size_gb: int = Field(default=100, ge=1, description="Size in GB.")

    def type_on(self, machine: MachineType) -> str:
        """Return the type of the boot disk of a ``machine``: the type in the file, or the default."""
        balanced = "pd-balanced" if "pd-balanced" in machine.boot_disk_types else machine.boot_disk_types[0]
        return self.type or balanced


class CpuPoolSpec(Consistent):
    """A node pool without TPUs or GPUs, for work such as data preparation, evaluation, Ray heads and notebooks."""

    machine_type: CpuMachineName = Field(default=_SYSTEM, description="Machine type, without TPUs or GPUs.")
    min_nodes: int = Field(default=0, ge=0, description="Minimum number of VMs over all zones of the cluster.")
    max_nodes: int = Field(
        default=6, ge=1, description="Maximum number of VMs over all zones of the cluster; quota is charged for them."
    )
    boot_disk: BootDiskSpec = Field(default=BootDiskSpec(), description="Boot disks of the VMs.")

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem if the minimum number of VMs exceeds the maximum."""
        return above("min_nodes", self.min_nodes, "max_nodes", self.max_nodes)


class SystemPoolSpec(CpuPoolSpec):
    """The node pool for controllers, JupyterHub and GKE's own pods. It never scales to 0.

    In a cluster with ``cpu_pools``, no other pods run on it.
    """

    min_nodes: int = Field(default=2, ge=1, description="Minimum number of VMs over all zones of the cluster.")
    fallback_machine_types: Annotated[tuple[CpuMachineName, ...], AfterValidator(unique)] = Field(
        default=(),
        description="Machine types to use if machine_type is out of stock. Each becomes a separate node pool that "
        "starts empty and can grow to max_nodes; quota is charged for each.",
        examples=[["n2d-standard-8"]],
    )

    @property
    def fallbacks(self) -> Iterator["SystemPoolSpec"]:
        """The system pools with other machine types, in the file's order. GKE limits the size of each separately."""
        for machine_type in self.fallback_machine_types:
            yield self.model_copy(update={"machine_type": machine_type, "min_nodes": 0, "fallback_machine_types": ()})

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem if the minimum exceeds the maximum, or a fallback is the pool's own machine type."""
        yield from super().conflicts()
        if self.machine_type in self.fallback_machine_types:
            message = f"has {self.machine_type}, which is already machine_type"
            yield Problem(("fallback_machine_types",), message, allowed="other machine types", nearest="leave it out")


class PathwaysPoolSpec(CpuPoolSpec):
    """The node pool for the heads of Pathways jobs. Each head has its own VM, and no other pods run there."""

    machine_type: CpuMachineName = Field(default=_HEADS, description="Machine type, without TPUs or GPUs.")
    max_nodes: int = Field(
        default=1,
        ge=1,
        description="Maximum number of VMs over all zones of the cluster. Each running job needs one, and quota is "
        "charged for them.",
    )


class NodePoolSpec(NodeOptions):
    """A node pool with TPUs or GPUs. Quota is charged for the maximum number of VMs that the autoscaler may create.

    The size of a GPU pool is in VMs (``min_nodes``, ``max_nodes``). The size of a TPU pool is in slices of one
    ``topology`` (``min_slices``, ``slices``). A slice with several VMs becomes a separate GKE node pool.
    """

    machine_type: AcceleratorMachineName = Field(description="Machine type.", examples=["a3-highgpu-8g"])
    zone: Zone | None = Field(default=None, description="Zone of the VMs; required in a regional cluster.")
    capacity: Capacity = Field(
        default="on-demand", description="Provisioning model, which determines the quota that is charged."
    )
    reservation: ReservationRef | None = Field(
        default=None, description="Reservation that provides the VMs: its name, any, or a mapping with its fields."
    )
    topology: Annotated[str, AfterValidator(_topology)] | None = Field(
        default=None, description="TPU: topology of a slice, in chips; required.", examples=["4x8", "2x2x4"]
    )
    slices: int = Field(default=1, ge=1, le=MOST_SLICES, description="TPU: maximum number of slices.")
    min_slices: int = Field(
        default=0, ge=0, le=MOST_SLICES, description="TPU: number of slices that are always running."
    )
    max_nodes: int = Field(
        default=1,
        ge=1,
        description="GPU: maximum number of VMs (per zone if the cluster is regional and `zone` is not set).",
    )
    min_nodes: int = Field(
        default=0,
        ge=0,
        description="GPU: number of VMs that are always running (per zone if the cluster is "
        "regional and `zone` is not set).",
    )
    min_provision_nodes: int | None = Field(
        default=None,
        ge=1,
        description="GPU: how many of the min_nodes VMs must start when the pool is created; in a stock-out the "
        "others start later. Default: all. Removing this field recreates the node pool.",
    )
    max_run_hours: int | None = Field(
        default=None, ge=1, description="flex-start and queued-provisioning: hours after which a VM is deleted."
    )
    boot_disk: BootDiskSpec = Field(default=BootDiskSpec(), description="Boot disks of the VMs.")
    labels: dict[NodeLabelKey, NodeLabelValue] = Field(
        default=NOTHING,
        description="Kubernetes labels of the nodes, in addition to GKE's.",
        examples=[{"team": "vision"}],
    )
    deletion_protection: DeletionProtection = True

    @property
    def machine(self) -> MachineType:
        """The machine type's row in the catalogue, including attached GPUs."""
        return as_asked(self.machine_type, self.accelerator, self.accelerator_count)

    @property
    def charged(self) -> ChargedCapacity:
        """The provisioning model whose quota is charged."""
        return charged_as(self.capacity)

    @property
    def topology_levels(self) -> tuple[str, ...]:
        """The node labels that Kueue may use to place jobs, widest level first; empty if the nodes have none.

        Source for the labels of GPU nodes: Cluster Toolkit v1.95.0 and xpk 367c838, read 2026. No source has them on
        A100.
        """
        if self.machine.hosts_of(self.topology) > 1:
            return SLICE_LEVELS
        return BLOCK_LEVELS if has_blocks(self.machine) else ()

    @property
    def placed_by_default(self) -> bool:
        """Whether Kueue places jobs on the pool by default.

        It does so if it sees all VMs when it admits a job, and if their location matters for GPUs. TPUs are excluded,
        since a slice is a node pool and jobs always have whole slices. Queued VMs are excluded for two reasons:
        Google's page on topology-aware scheduling warns of capacity that is not placed densely, such as flex-start, and
        in Cluster Toolkit 1047080, the queue for queued provisioning has no topology. Both were read on 2026-11-24.
        """
        return self.min_nodes == self.max_nodes > 1 and self.topology_levels == BLOCK_LEVELS

    @field_validator("zone", mode="before")
    @classmethod
    def _zone_of_the_machine(cls, value: Any, info: ValidationInfo) -> Any:
        """Return a zone. For an unknown zone, the error names the nearest zone that offers the machine type."""
        machine = MACHINE_TYPES.get(info.data.get("machine_type", ""))
        if isinstance(value, str) and value not in ZONES and machine and machine.zones:
            here = [zone for zone in machine.zones if region_of(zone) == region_of(value)]
            raise unknown_name(f"zone with {machine.name}", value, here or machine.zones, machine.zones)
        return value

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each combination of fields that is not allowed."""
        machine = MACHINE_TYPES[self.machine_type]
        tpu = machine.kind == "tpu"
        yield from self._conflicts_of_attachment(machine)
        wrong_counts = list(self._conflicts_of_counts(machine))
        yield from wrong_counts
        if tpu:
            yield from self._conflicts_of_slices(machine)
        if not wrong_counts:  # else the count that was meant is written in the other kind's field
            minimum_field, maximum_field = ("min_slices", "slices") if tpu else ("min_nodes", "max_nodes")
            yield from above(minimum_field, getattr(self, minimum_field), maximum_field, getattr(self, maximum_field))
        if not tpu:
            yield from above("min_provision_nodes", self.min_provision_nodes or 0, "min_nodes", self.min_nodes)
        yield from reservation_conflicts(self.capacity, self.reservation)
        if self.topology_aware and not self.topology_levels:
            message = (
                f"is not compatible with {machine.name}, whose nodes have neither block labels nor slices of several "
                f"VMs"
            )
            yield Problem(("topology_aware",), message, allowed=_NO_FIELD, nearest=_LEAVE_OUT)
        if not tpu and "gpu_direct" in self.model_fields_set and self.gpu_direct and machine.gpudirect is None:
            message = f"is not compatible with {machine.name}, whose VMs do not support GPUDirect"
            yield Problem(("gpu_direct",), message, allowed=_NO_FIELD, nearest=_LEAVE_OUT)

    def _conflicts_of_attachment(self, machine: MachineType) -> Iterator[Problem]:
        """Yield a problem for GPUs attached to a machine with built-in chips, and for a machine without any GPUs."""
        if machine.kind == "cpu" and self.accelerator is None:
            names = list(_ATTACHED)
            message = f"is missing: {machine.name} does not include GPUs"
            yield Problem(("accelerator",), message, allowed=", ".join(names), nearest=f"accelerator: {names[0]}")
        yield from included_gpus(machine, self.model_fields_set)

    def _conflicts_of_counts(self, machine: MachineType) -> Iterator[Problem]:
        """Yield a problem for TPUs counted in VMs or GPUs counted in slices, with the corrected count."""
        if machine.kind == "tpu":
            hosts = machine.hosts_of(self.topology)
            counts = {nodes: f"{slices}: {-(-getattr(self, nodes) // hosts)}" for nodes, slices in _IN_SLICES.items()}
            message = "which has TPUs"
            allowed = "topology, slices and min_slices"
        else:
            counts = {slices: f"{nodes}: {getattr(self, slices)}" for nodes, slices in _IN_SLICES.items()}
            counts["topology"] = _LEAVE_OUT
            message = "which has GPUs"
            allowed = "min_nodes and max_nodes"
        for field, nearest in counts.items():
            if field in self.model_fields_set:
                yield Problem(
                    (field,), f"is not compatible with {machine.name}, {message}", allowed=allowed, nearest=nearest
                )

    def _conflicts_of_slices(self, machine: MachineType) -> Iterator[Problem]:
        """Yield a problem for each GPU setting in a pool with TPUs, and for a missing topology."""
        for field in sorted(GPU_ONLY & self.model_fields_set):
            yield Problem(
                (field,),
                f"is not compatible with {machine.name}, which has TPUs",
                allowed=_NO_FIELD,
                nearest=_LEAVE_OUT,
            )
        if self.topology is None:
            smallest = next(legal_topologies(machine), None)
            message = f"is missing: {machine.name} has TPUs, and a slice needs a topology"
            yield Problem(
                ("topology",),
                message,
                allowed=topologies_text(machine),
                nearest=f"topology: {smallest}" if smallest else None,
            )
