"""Vertex AI Workbench instances."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.attachments import gpu_counts
from training_platform.catalog.locations import nearest_first, region_of
from training_platform.rules.gke.machines import listed, where_offered
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.vertex import WorkbenchView


@rule(
    "workbench-gpus",
    ruleset="vertex",
    source="Compute docs, GPU machine types, read 2026-08-21; Workbench's own API does not check the pair, as its "
    "document of 2026-10-06 says",
)
def workbench_gpus(instance: WorkbenchView) -> Iterator[Draft]:
    """Find GPUs other than those of the machine type, and GPUs that are not attached to it."""
    machine, kind, count = MACHINE_TYPES.get(instance.machine_type or ""), instance.accelerator_type, instance.gpus
    if machine is None or machine.kind == "tpu":
        return
    if machine.kind == "gpu":
        support = machine.accelerator.vertex if machine.accelerator else None
        if support and (kind, count) != (support.accelerator_type, machine.chips):
            pair = f"{machine.chips} of {support.accelerator_type}"
            message = f"{machine.name} has {pair}, but {count} of {kind or 'none'} are requested"
            yield finding(instance, "accelerator_type", message, allowed=pair)
    elif kind:
        gpu = instance.gpu
        counts = gpu_counts(machine, gpu) if gpu else ()
        if count not in counts and (gpu or not machine.name.startswith("n1-")):
            message = f"{machine.name} does not go with {count} of {kind}"
            near = min(counts, key=lambda each: abs(each - count), default=None)
            field = "accelerator_count" if counts else "accelerator_type"
            yield finding(
                instance, field, message, allowed=", ".join(map(str, counts)) or "none, or an N1 machine", nearest=near
            )


@rule(
    "workbench-zone",
    ruleset="vertex",
    severity="warning",
    source="SkyPilot catalog v8 006059e, read 2026-11-21",
)
def workbench_zone(instance: WorkbenchView) -> Iterator[Draft]:
    """Find a zone that, as far as we know, does not have the machine or its GPUs; a warning, since such lists age."""
    machine = instance.machine
    if machine and not listed(machine, instance.zone):
        gpus = f" with {instance.accelerator_type}" if instance.accelerator_type else ""
        message = f"{machine.name}{gpus} is not listed in {instance.zone}; the list may be older than the zone"
        nearest = next(iter(nearest_first(instance.zone, machine.zones)), None)
        allowed = where_offered(machine, region_of(instance.zone)) or None
        yield finding(instance, "zone", message, allowed=allowed, nearest=nearest)
