"""What a change does, for the JSON report: everything, with values as they are."""

from __future__ import annotations

from training_platform.catalog.types import Json
from training_platform.checks.comparison.comparison import Amount, Comparison, ResourceChange, StackChange


def changes_document(comparison: Comparison) -> Json:
    """Return a comparison as plain values; an amount is what it was, what it is, and null where that is not known."""
    return {
        "base": comparison.ref,
        "commit": comparison.commit,
        "other_stacks": comparison.others,
        "own_program": comparison.own_program,
        "unknown": comparison.unknown,
        "stacks": [_stack(stack) for stack in comparison.stacks],
        "quotas": [
            {
                "project": each.key.project,
                "service": each.key.service,
                "quota_id": each.key.quota_id,
                "location": each.key.location or None,
                "dimensions": dict(each.key.dimensions),
                "unit": each.unit,
                "used": _amount(each.used),
                "limit": _amount(each.limit),
            }
            for each in comparison.quotas
        ],
        "capacity": [
            {
                "environment": each.environment,
                "cluster": each.cluster,
                "flavor": each.flavor,
                "capacity": _amount(each.capacity),
                "promised": _amount(each.promised),
            }
            for each in comparison.capacity
        ],
    }


def _stack(stack: StackChange) -> Json:
    return {
        "name": stack.name,
        "kind": stack.kind,
        "was": stack.was,
        "unknown": stack.unknown,
        "resources": [_resource(each) for each in stack.resources],
        "accelerators": [
            {"region": each.region, "flavor": each.flavor, "unit": each.unit, "max": _amount(each.most)}
            for each in stack.accelerators
        ],
        "usd_per_hour": {"min": _amount(stack.least_usd, 4), "max": _amount(stack.most_usd, 4)},
    }


def _resource(resource: ResourceChange) -> Json:
    return {
        "kind": resource.kind,
        "type": resource.type,
        "name": resource.name,
        "protected": resource.protected,
        "inputs": [
            {"path": each.path, "old": each.old, "new": each.new, "replaces": each.forces} for each in resource.inputs
        ],
    }


def _amount(value: Amount, digits: int | None = None) -> dict[str, float | None]:
    def plain(number: float | None) -> float | None:
        return number if number is None or digits is None else round(number, digits)

    return {"before": plain(value.before), "after": plain(value.after)}
