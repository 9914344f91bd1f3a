"""Managed Lustre instances."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import LUSTRE_TIERS
from training_platform.catalog.locations import is_zone
from training_platform.config.reading.section import enumeration
from training_platform.rules.network.addresses import far_from_clusters
from training_platform.rules.registry import Draft, finding, rule
from training_platform.rules.storage import bands
from training_platform.rules.storage.filestore import not_in_a_zone
from training_platform.views.network import ServicesRangeView
from training_platform.views.program import Program
from training_platform.views.storage import LustreView

_PAGES = "Managed Lustre docs, performance tiers, create an instance, VPC network, read 2026-11-22"
BLOCK = 23  # length of the prefix of the addresses that an instance takes; an older copy of the page says 24


@rule("lustre-capacity", ruleset="lustre", facts=("FST-08",), source=_PAGES)
def lustre_capacity(instance: LustreView) -> Iterator[Draft]:
    """Find a capacity, in GiB, that the throughput does not come with.

    Beyond the largest it is a warning: Google's pages differ, and it has grown. An instance without a throughput is of
    the dynamic tier, and judged by documents.
    """
    if instance.mbps_per_tib is None:
        return
    tier = LUSTRE_TIERS.get(f"lustre-{instance.mbps_per_tib}")
    if tier is None:
        message = f"{instance.mbps_per_tib} MB/s per TiB is not a tier"
        yield finding(instance, "mbps_per_tib", message, allowed=enumeration(LUSTRE_TIERS))
        return
    size = instance.capacity_gib
    if not bands.fits(tier.bands, size):
        message = f"{instance.mbps_per_tib} MB/s per TiB does not come with {size:,} GiB"
        yield finding(
            instance, "capacity_gib", message, allowed=bands.shown(tier.bands), nearest=bands.nearest(tier.bands, size),
            severity="warning" if size > tier.bands[-1].high_gib else None,
        )  # fmt: skip


@rule("lustre-location", ruleset="lustre", source=_PAGES)
def lustre_location(instance: LustreView) -> Iterator[Draft]:
    """Find an instance in a region: they are zonal."""
    if not is_zone(instance.location):
        yield not_in_a_zone(instance, "instances")


@rule("lustre-region", ruleset="lustre", across=True, severity="warning", source=_PAGES)
def lustre_region(instance: LustreView, program: Program) -> Iterator[Draft]:
    """Find an instance in a region without clusters: nobody mounts it from another region."""
    yield from far_from_clusters(instance, program)


@rule(
    "lustre-addresses",
    ruleset="lustre",
    across=True,
    severity="warning",
    source=f"{_PAGES}, the last in translation; another copy of it says a /24 for each instance",
)
def lustre_addresses(program: Program) -> Iterator[Draft]:
    """Find instances for which a range for private service access has no addresses left."""
    rooms = [each.addresses for each in program.all(ServicesRangeView) if each.purpose == "VPC_PEERING"]
    fitting = sum(rooms) // 2 ** (32 - BLOCK)
    for instance in program.all(LustreView)[fitting:] if rooms else ():
        message = f"Google's services have {sum(rooms):,} addresses in the VPC, enough for {fitting} of these instances"
        yield finding(instance, "network", message, allowed=f"a /{BLOCK} for each instance, in one range or several")
