"""Custom compute classes: orders in which GKE looks for nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import Capacity, MachineType
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.register import COMPUTE_CLASS
from training_platform.views import fields
from training_platform.views import inputs as of
from training_platform.views.inputs import at, keys, rows
from training_platform.views.view import Settings

ONLY_RESERVED = ("Specific", "AnyThenFail")  # affinities that never fall back to on-demand VMs


class ClassPriority(NamedTuple):
    """One priority as the object has it; ``written`` lists its fields, ``reservations`` counts those by name.

    ``accelerator`` is the TPU or GPU type as GKE spells it, ``wait_seconds`` how long GKE looks here before it goes on,
    ``zones`` counts those of its location, the class's default one included.
    """

    written: tuple[str, ...]
    node_pools: tuple[str, ...]
    machine_type: str | None
    spot: bool
    flex_start: bool
    affinity: str | None
    reservations: int
    tpu: bool
    accelerator: str | None
    wait_seconds: int | None
    zones: int = 0

    @property
    def machine(self) -> MachineType | None:
        """The machine type's row in the catalogue."""
        return MACHINE_TYPES.get(self.machine_type or "")

    @property
    def capacity(self) -> Capacity:
        """The provisioning model of VMs that GKE makes for it."""
        if self.flex_start:
            return "flex-start"
        if self.spot:
            return "spot"
        return "reservation" if self.affinity in ONLY_RESERVED else "on-demand"


class ComputeClassView(Settings):
    """A custom compute class; ``makes_pools`` says whether GKE makes pools for it."""

    TYPES = (COMPUTE_CLASS,)

    compute_class = fields.text("metadata.name")
    makes_pools = fields.flag("spec.nodePoolAutoCreation.enabled", default=False)

    @fields.field("spec.priorities")
    def priorities(self) -> tuple[ClassPriority, ...]:
        """In the order in which GKE looks; a zone of the class's own defaults holds where a priority says no place."""
        zones = of.as_count(self.read("spec.priorityDefaults.location.zones"))
        found = tuple(_priority(row, zones) for row in rows(self.read("spec.priorities")))
        if any(part is UNKNOWN for row in found for part in row):
            raise of.NotKnownError
        return found


def _priority(row: Any, zones: Any) -> ClassPriority:
    def value(path: str) -> Any:
        return at(row, keys(path))

    tpu = of.as_text(value("tpu.type"))
    elsewhere = value("location") is not None or value("nodepools") is not None
    return ClassPriority(
        written=tuple(sorted(row)) if isinstance(row, dict) else UNKNOWN,
        node_pools=of.as_texts(value("nodepools")),
        machine_type=of.as_text(value("machineType")),
        spot=of.as_flag(value("spot")) or False,
        flex_start=of.as_flag(value("flexStart.enabled")) or False,
        affinity=of.as_text(value("reservations.affinity")),
        reservations=of.as_count(value("reservations.specific")),
        tpu=value("tpu") is not None,
        accelerator=of.as_text(value("gpu.type")) if tpu is None else tpu,
        wait_seconds=of.as_whole(value("capacityCheckWaitTimeSeconds")),
        zones=of.as_count(value("location.zones")) if elsewhere else zones,
    )
