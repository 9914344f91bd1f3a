"""Rules about Filestore and Managed Lustre: tiers with their ranges of capacity in GiB, exports, snapshots."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from training_platform.catalog import FILESTORE_TIERS, LUSTRE_TIERS
from training_platform.catalog.locations import is_zone, region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import Band
from training_platform.catalog.zones import zones_in
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.section import enumeration
from training_platform.rules.network import far_from_clusters, network_of
from training_platform.views.network import ServicesRangeView
from training_platform.views.storage import FilestoreView, LustreView, SnapshotView
from training_platform.views.whole_stack import Program

_TIERS = "Filestore docs, service tiers, read 2026-04-10"
DIRECT_PEERING = "DIRECT_PEERING"
MOST_IOPS = {"ZONAL": 166_000, "REGIONAL": 750_000}  # tiers with custom performance
HIGH_BAND_TIB = 10
IOPS_PER_TIB_LOW_BAND = (4_000, 17_000, 100)  # lowest, highest, step
IOPS_PER_TIB_HIGH_BAND = (3_000, 7_500, 1_000)
LEAST_FIXED_IOPS = 2_000
FIXED_IOPS_STEP = 1_000


@rule(
    "filestore-tier",
    ruleset="filestore",
    severity="warning",
    owner="catalogue",
    source="the catalogue: a value that is not in it is not checked",
)
def filestore_tier(instance: FilestoreView) -> Iterator[Draft]:
    """Find a tier that is not in the catalogue."""
    if instance.tier not in FILESTORE_TIERS:
        nearest = find_nearest(instance.tier or "", FILESTORE_TIERS)
        message = f"{instance.tier!r} is not in the catalogue, so the instance is neither checked nor counted"
        yield finding(instance, "tier", message, allowed=enumeration(FILESTORE_TIERS), nearest=nearest)


@rule("filestore-location", ruleset="filestore", source=f"{_TIERS}; terraform-provider-google-beta 93c65b2, location")
def filestore_location(instance: FilestoreView) -> Iterator[Draft]:
    """Find a zonal tier in a region, or a regional tier in a zone."""
    tier = FILESTORE_TIERS.get(instance.tier)
    if tier is None:
        return
    location = instance.location
    if tier.scope == "zone" and not is_zone(location):
        yield not_in_a_zone(instance, f"{tier.name} instances")
    elif tier.scope == "region" and is_zone(location):
        message = f"{tier.name} instances are regional, but {location} is a zone"
        yield finding(instance, "location", message, allowed="a region", nearest=region_of(location))


@rule("filestore-capacity", ruleset="filestore", source=f"{_TIERS}; Filestore CSI driver 2edb466")
def filestore_capacity(instance: FilestoreView) -> Iterator[Draft]:
    """Find a capacity, in GiB, that the tier does not support."""
    tier = FILESTORE_TIERS.get(instance.tier)
    if tier is None:
        return
    size = instance.capacity_gib
    if fits(tier.bands, size):
        return
    disputed = fits(tier.disputed_bands, size)
    message = f"{tier.name} does not support {size:,} GiB"
    if disputed:
        message = (
            f"sources disagree on {size:,} GiB of {tier.name}: one page of Google lists this size, and another does not"
        )
    yield finding(
        instance,
        "capacity_gib",
        message,
        allowed=shown(tier.bands),
        nearest=nearest_size(tier.bands, size),
        severity="warning" if disputed else None,
    )


_BASIC = frozenset(name for name in FILESTORE_TIERS if name.startswith("BASIC_"))


@rule(
    "filestore-protection",
    ruleset="filestore",
    when="deletion_protection",
    severity="warning",
    source="terraform-provider-google #20311, confirmed there in 2024-11; Filestore docs on deletion protection name "
    "no tier (an undated copy, read 2026-11-28)",
)
def filestore_protection(instance: FilestoreView) -> Iterator[Draft]:
    """Find deletion protection on a basic tier. It was refused at creation, but sources disagree."""
    if instance.deletion_protection and instance.tier in _BASIC:
        message = (
            f"{instance.tier} instances with deletion protection were refused in 2024; Google's page does not say "
            f"which tiers support it"
        )
        allowed = "ZONAL, REGIONAL, ENTERPRISE; or no protection, which needs an exemption in production"
        nearest = "deletion_protection: false" if instance.origin else "false"
        yield finding(instance, "deletion_protection", message, allowed=allowed, nearest=nearest)


@rule(
    "filestore-protocol",
    ruleset="filestore",
    source=f"{_TIERS}; Cluster Toolkit v1.95.0, filestore module; Filestore CSI driver 2edb466",
)
def filestore_protocol(instance: FilestoreView) -> Iterator[Draft]:
    """Find an NFS version that the tier does not support."""
    tier = FILESTORE_TIERS.get(instance.tier)
    protocol = instance.protocol or "NFS_V3"
    if tier is not None and protocol not in tier.protocols:
        message = f"{tier.name} does not support {protocol}"
        yield finding(instance, "protocol", message, allowed=", ".join(tier.protocols), nearest=tier.protocols[0])


@rule(
    "filestore-range",
    ruleset="filestore",
    source="filestore API (googleapis f8291d2); Filestore CSI driver 2edb466; Cluster Toolkit v1.95.0, filestore",
)
def filestore_range(instance: FilestoreView) -> Iterator[Draft]:
    """Find a reserved range of the wrong size for the tier, or addresses instead of a range's name."""
    tier = FILESTORE_TIERS.get(instance.tier)
    text = instance.reserved_range
    if tier is None or not text:
        return
    address, _, prefix = text.partition("/")
    if not prefix.isdecimal():
        return  # the name of an allocated range
    if instance.connect_mode == "PRIVATE_SERVICE_ACCESS":
        message = f"{text} are addresses, but private service access needs the name of an allocated range"
        yield finding(instance, "reserved_range", message, allowed="the name of an allocated range for VPC peering")
        return
    size, *disputed = tier.reserved_prefixes
    if int(prefix) == size:
        return
    message = f"{text} is not a /{size}"
    if int(prefix) in disputed:
        message += f": sources disagree on the range of {tier.name}, and some say /{prefix}"
    yield finding(
        instance,
        "reserved_range",
        message,
        allowed=f"a /{size}, or none: Google Cloud picks one",
        nearest=f"{address}/{size}",
        severity="warning" if int(prefix) in disputed else None,
    )


