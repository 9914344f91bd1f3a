"""Renders a job as a JobSet that Kueue queues. Pure functions convert a resolved job to a manifest.

JobSet v1alpha2: almost no field of a JobSet can be changed after its creation. So a job is submitted, and never
deployed by a stack. The ``replicas`` of a replicated job are slices; the ``parallelism`` of its Jobs is the number of
VMs in a slice. A GPU job is one Job over all of its VMs: a pod's rank is JOB_COMPLETION_INDEX, and pod 0 has the host
name ``<job>-slice-0-0.<job>``. Source: JobSet 0.12 multislice page and GKE's page on multislice TPUs with Kueue, read
2026-11-21.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from training_platform.clients.kubernetes_api import JOBSETS
from training_platform.config.model.node_pool import POOL_LABEL
from training_platform.parts.jobs.gke import pathways
from training_platform.parts.jobs.gke.gke_job import GkeJob, on_gke
from training_platform.parts.jobs.gke.pods import ROLE, UNSTARTABLE, job_template
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.resources.kueue import (
    KEPT_HOURS,
    MAX_RUN_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    RUN_LABEL,
    local_queue_names,
)

LONGEST_LABEL = 63
# One Job of the set per node pool, which is one slice of several VMs: two idle slices look the same to the
# scheduler, and pods of one Job would spread over both.
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": POOL_LABEL}
# A pod that ended because its node ended or was drained: its Job fails with a special reason, and JobSet restarts
# without counting a retry. Failures of the program and deleted pods do count.
# Source: JobSet 0.12, pkg/controllers/failure_policy.go and its examples, read 2026-11-22.
INTERRUPTED = {
    "name": "interrupted",
    "action": "RestartJobSetAndIgnoreMaxRestarts",
    "onJobFailureReasons": ["PodFailurePolicy"],
}


def unstartable(retry_on: Collection[int]) -> dict[str, Any]:
    """Return the failure rule for a program that cannot start: no retry, unless its exit code is in ``retry_on``."""
    codes = "|".join(str(code) for code in UNSTARTABLE if code not in retry_on)
    return {
        "name": "unstartable",
        "action": "FailJobSet",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": [f"failed with exit code ({codes}) "],
    }


# A program that ended with a code of ``retry_on``. Kubernetes gives both rules of a Job one reason; only the message
# tells them apart. Source: Kubernetes v1.36.3, pkg/controller/job/pod_failure_policy.go.
RETRIED = {
    "name": "retried",
    "action": "RestartJobSet",
    "onJobFailureReasons": ["PodFailurePolicy"],
    "onJobFailureMessagePatterns": ["failed with exit code"],
}


def ended(leading: str) -> dict[str, Any]:
    """Return the failure rule for a program that ended with an exit code outside ``retry_on``.

    The rule applies only to the replicated job with the program. Workers of Pathways have no exit codes of their own,
    and their failure restarts the run.
    """
    return {
        "name": "ended",
        "action": "FailJobSet",
        "onJobFailureReasons": ["BackoffLimitExceeded"],
        "targetReplicatedJobs": [leading],
    }


def jobset(resolved: ResolvedJob) -> dict[str, Any]:
    """Return the JobSet. Raises ValueError for a job without a GKE target."""
    job = on_gke(resolved)
    queue, *_ = local_queue_names(job.team.name)
    hours = job.run_hours
    labels = {**job.scope.labels, QUEUE_LABEL: queue}
    if job.gke.priority:
        labels[PRIORITY_LABEL] = job.gke.priority
    if hours:
        labels[RUN_LABEL] = str(hours * 3600)
    annotations = dict(EXCLUSIVE) if job.flavor.slices_by_jobset and not job.gke.pathways else {}
    if hours and job.flavor.by_request:  # queued provisioning needs the length of the run
        annotations[MAX_RUN_ANNOTATION] = str(hours * 3600)
    metadata: dict[str, Any] = {"name": job.name, "namespace": job.team.name, "labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": JOBSETS.api_version, "kind": "JobSet", "metadata": metadata, "spec": _spec(job)}


def _spec(job: GkeJob) -> dict[str, Any]:
    leading = pathways.HEAD if job.gke.pathways else ROLE  # runs the job's own program, and ends the job
    # JobSet counts only failures that no rule ignores, and has no other limit of restarts.
    rules = [] if set(UNSTARTABLE) <= {*job.spec.retry_on} else [unstartable(job.spec.retry_on)]
    if job.spec.retry_on:
        rules.append(dict(RETRIED))
    if not job.spec.count_interruptions:
        rules.append(dict(INTERRUPTED))
    if job.spec.retry_on:
        rules.append(ended(leading))
    failure_policy: dict[str, Any] = {"maxRestarts": job.spec.retries}
    if rules:
        failure_policy["rules"] = rules
    spec: dict[str, Any] = {
        "failurePolicy": failure_policy,
        "successPolicy": {"operator": "All", "targetReplicatedJobs": [leading]},
    }
    # JobSet also writes the coordinator's address into a label, and refuses one that is too long for it.
    if len(f"{job.name}-{leading}-0-0.{job.name}") <= LONGEST_LABEL:
        spec["coordinator"] = {"replicatedJob": leading, "jobIndex": 0, "podIndex": 0}
    if job.gke.pathways:
        # Workers look for the head; JobSet counts a Job that fails before the head exists as a failure of the set.
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    spec["ttlSecondsAfterFinished"] = KEPT_HOURS * 3600
    spec["replicatedJobs"] = _replicated_jobs(job)
    return spec


def _replicated_jobs(job: GkeJob) -> list[dict[str, Any]]:
    if not job.gke.pathways:
        return [{"name": ROLE, "replicas": job.slices, "template": job_template(job)}]
    template = pathways.worker_template(job)
    if job.flavor.slices_by_jobset:  # only for the slices: the head shares no node pool
        template = {"metadata": {"annotations": dict(EXCLUSIVE)}, **template}
    return [pathways.head(job), {"name": ROLE, "replicas": job.slices, "template": template}]
