"""Labels: whose a resource is, on the bill and in every list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.access import LabelledView
from training_platform.views.program import Program

MOST_LABELS = 64
_KEY = re.compile(r"(?=.{1,63}\Z)[a-z][a-z0-9_-]*\Z")
_VALUE = re.compile(r"[a-z0-9_-]{0,63}\Z")


@rule("labels", ruleset="labels", owner="house", source="house rule: costs are told by environment and team")
def labels(resource: LabelledView, program: Program) -> Iterator[Draft]:
    """Find a resource that supports labels but lacks those of its environment and team."""
    found, wanted = resource.labels or {}, program.once(_wanted)
    if wanted.items() <= found.items():
        return
    for key, value in wanted.items():
        if found.get(key) != value:
            said = f"is {found[key]!r}" if key in found else "is missing"
            message = f"label {key} {said} on {resource.type.rpartition(':')[2]} {resource.name}"
            yield finding(resource, "labels", message, allowed=value, nearest=f"{key}: {value}")


def _wanted(program: Program) -> dict[str, str]:
    return {"environment": program.environment} | ({"team": program.team} if program.team else {})


@rule("label-form", ruleset="labels", facts=("NAM-03",), source="Resource Manager docs, labels; GKE resource_labels")
def label_form(resource: LabelledView) -> Iterator[Draft]:
    """Find labels that Google Cloud does not accept: lower-case letters, at most 63 characters each, 64 labels in all.

    Letters of other scripts, which Google Cloud takes, are passed over.
    """
    found = resource.labels or {}
    if len(found) > MOST_LABELS:
        yield finding(resource, "labels", f"{resource.name} has {len(found)} labels", allowed=f"at most {MOST_LABELS}")
    for key, value in found.items():
        if not _is_key(key):
            nearest = re.sub(r"[^a-z0-9_-]", "-", key.lower())[:63]
            yield finding(
                resource,
                "labels",
                f"label {key}",
                allowed="a lower-case letter first, at most 63 characters",
                nearest=nearest,
            )
        if not _is_value(value):
            nearest = re.sub(r"[^a-z0-9_-]", "-", value.lower())[:63]
            yield finding(
                resource,
                "labels",
                f"label {key} is {value}",
                allowed="lower-case letters, digits, - and _; at most 63",
                nearest=nearest,
            )


@lru_cache(maxsize=4096)  # the same few labels are on every resource
def _is_key(key: str) -> bool:
    return not key.isascii() or _KEY.match(key) is not None


@lru_cache(maxsize=4096)
def _is_value(value: str) -> bool:
    return not value.isascii() or _VALUE.match(value) is not None
