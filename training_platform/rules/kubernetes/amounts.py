"""Amounts that the API server compares in one object: of volumes, claims, quotas and limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from training_platform.rules.kubernetes.objects import Json, Wrong, block, entries, object_rule, text, texts, twice
from training_platform.rules.kubernetes.pods import SERVER, quantity

_AT = {"core:PersistentVolumeClaim": "spec.resources.requests", "core:PersistentVolume": "spec.capacity"}
_OF_PODS = ("cpu", "limits.cpu", "limits.memory", "memory", "pods", "requests.cpu", "requests.memory")
_COUNTED = {"BestEffort": ("pods",), "VolumeAttributesClass": ("persistentvolumeclaims", "requests.storage")}
_OPPOSITE = {"NotBestEffort": "BestEffort", "NotTerminating": "Terminating"}
_MEASURED = re.compile(r"(^|\.)(cpu|memory|(ephemeral-)?storage|hugepages-.+)$")  # other quotas count things


@object_rule("volume-amount", *_AT, ruleset="objects", source=SERVER)
def volume_amount(inputs: Json) -> Iterator[Wrong]:
    """Find a volume or a claim of no size."""
    for path in _AT.values():
        amount = block(inputs, *path.split(".")).get("storage")
        size = quantity(amount)
        if size is not None and size <= 0:
            yield Wrong(f"{path}.storage", f"is {amount}", "more than 0", "1Gi")


@object_rule("quota-amount", "core:ResourceQuota", ruleset="objects", source=SERVER)
def quota_amount(inputs: Json) -> Iterator[Wrong]:
    """Find a quota of a namespace below 0, and a part of a thing that is counted."""
    for name, amount in block(inputs, "spec", "hard").items():
        size = quantity(amount)
        if size is not None and size < 0:
            yield Wrong("spec.hard", f"{name} is {amount}", "at least 0", "0")
        elif size is not None and size % 1 and not _MEASURED.search(name):
            yield Wrong("spec.hard", f"{name} is {amount}, but they are counted", "a whole number")


@object_rule("quota-scope", "core:ResourceQuota", ruleset="objects", source=SERVER)
def quota_scope(inputs: Json) -> Iterator[Wrong]:
    """Find a quota whose scope does not count what it limits, or excludes another of its scopes."""
    spec = block(inputs, "spec")
    selected = entries(block(spec, "scopeSelector"), "matchExpressions")
    scopes = [("spec.scopes", scope) for scope in texts(spec, "scopes")]
    scopes += [
        (f"spec.scopeSelector.matchExpressions[{n}].scopeName", text(row, "scopeName") or "") for n, row in selected
    ]
    for path, scope in scopes:
        counted = _COUNTED.get(scope, _OF_PODS)
        for name in block(spec, "hard"):
            if "/" not in name and name not in counted:
                yield Wrong(path, f"{scope} does not count {name}, which spec.hard limits", ", ".join(counted))
        if (path, _OPPOSITE.get(scope)) in scopes:
            yield Wrong(path, f"there are both {_OPPOSITE[scope]} and {scope}", "one of them")


@object_rule("limit-range", "core:LimitRange", ruleset="objects", source=SERVER)
def limit_range(inputs: Json) -> Iterator[Wrong]:
    """Find limits of a namespace that are out of order, and two for one kind of thing."""
    rows = entries(block(inputs, "spec"), "limits")
    for index, kind in twice([text(row, "type") for _, row in rows]):
        yield Wrong(f"spec.limits[{index}].type", f"there are two limits of type {kind}", "one for each type")
    order = ("min", "defaultRequest", "default", "max")
    for index, row in rows:
        for low, high in pairwise(order):
            for name, amount in block(row, low).items():
                least, most = quantity(amount), quantity(block(row, high).get(name))
                if least is not None and most is not None and least > most:
                    message = f"{low} of {name}, {amount}, is above {high}"
                    yield Wrong(f"spec.limits[{index}].{low}", message, f"at most {block(row, high)[name]}")
