"""Filestore instances."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import FILESTORE_TIERS
from training_platform.catalog.locations import is_zone, region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.zones import zones_in
from training_platform.config.reading.section import enumeration
from training_platform.rules.registry import Draft, finding, rule
from training_platform.rules.storage import bands
from training_platform.views.storage import FilestoreView, LustreView

_TIERS = "Filestore docs, service tiers, read 2026-04-10"
DIRECT_PEERING = "DIRECT_PEERING"
MOST_IOPS = {"ZONAL": 166_000, "REGIONAL": 750_000}  # tiers with custom performance
HIGH_BAND_TIB = 10
IOPS_PER_TIB = {False: (4_000, 17_000, 100), True: (3_000, 7_500, 1_000)}  # lowest, highest, step; by the high band
LEAST_FIXED_IOPS = 2_000


@rule(
    "filestore-tier",
    ruleset="filestore",
    severity="warning",
    owner="catalogue",
    source="the catalogue: what is not in it is not checked",
)
def filestore_tier(instance: FilestoreView) -> Iterator[Draft]:
    """Find a tier that the catalogue does not know."""
    if instance.tier not in FILESTORE_TIERS:
        nearest = find_nearest(instance.tier or "", FILESTORE_TIERS)
        message = f"{instance.tier!r} is not in the catalogue, so the instance is neither checked nor counted"
        yield finding(instance, "tier", message, allowed=enumeration(FILESTORE_TIERS), nearest=nearest)


@rule(
    "filestore-location",
    ruleset="filestore",
    facts=("FST-01",),
    source=f"{_TIERS}; terraform-provider-google-beta 93c65b2, location",
)
def filestore_location(instance: FilestoreView) -> Iterator[Draft]:
    """Find a zonal tier in a region, or a regional tier in a zone."""
    tier = FILESTORE_TIERS.get(instance.tier)
    if tier is None:
        return
    place = instance.location
    if tier.scope == "zone" and not is_zone(place):
        yield not_in_a_zone(instance, f"{tier.name} instances")
    elif tier.scope == "region" and is_zone(place):
        message = f"{tier.name} instances are regional, but {place} is a zone"
        yield finding(instance, "location", message, allowed="a region", nearest=region_of(place))


@rule("filestore-capacity", ruleset="filestore", facts=("FST-02",), source=f"{_TIERS}; Filestore CSI driver 2edb466")
def filestore_capacity(instance: FilestoreView) -> Iterator[Draft]:
    """Find a capacity, in GiB, that the tier does not support."""
    tier = FILESTORE_TIERS.get(instance.tier)
    if tier is None:
        return
    size = instance.capacity_gib
    if not bands.fits(tier.bands, size):
        message = f"{tier.name} does not support {size:,} GiB"
        nearest = bands.nearest(tier.bands, size)
        yield finding(instance, "capacity_gib", message, allowed=bands.shown(tier.bands), nearest=nearest)


@rule(
    "filestore-protocol",
    ruleset="filestore",
    facts=("FST-04",),
    source=f"{_TIERS}; Cluster Toolkit v1.95.0, filestore module; Filestore CSI driver 2edb466",
)
def filestore_protocol(instance: FilestoreView) -> Iterator[Draft]:
    """Find a version of NFS that the tier does not support."""
    tier = FILESTORE_TIERS.get(instance.tier)
    protocol = instance.protocol or "NFS_V3"
    if tier is not None and protocol not in tier.protocols:
        message = f"{tier.name} does not support {protocol}"
        yield finding(instance, "protocol", message, allowed=", ".join(tier.protocols), nearest=tier.protocols[0])


@rule(
    "filestore-range",
    ruleset="filestore",
    facts=("FST-06",),
    source="filestore API (googleapis f8291d2); Filestore CSI driver 2edb466; Cluster Toolkit v1.95.0, filestore",
)
def filestore_range(instance: FilestoreView) -> Iterator[Draft]:
    """Find a reserved range of the wrong size for the tier, or addresses where the name of a range is needed."""
    tier, text = FILESTORE_TIERS.get(instance.tier), instance.reserved_range
    if tier is None or not text:
        return
    address, _, prefix = text.partition("/")
    if not prefix.isdecimal():
        return  # the name of an allocated range
    if instance.connect_mode == "PRIVATE_SERVICE_ACCESS":
        message = f"{text} are addresses, but private service access needs the name of an allocated range"
        yield finding(instance, "reserved_range", message, allowed="the name of a GlobalAddress for VPC_PEERING")
    elif int(prefix) != tier.reserved_prefix:
        disputed = "reserved_prefix" in tier.unverified
        message = f"{text} is not a /{tier.reserved_prefix}" + (
            ", by what is inferred: sources disagree" if disputed else ""
        )
        yield finding(
            instance, "reserved_range", message, allowed=f"a /{tier.reserved_prefix}, or none: Google Cloud picks one",
            nearest=f"{address}/{tier.reserved_prefix}", severity="warning" if disputed else None,
        )  # fmt: skip


@rule(
    "filestore-shared-vpc",
    ruleset="filestore",
    facts=("FST-07",),
    source="Filestore CSI driver #1346; k8s-config-connector #691",
)
def filestore_shared_vpc(instance: FilestoreView) -> Iterator[Draft]:
    """Find an instance that is peered directly with another project's network."""
    other = instance.network_project
    if other and instance.project and other != instance.project and instance.connect_mode in (None, DIRECT_PEERING):
        message = f"the network belongs to project {other}, but direct peering works only inside {instance.project}"
        allowed = "PRIVATE_SERVICE_ACCESS"
        yield finding(instance, "connect_mode", message, allowed=allowed, nearest=allowed)


