"""Boot disks and local SSD."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import BOOT_DISK_LIMITS, MACHINE_TYPES
from training_platform.catalog.types import BootDiskLimits
from training_platform.resources.vertex.machines import refused_disk_size, refused_disk_type, vertex_disk_types
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.node_pool import NodePoolView
from training_platform.views.vertex import PersistentPoolView

_DISKS_GO = "GKE cluster-autoscaler 7d25050, disks.go, read 2026-08-21"
_VERTEX = "Vertex AI docs, configure compute, and machine_resources.proto, read 2026-08-22"


@rule(
    "boot-disk-size",
    ruleset="disks",
    facts=("DSK-04",),
    source=f"{_DISKS_GO}; terraform-provider-google-beta 93c65b2, disk_size_gb",
)
def boot_disk_size(pool: NodePoolView) -> Iterator[Draft]:
    """Find a boot disk that is smaller or larger than GKE allows, in GB as the API counts them."""
    yield from _size(pool, BOOT_DISK_LIMITS["gke"])


@rule("vertex-boot-disk-size", ruleset="disks", facts=("VPR-03", "VJB-08"), source=_VERTEX)
def vertex_boot_disk_size(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find a boot disk that is smaller or larger than Vertex AI allows, in GB as its API counts them."""
    yield from _size(pool, BOOT_DISK_LIMITS["vertex"])


@rule(
    "vertex-boot-disk-written",
    ruleset="disks",
    severity="warning",
    facts=("VPR-03",),
    source=f"{_VERTEX}; gcloud reference",
)
def vertex_boot_disk_written(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find a persistent resource without a disk size or type: sources disagree on the defaults, and jobs must match."""
    if pool.disk_gb is None:
        yield finding(pool, "disk_gb", "is not written", allowed="a size in GB", nearest=100)
    if pool.disk_type is None:
        yield finding(
            pool, "disk_type", "is not written", allowed=", ".join(vertex_disk_types(pool.machine)), nearest="pd-ssd"
        )


@rule("boot-disk-type", ruleset="disks", facts=("DSK-01", "DSK-02", "DSK-03", "DSK-04"), source=_DISKS_GO)
def boot_disk_type(pool: NodePoolView) -> Iterator[Draft]:
    """Find a boot disk type that the machine type does not support; autoscaled pools would fail only at scale-up."""
    machine = MACHINE_TYPES.get(pool.machine_type or "")
    if pool.disk_type is None or machine is None:
        return
    if wrong := refused_disk_type(machine.name, pool.disk_type, machine.boot_disk_types):
        # The rows of CPU machines are of auto-provisioning, and owners deploy n2d with Hyperdisk.
        disputed = machine.kind == "cpu" or "boot_disk_types" in machine.unverified
        yield finding(pool, "disk_type", **wrong._asdict(), severity="warning" if disputed else None)


@rule("vertex-boot-disk-type", ruleset="disks", facts=("VPR-03",), source=_VERTEX)
def vertex_boot_disk_type(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find a boot disk type that Vertex AI does not support on this machine type."""
    machine = pool.machine
    if pool.disk_type is None or machine is None:
        return
    if wrong := refused_disk_type(machine.name, pool.disk_type, vertex_disk_types(machine)):
        yield finding(pool, "disk_type", **wrong._asdict())


@rule(
    "local-ssd-count",
    ruleset="disks",
    facts=("DSK-06",),
    source="Cluster Toolkit v1.95.0, disk_definitions.tf; GKE cluster-autoscaler 7d25050, read 2026-08-21",
)
def local_ssd_count(pool: NodePoolView) -> Iterator[Draft]:
    """Find a number of local SSDs that the machine type does not support, or none where it has to be set."""
    machine, count = pool.machine, pool.local_ssd_count
    if machine is None:
        return
    if MACHINE_TYPES[machine.name].kind == "cpu":  # optional there, and the catalogue does not say how many
        return
    bundled = machine.local_ssd.bundled
    allowed = (bundled,) if bundled else (0, *machine.local_ssd.allowed)
    if count is None and bundled:
        if not any(_covers_local_ssd(each) for each in pool.ignored or ()):
            message = "is not set, and the API fills it in: every later preview would replace the pool"
            yield finding(
                pool, "local_ssd_count", f"the number of local SSDs {message}", allowed=bundled, nearest=bundled,
                severity="warning",
            )  # fmt: skip
    elif count is not None and count not in allowed:
        nearest = min(allowed, key=lambda each: abs(each - count))
        message = f"{machine.name} does not support {count} local SSDs"
        yield finding(pool, "local_ssd_count", message, allowed=", ".join(map(str, allowed)), nearest=nearest)


@rule(
    "local-ssd-forms",
    ruleset="disks",
    severity="warning",
    source="gcloud's flags of node pools exclude each other, read 2026-11-22; what the API says is (inferred)",
)
def local_ssd_forms(pool: NodePoolView) -> Iterator[Draft]:
    """Find local SSDs in two forms (ephemeral storage, raw blocks, the older count), of which a pool has one."""
    forms = [name for name in _FORMS if getattr(pool, name)]
    if len(forms) > 1:
        said = " and ".join(_FORMS[name] for name in forms)
        message = f"local SSDs are asked for as {said}, but a pool has them in one form"
        yield finding(pool, forms[1], message, allowed="one form", nearest=_FORMS[forms[0]])
    if pool.data_cache_ssds and pool.data_cache_ssds > (pool.ephemeral_ssds or pool.data_cache_ssds):
        message = f"{pool.data_cache_ssds} local SSDs are for the data cache, and the nodes have {pool.ephemeral_ssds}"
        most = pool.ephemeral_ssds
        yield finding(pool, "data_cache_ssds", message, allowed=f"at most {most}", nearest=most)


_FORMS = {"ephemeral_ssds": "ephemeral storage", "block_ssds": "raw blocks", "legacy_ssds": "the older count"}


def _covers_local_ssd(ignored: str) -> bool:
    return ignored == "nodeConfig" or (ignored.startswith("nodeConfig.") and "ssd" in ignored.lower())


def _size(pool: NodePoolView | PersistentPoolView, limits: BootDiskLimits) -> Iterator[Draft]:
    if pool.disk_gb is not None and (wrong := refused_disk_size(pool.disk_gb, limits)):
        yield finding(pool, "disk_gb", **wrong._asdict())
