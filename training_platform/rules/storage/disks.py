"""Boot disks and local SSD."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import BOOT_DISK_LIMITS, DISK_TYPES, MACHINE_TYPES
from training_platform.rules.registry import Draft, finding, rule
from training_platform.rules.views.gke import BootDisk, NodePool

_DISKS_GO = "GKE cluster-autoscaler 7d25050, disks.go, read 2026-08-21"
_VERTEX = "Vertex AI docs, configure compute, and machine_resources.proto, read 2026-08-22"
_PREFERRED = ("pd-balanced", "hyperdisk-balanced", "pd-ssd")


@rule(
    "boot-disk-size",
    ruleset="disks",
    facts=("DSK-04",),
    source=f"{_DISKS_GO}; terraform-provider-google-beta 93c65b2, disk_size_gb",
)
def boot_disk_size(disk: BootDisk) -> Iterator[Draft]:
    """Find a node's boot disk that is smaller or larger than GKE takes, in GB as the API counts them."""
    if disk.of == "gke":
        yield from _size(disk)


@rule("vertex-boot-disk-size", ruleset="disks", facts=("VPR-03", "VJB-08"), source=_VERTEX)
def vertex_boot_disk_size(disk: BootDisk) -> Iterator[Draft]:
    """Find a boot disk of Vertex AI that is smaller or larger than it takes, in GB as its API counts them."""
    if disk.of == "vertex":
        yield from _size(disk)


@rule("vertex-boot-disk-written", ruleset="disks", facts=("VPR-03",), source=f"{_VERTEX}; gcloud reference")
def vertex_boot_disk_written(disk: BootDisk) -> Iterator[Draft]:
    """Find a persistent resource that leaves its disk to defaults: sources disagree on them, and jobs must match it."""
    if disk.of != "vertex":
        return
    if disk.size_gb is None:
        yield finding(disk, "size_gb", "is not written", allowed="a size in GB", nearest=100)
    if disk.disk_type is None:
        yield finding(disk, "disk_type", "is not written", allowed=", ".join(_vertex_types(disk)), nearest="pd-ssd")


@rule("boot-disk-type", ruleset="disks", facts=("DSK-01", "DSK-02", "DSK-03", "DSK-04"), source=_DISKS_GO)
def boot_disk_type(disk: BootDisk) -> Iterator[Draft]:
    """Find a boot disk of a type that the machine cannot boot from; autoscaled pools would fail only at scale-up."""
    machine = MACHINE_TYPES.get(disk.machine_type or "")
    if disk.of != "gke" or disk.disk_type is None or machine is None:
        return
    if disk.disk_type not in machine.boot_disk_types:
        yield _type(disk, machine.boot_disk_types)


@rule("vertex-boot-disk-type", ruleset="disks", facts=("VPR-03",), source=_VERTEX)
def vertex_boot_disk_type(disk: BootDisk) -> Iterator[Draft]:
    """Find a boot disk of a type that Vertex AI does not start this machine with."""
    if disk.of != "vertex" or disk.disk_type is None or disk.machine_type not in MACHINE_TYPES:
        return
    allowed = _vertex_types(disk)
    if disk.disk_type not in allowed:
        yield _type(disk, allowed)


@rule(
    "local-ssd-count",
    ruleset="disks",
    facts=("DSK-06",),
    source="Cluster Toolkit v1.95.0, disk_definitions.tf; GKE cluster-autoscaler 7d25050, read 2026-08-21",
)
def local_ssd_count(pool: NodePool) -> Iterator[Draft]:
    """Find a number of local SSD partitions that the machine does not come with, or none where it must be written."""
    machine, count = pool.machine, pool.local_ssd_count
    if machine is None:
        return
    if MACHINE_TYPES[machine.name].kind == "cpu":  # optional there, and the catalogue does not say how many
        return
    bundled = machine.local_ssd.bundled
    allowed = (bundled,) if bundled else (0, *machine.local_ssd.allowed)
    if count is None and bundled:
        message = "is not written, and the API fills it in: every later preview would replace the pool"
        yield finding(pool, "local_ssd_count", f"the number of local SSDs {message}", allowed=bundled, nearest=bundled)
    elif count is not None and count not in allowed:
        nearest = min(allowed, key=lambda each: abs(each - count))
        message = f"{machine.name} does not come with {count} local SSDs"
        yield finding(pool, "local_ssd_count", message, allowed=", ".join(map(str, allowed)), nearest=nearest)


def _size(disk: BootDisk) -> Iterator[Draft]:
    limits = BOOT_DISK_LIMITS[disk.of]
    if disk.size_gb is not None and not limits.min_gb <= disk.size_gb <= limits.max_gb:
        nearest = min(max(disk.size_gb, limits.min_gb), limits.max_gb)
        allowed = f"{limits.min_gb:,} to {limits.max_gb:,} GB"
        yield finding(disk, "size_gb", f"is {disk.size_gb:,} GB", allowed=allowed, nearest=nearest)


def _type(disk: BootDisk, allowed: tuple[str, ...]) -> Draft:
    nearest = next((name for name in (*_PREFERRED, *allowed) if name in allowed), None)
    message = f"{disk.machine_type} cannot boot from {disk.disk_type}"
    return finding(disk, "disk_type", message, allowed=", ".join(allowed), nearest=nearest)


def _vertex_types(disk: BootDisk) -> tuple[str, ...]:
    machine = MACHINE_TYPES.get(disk.machine_type or "")
    types = machine.boot_disk_types if machine else tuple(DISK_TYPES)
    return tuple(name for name in types if name in DISK_TYPES and DISK_TYPES[name].vertex_boot)
