"""Machines made from two rows of the catalogue: a CPU machine type, and GPUs attached to it.

Google Cloud identifies such a machine by machine type, accelerator and count, so ``MACHINE_TYPES`` has no row for it.
``attached`` creates the row from two rows; ``with_gpus`` and ``as_asked`` do so from names. Local SSD is optional on
these machines and is left out, as it is for CPU machines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.types import Accelerator, ChargedCapacity, GpuCount, MachineType, Price, QuotaId

_CPUS: Final = re.compile(
    r"e2-(micro|small|medium|(custom-)?(standard|highmem|highcpu)-\d+)"
    r"|(f1-micro|g1-small)"
    r"|(n2|n2d|n4|n4a|n4d|c2|c2d|c3|c3d|c4|c4a|c4d|t2a|t2d|h3|h4d)-"
    r"(standard|highmem|highcpu|custom)(-\d+){1,2}(-ext)?(-lssd)?(-metal)?"
    r"|(m1|m2|m3|m4|x4)-(ultramem|megamem|hypermem|highmem)-\d+(-metal)?|z3-(highmem|standard)-\d+(-\w+)*(-metal)?"
)
"""The names of CPU machine types to which no GPU can be attached. N1 accepts GPUs and does not match.

Source: the machine families in GKE cluster-autoscaler 7d25050, and its list of families that accept GPUs. Everything
else is general knowledge.
"""


def is_without_gpus(machine_type: str | None) -> bool:
    """Return True if this is a CPU machine type to which no GPU can be attached. It need not be in the catalogue."""
    return _CPUS.fullmatch(machine_type or "") is not None


def gpu_counts(machine: MachineType, accelerator: Accelerator) -> tuple[int, ...]:
    """Return the possible numbers of these GPUs in a VM of this type, in rising order.

    The result is empty if the two do not combine.
    """
    attachment = accelerator.attachment
    family = machine.name.rpartition("-")[0]
    if attachment is None or machine.accelerator is not None or family not in attachment.families:
        return ()
    return _fitting(machine, attachment.counts)


def vertex_counts(machine: MachineType, accelerator: Accelerator) -> tuple[int, ...]:
    """Return the numbers of these GPUs with which Vertex AI offers a VM of this type, in rising order.

    The result is empty if the two do not combine.
    """
    attachment = accelerator.attachment
    if attachment is None or not machine.vertex or not gpu_counts(machine, accelerator):
        return ()
    return _fitting(machine, attachment.vertex_counts)


def attached(machine: MachineType, accelerator: Accelerator, count: int) -> MachineType | None:
    """Return the row of a machine type with GPUs, named after the machine type; None if they do not combine."""
    attachment = accelerator.attachment
    if attachment is None or count not in gpu_counts(machine, accelerator):
        return None
    # CPU machines have no flex-start, whose vCPUs count as spot's.
    spot = machine.cpu_quota.get("spot") if "flex-start" in attachment.capacities else None
    flex_start: dict[ChargedCapacity, QuotaId] = {"flex-start": spot} if spot else {}
    marked_fields = list(machine.unverified)
    if "vertex_counts" in attachment.unverified:
        marked_fields.append("vertex")
    return replace(
        machine,
        kind=accelerator.kind,
        accelerator=accelerator,
        chips=count,
        capacities=attachment.capacities,
        calendar=attachment.calendar,
        zones=attachment.zones,
        missing_zones=(),
        cpu_quota={**machine.cpu_quota, **flex_start},
        price=_price(machine.price, accelerator.price, count),
        minimum_gke=attachment.minimum_gke,
        compact_max_nodes=None,
        vertex=machine.vertex and count in _fitting(machine, attachment.vertex_counts),
        source=f"{machine.source}; {attachment.source}",
        unverified=tuple(marked_fields),
    )


@lru_cache(maxsize=1024)
def with_gpus(machine_type: str, gke_label: str | None, count: int | None) -> MachineType:
    """Return the row of a machine type with the GPUs attached to it, or without them if the two do not combine.

    Raises KeyError for a machine type outside the catalogue.
    """
    machine = MACHINE_TYPES[machine_type]
    if machine.kind != "cpu" or gke_label is None:
        return machine
    gpu = next((row for row in ACCELERATORS.values() if row.gke_label == gke_label), None)
    return (attached(machine, gpu, count or 0) if gpu else None) or machine


def of_vertex(machine_type: str | None, accelerator_type: str | None, count: int | None) -> MachineType | None:
    """Return the row of a machine type with its GPUs, or None for an unknown machine type.

    ``accelerator_type`` is Vertex AI's name of the GPU. See ``with_gpus``.
    """
    if machine_type not in MACHINE_TYPES:
        return None
    gpu = vertex_gpu(accelerator_type)
    return with_gpus(machine_type, gpu.gke_label if gpu else None, count)


def vertex_gpu(accelerator_type: str | None) -> Accelerator | None:
    """Return the GPU with this Vertex AI name, or None if the catalogue does not have it."""
    named = (row for row in ACCELERATORS.values() if row.vertex and row.vertex.accelerator_type == accelerator_type)
    return next(named, None) if accelerator_type else None


@lru_cache(maxsize=1024)
def as_asked(machine_type: str, accelerator: str | None, count: int) -> MachineType:
    """Return the row of a CPU machine type with ``count`` GPUs, even if Google Cloud does not offer the combination.

    For a combination that does not exist, the row is composed from both rows, so that the program can run and a rule
    can report the error. Without an ``accelerator`` nothing is attached. Raises KeyError for names outside the
    catalogue.
    """
    machine = MACHINE_TYPES[machine_type]
    if accelerator is None:
        return machine
    gpu = ACCELERATORS[accelerator]
    return attached(machine, gpu, count) or replace(machine, kind=gpu.kind, accelerator=gpu, chips=count)


def _fitting(machine: MachineType, counts: Iterable[GpuCount]) -> tuple[int, ...]:
    return tuple(sorted(count.gpus for count in counts if machine.vcpus <= count.max_vcpus))


def _price(host: Price | None, gpu: Price | None, count: int) -> Price | None:
    """Return the price of the VM with its GPUs, for each capacity and region in which both parts have a price."""
    if host is None or gpu is None:
        return None
    usd = {
        capacity: {
            region: round(by_region[region] + count * gpu.usd[capacity][region], 6)
            for region in by_region.keys() & gpu.usd.get(capacity, {}).keys()
        }
        for capacity, by_region in host.usd.items()
    }
    priced = {capacity: by_region for capacity, by_region in usd.items() if by_region}
    if not priced:
        return None
    return Price(unit="vm", read=min(host.read, gpu.read), source=f"{host.source}; {gpu.source}", usd=priced)
