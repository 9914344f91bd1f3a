"""A job's CustomJobSpec, which a custom job, a tuning job and a training pipeline have alike, and what it charges.

Source: Vertex AI docs on custom jobs and Dynamic Workload Scheduler, and the CustomJob proto, read 2026-11-21.
Durations are seconds with an ``s``.
"""

from __future__ import annotations

from typing import Any

from training_platform.config.spec.capacity import Capacity
from training_platform.jobs.outputs import output_uri
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.vertex import VertexTarget
from training_platform.jobs.vertex.deployed import tensorboard_reference
from training_platform.jobs.vertex.pools import pools, vertex_target, vms, worker_pools
from training_platform.quota.charges import Usage, VertexUsage, vertex_usage
from training_platform.resources.cloud_names import jobs_account_email, persistent_resource_id
from training_platform.resources.network.vertex_attachment import attachment

DEFAULT_WAIT_HOURS = 24  # the API's own, for flex-start
_STRATEGIES: dict[Capacity, str] = {"on-demand": "STANDARD", "spot": "SPOT", "flex-start": "FLEX_START"}
_HOUR = 3600


def custom_job(job: ResolvedJob) -> dict[str, Any]:
    """Return the CustomJob, which runs as the team's account for jobs; ValueError for a job without a Vertex target."""
    return {**envelope(job), "jobSpec": custom_job_spec(job)}


def envelope(job: ResolvedJob) -> dict[str, Any]:
    """Return what all three kinds say beside their specs: name, labels, and the key that encrypts them."""
    key = vertex_target(job).kms_key
    return {
        "displayName": job.name,
        "labels": job.scope.labels,
        **({"encryptionSpec": {"kmsKeyName": key}} if key else {}),
    }


def custom_job_spec(job: ResolvedJob) -> dict[str, Any]:
    """Return the CustomJobSpec."""
    target, uri = vertex_target(job), output_uri(job)
    network, resource = attachment(target.network_attachment, target.region, job.scope), target.persistent_resource
    optional = {
        "baseOutputDirectory": {"outputUriPrefix": uri} if uri else None,
        "persistentResourceId": persistent_resource_id(job.scope, resource) if resource else None,
        "network": target.network,
        "pscInterfaceConfig": {"networkAttachment": network} if network else None,
        "tensorboard": tensorboard_reference(job, target.region) if job.spec.tensorboard else None,
        **_experiment(job, target),
        "enableWebAccess": target.web_access,
        "enableDashboardAccess": job.spec.profiler,
    }
    return {
        "workerPoolSpecs": worker_pools(job, target),
        "scheduling": _scheduling(job, target),
        "serviceAccount": jobs_account_email(job.scope),
        **{key: value for key, value in optional.items() if value},
    }


def charges(job: ResolvedJob) -> list[Usage]:
    """Return what the job charges to Vertex AI's quotas while it runs; spot and flex-start the preemptible ones.

    All trials of a sweep that run at a time are counted. A job on a persistent resource charges nothing: the resource's
    machines are charged already.
    """
    target, sweep = vertex_target(job), job.spec.sweep
    if target.persistent_resource:
        return []
    slice_vms = vms(target) if target.topology else None
    usages = [
        VertexUsage(
            project=job.scope.project,
            machine_type=pool.machine.name,
            replicas=(slice_vms or pool.replicas) * (min(sweep.parallel, sweep.size) if sweep else 1),
            capacity=target.capacity,
            region=target.region,
            disk_type=target.boot_disk.type,
            disk_gb=target.boot_disk.size_gb,
            accelerator_type=pool.machine.vertex_gpus,
            accelerator_count=pool.machine.chips,
        )
        for pool in pools(target)
    ]
    return _summed(usage for each in usages for usage in vertex_usage(each))


def _summed(usages: Any) -> list[Usage]:
    """Return usages with those of one quota as one, in the order in which they came."""
    by_keys: dict[Any, Usage] = {}
    for usage in usages:
        before = by_keys.get(usage.keys)
        by_keys[usage.keys] = usage._replace(amount=usage.amount + (before.amount if before else 0))
    return list(by_keys.values())


def _experiment(job: ResolvedJob, target: VertexTarget) -> dict[str, str]:
    """Return the full names of the experiment and the run's context in it, which Vertex AI makes."""
    if job.spec.experiment is None:
        return {}
    contexts = f"projects/{job.scope.project}/locations/{target.region}/metadataStores/default/contexts"
    run = f"{job.spec.experiment}-{job.name}"
    return {"experiment": f"{contexts}/{job.spec.experiment}", "experimentRun": f"{contexts}/{run}"}


def _scheduling(job: ResolvedJob, target: VertexTarget) -> dict[str, Any]:
    """Return strategy, time-outs and retries; the wait is always written for flex-start, and for nothing else.

    Where one of several VMs fails, all start again from the last checkpoint, as they do on GKE.
    """
    scheduling: dict[str, Any] = {
        "strategy": _STRATEGIES[target.capacity],
        "timeout": f"{target.timeout_hours * _HOUR}s",
    }
    if target.capacity == "flex-start":
        hours = DEFAULT_WAIT_HOURS if target.max_wait_hours is None else target.max_wait_hours
        scheduling["maxWaitDuration"] = f"{hours * _HOUR}s"
    if job.spec.retries == 0:
        scheduling["disableRetries"] = True
    elif vms(target) > 1:
        scheduling["restartJobOnWorkerRestart"] = True
    return scheduling
