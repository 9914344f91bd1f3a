"""A job as a JobSet of Kubernetes, queued by Kueue. Pure functions from a resolved job to a manifest.

JobSet v1alpha2: almost nothing of a JobSet can be changed once it exists, so a job is submitted, never deployed by a
stack. A replicated job's ``replicas`` are slices; its Jobs' ``parallelism`` are the VMs of one slice. A GPU job is one
Job over all of its VMs: a pod's rank is JOB_COMPLETION_INDEX, and pod 0 is reached at ``<job>-slice-0-0.<job>``.
Source: JobSet 0.12 multislice page and GKE's page on multislice TPUs with Kueue, read 2026-11-21.
"""

from __future__ import annotations

from typing import Any

from training_platform.clients.kubernetes_api import JOBSETS
from training_platform.config.model.node_pool import POOL_LABEL
from training_platform.config.pools import Flavor
from training_platform.parts.jobs.gke import pathways
from training_platform.parts.jobs.gke.pods import ROLE, gke_target, job_template, layout, run_hours, shape
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
# One Job of the set per node pool, which is one slice over several VMs: two of those that are idle look alike to the
# scheduler, and pods of one Job would spread over both.
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": POOL_LABEL}
# A pod that ended since its node did, or was drained: its Job fails with a reason of its own, and JobSet starts over
# without counting it as one of the retries. What the program does wrong, and a pod that somebody deletes, count.
# Source: JobSet 0.12, pkg/controllers/failure_policy.go and its examples, read 2026-11-22.
INTERRUPTED = {
    "name": "interrupted",
    "action": "RestartJobSetAndIgnoreMaxRestarts",
    "onJobFailureReasons": ["PodFailurePolicy"],
}

# A program that ended with a code that is not to be retried. Kubernetes gives both rules one reason; only the message
# tells them apart. Source: Kubernetes v1.36.3, pkg/controller/job/pod_failure_policy.go.
ENDED = {
    "name": "ended",
    "action": "FailJobSet",
    "onJobFailureReasons": ["PodFailurePolicy"],
    "onJobFailureMessagePatterns": ["failed with exit code"],
}


def jobset(job: ResolvedJob) -> dict[str, Any]:
    """Return the JobSet; ValueError for a job without a GKE target."""
    gke, flavor = gke_target(job)
    queue, *_ = local_queue_names(job.team.name)
    labels = {QUEUE_LABEL: queue, **({PRIORITY_LABEL: gke.priority} if gke.priority else {})}
    leading = pathways.HEAD if gke.pathways else ROLE  # it runs the job's own program, and its end is the job's
    exclusive, hours = _exclusive(flavor), run_hours(job)
    annotations = {
        **({} if gke.pathways else exclusive),
        # A queued job always says the run that it needs.
        **({MAX_RUN_ANNOTATION: str(hours * 3600)} if hours and flavor.by_request else {}),
    }
    slices, hosts = layout(gke, flavor)
    if gke.pathways:
        about = {"metadata": {"annotations": exclusive}} if exclusive else {}  # of the slices alone
        template = {**about, **pathways.worker_template(job, slices, hosts)}
    else:
        template = job_template(job, hosts)
    # JobSet has one counter: of what does not count, nothing else limits the number.
    rules = [*([ENDED] if job.spec.retry_on else []), *([] if job.spec.count_interruptions else [INTERRUPTED])]
    # JobSet writes the coordinator's address into a label too, and refuses one that is too long for that.
    coordinated = len(f"{job.name}-{leading}-0-0.{job.name}") <= LONGEST_LABEL
    return {
        "apiVersion": JOBSETS.api_version,
        "kind": "JobSet",
        "metadata": {
            "name": job.name,
            "namespace": job.team.name,
            "labels": {**job.scope.labels, **labels, **({RUN_LABEL: str(hours * 3600)} if hours else {})},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "failurePolicy": {
                "maxRestarts": job.spec.retries,
                **({"rules": [dict(rule) for rule in rules]} if rules else {}),
            },
            "successPolicy": {"operator": "All", "targetReplicatedJobs": [leading]},
            **({"coordinator": {"replicatedJob": leading, "jobIndex": 0, "podIndex": 0}} if coordinated else {}),
            # Workers look for the head, and JobSet counts a Job that fails before it is there as a failure of all.
            **({"startupPolicy": {"startupPolicyOrder": "InOrder"}} if gke.pathways else {}),
            "ttlSecondsAfterFinished": KEPT_HOURS * 3600,
            "replicatedJobs": [
                *([pathways.head(job, slices)] if gke.pathways else []),
                {"name": ROLE, "replicas": slices, "template": template},
            ],
        },
    }


def _exclusive(flavor: Flavor) -> dict[str, str]:
    return dict(EXCLUSIVE) if shape(flavor).multi_host and not flavor.topology_levels else {}  # else Kueue picks slices
