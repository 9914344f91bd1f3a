"""A pod's share of its VM: limits and requests for CPUs, memory and disk, and the part of a VM that jobs can use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from training_platform.config.expansion import ExpandedPool
from training_platform.config.reading.source import value_at
from training_platform.parts.jobs.gke.gke_job import GkeJob


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A pod's share of its VM. ``memory`` and ``disk`` are its limits in GiB; the other amounts are its requests.

    ``cpus``, in vCPUs, and the requested amounts are 0 for a pod that has its VM alone, since no other pod can take its
    place.
    """

    memory: int
    disk: int
    cpus: int = 0
    asked_memory: int = 0
    asked_disk: int = 0

    @property
    def shared_memory(self) -> int:
        """The default size of /dev/shm in GiB: half of the memory, as on Linux."""
        return max(1, self.memory // 2)


MODEL_GIB: Final = 30  # seven billion parameters in 16 bits: 14 GiB, loaded once and saved once


def pod_parts(job: GkeJob) -> Parts:
    """Return a pod's share of its VM, from the job's fields and defaults for the smallest VMs that can run it.

    A pod that shares its VM requests its share, so that each of the other accelerators keeps an equal share. Its disk
    limit is always large enough for a model, since 200 GB for eight GPUs would be only 9 GiB for each.
    """
    spec = job.spec
    pools = job.roomy_pools
    parts = {pool.name: job.part_of_vm(pool) for pool in pools}
    memory = max(1, min(int(usable_memory_gib(pool) * parts[pool.name]) for pool in pools))
    disk = max(1, min(int(usable_disk_gib(pool) * parts[pool.name]) for pool in pools))
    limits = Parts(
        memory=spec.memory_gib or max(memory, spec.shared_memory_gib or 0),
        disk=spec.disk_gib or max(disk, min(MODEL_GIB, *map(usable_disk_gib, pools))),
    )
    if all(part == 1 for part in parts.values()) or not job.pool.machine.chips:
        return limits
    return replace(
        limits,
        cpus=max(1, min(int(pool.machine.vcpus * 0.9 * parts[pool.name]) for pool in pools)),
        asked_memory=memory,
        asked_disk=disk,
    )


def resources(job: GkeJob, chips: dict[str, str], parts: Parts | None = None) -> dict[str, Any]:
    """Return the container's requests and limits, without a CPU limit, which would only slow it down.

    Without ``parts``, the container has only the limits that the job sets.

    A program that exceeds its limits fails, and its restarts are counted. Without limits, the kubelet would evict the
    pod to protect the VM. Like the end of a spot VM, an eviction is not counted, so it could repeat forever. The
    content of /dev/shm and checkpoints in memory count as memory. Source: Kubernetes v1.36.3, pkg/kubelet/eviction: an
    eviction for a pod's own limits is not a disruption.
    """
    spec = job.spec
    sizes_gib = {"memory": parts.memory if parts else spec.memory_gib, "ephemeral-storage": spec.disk_gib}
    if parts and not spec.disk_gib:
        caches = sum(mount.file_cache_gib for mount in spec.mounts)  # of a sidecar, counted with the pod
        sizes_gib["ephemeral-storage"] = parts.disk + caches
    cpus = job.cpus_per_pod or (parts.cpus if parts else 0)
    cpu = {"cpu": str(cpus)} if cpus else {}
    limits = {name: f"{size}Gi" for name, size in sizes_gib.items() if size}
    local = {spec.local_checkpoints.medium: spec.local_checkpoints.size_gib} if spec.local_checkpoints else {}
    in_memory = (spec.shared_memory_gib or 0) + local.get("memory", 0)
    on_disk = local.get("ssd", 0)
    requested = {
        "memory": spec.memory_gib or max(in_memory, parts.asked_memory if parts else 0),
        "ephemeral-storage": spec.disk_gib or max(on_disk, parts.asked_disk if parts else 0),
    }
    # Without a request Kubernetes would take the limit.
    requests = {name: f"{size}Gi" if size else "0" for name, size in requested.items() if size or name in limits}
    return {"requests": {**chips, **cpu, **requests}, "limits": {**chips, **limits}}


def vm_sizes(pool: ExpandedPool) -> dict[str, tuple[int, int]]:
    """Return the size of a pool's VM and the part that jobs may use together, keyed by the field that requests it."""
    memory = (int(pool.machine.memory_gb), usable_memory_gib(pool))
    return {
        "cpu": (pool.machine.vcpus, int(pool.machine.vcpus * 0.9)),
        "memory_gib": memory,
        "shared_memory_gib": memory,
        "disk_gib": (local_disk_gib(pool), usable_disk_gib(pool)),
    }


_PAGES: Final = ("node_config", "linux_node_config", "hugepages_config")


def usable_memory_gib(pool: ExpandedPool) -> int:
    """Return the GiB of a VM's memory that a job may use: nine tenths of what GKE and large pages leave.

    The source of GKE's reservation is GKE docs, plan node sizes. Unverified: the figures were not read there again.
    """
    usable = remaining_gb = float(pool.machine.memory_gb)
    for step, share in ((4, 0.25), (4, 0.2), (8, 0.1), (112, 0.06), (usable, 0.02)):
        usable -= min(remaining_gb, step) * share
        remaining_gb = max(0.0, remaining_gb - step)
    pages = value_at(pool.spec.provider_inputs, _PAGES) or {}
    usable -= 0.1  # the kubelet evicts below 100 MiB
    usable -= pages.get("hugepage_size2m", 0) / 512 + pages.get("hugepage_size1g", 0)
    return max(1, int(usable * 0.9))


def usable_disk_gib(pool: ExpandedPool) -> int:
    """Return the GiB of a VM's disk that a job may fill: three quarters of what GKE leaves, since images need space.

    The source of GKE's reservation is GKE docs, plan node sizes. Unverified: the figures were not read there again.
    """
    size = local_disk_gib(pool)
    disks = local_ssds(pool)
    reserved = 25 * (min(disks, 3) + 1) if disks else min(size / 2, 6 + size * 0.35, 100)
    return max(1, int((size * 0.9 - reserved) * 0.75))


def local_disk_gib(pool: ExpandedPool) -> int:
    """Return the GiB of the disk for images and containers' files: local SSD if the VM has it, else the boot disk."""
    return local_ssds(pool) * pool.machine.local_ssd.partition_gib or pool.spec.boot_disk.size_gb


def local_ssds(pool: ExpandedPool) -> int:
    """Return the number of local SSDs that store images and containers' files."""
    local_ssd = pool.spec.local_ssd
    return (local_ssd.count or pool.machine.local_ssd.bundled) if local_ssd.use == "ephemeral" else 0
