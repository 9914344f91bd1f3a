"""A job on GKE: its layout over slices or VMs, its pods' parts of a VM, and how long it may run."""

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
    """A resolved job with its target on GKE, and the flavor on whose VMs it runs."""

    gke: GkeTarget
    flavor: Flavor

    @property
    def cluster(self) -> ClusterSpec:
        """The cluster that it runs in."""
        return self.environment.clusters[self.gke.cluster]

    @property
    def region(self) -> str:
        """The cluster's region."""
        return region_of(self.cluster.location)

    @property
    def is_tpu(self) -> bool:
        """Whether it is counted in slices."""
        return self.flavor.accelerator.kind == "tpu"

    @property
    def pool(self) -> ExpandedPool:
        """The pool whose VMs it is laid out for."""
        return self.flavor.largest_pool

    @property
    def slices(self) -> int:
        """The number of its Jobs: slices, or one over all VMs with GPUs or CPUs."""
        return (self.gke.slices or 1) if self.is_tpu else 1

    @property
    def nodes(self) -> int:
        """The number of its VMs with GPUs or CPUs."""
        return self.gke.nodes or 1

    @property
    def hosts(self) -> int:
        """The number of pods of each of its Jobs: the VMs of a slice, or all VMs."""
        return self.pool.hosts if self.is_tpu else self.nodes

    @property
    def units(self) -> int:
        """The number of slices, or of VMs where it has GPUs."""
        return self.slices if self.is_tpu else self.nodes

    @property
    def chips_per_pod(self) -> int:
        """The chips or GPUs of each pod: the job's number, or all of its VM; 0 on VMs without accelerators."""
        return self.gke.gpus or self.pool.machine.chips

    @property
    def cpus_per_pod(self) -> int | None:
        """The vCPUs that each pod requests; None if it requests none, since its accelerators reserve the VM.

        On VMs without accelerators nine tenths are asked for unless the job says a number: no two such pods share a VM.
        """
        if self.spec.cpu or self.flavor.accelerator.kind != "cpu":
            return self.spec.cpu
        return int(self.pool.machine.vcpus * 0.9) or 1

    @property
    def demand(self) -> int:
        """The amount that Kueue counts: chips of whole slices, GPUs of VMs, or vCPUs of a CPU pool."""
        per_pod = (self.cpus_per_pod or 0) if self.gke.pool else self.chips_per_pod
        return self.slices * self.hosts * per_pod

    @property
    def roomy_pools(self) -> list[ExpandedPool]:
        """The pools of its flavor whose VMs have room for one of its pods."""
        chips = self.chips_per_pod
        roomy = [pool for pool in self.flavor.pools if pool.machine.chips * pool.places_per_gpu >= chips]
        return roomy or [self.pool]

    @property
    def large_pools(self) -> list[ExpandedPool]:
        """The pools of its flavor with VMs as large as its layout's, or with enough GPUs for a part of one."""
        if self.gke.gpus is None:
            return [pool for pool in self.flavor.pools if pool.machine.chips == self.pool.machine.chips]
        return [pool for pool in self.flavor.pools if pool.machine.chips >= self.gke.gpus]

    def part_of_vm(self, pool: ExpandedPool) -> float:
        """Return the part that each pod has of a VM of a pool.

        It is counted in accelerators, or in places on shared ones, and in vCPUs on VMs without.
        """
        if pool.machine.chips:
            return min(1, self.chips_per_pod / (pool.machine.chips * pool.places_per_gpu))
        return min(1, self.spec.cpu / pool.machine.vcpus) if self.spec.cpu else 1

    @property
    def placement_levels(self) -> dict[str, str]:
        """The levels of its flavor's topology with several VMs by name, the widest first; none for slices.

        The level of Kubernetes' host names is one VM, and a job has whole VMs.
        """
        levels = self.flavor.topology_levels[:-1] if self.flavor.topology_levels != SLICE_LEVELS else ()
        return {level.rpartition("-")[2]: level for level in levels}

    @property
    def run_hours(self) -> int | None:
        """Its longest run, for which queued VMs are requested; None if nothing limits it."""
        limits = [self.gke.max_run_hours, run_limit_hours(self.team, self.environment)]
        if self.flavor.by_request and not self.gke.max_run_hours:
            limits.append(longest_run_hours(self.flavor))
        return min((hours for hours in limits if hours), default=None)

    @property
    def vm_hours(self) -> int | None:
        """How long its VMs exist at most, from their pools' ``max_run_hours``; None without an end."""
        if self.flavor.compute_class or self.flavor.capacity not in ("flex-start", "queued-provisioning"):
            return None
        return min(LONGEST_LIFE, longest_run_hours(self.flavor) or LONGEST_LIFE)


def on_gke(job: ResolvedJob) -> GkeJob:
    """Return a job with its target on GKE. Raises ValueError for a job without one."""
    if job.spec.gke is None:
        raise ValueError(f"job {job.name} has no gke target")
    fields = {field.name: getattr(job, field.name) for field in dataclasses.fields(ResolvedJob)}
    return GkeJob(**fields, gke=job.spec.gke)
