"""Node auto-provisioning: pools that GKE makes by itself, within limits of the whole cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import MachineType
from training_platform.config.reading.section import enumeration
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.cluster import AutoProvisioningView, Limit
from training_platform.views.cluster_pools import pools_of
from training_platform.views.program import Program

_CA = "GKE cluster-autoscaler 7d25050, limiter and disks.go, read 2026-08-21"
_SCHEMA = "terraform-provider-google-beta 93c65b2, cluster_autoscaling"
BUILT_IN = ("cpu", "memory")
DEFAULT_DISK = "pd-standard"  # the provider's, where a block of defaults names none
LEAST_HYPERDISK_GB = 100


@rule("auto-provisioning-limits", ruleset="auto-provisioning", facts=("CLU-09",), source=f"xpk 367c838, nap.py; {_CA}")
def auto_provisioning_limits(each: AutoProvisioningView) -> Iterator[Draft]:
    """Find limits without vCPUs or memory, or too low for one machine with the accelerator that they name."""
    for resource in BUILT_IN:
        if each.limit(resource) is None:
            message = f"auto-provisioning has no limit of {resource}, so it creates no pools"
            yield finding(each, "limits", message, allowed="limits of cpu and memory in addition to accelerators")
    for limit, machines in accelerators(each):
        smallest = min(machines, key=lambda machine: (machine.chips, machine.vcpus))
        wanted = {limit.resource: smallest.chips, "cpu": smallest.vcpus, "memory": smallest.memory_gb}
        for resource, least in wanted.items():
            have = each.limit(resource)
            if have is not None and have < least:
                message = f"the limit of {resource} is {have:,}, and one {smallest.name} has {least:,.0f}"
                yield finding(each, resource, message, allowed=f"at least {least:,.0f}", nearest=f"{least:.0f}")


@rule(
    "auto-provisioning-type",
    ruleset="auto-provisioning",
    severity="warning",
    facts=("CLU-09",),
    source=f"xpk 367c838, nap.py; {_CA}",
)
def auto_provisioning_type(each: AutoProvisioningView) -> Iterator[Draft]:
    """Find a limit of an unknown accelerator: GKE would create no pools for the one that is meant."""
    labels = {accelerator.gke_label for accelerator in ACCELERATORS.values()}
    for limit in each.limits:
        if limit.resource and limit.resource not in labels and limit.resource not in BUILT_IN:
            message = f"{limit.resource!r} is not an accelerator in the catalogue"
            nearest = find_nearest(limit.resource, labels)
            yield finding(each, "limits", message, allowed=enumeration(sorted(labels), most=40), nearest=nearest)


@rule(
    "auto-provisioning-disk",
    ruleset="auto-provisioning",
    severity="warning",
    facts=("CLU-10",),
    source=f"{_SCHEMA}; {_CA}; that no pool can be made then is inferred",
)
def auto_provisioning_disk(each: AutoProvisioningView) -> Iterator[Draft]:
    """Find pool defaults with a boot disk that machines of a limit do not support; GKE may override it (no source)."""
    if not each.written:
        return
    kind = each.disk_type or DEFAULT_DISK
    for limit, machines in accelerators(each):
        if not any(kind in machine.boot_disk_types for machine in machines):
            said = f"is {kind}" if each.disk_type else f"is not written, which means {kind}"
            allowed = machines[0].boot_disk_types
            message = (
                f"the disk type of auto-provisioned pools {said}, which machines with {limit.resource} do not support"
            )
            yield finding(each, "disk_type", message, allowed=", ".join(allowed), nearest=allowed[0])
    if kind.startswith("hyperdisk") and each.disk_gb is not None and each.disk_gb < LEAST_HYPERDISK_GB:
        message = f"the disk of auto-provisioned pools is {each.disk_gb} GB of {kind}"
        yield finding(each, "disk_gb", message, allowed=f"at least {LEAST_HYPERDISK_GB} GB", nearest=LEAST_HYPERDISK_GB)


@rule(
    "auto-provisioning-zones",
    ruleset="auto-provisioning",
    severity="warning",
    facts=("CLU-10",),
    source=f"{_CA}; zones: SkyPilot catalog v8 006059e; Cloud TPU docs",
)
def auto_provisioning_zones(each: AutoProvisioningView) -> Iterator[Draft]:
    """Find auto-provisioning in zones none of which offers an accelerator that it has a limit for; such lists age."""
    for limit, machines in accelerators(each):
        offered = sorted({zone for machine in machines for zone in machine.zones})
        if each.zones and offered and not set(each.zones) & set(offered):
            message = f"{limit.resource} is listed in none of {enumeration(each.zones)}"
            nearest = find_nearest(each.zones[0], offered)
            yield finding(each, "zones", message, allowed=enumeration(offered, most=40), nearest=nearest)


@rule("auto-provisioning-upgrades", ruleset="auto-provisioning", owner="provider", facts=("CLU-10",), source=_SCHEMA)
def auto_provisioning_upgrades(each: AutoProvisioningView) -> Iterator[Draft]:
    """Find a surge of nodes beside blue-green upgrades."""
    if each.strategy == "BLUE_GREEN" and each.max_surge:
        message = f"max surge is {each.max_surge}, and blue-green upgrades have none"
        yield finding(each, "max_surge", message, allowed="none, or strategy SURGE", nearest="SURGE")


def accelerators(each: AutoProvisioningView) -> Iterator[tuple[Limit, list[MachineType]]]:
    """Yield every limit above 0 of an accelerator that the catalogue knows, and the machines that have it."""
    for limit in each.limits:
        machines = [
            machine
            for machine in MACHINE_TYPES.values()
            if machine.accelerator is not None and machine.accelerator.gke_label == limit.resource
        ]
        if machines and limit.maximum != 0:
            yield limit, machines


@rule(
    "auto-provisioning-room",
    ruleset="together",
    across=True,
    facts=("CLU-09",),
    source=f"{_CA}, limiter; acc. xpk nap.py",
)
def auto_provisioning_room(each: AutoProvisioningView, program: Program) -> Iterator[Draft]:
    """Find limits that the cluster's declared pools use up: the limits count all pools, declared ones too."""
    used: dict[str, float] = defaultdict(float)
    for pool in pools_of(each.cluster, program):
        machine, nodes = pool.machine, pool.most_vms
        if machine is None:
            continue
        for resource, amount in zip(BUILT_IN, (machine.vcpus, machine.memory_gb), strict=True):
            used[resource] += amount * nodes
        if machine.accelerator is not None:
            used[machine.accelerator.gke_label] += machine.chips * nodes
    for resource, amount in used.items():
        limit = each.limit(resource)
        if limit is not None and amount > limit:
            message = f"the limit of {resource} is {limit:,}, and the declared pools may use {amount:,.0f}"
            allowed = f"at least {amount:,.0f}, and what new pools need"
            yield finding(each, resource, message, allowed=allowed, nearest=f"{amount:.0f}")
