"""The catalogue: facts about Google Cloud and in-cluster software that models, quotas and rules rest on.

The facts are data files in ``data/``; the first of these names that somebody reads loads them all, once, into ordinary
dicts and sets. ``REGIONS`` and ``ZONES`` age: a location may be newer than ``LOCATIONS_READ``, so its absence is worth
a warning, never a refusal. ``GENERAL_QUOTAS`` holds the quotas that no family owns, by short name; ``QUOTAS`` is
everything known of any quota, by its id, with the id's source and whether it is certain.

GPUs that are attached to CPU machines (T4, V100) have no row in ``MACHINE_TYPES``: ``catalog.attachments``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from training_platform.catalog.types import (
        Accelerator,
        BootDiskLimits,
        Chart,
        DiskType,
        FilestoreTier,
        MachineType,
        Quota,
        QuotaId,
    )

__all__ = [
    "ACCELERATORS",
    "BOOT_DISK_LIMITS",
    "CHARTS",
    "DISK_TYPES",
    "FILESTORE_TIERS",
    "GENERAL_QUOTAS",
    "IMAGES",
    "LOCATIONS_READ",
    "MACHINE_TYPES",
    "QUOTAS",
    "REGIONS",
    "VERTEX_BOOT_DISK_MAX_GB",
    "VERTEX_BOOT_DISK_MIN_GB",
    "ZONES",
]

ACCELERATORS: Mapping[str, Accelerator]
BOOT_DISK_LIMITS: Mapping[str, BootDiskLimits]
CHARTS: Mapping[str, Chart]
DISK_TYPES: Mapping[str, DiskType]
FILESTORE_TIERS: Mapping[str, FilestoreTier]
GENERAL_QUOTAS: Mapping[str, QuotaId]
IMAGES: Mapping[str, str]
LOCATIONS_READ: date
MACHINE_TYPES: Mapping[str, MachineType]
QUOTAS: Mapping[QuotaId, Quota]
REGIONS: frozenset[str]
VERTEX_BOOT_DISK_MAX_GB: int
VERTEX_BOOT_DISK_MIN_GB: int
ZONES: frozenset[str]


def _facts() -> dict[str, object]:
    from training_platform.catalog.loader import default  # noqa: PLC0415 # PyYAML is imported when facts are read

    catalog = default()
    return {
        "ACCELERATORS": catalog.accelerators,
        "BOOT_DISK_LIMITS": catalog.boot_disk_limits,
        "CHARTS": catalog.charts,
        "DISK_TYPES": catalog.disk_types,
        "FILESTORE_TIERS": catalog.filestore_tiers,
        "GENERAL_QUOTAS": catalog.general_quotas,
        "IMAGES": {name: image.image for name, image in catalog.images.items()},
        "LOCATIONS_READ": catalog.locations_read,
        "MACHINE_TYPES": catalog.machine_types,
        "QUOTAS": {quota.id: quota for quota in catalog.quotas.values()},
        "REGIONS": catalog.regions,
        "VERTEX_BOOT_DISK_MAX_GB": catalog.boot_disk_limits["vertex"].max_gb,
        "VERTEX_BOOT_DISK_MIN_GB": catalog.boot_disk_limits["vertex"].min_gb,
        "ZONES": catalog.zones,
    }


if not TYPE_CHECKING:  # hidden from the type checker, which would take any name of this module for granted

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals().update(_facts())
        return globals()[name]
