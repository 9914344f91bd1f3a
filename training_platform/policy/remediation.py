"""Values with one right answer, put in their place where a policy's enforcement level is ``remediate``.

Properties are changed where they stand, so that what is unknown or secret in them stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from training_platform.catalog import MACHINE_TYPES
from training_platform.resources.register import NODE_POOL, labels_path
from training_platform.rules import Program

Properties = MutableMapping[str, Any]  # what the SDK gives is no MutableMapping, and takes new values all the same
Fix = Callable[[str, Properties, Program], bool]


def fix_labels(resource_type: str, properties: Properties, program: Program) -> bool:
    """Set the labels that tell whose a resource is, and return whether it could be done."""
    inner = properties
    for name in labels_path(resource_type) or ():
        if name not in inner:
            inner[name] = {}
        inner = inner[name]
    inner["environment"] = program.environment
    if program.team:
        inner["team"] = program.team
    return True


def fix_boot_disk_type(resource_type: str, properties: Properties, _program: Program) -> bool:
    """Set the disk type of a node pool whose machine boots from one type alone, and return whether that was so."""
    if resource_type != NODE_POOL:
        return False
    node = properties["nodeConfig"]
    types = MACHINE_TYPES[node["machineType"]].boot_disk_types
    if len(types) != 1:
        return False
    for place in (node, node.get("bootDisk")):
        if place is not None and "diskType" in place:
            place["diskType"] = types[0]
    return True


FIXES: Mapping[str, tuple[str, Fix]] = {
    "labels": ("labels", fix_labels),
    "disks": ("boot-disk-type", fix_boot_disk_type),
}
"""By policy: the rule that has one right answer, and what puts it in its place."""
