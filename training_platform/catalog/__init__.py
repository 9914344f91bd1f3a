"""The catalogue: the facts about Google Cloud and in-cluster software that models, quotas and rules use.

The facts are data files in ``data/``. The first access to any of the names below loads all files once, into ordinary
dicts and sets. ``REGIONS`` and ``ZONES`` become outdated: a location may be newer than ``LOCATIONS_READ``, so an
unknown location causes a warning and never an error. ``GENERAL_QUOTAS`` contains the quotas that belong to no
accelerator family, keyed by short name. ``QUOTAS`` contains every known quota, keyed by its id, with the source of the
id and whether it is verified.

GPUs that are attached to CPU machines (T4) have no row in ``MACHINE_TYPES``: see ``catalog.attachments``.
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
        ChartPorts,
        DiskType,
        FilestoreTier,
        LustreTier,
        MachineType,
        ModelServer,
        Quota,
        QuotaId,
        Release,
    )

ACCELERATORS: Mapping[str, Accelerator]
BOOT_DISK_LIMITS: Mapping[str, BootDiskLimits]
CHARTS: Mapping[str, Chart]
CHART_PORTS: Mapping[str, ChartPorts]
DISK_TYPES: Mapping[str, DiskType]
FILESTORE_TIERS: Mapping[str, FilestoreTier]
GENERAL_QUOTAS: Mapping[str, QuotaId]
IMAGES: Mapping[str, str]
LOCATIONS_READ: date
LUSTRE_TIERS: Mapping[str, LustreTier]
MACHINE_TYPES: Mapping[str, MachineType]
MODEL_SERVERS: Mapping[str, ModelServer]
QUOTAS: Mapping[QuotaId, Quota]
REGIONS: frozenset[str]
RELEASES: Mapping[str, Release]
VERTEX_BOOT_DISK_MAX_GB: int
VERTEX_BOOT_DISK_MIN_GB: int
ZONES: frozenset[str]


__all__ = list(__annotations__)  # the names above

if not TYPE_CHECKING:  # hidden from the type checker, which would accept any name of this module

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from training_platform.catalog.loader import default  # noqa: PLC0415 # PyYAML is imported when facts are read

        catalog = default()
        computed = {
            "IMAGES": lambda: {image: row.image for image, row in catalog.images.items()},
            "QUOTAS": lambda: {quota.id: quota for quota in catalog.quotas.values()},
            "VERTEX_BOOT_DISK_MAX_GB": lambda: catalog.boot_disk_limits["vertex"].max_gb,
            "VERTEX_BOOT_DISK_MIN_GB": lambda: catalog.boot_disk_limits["vertex"].min_gb,
        }
        globals()[name] = computed[name]() if name in computed else getattr(catalog, name.lower())
        return globals()[name]
