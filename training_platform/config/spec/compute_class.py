"""Custom compute classes: an order of pools and machines in which GKE looks for nodes for a job.

A class is a flavor of its own in Kueue, ``class-{name}``: Kueue gives a job a share of the class, and GKE chooses among
its priorities. So all of them have to look alike to a job: the same chips or GPUs per VM, the same slice.
Source: GKE docs, about custom ComputeClasses; types of ``cloud.google.com/v1`` in GKE's cluster-autoscaler, both read
2026-11-21.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import Capacity as ChargedCapacity
from training_platform.config.reading.conflicts import Conflict, refuse_conflicts
from training_platform.config.reading.section import Name, Section, Zone, enumeration, one_of, unique
from training_platform.config.spec.capacity import ReservationRef, reservation_conflicts
from training_platform.config.spec.node_pool import BootDiskSpec, NodePoolSpec

_WITH_CHIPS = {name: machine for name, machine in MACHINE_TYPES.items() if machine.kind != "cpu"}


class Priority(Section):
    """One place where GKE looks for nodes: pools of this cluster, or machines for which it makes pools by itself."""

    node_pools: Annotated[tuple[Name, ...], AfterValidator(unique)] = Field(
        default=(), description="Pools of this cluster; excludes every other field."
    )
    machine_type: (
        Annotated[str, AfterValidator(one_of("machine type with TPUs or GPUs of its own", _WITH_CHIPS))] | None
    ) = Field(default=None, description="Makes pools of this type.")
    topology: str | None = Field(default=None, description="TPU: shape of a slice in chips.")
    capacity: ChargedCapacity = Field(default="on-demand", description="How the VMs are had.")
    reservation: ReservationRef | None = Field(default=None, description="Whose VMs it takes.")
    zones: Annotated[tuple[Zone, ...], AfterValidator(unique)] = Field(
        default=(), description="Zones of new pools; default: those of the cluster."
    )
    max_run_hours: int | None = Field(default=None, ge=1, description="Longest life of a VM.")
    max_wait_minutes: int | None = Field(
        default=None, ge=1, le=1440, description="flex-start and slices: how long GKE looks here before it goes on."
    )
    boot_disk: BootDiskSpec = BootDiskSpec()

    @model_validator(mode="after")
    def _pools_or_machines(self) -> Priority:
        if bool(self.node_pools) == (self.machine_type is not None) or (
            self.node_pools and self.model_fields_set != {"node_pools"}
        ):
            context = {"allowed": "node_pools alone, or machine_type with what goes with it", "nearest": None}
            raise PydanticCustomError("one_kind", "a priority is either of pools or of machines", context)
        refuse_conflicts(self._conflicts())
        return self

    def _conflicts(self) -> Iterator[Conflict]:
        if self.machine_type is not None and (MACHINE_TYPES[self.machine_type].kind == "tpu") != bool(self.topology):
            message = f"{self.machine_type} and its topology do not go together"
            yield Conflict(("topology",), message, "a topology for TPUs, none for GPUs")
        yield from reservation_conflicts(self.capacity, self.reservation)

    @property
    def names_reservation(self) -> bool:
        """Whether its VMs come from a reservation by name; GKE then takes zones beside that name, and nowhere else."""
        return self.reservation is not None and not self.reservation.any

    @property
    def as_pool(self) -> NodePoolSpec:
        """The pool that GKE would make of this priority, as a stack file would say it; for machines alone."""
        said = {"machine_type", "topology", "capacity", "reservation", "max_run_hours", "boot_disk"}
        given = {name: getattr(self, name) for name in said & self.model_fields_set}
        return NodePoolSpec(**given)


class ComputeClassSpec(Section):
    """Priorities in the order in which GKE tries them, and what it does besides."""

    priorities: tuple[Priority, ...] = Field(min_length=1, description="First tried first.")
    when_unsatisfiable: Literal["DoNotScaleUp", "ScaleUpAnyway"] = Field(
        default="DoNotScaleUp", description="With no priority left: wait, or take any node that would do."
    )
    active_migration: bool = Field(
        default=False, description="Move jobs to a better priority once it is free: stops what has no checkpoint."
    )
    consolidation_delay_minutes: int | None = Field(
        default=None, ge=1, le=1440, description="How long a node is idle before it goes; default: GKE's own."
    )

    @property
    def makes_pools(self) -> bool:
        """Whether GKE is to make pools for it."""
        return any(priority.machine_type for priority in self.priorities)

    @property
    def node_pools(self) -> tuple[str, ...]:
        """The cluster's pools that it uses, first tried first."""
        return tuple(pool for priority in self.priorities for pool in priority.node_pools)

    def members(self, name: str) -> Iterator[tuple[str, Priority]]:
        """Yield the names of its pools in order; what GKE makes is called ``{name}-{priority}`` after the class."""
        for index, priority in enumerate(self.priorities):
            for pool in priority.node_pools or (f"{name}-{index}",):
                yield pool, priority


