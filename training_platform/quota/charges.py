"""Quota keys, and what VMs, file systems and network components charge to quotas.

The demand is summed twice with these functions, once from the views of planned resources, and once from the model in
the tests. Each sum counts VMs on its own. The catalogue says to which quota, if any, each provisioning model is
charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from training_platform.catalog import (
    ACCELERATORS,
    DISK_TYPES,
    FILESTORE_TIERS,
    GENERAL_QUOTAS,
    LUSTRE_TIERS,
    MACHINE_TYPES,
)
from training_platform.catalog.attachments import of_vertex, with_gpus
from training_platform.catalog.locations import region_of
from training_platform.catalog.types import ChargedCapacity, QuotaId
from training_platform.config.reading.finding import Path

_SUFFIXES = ("-per-project-region", "-per-project-zone", "-per-project", "PerProjectPerRegion", "PerRegion")


class QuotaKey(NamedTuple):
    """One limit of one project: service and quota id as the Cloud Quotas API writes them, location, other dimensions.

    ``location`` is a region or a zone, or ``""`` for a limit of the whole project.
    """

    project: str
    service: str
    quota_id: str
    location: str = ""
    dimensions: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return the key for reports: ``GPUS-PER-GPU-FAMILY-... (NVIDIA_H100) in us-central1``."""
        values = ", ".join(value for _, value in self.dimensions)
        return self.quota_id + (f" ({values})" if values else "") + (f" in {self.location}" if self.location else "")


class Holder(NamedTuple):
    """What causes a charge: a stack, the section of its file, and the field whose value could be lowered.

    - ``step`` is how much the charge grows if the field's value grows by one. It is used to calculate the largest
      value that fits. It is 0 if no field determines the amount.
    - ``base`` is the field's minimum value.
    - ``disputed`` means that Google's pages disagree whether the quota counts the charge.
    """

    stack: str
    path: Path
    label: str
    field: Path = ()
    step: float = 0
    base: int = 0
    disputed: bool = False


class Charge(NamedTuple):
    """An amount in ``unit`` that is charged to the first quota in ``keys`` that has a limit in the project."""

    keys: tuple[QuotaKey, ...]
    amount: float
    unit: str
    holder: Holder

    @property
    def key(self) -> QuotaKey:
        """The key that is charged if the project's limits are unknown."""
        return self.keys[0]


def upgrade_label(label: str) -> str:
    """Return the label of a pool's charge for the VMs that exist only during an upgrade."""
    return f"{label} while upgrading"


def short_quota_id(quota_id: str) -> str:
    """Return a quota id without its suffix for the location."""
    for suffix in _SUFFIXES:
        quota_id = quota_id.removesuffix(suffix)
    return quota_id


def quota_key(project: str, quota: QuotaId, location: str) -> QuotaKey:
    """Return the key of a quota for a location. Its scope is the region, the zone or the whole project."""
    place = {"region": region_of(location), "zone": location, "project": ""}[quota.per]
    return QuotaKey(project, quota.service, quota_id=quota.quota_id, location=place, dimensions=quota.dimensions)


def shown(amount: float) -> str:
    """Return a quantity as reports show it."""
    if math.isinf(amount):
        return "unlimited"
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.1f}"


PORTS_PER_ADDRESS = 64_512  # ports of an address of a NAT gateway: from 1024 on
VERTEX_DEFAULT_DISK = "pd-ssd"  # machine_resources.proto; gcloud's reference says pd-standard, so a rule requires it


class VmUsage(NamedTuple):
    """Identical VMs of Compute Engine or Vertex AI in a zone, or spread over the zones of a region.

    ``local_ssd_count`` is the number of partitions per VM; None means the machine type's own number.
    ``accelerator_type`` and ``accelerator_count`` describe GPUs attached to a CPU machine. The type is GKE's name, or
    Vertex AI's for its VMs.
    """

    project: str
    machine_type: str
    nodes: int
    capacity: ChargedCapacity
    location: str
    disk_type: str
    disk_gb: int
    local_ssd_count: int | None = None
    accelerator_type: str | None = None
    accelerator_count: int | None = None


class Usage(NamedTuple):
    """An amount in ``unit`` that is charged to the first quota in ``keys`` that has a limit in the project."""

    keys: tuple[QuotaKey, ...]
    amount: float
    unit: str

    def by(self, holder: Holder) -> Charge:
        """Return this amount as the charge of a holder."""
        return Charge(self.keys, self.amount, unit=self.unit, holder=holder)


def vm_usage(vms: VmUsage) -> list[Usage]:
    """Return the charges of Compute Engine VMs. Raises KeyError for a machine type outside the catalogue."""
    return [_usage(vms.project, vms.location, amount * vms.nodes, *quotas) for amount, quotas in _one_vm(vms)]


def _one_vm(vm: VmUsage) -> Iterator[tuple[float, tuple[QuotaId, ...]]]:
    """Yield the amounts of one VM, each with its quotas. The first quota that has a limit is charged."""
    machine = with_gpus(vm.machine_type, vm.accelerator_type, vm.accelerator_count)
    yield 1, (GENERAL_QUOTAS["instances"],)
    if machine.accelerator:
        quotas = machine.accelerator.quotas
        fallback = machine.accelerator.fallback
        if vm.capacity in quotas:
            yield machine.chips, tuple(quota for quota in (quotas[vm.capacity], fallback.get(vm.capacity)) if quota)
        if machine.kind == "gpu":
            yield machine.chips, (GENERAL_QUOTAS["gpus-all-regions"],)
    if vm.capacity in machine.cpu_quota:  # without a regional quota, vCPUs do not count toward the global one
        yield machine.vcpus, (machine.cpu_quota[vm.capacity],)
        yield machine.vcpus, (GENERAL_QUOTAS["cpus-all-regions"],)
    disk = DISK_TYPES.get(vm.disk_type)
    if disk and disk.quota:
        yield vm.disk_gb, (disk.quota,)
    partitions = machine.local_ssd.bundled if vm.local_ssd_count is None else vm.local_ssd_count
    if partitions:
        # The quota counts a partition's GiB as GB.
        yield partitions * machine.local_ssd.partition_gib, (machine.local_ssd.quota or GENERAL_QUOTAS["local-ssd"],)


