"""Custom compute classes: node pools and machines in the order in which GKE tries them for a job.

In Kueue, each class is a separate flavor, ``class-{name}``. Kueue gives a job a share of the class, and GKE chooses one
of its priorities. So all priorities must offer a job the same: as many chips or GPUs per VM, and the same slice.
Source: GKE docs, about custom ComputeClasses; types of ``cloud.google.com/v1`` in GKE's cluster-autoscaler, both read
2026-11-21.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import ChargedCapacity
from training_platform.config.model.capacity import ReservationRef, reservation_conflicts
from training_platform.config.model.node_pool import BootDiskSpec, NodePoolSpec
from training_platform.config.reading.section import (
    Name,
    NamesWhere,
    OneOf,
    Problem,
    Section,
    Zone,
    enumeration,
    refuse_conflicts,
    unique,
)

_WITH_CHIPS = NamesWhere(MACHINE_TYPES, lambda machine: machine.kind != "cpu")


class Priority(Section):
    """A source of nodes that GKE tries: node pools of this cluster, or machines for which it creates node pools."""

    node_pools: Annotated[tuple[Name, ...], AfterValidator(unique)] = Field(
        default=(), description="Node pools of this cluster; excludes every other field."
    )
    machine_type: Annotated[str, OneOf("machine type that includes TPUs or GPUs", _WITH_CHIPS)] | None = Field(
        default=None, description="GKE creates node pools of this machine type.", examples=["a3-highgpu-8g"]
    )
    topology: str | None = Field(default=None, description="TPU: topology of a slice.", examples=["4x8"])
    capacity: ChargedCapacity = Field(default="on-demand", description="Provisioning model of the VMs.")
    reservation: ReservationRef | None = Field(
        default=None, description="Reservation that provides the VMs: its name, any, or a mapping with its fields."
    )
    zones: Annotated[tuple[Zone, ...], AfterValidator(unique)] = Field(
        default=(), description="Zones of the node pools that GKE creates; default: the zones of the cluster."
    )
    max_run_hours: int | None = Field(default=None, ge=1, description="Hours after which a VM is deleted.")
    max_wait_minutes: int | None = Field(
        default=None,
        ge=1,
        le=1440,
        description="flex-start VMs and slices: minutes after which GKE tries the next priority.",
    )
    boot_disk: BootDiskSpec = Field(default=BootDiskSpec(), description="Boot disks of the VMs.")

    @model_validator(mode="after")
    def _pools_or_machines(self) -> Self:
        if bool(self.node_pools) == (self.machine_type is not None) or (
            self.node_pools and self.model_fields_set != {"node_pools"}
        ):
            context = {"allowed": "only node_pools, or machine_type with its fields", "nearest": None}
            raise PydanticCustomError("one_kind", "a priority has either node pools or a machine type", context)
        refuse_conflicts(self._conflicts())
        return self

    def _conflicts(self) -> Iterator[Problem]:
        if self.machine_type is not None and (MACHINE_TYPES[self.machine_type].kind == "tpu") != bool(self.topology):
            message = (
                f"is missing: {self.machine_type} has TPUs"
                if self.topology is None
                else f"is not compatible with {self.machine_type}, which has GPUs"
            )
            yield Problem(("topology",), message, allowed="a topology for TPUs only")
        yield from reservation_conflicts(self.capacity, self.reservation)

    @property
    def names_reservation(self) -> bool:
        """Whether the VMs come from a reservation that has a name. GKE accepts zones only together with such a name."""
        return self.reservation is not None and not self.reservation.any

    @property
    def as_pool(self) -> NodePoolSpec:
        """The node pool that GKE would create, as a stack file would declare it. Only if there is a machine type."""
        shared = {"machine_type", "topology", "capacity", "reservation", "max_run_hours", "boot_disk"}
        return NodePoolSpec(**{name: getattr(self, name) for name in shared & self.model_fields_set})


class ComputeClassSpec(Section):
    """A custom compute class: priorities in the order in which GKE tries them."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "when_unsatisfiable": "your own ComputeClass in own_resources.py: docs/own-resources.md",
        "consolidation_delay_minutes": "your own ComputeClass in own_resources.py: docs/own-resources.md",
    }

    priorities: tuple[Priority, ...] = Field(
        min_length=1,
        description="Node pools and machine types, in the order in which GKE tries them.",
        examples=[[{"node_pools": ["h100"]}]],
    )
    active_migration: bool = Field(
        default=False,
        description="Moves jobs to an earlier priority once it has nodes. A job without checkpoints then loses its "
        "progress.",
    )

    @property
    def makes_pools(self) -> bool:
        """Whether GKE creates node pools for the class."""
        return any(priority.machine_type for priority in self.priorities)

    @property
    def node_pools(self) -> tuple[str, ...]:
        """The cluster's pools that the class uses, in the order in which GKE tries them."""
        return tuple(pool for priority in self.priorities for pool in priority.node_pools)

    def members(self, name: str) -> Iterator[tuple[str, Priority]]:
        """Yield each of the node pools with its priority. Pools that GKE creates are named ``{class}-{priority}``."""
        for index, priority in enumerate(self.priorities):
            for pool in priority.node_pools or (f"{name}-{index}",):
                yield pool, priority