class Shape(NamedTuple):
    """What a job sees of a pool: chips or GPUs per VM, how GPUs are shared, and for TPUs which ones, and the slice."""

    per_vm: int
    shared: str = ""
    tpu: str | None = None
    topology: str | None = None

    def __str__(self) -> str:
        """Return the shape as people read it."""
        if self.tpu is None:
            return f"VMs with {self.per_vm} GPUs{self.shared}"
        return f"{self.tpu} slices of {self.topology} with {self.per_vm} chips per VM"


def check_classes(classes: Mapping[str, ComputeClassSpec], pools: Mapping[str, NodePoolSpec]) -> None:
    """Refuse what a class says of pools that are not there, are another class's too, or look different to a job."""
    taken: dict[str, str] = {}
    for name, spec in classes.items():
        for index, priority in enumerate(spec.priorities):
            at = ("compute_classes", name, "priorities", index)
            for pool in priority.node_pools:
                if pool not in pools:
                    _refuse(f"{pool!r} is no pool of this cluster", enumeration(pools), find_nearest(pool, pools), at)
                if pool in taken:
                    _refuse(f"pool {pool} is in class {taken[pool]} already", "each pool once", None, at)
                taken[pool] = name
        shapes = list(dict.fromkeys(_shapes(spec, pools)))
        if len(shapes) > 1:
            message = f"its priorities differ to a job: {', and '.join(str(shape) for shape in shapes)}"
            _refuse(message, f"one shape, such as {shapes[0]}", None, ("compute_classes", name, "priorities"))


def class_of_pools(classes: Mapping[str, ComputeClassSpec]) -> dict[str, str]:
    """Return the class that each pool belongs to."""
    return {pool: name for name, spec in classes.items() for pool in spec.node_pools}


def _shapes(spec: ComputeClassSpec, pools: Mapping[str, NodePoolSpec]) -> Iterator[Shape]:
    for priority in spec.priorities:
        members = [pools[pool] for pool in priority.node_pools] if priority.node_pools else [priority.as_pool]
        yield from (_shape(member) for member in members)


def _shape(pool: NodePoolSpec) -> Shape:
    machine = pool.machine
    if machine.kind != "tpu" or machine.accelerator is None:
        sharing = f"{pool.sharing.strategy} by {pool.sharing.max_clients}" if pool.sharing else None
        return Shape(machine.chips, "".join(f", {how}" for how in (pool.partition, sharing) if how))
    return Shape(machine.chips, tpu=machine.accelerator.name, topology=pool.topology)


def _refuse(message: str, allowed: str, nearest: str | None, at: tuple[str | int, ...]) -> None:
    context = {"allowed": allowed, "nearest": nearest, "at": at}
    raise PydanticCustomError("compute_class", message.replace("{", "{{"), context)