def vertex_usage(vms: VmUsage) -> list[Usage]:
    """Return the charges of Vertex AI VMs. Vertex AI uses only its own quotas.

    Raises KeyError for a machine type outside the catalogue.
    """
    machine = of_vertex(vms.machine_type, vms.accelerator_type, vms.accelerator_count)
    if machine is None:
        raise KeyError(vms.machine_type)
    support = machine.accelerator.vertex if machine.accelerator else None
    disk = DISK_TYPES.get(vms.disk_type)
    amounts = (
        (machine.chips, support.quotas.get(vms.capacity) if support else None),
        (machine.vcpus, machine.vertex_cpu_quota.get(vms.capacity)),
        (vms.disk_gb, disk.vertex_quota if disk else None),
    )
    return [_usage(vms.project, vms.location, amount * vms.nodes, quota) for amount, quota in amounts if quota]


def accelerator_usage(project: str, gke_label: str, chips: int, location: str, most_vcpus: int) -> list[Usage]:
    """Return the charges of chips or GPUs of unknown machine types, as on-demand if the catalogue offers that.

    Their number of vCPUs is the lowest that machines with that many chips have, and at most ``most_vcpus``. vCPUs are
    charged only if all these machines use the same quota. Disks are left out, because they depend on the machine types
    that pods will request.
    """
    accelerator = next((row for row in ACCELERATORS.values() if row.gke_label == gke_label), None)
    if accelerator is None or not accelerator.quotas:
        return []
    capacity: ChargedCapacity = "on-demand" if "on-demand" in accelerator.quotas else next(iter(accelerator.quotas))
    amounts = [(chips, accelerator.quotas[capacity])]
    if accelerator.kind == "gpu":
        amounts.append((chips, GENERAL_QUOTAS["gpus-all-regions"]))
    machines = [machine for machine in MACHINE_TYPES.values() if machine.accelerator is accelerator]
    cpu_quotas = {machine.cpu_quota.get(capacity) for machine in machines}
    if len(cpu_quotas) == 1 and (cpu_quota := cpu_quotas.pop()):
        vcpus = min(most_vcpus, math.ceil(chips * min(machine.vcpus / machine.chips for machine in machines)))
        amounts += [(vcpus, cpu_quota), (vcpus, GENERAL_QUOTAS["cpus-all-regions"])]
    return [_usage(project, location, amount, quota) for amount, quota in amounts]


def filestore_usage(project: str, tier: str, capacity_gib: int, location: str) -> list[Usage]:
    """Return the charges of a Filestore instance. An unknown tier charges nothing; another finding reports it."""
    if tier not in FILESTORE_TIERS:
        return []
    return [_usage(project, location, capacity_gib, FILESTORE_TIERS[tier].quota_for(capacity_gib))]


def class_usage(project: str, csi_tier: str, most_gib: int, location: str) -> list[Usage]:
    """Return the most that claims on a StorageClass can charge; ``csi_tier`` is the CSI driver's name of the tier."""
    tier = next((name for name, row in FILESTORE_TIERS.items() if row.csi_tier == csi_tier), "")
    return filestore_usage(project, tier, most_gib, location) if most_gib else []


def lustre_usage(project: str, mbps_per_tib: int | None, capacity_gib: int, zone: str) -> list[Usage]:
    """Return the charges of a Managed Lustre instance. An unknown throughput charges nothing."""
    tier = LUSTRE_TIERS.get(f"lustre-{mbps_per_tib}")
    return [_usage(project, zone, capacity_gib, tier.quota)] if tier else []


def nat_usage(project: str, region: str, addresses: int) -> list[Usage]:
    """Return the charges for the addresses of the NAT gateway in a region."""
    return [_usage(project, region, addresses, GENERAL_QUOTAS["in-use-addresses"])]


def nat_addresses(vms: int, ports: int) -> int:
    """Return the number of addresses needed to give each VM ``ports`` ports to one destination, at least one.

    A gateway with automatic allocation uses this number of addresses. It is general knowledge that an address has
    64,512 ports.
    """
    return max(1, math.ceil(vms * ports / PORTS_PER_ADDRESS))


def network_usage(project: str, quota: str, count: int, region: str) -> Usage:
    """Return the charges of VPCs and their components; ``quota`` is a name such as ``networks`` or ``routers``."""
    return _usage(project, region, count, GENERAL_QUOTAS[quota])


def upgrade_vms(max_vms: int, *, blue_green: bool, max_surge: int) -> int:
    """Return the additional VMs of a pool during an upgrade: the surge, or ``max_vms`` again if blue-green.

    The pools of a cluster are upgraded one after another, so the sum over all pools is more than is needed. Source: GKE
    docs, Ensure resources for node upgrades, read 2026-11-21.
    """
    return max_vms if blue_green else max_surge


def _usage(project: str, location: str, amount: float, *quotas: QuotaId) -> Usage:
    return Usage(_keys(project, location, quotas), amount, unit=quotas[0].unit)


@cache  # thousands of pools charge few different limits
def _keys(project: str, location: str, quotas: tuple[QuotaId, ...]) -> tuple[QuotaKey, ...]:
    return tuple(quota_key(project, quota, location) for quota in quotas)
