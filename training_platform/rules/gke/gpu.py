"""GPU node pools."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import ACCELERATORS
from training_platform.catalog.attachments import gpu_counts
from training_platform.catalog.types import MachineType
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.node_pool import NodePoolView


@rule(
    "gpu-fixed-pair",
    ruleset="gpu",
    facts=("GPU-01", "GPU-02"),
    source="GKE cluster-autoscaler 7d25050, ValidateGpuForMachineType; Compute docs, accelerator-optimized machines",
)
def gpu_fixed_pair(pool: NodePoolView) -> Iterator[Draft]:
    """Find GPUs other than those that the machine type comes with, and GPUs on machines without.

    A pool that does not name the GPUs of its machine type is a warning.
    """
    machine, kind, count = pool.machine, pool.accelerator_type, pool.accelerator_count
    if count == 0 and (machine is None or machine.kind != "gpu"):
        kind = None  # a block of none
    if machine is None:
        return
    if machine.kind != "gpu" or machine.accelerator is None:
        if kind is not None:
            yield _not_attached(pool, machine, kind, count)
        return
    label = machine.accelerator.gke_label
    pair = f"{machine.chips} of {label}"
    if kind is None:
        # GKE fills them in: terraform-docs-samples 77df39c, gke/standard/zonal/dws, has a flex-start pool without.
        message = f"the GPUs of {machine.name} and their driver are left to GKE, which may choose another driver later"
        yield finding(pool, "accelerator_type", message, allowed=pair, nearest=pair, severity="warning")
    elif kind != label:
        yield finding(pool, "accelerator_type", f"{machine.name} has no {kind}", allowed=pair, nearest=label)
    elif count != machine.chips:
        message = f"{machine.name} has {machine.chips} GPUs, and {count} are asked for"
        yield finding(pool, "accelerator_count", message, allowed=pair, nearest=machine.chips)


def _not_attached(pool: NodePoolView, machine: MachineType, kind: str, count: int | None) -> Draft:
    """Return the finding about GPUs that a machine without its own does not take, at all or in this number."""
    accelerator = next((each for each in ACCELERATORS.values() if each.gke_label == kind), None)
    if accelerator is None and kind.startswith("nvidia-") and machine.name.startswith("n1-"):
        message = f"{kind} is not in the catalogue, so that its counts are not checked"
        return finding(pool, "accelerator_type", message, allowed="GPUs of the catalogue", severity="warning")
    counts = gpu_counts(machine, accelerator) if accelerator else ()
    if not counts:
        message = f"{machine.name} does not support GPUs, but {kind} is requested"
        return finding(pool, "accelerator_type", message, allowed="none")
    nearest = min(counts, key=lambda each: abs(each - (count or 0)))
    message = f"{machine.name} does not take {count} of {kind}"
    return finding(pool, "accelerator_count", message, allowed=", ".join(map(str, counts)), nearest=nearest)