@rule(
    "filestore-shared-vpc",
    ruleset="filestore",
    source="Filestore CSI driver #1346; k8s-config-connector #691",
)
def filestore_shared_vpc(instance: FilestoreView) -> Iterator[Draft]:
    """Find an instance that is peered directly with another project's network."""
    other = instance.network_project
    if other and instance.project and other != instance.project and instance.connect_mode in (None, DIRECT_PEERING):
        message = f"the network belongs to project {other}, but direct peering works only inside {instance.project}"
        allowed = "PRIVATE_SERVICE_ACCESS"
        yield finding(instance, "connect_mode", message, allowed=allowed, nearest=allowed)


@rule("filestore-iops", ruleset="filestore", source="Filestore CSI driver 2edb466, utils.go; " + _TIERS)
def filestore_iops(instance: FilestoreView) -> Iterator[Draft]:
    """Find IOPS that an instance does not support; IOPS per TiB depend on its capacity."""
    per_tib = instance.iops_per_tb
    fixed = instance.fixed_iops
    if per_tib is None and fixed is None:
        return
    max_iops = MOST_IOPS.get(instance.tier)
    if max_iops is None:
        message = f"{instance.tier} does not support custom performance"
        yield finding(instance, "iops_per_tb", message, allowed=", ".join(MOST_IOPS))
        return
    if per_tib is not None and fixed is not None:
        message = "IOPS per TiB and total IOPS exclude each other"
        yield finding(instance, "fixed_iops", message, allowed="one of the two")
    capacity_tib = instance.capacity_gib / 1024
    if per_tib is not None:
        yield from _iops_per_tib(instance, per_tib, capacity_tib)
    if fixed is not None and (fixed < LEAST_FIXED_IOPS or fixed % FIXED_IOPS_STEP):
        nearest = max(LEAST_FIXED_IOPS, math.ceil(fixed / FIXED_IOPS_STEP) * FIXED_IOPS_STEP)
        allowed = f"multiples of {FIXED_IOPS_STEP:,} from {LEAST_FIXED_IOPS:,}"
        yield finding(instance, "fixed_iops", f"{fixed:,} IOPS", allowed=allowed, nearest=nearest)
    total = max(fixed or 0, (per_tib or 0) * capacity_tib)
    if total > max_iops:
        message = f"{total:,.0f} total IOPS"
        allowed = f"at most {max_iops:,} in total"
        if per_tib is None:
            yield finding(instance, "fixed_iops", message, allowed=allowed, nearest=max_iops)
            return
        low, _, step = _per_tib_range(capacity_tib)
        nearest = low + math.floor((max_iops / capacity_tib - low) / step) * step
        yield finding(instance, "iops_per_tb", message, allowed=allowed, nearest=nearest if nearest >= low else None)


