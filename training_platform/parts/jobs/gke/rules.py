"""Findings about a job's GKE target: jobs that JobSet or Kueue refuse or never start.

Source: their webhooks, read 2026.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.declaration import Draft, finding, located
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.common_rules import JOB_SWEEP
from training_platform.parts.jobs.gke.egress import egress_findings
from training_platform.parts.jobs.gke.gke_job import GkeJob, on_gke
from training_platform.parts.jobs.gke.gpu_direct import nccl_findings
from training_platform.parts.jobs.gke.network_rules import network_findings
from training_platform.parts.jobs.gke.pathways import JOB_IMAGE_SOURCE, pathways_findings
from training_platform.parts.jobs.gke.pods import ROLE, pulled_image
from training_platform.parts.jobs.gke.size_rules import size_findings, slice_shapes, wrong_count
from training_platform.parts.jobs.gke.team_quota import reach
from training_platform.parts.jobs.gke.vm_rules import vm_findings
from training_platform.parts.jobs.job_file import JOB_NAME_RULE
from training_platform.parts.jobs.job_rules import gke_rule
from training_platform.parts.jobs.naming import longest_name
from training_platform.parts.jobs.rendezvous import launcher_findings
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.storage_rules import bucket_findings, data_set_findings, disk_findings
from training_platform.resources.kueue import run_limit_hours

LONGEST_NAME = 63  # of a pod's host name, a DNS label
_RANDOM_SUFFIX = "abcde"  # of a pod's name, with Kubernetes' length


def gke_findings(job: ResolvedJob) -> list[Finding]:
    """Return the findings about the GKE target of a job with a valid file."""
    return located(_drafts(on_gke(job)))


def _drafts(job: GkeJob) -> Iterator[Draft]:
    counted = (job.gke.slices if job.is_tpu else job.gke.nodes) is not None
    if not counted:
        yield from wrong_count(job)
    yield from _image(job)
    yield from slice_shapes(job)
    if counted:
        yield from size_findings(job)
        yield from network_findings(job)
        yield from nccl_findings(job)
        yield from egress_findings(job)
        yield from _run_time(job)
        if not job.gke.pathways:  # with it, one program directs all VMs
            vms = job.slices * job.hosts
            yield from launcher_findings(job, where="GKE", nodes=vms, chips=job.chips_per_pod, tpu=job.is_tpu)
        yield from pathways_findings(job)
    yield from vm_findings(job)
    yield from _unconfined(job)
    yield from _tensorboard(job)
    yield from _grace(job)
    yield from _sweep(job)
    if counted:
        yield from _names(job)
        yield from data_set_findings(job, job.region, vertex=False)
        yield from bucket_findings(job, job.region)
        yield from disk_findings(job, {pool.zone for pool in job.flavor.pools})


def _image(job: GkeJob) -> Iterator[Draft]:
    """Find an image from a source that the admission policy of the cluster refuses."""
    sources = job.environment.image_sources
    image = pulled_image(job)
    if not sources or image.startswith(sources):
        return
    path = ("source", "image") if job.spec.source else ("image",)
    message = f"{image} is not from the image_sources of {job.spec.environment}, so its pods are refused"
    allowed = f"images of {enumeration(sources)}"
    nearest = find_nearest(image, [f"{source}{image.rpartition('/')[2]}" for source in sources])
    yield finding(job, path, message, rule=JOB_IMAGE_SOURCE, allowed=allowed, nearest=nearest)


JOB_RUN_TIME = gke_rule(
    "job-run-time",
    "Find a run that is longer than the lifetime of its queued or flex-start VMs.",
)


def _run_time(job: GkeJob) -> Iterator[Draft]:
    """Find a run time that exceeds the lifetime of the job's VMs, or the maximum in the environment.

    Source: GKE docs, queued provisioning, read 2026-04.
    """
    hours = job.gke.max_run_hours
    path = ("gke", "max_run_hours")
    rule = JOB_RUN_TIME
    if not hours:
        return
    vm_limit = job.vm_hours if job.flavor.by_request else None
    limits = [limit for limit in (vm_limit, run_limit_hours(job.team, job.environment)) if limit]
    if limits and hours > min(limits):
        max_hours = min(limits)
        subject = f"VMs of {job.flavor.name} run" if max_hours == vm_limit else f"jobs of team {job.team.name} may run"
        message = f"{subject} for at most {max_hours:,} hours: then Kueue deactivates the job"
        yield finding(job, path, message, rule=rule, allowed=f"at most {max_hours:,}", nearest=max_hours)
    elif job.vm_hours and hours > job.vm_hours:
        message = (
            f"is {hours:,}, but GKE deletes VMs of {job.flavor.name} after {job.vm_hours:,} hours: the run then "
            "waits for new ones, and starts again from its last checkpoint"
        )
        allowed = f"at most {job.vm_hours:,}, or checkpoints that the program resumes from"
        yield finding(job, path, message, rule=rule, severity="warning", allowed=allowed, nearest=job.vm_hours)


JOB_TENSORBOARD = gke_rule(
    "job-tensorboard",
    "Find `tensorboard`, which streams logs only on Vertex AI, in a job on GKE.",
    severity="warning",
)


JOB_UNCONFINED = gke_rule("job-unconfined", "Find a program without a filter of system calls in a confined team.")


def _unconfined(job: GkeJob) -> Iterator[Draft]:
    if job.gke.unconfined and job.team.confined:
        message = f"team {job.team.name} is confined: the cluster would refuse its pods"
        allowed = "false, or confined: false in the team's stack"
        yield finding(job, ("gke", "unconfined"), message, rule=JOB_UNCONFINED, allowed=allowed, nearest="false")


def _tensorboard(job: GkeJob) -> Iterator[Draft]:
    """Find a TensorBoard in a job on GKE, where nothing streams logs to it."""
    if job.spec.tensorboard and job.spec.output and job.spec.vertex is None:
        message = "has no effect on GKE, which does not stream logs to a TensorBoard"
        allowed = "the field left out, and tb-gcp-uploader --logdir $AIP_TENSORBOARD_LOG_DIR in the command"
        yield finding(job, ("tensorboard",), message, rule=JOB_TENSORBOARD, allowed=allowed)


SPOT_SECONDS = 25  # Source: GKE docs, spot VMs, graceful termination of pods that are not system pods, read 2026-11
JOB_GRACE = gke_rule(
    "job-grace",
    "Find a grace period that is longer than spot VMs allow.",
    severity="warning",
)
JOB_GRACE_REFUSED = gke_rule(
    "job-grace-refused",
    "Find a grace period that is longer than the environment's max_grace_seconds.",
)


def _grace(job: GkeJob) -> Iterator[Draft]:
    """Find a grace period for a checkpoint that is longer than spot VMs or the cluster allow."""
    seconds = job.gke.grace_seconds
    path = ("gke", "grace_seconds")
    if job.flavor.capacity == "spot" and seconds > SPOT_SECONDS and "grace_seconds" in job.gke.model_fields_set:
        message = f"is {seconds}, but VMs of {job.flavor.name} end {SPOT_SECONDS} seconds after their notice"
        allowed = f"at most {SPOT_SECONDS}"
        yield finding(job, path, message, rule=JOB_GRACE, allowed=allowed, nearest=SPOT_SECONDS)
    max_seconds = job.environment.max_grace_seconds
    if seconds > max_seconds:
        message = f"is {seconds}, but the cluster refuses pods with more than max_grace_seconds"
        yield finding(job, path, message, rule=JOB_GRACE_REFUSED, allowed=f"at most {max_seconds}", nearest=max_seconds)


_SEARCH_FIELDS = ("metric", "goal", "trials", "parallel", "max_failed_trials")  # of a sweep


def _sweep(job: GkeJob) -> Iterator[Draft]:
    """Find a hyperparameter search, which GKE does not support, and sweep fields that only such a search can have."""
    sweep = job.spec.sweep
    if sweep is None:
        return
    unused = [field for field in _SEARCH_FIELDS if field in sweep.model_fields_set]
    if sweep.method != "grid":
        message = f"GKE does not search: a {sweep.method} search runs on Vertex AI"
        allowed = f"grid, without {enumeration(unused)}" if unused else "grid"
        yield finding(job, ("sweep", "method"), message, rule=JOB_SWEEP, allowed=allowed, nearest=allowed)
        return
    if not job.gke.pool and job.flavor.name in job.team.shares[job.gke.cluster]:
        _, reachable = reach(job)
        if not math.isinf(reachable):  # some stack files are unreadable
            number = int(reachable) // job.demand
            message = f"starts each run when the team's quota has room: at most {number:,} at the same time"
            yield finding(job, ("sweep",), message, rule=JOB_SWEEP, severity="note")
    if job.spec.vertex is None:
        for field in unused:
            message = "has no effect on GKE, where the queue decides how many runs start"
            yield finding(job, ("sweep", field), message, rule=JOB_SWEEP, severity="warning", allowed="no such field")


def _names(job: GkeJob) -> Iterator[Draft]:
    """Find a job whose pod names would be too long. Source: JobSet 08dfbdfd, jobset_webhook.go."""
    longest = len(f"{longest_name(job)}-{ROLE}-{job.slices - 1}-{job.hosts - 1}-{_RANDOM_SUFFIX}")
    if longest > LONGEST_NAME:
        max_characters = len(job.name) - (longest - LONGEST_NAME)
        message = f"names of its pods would have {longest} characters, but Kubernetes allows {LONGEST_NAME}"
        allowed = f"a file name of at most {max_characters} characters"
        yield finding(job, (), message, rule=JOB_NAME_RULE, allowed=allowed)
