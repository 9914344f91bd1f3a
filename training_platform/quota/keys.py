"""What is counted: quota keys, charges against them, and who makes the charge."""

from __future__ import annotations

import math
from typing import NamedTuple

from training_platform.catalog.locations import region_of
from training_platform.catalog.types import QuotaId
from training_platform.config.reading.finding import Path

_SUFFIXES = ("-per-project-region", "-per-project-zone", "-per-project", "PerProjectPerRegion", "PerRegion")


class QuotaKey(NamedTuple):
    """One limit of one project: service and quota id as the Cloud Quotas API spells them, place, other dimensions.

    ``location`` is a region or a zone, or ``""`` for a limit of the whole project.
    """

    project: str
    service: str
    quota_id: str
    location: str = ""
    dimensions: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return the key as reports name it: ``GPUS-PER-GPU-FAMILY-... (NVIDIA_H100) in us-central1``."""
        values = ", ".join(value for _, value in self.dimensions)
        return self.quota_id + (f" ({values})" if values else "") + (f" in {self.location}" if self.location else "")


class Holder(NamedTuple):
    """Who makes a charge: a stack, the section of its file, and the field whose value one could lower.

    ``step`` is what one more of that field charges, so that the largest value that fits can be worked out; 0 where
    no field does. ``base`` is the field's lowest value.
    """

    stack: str
    path: Path
    label: str
    field: Path = ()
    step: float = 0
    base: int = 0


class Charge(NamedTuple):
    """An amount charged to the first of ``keys`` that the project has a limit for (in ``unit``)."""

    keys: tuple[QuotaKey, ...]
    amount: float
    unit: str
    holder: Holder

    @property
    def key(self) -> QuotaKey:
        """The key charged where nothing is known of the project's limits."""
        return self.keys[0]


def upgrade_label(label: str) -> str:
    """Return what reports call the part of a pool's charge that is there only while the pool is upgraded."""
    return f"{label} while upgrading"


def short_quota_id(quota_id: str) -> str:
    """Return a quota id without what it says of the place that it is counted for."""
    for suffix in _SUFFIXES:
        quota_id = quota_id.removesuffix(suffix)
    return quota_id


def quota_key(project: str, quota: QuotaId, location: str) -> QuotaKey:
    """Return the key of a quota at a place: its region, its zone, or the whole project, as the quota is counted."""
    place = {"region": region_of(location), "zone": location, "project": ""}[quota.per]
    return QuotaKey(project, quota.service, quota.quota_id, place, quota.dimensions)


def shown(amount: float) -> str:
    """Return a quantity as people write it."""
    if math.isinf(amount):
        return "unlimited"
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.1f}"