class VmShape(NamedTuple):
    """The properties of a pool that matter to a job: chips or GPUs per VM, GPU sharing, TPU type and topology."""

    per_vm: int
    shared: str = ""
    tpu: str | None = None
    topology: str | None = None

    def __str__(self) -> str:
        """Return the properties as text for messages."""
        if self.tpu is None:
            return f"VMs with {self.per_vm} GPUs{self.shared}"
        return f"{self.tpu} slices of {self.topology} with {self.per_vm} chips per VM"


def check_classes(classes: Mapping[str, ComputeClassSpec], pools: Mapping[str, NodePoolSpec]) -> None:
    """Raise an error for a pool that does not exist or is in two classes, or a class whose VMs differ for a job."""
    taken: dict[str, str] = {}
    for name, spec in classes.items():
        for index, priority in enumerate(spec.priorities):
            path = ("compute_classes", name, "priorities", index)
            for pool in priority.node_pools:
                if pool not in pools:
                    message = f"{pool!r} is not a node pool of this cluster"
                    _refuse(message, enumeration(pools), find_nearest(pool, pools), path)
                if pool in taken:
                    message = f"node pool {pool} is already in compute class {taken[pool]}"
                    _refuse(message, "each node pool in one class", None, path)
                taken[pool] = name
        alike = ([pools[pool] for pool in row.node_pools] or [row.as_pool] for row in spec.priorities)
        shapes = list(dict.fromkeys(_shape(member) for members in alike for member in members))
        if len(shapes) > 1:
            message = f"has priorities whose VMs differ for a job: {', and '.join(str(shape) for shape in shapes)}"
            _refuse(message, f"one shape, such as {shapes[0]}", None, ("compute_classes", name, "priorities"))


def class_of_pools(classes: Mapping[str, ComputeClassSpec]) -> dict[str, str]:
    """Return the compute class of each pool, keyed by pool."""
    return {pool: name for name, spec in classes.items() for pool in spec.node_pools}


def _shape(pool: NodePoolSpec) -> VmShape:
    machine = pool.machine
    if machine.kind != "tpu" or machine.accelerator is None:
        sharing = f"{pool.sharing.strategy} by {pool.sharing.max_clients}" if pool.sharing else None
        return VmShape(machine.chips, "".join(f", {how}" for how in (pool.partition, sharing) if how))
    return VmShape(machine.chips, tpu=machine.accelerator.name, topology=pool.topology)


def _refuse(message: str, allowed: str, nearest: str | None, path: tuple[str | int, ...]) -> None:
    context = {"allowed": allowed, "nearest": nearest, "at": path}
    raise PydanticCustomError("compute_class", message.replace("{", "{{"), context)
