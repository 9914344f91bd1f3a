"""Labels: whose a resource is, on the bill and in every list."""

from __future__ import annotations

from collections.abc import Iterator

from modules.rules.registry import Draft, finding, rule
from modules.rules.view import Program
from modules.rules.views import Labelled


@rule("labels", ruleset="labels", owner="house", source="house rule: costs are told by environment and team")
def labels(resource: Labelled, program: Program) -> Iterator[Draft]:
    """Find a resource that takes labels and does not carry its environment's and its team's."""
    wanted = {"environment": program.environment} | ({"team": program.team} if program.team else {})
    found = resource.labels or {}
    for key, value in wanted.items():
        if found.get(key) != value:
            said = f"is {found[key]!r}" if key in found else "is missing"
            message = f"label {key} {said} on {resource.type.rpartition(':')[2]} {resource.name}"
            yield finding(resource, "labels", message, allowed=value, nearest=f"{key}: {value}")
