"""Changes of capacity that are refused: an instance that cannot shrink, and a band that cannot be crossed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from training_platform.catalog import FILESTORE_TIERS, LUSTRE_TIERS
from training_platform.catalog.types import Band
from training_platform.config.model.storage import FilestoreSpec, LustreSpec
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace

RULE = "filestore-growth"
_ANEW = "or another instance, and a copy"
_FILESTORE = ("location", "tier", "share", "protocol", "connection", "restore_from", "reserved_range")
_LUSTRE = ("location", "mbps_per_tib", "filesystem")
_Spec = FilestoreSpec | LustreSpec


def capacity_growth(head: Workspace, base: Workspace) -> Iterator[Finding]:
    """Find an instance that is to change its capacity where it stays the same instance and cannot.

    Source: Filestore docs, service tiers, read 2026-04-10; Filestore CSI driver 2edb466, controller.go; Managed Lustre
    docs, increase the capacity, read 2026-11-22.
    """
    for stack, environment, _, former in head.kept_environments(base):
        kept = [
            *_kept("filestore", environment.filestore, former.filestore),
            *_kept("lustre", environment.lustre, former.lustre),
        ]
        for section, name, spec, before in kept:
            if refusal := _refusal(spec, before):
                message, allowed, nearest = refusal
                path = (section, name, "capacity_gib")
                yield stack.finding(RULE, path, message, allowed=allowed, nearest=str(nearest))


def _kept(
    section: str, specs: Mapping[str, _Spec], former: Mapping[str, _Spec]
) -> Iterator[tuple[str, str, _Spec, int]]:
    """Yield the instances that a change keeps, with what they hold before it; of another one, any capacity will do."""
    fields = _FILESTORE if section == "filestore" else _LUSTRE
    for name, spec in specs.items():
        old = former.get(name)
        if old and all(getattr(spec, field) == getattr(old, field) for field in fields):
            yield section, name, spec, old.capacity_gib


def _tier(spec: _Spec) -> tuple[str, Sequence[Band], bool] | None:
    """Return the name of an instance's tier, its bands, and whether it can shrink."""
    if isinstance(spec, LustreSpec):
        return "Managed Lustre", LUSTRE_TIERS[f"lustre-{spec.mbps_per_tib}"].bands, False
    tier = FILESTORE_TIERS.get(spec.tier)
    return (tier.name, tier.bands, tier.shrinks) if tier else None


def _refusal(spec: _Spec, before: int) -> tuple[str, str, int] | None:
    found, after = _tier(spec), spec.capacity_gib
    if found is None:
        return None
    name, bands, shrinks = found
    band = _band(bands, before)
    if after < before and not shrinks:
        return (
            f"is {after:,}, less than the {before:,} GiB that it has: {name} does not shrink",
            f"{before:,} GiB or more, {_ANEW}",
            before,
        )
    if band is not None and _band(bands, after) not in (band, None):
        nearest = band.high_gib if after > before else band.low_gib
        return (
            f"is {after:,}, in another band than the {before:,} GiB that it has, and {name} keeps its band",
            f"{band.low_gib:,} to {band.high_gib:,} GiB, {_ANEW}",
            nearest,
        )
    return None


def _band(bands: Sequence[Band], capacity_gib: int) -> Band | None:
    return next((band for band in bands if band.low_gib <= capacity_gib <= band.high_gib), None)