@rule(
    "filestore-iops", ruleset="filestore", facts=("FST-08",), source="Filestore CSI driver 2edb466, utils.go; " + _TIERS
)
def filestore_iops(instance: FilestoreView) -> Iterator[Draft]:
    """Find IOPS that an instance does not support; IOPS per TiB depend on its capacity."""
    per_tb, fixed = instance.iops_per_tb, instance.fixed_iops
    if per_tb is None and fixed is None:
        return
    tib = instance.capacity_gib / 1024
    most = MOST_IOPS.get(instance.tier)
    if most is None:
        yield finding(
            instance,
            "iops_per_tb",
            f"{instance.tier} does not support custom performance",
            allowed=", ".join(MOST_IOPS),
        )
        return
    if per_tb is not None and fixed is not None:
        yield finding(
            instance, "fixed_iops", "IOPS per TiB and total IOPS exclude each other", allowed="one of the two"
        )
    if per_tb is not None:
        low, high, step = IOPS_PER_TIB[tib >= HIGH_BAND_TIB]
        if not low <= per_tb <= high or ((per_tb - low) % step and per_tb != high):
            nearest = min(max(low + round((per_tb - low) / step) * step, low), high)
            allowed = f"{low:,} to {high:,} in steps of {step:,}"
            yield finding(instance, "iops_per_tb", f"{per_tb:,} IOPS per TiB", allowed=allowed, nearest=nearest)
    if fixed is not None and (fixed < LEAST_FIXED_IOPS or fixed % 1000):
        nearest = max(LEAST_FIXED_IOPS, -(-fixed // 1000) * 1000)
        yield finding(
            instance, "fixed_iops", f"{fixed:,} IOPS", allowed="multiples of 1,000 from 2,000", nearest=nearest
        )
    total = max(fixed or 0, (per_tb or 0) * tib)
    if total > most:
        field = "fixed_iops" if per_tb is None else "iops_per_tb"
        yield finding(instance, field, f"{total:,.0f} total IOPS", allowed=f"at most {most:,}", nearest=most)


@rule("filestore-directory", ruleset="filestore", facts=("FST-04",), source="terraform-provider-google-beta 93c65b2")
def filestore_directory(instance: FilestoreView) -> Iterator[Draft]:
    """Find directory services on an instance without NFS 4.1."""
    if instance.directory_services and instance.protocol != "NFS_V4_1":
        message = "directory services need NFS_V4_1"
        yield finding(instance, "protocol", message, allowed="NFS_V4_1", nearest="NFS_V4_1")


def not_in_a_zone(instance: FilestoreView | LustreView, instances: str) -> Draft:
    """Return the finding that an instance is in a region, and ``instances`` are in zones."""
    place = instance.location
    zones = zones_in(place)
    message = f"{instances} are zonal, but {place} is a region"
    allowed = enumeration(zones) or f"a zone of {place}"
    return finding(instance, "location", message, allowed=allowed, nearest=next(iter(zones), None))