def _iops_per_tib(instance: FilestoreView, per_tib: int, capacity_tib: float) -> Iterator[Draft]:
    """Find IOPS per TiB that are not allowed for the instance's capacity, or that are between two steps."""
    low, high, step = _per_tib_range(capacity_tib)
    is_on_step = (per_tib - low) % step == 0 or per_tib == high
    if low <= per_tib <= high and is_on_step:
        return
    nearest_step = low + round((per_tib - low) / step) * step
    allowed = f"{low:,} to {high:,} in steps of {step:,}"
    nearest = min(max(nearest_step, low), high)
    yield finding(instance, "iops_per_tb", f"{per_tib:,} IOPS per TiB", allowed=allowed, nearest=nearest)


def _per_tib_range(capacity_tib: float) -> tuple[int, int, int]:
    """Return the minimum, the maximum and the step of the IOPS per TiB that are allowed for a capacity."""
    return IOPS_PER_TIB_HIGH_BAND if capacity_tib >= HIGH_BAND_TIB else IOPS_PER_TIB_LOW_BAND


@rule("filestore-directory", ruleset="filestore", source="terraform-provider-google-beta 93c65b2")
def filestore_directory(instance: FilestoreView) -> Iterator[Draft]:
    """Find directory services on an instance without NFS 4.1."""
    if instance.directory_services and instance.protocol != "NFS_V4_1":
        message = "directory services need NFS_V4_1"
        yield finding(instance, "protocol", message, allowed="NFS_V4_1", nearest="NFS_V4_1")


def not_in_a_zone(instance: FilestoreView | LustreView, instances: str) -> Draft:
    """Return the finding about an instance that is in a region although ``instances`` of its kind are zonal."""
    location = instance.location
    zones = zones_in(location)
    message = f"{instances} are zonal, but {location} is a region"
    allowed = enumeration(zones) or f"a zone of {location}"
    return finding(instance, "location", message, allowed=allowed, nearest=next(iter(zones), None))


_API = "filestore API (googleapis f8291d2), NfsExportOptions; Filestore docs, limits"
MOST_EXPORTS = 10
MOST_RANGES = 64  # in all entries together


@rule("filestore-exports", ruleset="filestore", source=_API)
def filestore_exports(instance: FilestoreView) -> Iterator[Draft]:
    """Find an instance with too many exports or address ranges, or with ranges that overlap between exports."""
    exports = instance.exports
    if len(exports) > MOST_EXPORTS:
        yield finding(instance, "exports", f"has {len(exports)} entries", allowed=f"at most {MOST_EXPORTS}")
    ranges = [(number, text) for number, export in enumerate(exports) for text in export.ranges]
    if len(ranges) > MOST_RANGES:
        yield finding(instance, "exports", f"has {len(ranges)} ranges", allowed=f"at most {MOST_RANGES} in all entries")
    for (earlier_entry, earlier_text), (entry, text) in combinations(ranges, 2):
        earlier_network = network_of(earlier_text)
        network = network_of(text)
        if earlier_entry != entry and network and earlier_network and network.overlaps(earlier_network):
            message = f"{text} overlaps {earlier_text} of another entry"
            yield finding(instance, "exports", message, allowed="ranges that do not overlap")


@rule(
    "filestore-squashed-root",
    ruleset="filestore",
    severity="warning",
    owner="house",
    source="house rule: a Job creates the folders of teams as root",
)
def filestore_squashed_root(instance: FilestoreView) -> Iterator[Draft]:
    """Find an instance used by several teams whose exports squash root, so that their folders cannot be created."""
    owner = (instance.labels or {}).get("team")
    if not owner and any(export.squashed for export in instance.exports):
        message = "root is squashed, so no Job can create the teams' folders; they would have to exist already"
        yield finding(
            instance, "exports", message, allowed="squash: none, or an instance for only one team", nearest="none"
        )


