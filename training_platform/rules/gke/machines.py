"""Machine types and where they are."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import is_zone, nearest_first, region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import MachineType
from training_platform.config.reading.finding import Severity
from training_platform.config.reading.section import enumeration
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.node_pool import NodePoolView

_WHOLE_FAMILIES = frozenset(row.name.partition("-")[0] for row in MACHINE_TYPES.values() if row.kind != "cpu")
_ALIKE = 0.85  # a3-higpu-8g; not a4x-maxgpu-4g-metal, which is younger than the catalogue
_ZONES = "SkyPilot catalog v8 006059e; Cloud TPU docs, regions and zones, read 2026-11-21"


@rule(
    "machine-type-known",
    ruleset="machines",
    severity="warning",
    facts=("GPU-02",),
    source="the catalogue: what is not in it can be neither counted nor checked",
)
def machine_type_known(pool: NodePoolView) -> Iterator[Draft]:
    """Find a node pool without a machine type, or with one that is not in the catalogue.

    An error where it reads like one of a family that the catalogue has with all of its sizes: those with TPUs or GPUs.
    """
    name = pool.machine_type
    if name is None:
        yield finding(pool, "machine_type", "is missing: GKE would use e2-medium", allowed="a machine type")
    elif name not in MACHINE_TYPES:
        nearest = find_nearest(name, MACHINE_TYPES)
        message = f"{name!r} is not in the catalogue, so nothing of this pool is checked or counted"
        misspelt = name.partition("-")[0] in _WHOLE_FAMILIES and get_close_matches(name, MACHINE_TYPES, 1, _ALIKE)
        severity: Severity | None = "error" if misspelt else None
        allowed = enumeration(MACHINE_TYPES)
        yield finding(pool, "machine_type", message, allowed=allowed, nearest=nearest, severity=severity)


@rule("machine-zone", ruleset="machines", severity="warning", facts=("REG-02", "CLU-07"), source=_ZONES)
def machine_zone(pool: NodePoolView) -> Iterator[Draft]:
    """Find a zone that, as far as we know, does not offer the machine type; a warning, since lists of zones age."""
    machine = pool.machine
    if machine is None:
        return
    for zone in pool.zones or ((pool.location,) if is_zone(pool.location) else ()):
        if not listed(machine, zone):
            gpus = f" with {pool.accelerator_type}" if MACHINE_TYPES[machine.name].kind != machine.kind else ""
            message = (
                f"{machine.name}{gpus} is not listed in {zone}; the list may be older than the zone ({machine.source})"
            )
            allowed = where_offered(machine, region_of(zone)) or None
            nearest = next(iter(nearest_first(zone, machine.zones)), None)
            yield finding(pool, "zones", message, allowed=allowed, nearest=nearest)


@rule(
    "pool-zone",
    ruleset="machines",
    facts=("REG-01", "REG-02", "REG-03"),
    source="Cluster Toolkit v1.95.0, gke-node-pool; terraform-provider-google-beta 93c65b2, node_locations",
)
def pool_zone(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool with TPUs or GPUs that names no zone in a regional cluster, or one outside the cluster's region."""
    machine = pool.machine
    if machine is None or machine.accelerator is None:
        return
    region = region_of(pool.location)
    if (pool.zones or is_zone(pool.location)) and all(region_of(zone) == region for zone in pool.zones):
        return
    offered = [zone for zone in machine.zones if region_of(zone) == region]
    allowed = enumeration(offered) or f"no zone of {region}, as far as we know"
    nearest = next(iter(sorted(offered)), None)
    if not offered and machine.zones:
        allowed += f"; {where_offered(machine, region)}"
    if not pool.zones and not is_zone(pool.location):
        message = (
            f"is missing: GKE would put {machine.name} into every zone of {region}, and count every number per zone"
        )
        yield finding(pool, "zones", message, allowed=allowed, nearest=nearest)
    for zone in pool.zones:
        if region_of(zone) != region:
            message = f"{zone} is not in {region}, where the cluster is"
            yield finding(pool, "zones", message, allowed=allowed, nearest=nearest)


def listed(machine: MachineType, zone: str) -> bool:
    """Whether a zone has the machine as far as we know; where no zones are known, whether its region has."""
    if machine.zones or not machine.regions:
        return zone not in machine.missing_zones and (not machine.zones or zone in machine.zones)
    return region_of(zone) in machine.regions


def where_offered(machine: MachineType, region: str) -> str:
    """Return where a machine is: the zones of a region if it has any there, and the other regions."""
    here = enumeration([zone for zone in machine.zones if region_of(zone) == region])
    elsewhere = enumeration({*map(region_of, machine.zones), *machine.regions} - {region}, most=40)
    parts = ([here] if here else []) + ([f"regions {elsewhere}"] if elsewhere else [])
    return "; ".join(parts)
