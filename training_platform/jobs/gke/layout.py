"""How many pods a job on GKE has, and on what: slices and their VMs, or the VMs of a GPU job."""

from __future__ import annotations

from training_platform.config.expansion.flavors import Flavor
from training_platform.config.expansion.pools import ExpandedPool
from training_platform.config.spec.node_pool import SLICE_LEVELS
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.gke import GkeTarget
from training_platform.resources.kueue.provisioning import longest_run_hours


def gke_target(job: ResolvedJob) -> tuple[GkeTarget, Flavor]:
    """Return where the job runs on GKE. Raises ValueError for a job without a GKE target."""
    if job.spec.gke is None or job.flavor is None:
        raise ValueError(f"job {job.name} has no gke target")
    return job.spec.gke, job.flavor


def shape(flavor: Flavor) -> ExpandedPool:
    """Return the pool whose VMs a job is laid out for: of the flavor's pools, one with the largest slices or VMs."""
    return max(flavor.pools, key=lambda pool: pool.chips_per_slice)


def layout(gke: GkeTarget, flavor: Flavor) -> tuple[int, int]:
    """Return the number of Jobs and of pods in each: slices and their VMs, or one and the VMs of a GPU job."""
    if flavor.accelerator.kind == "tpu":
        return gke.slices or 1, shape(flavor).hosts
    return 1, gke.nodes or 1


def placement_levels(flavor: Flavor) -> dict[str, str]:
    """Return by name, the widest first, the levels of a flavor's topology that hold several VMs; no levels of slices.

    The level of Kubernetes' host names is one VM, and a job has whole VMs.
    """
    levels = flavor.topology_levels[:-1] if flavor.topology_levels != SLICE_LEVELS else ()
    return {level.rpartition("-")[2]: level for level in levels}


def run_hours(gke: GkeTarget, flavor: Flavor) -> int | None:
    """Return a job's longest run, for which queued VMs are asked; None where nothing limits it."""
    return (gke.max_run_hours or longest_run_hours(flavor)) if flavor.by_request else None
