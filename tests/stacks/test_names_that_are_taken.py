"""What is replaced in its place, under a name that it keeps, goes before the new one comes: the name is taken."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tests.stacks.test_reach import ENVIRONMENT, TEAM, planned
from training_platform.catalog import replacements
from training_platform.resources.planned import Planned
from training_platform.resources.register import REGISTER

NEVER_CHANGED: Mapping[str, set[str]] = {
    "gcp:compute/network:Network": {"autoCreateSubnetworks"},
    "gcp:compute/address:Address": {"addressType", "description"},
}
"""Inputs that no field of a stack file changes: the VPC and its addresses go with their project alone."""


def _named(resource: Planned) -> tuple[str, ...]:
    """Return the inputs that a resource's full name is made of; none where Pulumi names it, or Google Cloud."""
    of_type = REGISTER.get(resource.type)
    names = tuple(re.findall(r"{(\w+)}", of_type.import_id or "")) if of_type else ()
    return names if names and names[-1] in resource.inputs else ()


def _in_its_place(resource: Planned) -> Iterator[str]:
    """Yield the inputs whose change replaces a resource, and leaves its full name."""
    for field in replacements.fields(resource.type):
        first = re.split(r"[.\[]", field)[0]
        if first in resource.inputs and first not in _named(resource):
            yield first


def test_what_keeps_its_name_is_deleted_before_it_is_replaced() -> None:
    found: dict[str, set[str]] = {}
    for stack in ("env", "team"):
        for each in planned(ENVIRONMENT, TEAM, stack).resources:
            if _named(each) and not each.options.get("deleteBeforeReplace") and (inputs := set(_in_its_place(each))):
                found.setdefault(each.type, set()).update(inputs)

    assert found == NEVER_CHANGED
