"""A plan in brief: how many resources of each type, and the few inputs that cost money or lose data when wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.plans import PlannedStack
from training_platform.resources.resource_types import RESOURCE_TYPES
from training_platform.resources.stack_resource import UNKNOWN


def inventory(plan: PlannedStack) -> str:
    """Return the inventory of a plan as YAML."""
    counts = Counter(resource.type for resource in plan.resources if resource.custom)
    inputs = {}
    for resource in sorted(plan.resources, key=lambda planned: planned.key):
        chosen = _chosen(resource.type, resource.inputs)
        if chosen:
            inputs[f"{resource.type} {resource.name}"] = chosen
    document = {
        "resources": sum(counts.values()),
        "counts": dict(sorted(counts.items())),
        "protected": sorted(
            f"{resource.type} {resource.name}" for resource in plan.resources if resource.options.get("protect")
        ),
        "inputs": inputs,
        "outputs": sorted(plan.outputs),
    }
    head = "# Written by `make inventories`; a change here is a change of what the stack creates.\n"
    return head + str(yaml.safe_dump(document, sort_keys=False, width=120))


def _chosen(resource_type: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    row = RESOURCE_TYPES.get(resource_type)
    if row is None:
        return {}
    values = {path: _at(inputs, path) for path in row.shown}
    return {path: _plain(value) for path, value in values.items() if value is not None}


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _plain(value: Any) -> Any:
    if value is UNKNOWN:
        return "(unknown)"
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in sorted(value.items())}
    return [_plain(item) for item in value] if isinstance(value, list) else value
