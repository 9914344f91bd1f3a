"""Changes of capacity that Filestore refuses: a tier that cannot shrink, and a band that cannot be crossed."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import FILESTORE_TIERS
from training_platform.catalog.types import FilestoreTier
from training_platform.config.reading.finding import Finding
from training_platform.config.spec.storage import FilestoreSpec
from training_platform.config.workspace import Workspace

RULE = "filestore-growth"
_ANEW = "or another instance, and a copy"


def filestore_growth(head: Workspace, base: Workspace) -> Iterator[Finding]:
    """Find an instance that is to change its capacity where it stays the same instance and cannot.

    Source: Filestore docs, service tiers, read 2026-04-10; Filestore CSI driver 2edb466, controller.go.
    """
    for stack, environment in head.environments():
        former = base.stacks.get(environment.renamed_from or stack.name) or base.stacks.get(stack.name)
        if former is None or former.environment is None:
            continue
        for name, spec in environment.filestore.items():
            old = former.environment.filestore.get(name)
            tier = FILESTORE_TIERS.get(spec.tier)
            if old and tier and not _another(spec, old) and (refusal := _refusal(tier, old.capacity_gib, spec)):
                message, allowed, nearest = refusal
                path = ("filestore", name, "capacity_gib")
                yield stack.finding(RULE, path, message, allowed=allowed, nearest=str(nearest))


def _another(spec: FilestoreSpec, old: FilestoreSpec) -> bool:
    """Whether the change makes another instance anyway, of any capacity."""
    fields = ("location", "tier", "share", "protocol", "connection", "restore_from", "reserved_range")
    return any(getattr(spec, field) != getattr(old, field) for field in fields)


def _refusal(tier: FilestoreTier, before: int, spec: FilestoreSpec) -> tuple[str, str, int] | None:
    after, band = spec.capacity_gib, tier.band_of(before)
    if after < before and not tier.shrinks:
        return (
            f"is {after:,}, less than the {before:,} GiB that it has: {tier.name} does not shrink",
            f"{before:,} GiB or more, {_ANEW}",
            before,
        )
    if band is not None and tier.band_of(after) not in (band, None):
        nearest = band.high_gib if after > before else band.low_gib
        return (
            f"is {after:,}, in another band than the {before:,} GiB that it has, and {tier.name} keeps its band",
            f"{band.low_gib:,} to {band.high_gib:,} GiB, {_ANEW}",
            nearest,
        )
    return None
