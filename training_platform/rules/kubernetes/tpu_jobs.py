"""TPU jobs beside the machines that their selectors ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.shapes import chips_in
from training_platform.catalog.types import MachineType
from training_platform.rules.kubernetes.objects import Json, Wrong, block, entries, object_rule, text, whole
from training_platform.rules.kubernetes.pods import JOB, JOB_SET, jobs, quantity

_TPU: Final = "google.com/tpu"
_ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
_DOCS: Final = "GKE docs, TPUs in GKE, and Cloud TPU docs, machine types, copies of 2026"


@object_rule(
    "tpu-job-chips", JOB, JOB_SET, ruleset="pods", owner="catalogue", facts=("TPU-15", "JBS-05", "KUE-06"), source=_DOCS
)
def tpu_job_chips(inputs: Json) -> Iterator[Wrong]:
    """Find pods that ask for more chips than a VM of their topology has, or too few pods for a slice of several hosts.

    Pods that share a VM ask for fewer; a topology that several machine types offer may be met by any of them.
    """
    for at, job in jobs(inputs):
        pod = block(job, "template", "spec")
        selector = block(pod, "nodeSelector")
        topology, kind = text(selector, _TOPOLOGY), text(selector, _ACCELERATOR)
        asked = [_chips(container) for _, container in entries(pod, "containers")]
        size = chips_in(topology) if topology else None
        if not (size and kind and any(asked)):
            continue
        sizes = sorted({row.chips for row in MACHINE_TYPES.values() if _takes(row, kind, size)})
        if sizes and sum(asked) > sizes[-1]:
            allowed = ", ".join(map(str, sizes))
            message = f"a pod asks for {sum(asked)} chips, and a VM of {kind} with topology {topology} has fewer"
            yield Wrong(f"{at}.template.spec.containers", message, allowed, str(sizes[-1]))
        elif sizes and sum(asked) in sizes and size > sizes[-1]:
            yield from _pods_of_slice(at, job, size // sum(asked))


def _pods_of_slice(at: str, job: Json, hosts: int) -> Iterator[Wrong]:
    for name in ("parallelism", "completions"):
        pods = whole(job, name)
        if pods is not None and pods % hosts:
            message = f"{pods} pods do not fill slices of {hosts} hosts: the others wait for ever"
            yield Wrong(f"{at}.{name}", message, f"{hosts} for one slice", str(hosts))


def _chips(container: Json) -> int:
    resources = block(container, "resources")
    found = (quantity(block(resources, name).get(_TPU)) for name in ("limits", "requests"))
    return int(next((each for each in found if each is not None), 0))


def _takes(row: MachineType, kind: str, size: int) -> bool:
    """Whether VMs of a machine type make slices of a number of chips: alone, or several together."""
    if row.kind != "tpu" or row.accelerator is None or row.accelerator.gke_label != kind:
        return False
    return row.chips == size or (row.multi_host and row.chips < size)