@rule(
    "filestore-snapshot",
    ruleset="filestore",
    across=True,
    source="Filestore docs, service tiers, read 2026-04-10: basic tiers have backups but no snapshots",
)
def filestore_snapshot(program: Program) -> Iterator[Draft]:
    """Find a snapshot of an instance whose tier does not support snapshots."""
    instances = program.all(FilestoreView)
    for snapshot in program.all(SnapshotView):
        for instance in instances:
            tier = FILESTORE_TIERS.get(instance.tier)
            if tier and not tier.snapshots and instance.is_meant(snapshot.instance, "instance"):
                message = f"{tier.name} instances do not support snapshots"
                allowed = ", ".join(name for name, other in FILESTORE_TIERS.items() if other.snapshots)
                yield finding(snapshot, "instance", message, allowed=f"backups, or a tier of {allowed}")


_PAGES = "Managed Lustre docs, performance tiers, create an instance, VPC network, read 2026-11-22"
BLOCK = 23  # prefix length of an instance's range; an older copy of the page says 24


@rule("lustre-capacity", ruleset="lustre", source=_PAGES)
def lustre_capacity(instance: LustreView) -> Iterator[Draft]:
    """Find a capacity, in GiB, that is not supported at the instance's throughput.

    A capacity above the maximum is a warning: Google's pages differ, and the limit has been raised in the past. An
    instance without a throughput belongs to the dynamic tier, which document rules check.
    """
    if instance.mbps_per_tib is None:
        return
    tier = LUSTRE_TIERS.get(f"lustre-{instance.mbps_per_tib}")
    if tier is None:
        message = f"{instance.mbps_per_tib} MB/s per TiB is not a tier"
        yield finding(instance, "mbps_per_tib", message, allowed=enumeration(LUSTRE_TIERS))
        return
    size = instance.capacity_gib
    if not fits(tier.bands, size):
        message = f"{instance.mbps_per_tib} MB/s per TiB does not support {size:,} GiB"
        yield finding(
            instance,
            "capacity_gib",
            message,
            allowed=shown(tier.bands),
            nearest=nearest_size(tier.bands, size),
            severity="warning" if size > tier.bands[-1].high_gib else None,
        )


@rule("lustre-location", ruleset="lustre", source=_PAGES)
def lustre_location(instance: LustreView) -> Iterator[Draft]:
    """Find a Managed Lustre instance in a region, although its instances are zonal."""
    if not is_zone(instance.location):
        yield not_in_a_zone(instance, "instances")


@rule("lustre-region", ruleset="lustre", across=True, severity="warning", source=_PAGES)
def lustre_region(instance: LustreView, program: Program) -> Iterator[Draft]:
    """Find a Managed Lustre instance in a region without clusters. Pods cannot mount it from another region."""
    yield from far_from_clusters(instance, program)


@rule(
    "lustre-addresses",
    ruleset="lustre",
    across=True,
    severity="warning",
    source=f"{_PAGES}, the last one in a translation; another copy of that page requires a /24 for each instance",
)
def lustre_addresses(program: Program) -> Iterator[Draft]:
    """Find Managed Lustre instances for which private service access has no addresses left in its ranges."""
    range_sizes = [view.addresses for view in program.all(ServicesRangeView) if view.purpose == "VPC_PEERING"]
    if not range_sizes:
        return
    addresses = sum(range_sizes)
    fitting = addresses // 2 ** (32 - BLOCK)
    for instance in program.all(LustreView)[fitting:]:
        message = f"Google's services have {addresses:,} addresses in the VPC, enough for {fitting} of these instances"
        yield finding(instance, "network", message, allowed=f"a /{BLOCK} for each instance, in one range or several")


def fits(bands: Sequence[Band], size: int) -> bool:
    """Return True if a capacity is within one of the ranges ``bands`` and on one of its steps."""
    return any(band.low_gib <= size <= band.high_gib and (size - band.low_gib) % band.step_gib == 0 for band in bands)


def shown(bands: Sequence[Band]) -> str:
    """Return ranges of capacities as text."""
    ranges = [(f"{low:,} to {high:,} GiB", step) for low, high, step in bands]
    return ", or ".join(text + (f" in steps of {step:,}" if step > 1 else "") for text, step in ranges)


def nearest_size(bands: Sequence[Band], size: int) -> int:
    """Return the smallest capacity that is at least this size, or the largest capacity if none is."""
    fitting: list[int] = []
    for low, high, step in bands:
        steps = max(0, math.ceil((size - low) / step))
        fitting_size = low + steps * step
        if fitting_size <= high:
            fitting.append(fitting_size)
    return min(fitting, default=max(band.high_gib for band in bands))
