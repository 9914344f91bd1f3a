"""Views of compute classes from the inputs of pulumi-kubernetes, which are the objects themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from training_platform.resources.planned import UNKNOWN
from training_platform.rules.adapters.inputs import Inputs, Resource, either
from training_platform.rules.views.compute_class import ClassPriority, ComputeClass
from training_platform.rules.views.view import View


def compute_class(resource: Resource) -> Iterator[View]:
    """Yield the view of a ComputeClass."""
    inputs = resource.inputs
    rows = inputs.get("spec", "priorities")
    default = inputs.count("spec", "priorityDefaults", "location", "zones")
    listed: list[Any] = [_priority(each, default) for each in inputs.items("spec", "priorities")]
    known = rows is not UNKNOWN and not any(part is UNKNOWN for row in listed for part in row)
    yield ComputeClass(
        **resource.head,
        compute_class=inputs.text("metadata", "name"),
        makes_pools=inputs.flag("spec", "nodePoolAutoCreation", "enabled", default=False),
        priorities=tuple(listed) if known else UNKNOWN,  # type: ignore[arg-type]
    )


def _priority(row: Inputs, zones: Any) -> ClassPriority:
    own = row.get("location")
    return ClassPriority(
        written=tuple(sorted(row.value)) if isinstance(row.value, dict) else UNKNOWN,  # type: ignore[arg-type]
        node_pools=row.texts("nodepools"),
        machine_type=row.text("machineType"),
        spot=row.flag("spot", default=False),
        flex_start=row.flag("flexStart", "enabled", default=False),
        affinity=row.text("reservations", "affinity"),
        reservations=row.count("reservations", "specific"),
        tpu=row.get("tpu") is not None,
        accelerator=either(row.text("tpu", "type"), row.text("gpu", "type")),
        wait_seconds=row.whole("capacityCheckWaitTimeSeconds"),
        zones=zones if own is None and row.get("nodepools") is None else row.count("location", "zones"),
    )
