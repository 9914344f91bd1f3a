"""Views of custom compute classes: orders in which GKE looks for nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import Capacity, MachineType
from training_platform.rules.views.view import Settings

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
        """How VMs are had that GKE makes for it."""
        if self.flex_start:
            return "flex-start"
        if self.spot:
            return "spot"
        return "reservation" if self.affinity in ONLY_RESERVED else "on-demand"


@dataclass(frozen=True, kw_only=True)
class ComputeClass(Settings):
    """A custom compute class; ``makes_pools`` says whether GKE makes pools for it."""

    compute_class: str | None
    makes_pools: bool
    priorities: tuple[ClassPriority, ...]
