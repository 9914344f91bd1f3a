"""A job on GKE: its layout over slices or VMs, the part of a VM that a pod gets, and the maximum run time."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from training_platform.catalog.locations import region_of
from training_platform.config.expansion import ExpandedPool, Flavor
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.node_pool import SLICE_LEVELS
from training_platform.parts.jobs.job_model import GkeTarget
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.resources.kueue import longest_run_hours, run_limit_hours

LONGEST_LIFE = 7 * 24  # hours. Source: GKE docs, flex-start and queued provisioning, read 2026-04


@dataclass(frozen=True, kw_only=True)
class GkeJob(ResolvedJob):
    """A resolved job with its target on GKE, and the flavor of its VMs."""

    gke: GkeTarget
    flavor: Flavor

    @property
    def cluster(self) -> ClusterSpec:
        """The cluster in which the job runs."""
        return self.environment.clusters[self.gke.cluster]

    @property
    def region(self) -> str:
        """The region of the cluster."""
        return region_of(self.cluster.location)

    @property
    def is_tpu(self) -> bool:
        """Whether the job runs on TPUs, so that its size is in slices."""
        return self.flavor.accelerator.kind == "tpu"

    @property
    def pool(self) -> ExpandedPool:
        """The pool that determines the job's layout over VMs."""
        return self.flavor.largest_pool

    @property
    def slices(self) -> int:
        """The number of Kubernetes Jobs: one for each slice, or one for all VMs with GPUs or CPUs."""
        return (self.gke.slices or 1) if self.is_tpu else 1

    @property
    def nodes(self) -> int:
        """The number of VMs with GPUs or CPUs."""
        return self.gke.nodes or 1

    @property
    def hosts(self) -> int:
        """The number of pods in each Kubernetes Job: the VMs of a slice, or all VMs."""
        return self.pool.hosts if self.is_tpu else self.nodes

    @property
    def units(self) -> int:
        """The number of slices on TPUs, or of VMs on GPUs."""
        return self.slices if self.is_tpu else self.nodes

    @property
    def chips_per_pod(self) -> int:
        """The chips or GPUs of each pod: the number in the job, or all of its VM; 0 on VMs without accelerators."""
        return self.gke.gpus or self.pool.machine.chips

    @property
    def cpus_per_pod(self) -> int | None:
        """The vCPUs that each pod requests. None if it requests none, since its accelerators reserve the VM.

        On VMs without accelerators, a pod requests nine tenths of the vCPUs unless the job sets a number, so that no
        two such pods share a VM.
        """
        if self.spec.cpu or self.flavor.accelerator.kind != "cpu":
            return self.spec.cpu
        return int(self.pool.machine.vcpus * 0.9) or 1

    @property
    def demand(self) -> int:
        """The amount that Kueue counts: the chips of whole slices, the GPUs of VMs, or the vCPUs in a CPU pool."""
        per_pod = (self.cpus_per_pod or 0) if self.gke.pool else self.chips_per_pod
        return self.slices * self.hosts * per_pod

    @property
    def roomy_pools(self) -> list[ExpandedPool]:
        """The pools of the job's flavor whose VMs have enough accelerators for one of its pods."""
        chips = self.chips_per_pod
        roomy = [pool for pool in self.flavor.pools if pool.machine.chips * pool.places_per_gpu >= chips]
        return roomy or [self.pool]

    @property
    def large_pools(self) -> list[ExpandedPool]:
        """The pools of the flavor whose VMs fit: as many GPUs as in the job's pool, or enough for its part of a VM."""
        if self.gke.gpus is None:
            return [pool for pool in self.flavor.pools if pool.machine.chips == self.pool.machine.chips]
        return [pool for pool in self.flavor.pools if pool.machine.chips >= self.gke.gpus]

    def part_of_vm(self, pool: ExpandedPool) -> float:
        """Return the fraction of a pool's VM that each pod gets.

        It is a fraction of the VM's accelerators, of the places on its shared GPUs or, without accelerators, of its
        vCPUs.
        """
        if pool.machine.chips:
            return min(1, self.chips_per_pod / (pool.machine.chips * pool.places_per_gpu))
        return min(1, self.spec.cpu / pool.machine.vcpus) if self.spec.cpu else 1

    @property
    def placement_levels(self) -> dict[str, str]:
        """The levels of the flavor's topology that contain several VMs, keyed by name, widest first; none for slices.

        The level of Kubernetes' host names is left out, since it contains only one VM, and a job has whole VMs.
        """
        levels = self.flavor.topology_levels[:-1] if self.flavor.topology_levels != SLICE_LEVELS else ()
        return {level.rpartition("-")[2]: level for level in levels}

    @property
    def run_hours(self) -> int | None:
        """The maximum run time in hours; None without a limit. Queued VMs are requested for this time."""
        limits = [self.gke.max_run_hours, run_limit_hours(self.team, self.environment)]
        if self.flavor.by_request and not self.gke.max_run_hours:
            limits.append(longest_run_hours(self.flavor))
        return min((hours for hours in limits if hours), default=None)

    @property
    def vm_hours(self) -> int | None:
        """The maximum lifetime of its VMs in hours, from their pools' ``max_run_hours``; None without a limit."""
        if self.flavor.compute_class or self.flavor.capacity not in ("flex-start", "queued-provisioning"):
            return None
        return min(LONGEST_LIFE, longest_run_hours(self.flavor) or LONGEST_LIFE)


def on_gke(job: ResolvedJob) -> GkeJob:
    """Return a job with its target on GKE. Raises ValueError if it has none."""
    if job.spec.gke is None:
        raise ValueError(f"job {job.name} has no gke target")
    fields = {field.name: getattr(job, field.name) for field in dataclasses.fields(ResolvedJob)}
    return GkeJob(**fields, gke=job.spec.gke)
