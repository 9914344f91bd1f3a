"""Finds boot disks and regions that a machine does not support, for rules on pools, persistent resources and jobs."""

from __future__ import annotations

from typing import NamedTuple

from training_platform.catalog import DISK_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import BootDiskLimits, MachineType

_PREFERRED = ("pd-balanced", "hyperdisk-balanced", "pd-ssd")


class RefusedValue(NamedTuple):
    """What is wrong with a value, the allowed values, and the nearest allowed value."""

    message: str
    allowed: str
    nearest: object


def refused_disk_size(size_gb: int, limits: BootDiskLimits) -> RefusedValue | None:
    """Return what is wrong with the size of a boot disk, in GB as the API counts them; None if it is allowed."""
    if limits.min_gb <= size_gb <= limits.max_gb:
        return None
    nearest = min(max(size_gb, limits.min_gb), limits.max_gb)
    return RefusedValue(f"is {size_gb:,} GB", f"{limits.min_gb:,} to {limits.max_gb:,} GB", nearest=nearest)


def refused_disk_type(machine_type: str, disk_type: str, types: tuple[str, ...]) -> RefusedValue | None:
    """Return what is wrong with the type of a boot disk. ``types`` are the disk types the machine can boot from."""
    if disk_type in types:
        return None
    nearest = next((name for name in (*_PREFERRED, *types) if name in types), None)
    return RefusedValue(f"{machine_type} cannot boot from {disk_type}", ", ".join(types), nearest=nearest)


def vertex_disk_types(machine: MachineType | None) -> tuple[str, ...]:
    """Return the disk types from which a machine can boot on Vertex AI; all disk types for an unknown machine."""
    types = machine.boot_disk_types if machine else tuple(DISK_TYPES)
    return tuple(name for name in types if name in DISK_TYPES and DISK_TYPES[name].vertex_boot)


def unlisted_region(machine: MachineType | None, region: str) -> RefusedValue | None:
    """Return what is wrong with a region in which Vertex AI does not list the machine's accelerator."""
    accelerator = machine.accelerator if machine else None
    support = accelerator.vertex if accelerator else None
    if not accelerator or not support or region in support.regions:
        return None
    message = f"{accelerator.title} is not listed for training in {region} ({support.source})"
    return RefusedValue(message, ", ".join(support.regions), nearest=find_nearest(region, support.regions))
