"""A job as the body of ``projects.locations.customJobs.create`` of Vertex AI (REST, camelCase), and what it charges.

Source: Vertex AI docs on custom jobs, distributed training and Dynamic Workload Scheduler, and the CustomJob proto,
read 2026-11-21. Whole numbers of 64 bits are texts in this API's JSON, and durations are seconds with an ``s``.
"""

from __future__ import annotations

from typing import Any

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.topologies import hosts
from training_platform.config.spec.node_pool import Capacity
from training_platform.jobs.container import container, output_uri
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.job import VertexTarget
from training_platform.quota.charges import Usage, VertexUsage, vertex_usage
from training_platform.resources.cloud_names import jobs_account_email, persistent_resource_id

DEFAULT_WAIT_HOURS = 24  # the API's own, for flex-start
_STRATEGIES: dict[Capacity, str] = {"on-demand": "STANDARD", "spot": "SPOT", "flex-start": "FLEX_START"}
_HOUR = 3600


def custom_job(job: ResolvedJob) -> dict[str, Any]:
    """Return the CustomJob, which runs as the team's account for jobs; ValueError for a job without a Vertex target."""
    target = vertex_target(job)
    spec: dict[str, Any] = {
        "workerPoolSpecs": _worker_pools(job, target),
        "scheduling": _scheduling(target),
        "serviceAccount": jobs_account_email(job.scope),
    }
    if uri := output_uri(job):
        spec["baseOutputDirectory"] = {"outputUriPrefix": uri}
    if target.persistent_resource:
        spec["persistentResourceId"] = persistent_resource_id(job.scope, target.persistent_resource)
    return {"displayName": job.name, "labels": job.scope.labels, "jobSpec": spec}


def vertex_target(job: ResolvedJob) -> VertexTarget:
    """Return where the job runs on Vertex AI. Raises ValueError for a job without a Vertex target."""
    if job.spec.vertex is None:
        raise ValueError(f"job {job.name} has no vertex target")
    return job.spec.vertex


def charges(job: ResolvedJob) -> list[Usage]:
    """Return what the job charges to Vertex AI's quotas while it runs; spot and flex-start the preemptible ones.

    A job on a persistent resource charges nothing: the resource's machines are charged already.
    """
    target = vertex_target(job)
    if target.persistent_resource:
        return []
    usage = VertexUsage(
        project=job.scope.project,
        machine_type=target.machine_type,
        replicas=vms(target),
        capacity=target.capacity,
        region=target.region,
        disk_type=target.boot_disk.type,
        disk_gb=target.boot_disk.size_gb,
    )
    return vertex_usage(usage)


def vms(target: VertexTarget) -> int:
    """Return the VMs that Vertex AI starts: the replicas, or the hosts of a TPU's slice."""
    machine = MACHINE_TYPES[target.machine_type]
    return hosts(machine, target.topology or "") or 1 if machine.kind == "tpu" else target.replicas


def _worker_pools(job: ResolvedJob, target: VertexTarget) -> list[dict[str, Any]]:
    """One primary, and the other replicas as workers of the same machine: pool 0 takes exactly one replica."""
    pool = {
        "machineSpec": _machine_spec(target),
        "diskSpec": {"bootDiskType": target.boot_disk.type, "bootDiskSizeGb": target.boot_disk.size_gb},
        "containerSpec": container(job, "imageUri"),
    }
    pools = [{**pool, "replicaCount": "1"}]
    if target.replicas > 1:
        pools.append({**pool, "replicaCount": str(target.replicas - 1)})
    return pools


def _machine_spec(target: VertexTarget) -> dict[str, Any]:
    """Return the machine, with its GPUs spelt out."""
    machine = MACHINE_TYPES[target.machine_type]
    support = machine.accelerator.vertex if machine.accelerator else None
    spec: dict[str, Any] = {"machineType": target.machine_type}
    if support and support.accelerator_type:  # none for TPUs, whose chips follow from machine type and topology
        spec |= {"acceleratorType": support.accelerator_type, "acceleratorCount": machine.chips}
    if target.topology:
        spec["tpuTopology"] = target.topology
    return spec


def _scheduling(target: VertexTarget) -> dict[str, str]:
    """Return strategy and time-outs; the wait is always written for flex-start, and for nothing else."""
    scheduling = {"strategy": _STRATEGIES[target.capacity], "timeout": f"{target.timeout_hours * _HOUR}s"}
    if target.capacity == "flex-start":
        hours = DEFAULT_WAIT_HOURS if target.max_wait_hours is None else target.max_wait_hours
        scheduling["maxWaitDuration"] = f"{hours * _HOUR}s"
    return scheduling
