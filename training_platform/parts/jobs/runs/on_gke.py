"""Runs on GKE, read from the JobSet and its Workload in Kueue.

Sources: JobSet v1alpha2 and Kueue v1beta2 Go types and controllers (JobSet 0.12, Kueue 0.19.2), read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from training_platform.catalog.types import Json
from training_platform.parts.jobs.naming import job_of
from training_platform.parts.jobs.runs.state import Run, State
from training_platform.quota.chip_hours import ACCELERATORS
from training_platform.resources.kueue import PRIORITY_LABEL

JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
_STARTS = ("ContainerCreating", "PodInitializing")  # reasons of containers that wait for nothing but their start
USER_ANNOTATION = "training-platform/user"


def gke_run(jobset: Json, workload: Json | None, cluster: str) -> Run:
    """Return the run of a JobSet. ``workload`` is None if Kueue has not created it yet, or has deleted it."""
    about = jobset["metadata"]
    status = jobset.get("status") or {}
    state, reason = _state(jobset, workload)
    return Run(
        name=about["name"],
        job=job_of(about["name"]),
        team=about["namespace"],
        target="gke",
        place=cluster,
        identity=about["name"],
        state=state,
        created=about.get("creationTimestamp") or "",
        reason=reason,
        started=_since(workload, "PodsReady") or _since(workload, "Admitted"),
        ended=_since(jobset, "Completed") or _since(jobset, "Failed"),
        user=str((about.get("annotations") or {}).get(USER_ANNOTATION) or ""),
        priority=str((about.get("labels") or {}).get(PRIORITY_LABEL) or ""),
        accelerators=_accelerators(jobset),
        restarts=int(status.get("restartsCountTowardsMax") or 0),
        interruptions=max(0, int(status.get("restarts") or 0) - int(status.get("restartsCountTowardsMax") or 0)),
    )


def with_wait(run: Run, pods: Iterable[Json]) -> Run:
    """Return a run with the reason why its pending pods wait. Starting up counts only if there is no other reason."""
    waits = sorted(filter(None, map(container_wait, pods)), key=lambda wait: wait.get("reason") in _STARTS)
    if run.state != "starting" or not waits:
        return run
    first = waits[0]
    return replace(run, waiting_reason=str(first.get("reason", "")), reason=str(first.get("message") or run.reason))


def container_wait(pod: Json) -> Json:
    """Return reason and message of a pod's waiting container, if possible of one that is not just starting.

    While an init container's image cannot be pulled, the other containers only wait for the pod's initialization.
    """
    status = pod.get("status") or {}
    rows = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    waits = [(row.get("state") or {}).get("waiting") or {} for row in rows]
    return min(filter(None, waits), key=lambda wait: wait.get("reason") in _STARTS, default={})


def _accelerators(jobset: Json) -> int:
    """Return the total number of GPUs or chips that the pods of a JobSet request."""
    total = 0
    for role in jobset["spec"]["replicatedJobs"]:
        spec = role["template"]["spec"]
        containers = spec["template"]["spec"]["containers"]
        limits = [container.get("resources", {}).get("limits", {}) for container in containers]
        chips = sum(int(limit.get(name) or 0) for limit in limits for name in ACCELERATORS)
        total += int(role.get("replicas") or 1) * int(spec.get("parallelism") or 1) * chips
    return total


def workload_of(jobset: Json, workloads: Iterable[Json]) -> Json | None:
    """Return the Workload that a JobSet owns. If a deleted one still exists, return the newest."""
    uid = jobset["metadata"].get("uid")
    owners = [(workload, workload["metadata"].get("ownerReferences") or ()) for workload in workloads]
    owned = [workload for workload, rows in owners if any(row.get("uid") == uid for row in rows)]
    return max(owned, key=lambda workload: str(workload["metadata"].get("creationTimestamp")), default=None)


def flavors_of(workload: Json | None) -> set[str]:
    """Return the flavors in which a Workload holds quota."""
    admission = ((workload or {}).get("status") or {}).get("admission") or {}
    assignments = admission.get("podSetAssignments") or ()
    return {str(name) for assignment in assignments for name in (assignment.get("flavors") or {}).values()}


def condition(obj: Json | None, kind: str) -> Json | None:
    """Return an object's condition with this type and any status, or None."""
    conditions = ((obj or {}).get("status") or {}).get("conditions") or ()
    return next((row for row in conditions if row.get("type") == kind), None)


def holds(obj: Json | None, kind: str) -> bool:
    """Return True if an object has a condition with status True."""
    return (condition(obj, kind) or {}).get("status") == "True"


def words(obj: Json | None, kind: str) -> str:
    """Return the message of a condition, or its reason if there is no message."""
    row = condition(obj, kind) or {}
    return str(row.get("message") or row.get("reason") or "")


def _state(jobset: Json, workload: Json | None) -> tuple[State, str]:
    if holds(jobset, "Completed"):
        return "succeeded", ""
    if holds(jobset, "Failed"):
        return "failed", words(jobset, "Failed")
    if jobset["metadata"].get("deletionTimestamp"):
        return "cancelling", ""
    if workload is None:
        return "waiting", "Kueue has not admitted it yet"
    if (workload.get("spec") or {}).get("active") is False:
        return "waiting", f"deactivated: {words(workload, 'Evicted') or 'somebody set spec.active to false'}"
    if not holds(workload, "Admitted"):
        return "waiting", words(workload, "QuotaReserved") or words(workload, "Evicted")
    if not _pods_are_ready(jobset, workload):
        return "starting", words(workload, "PodsReady")
    return "running", ""


def _pods_are_ready(jobset: Json, workload: Json) -> bool:
    """Return True if all pods of an admitted run are ready. JobSet may report this before Kueue, or instead of it."""
    if condition(workload, "PodsReady"):
        return holds(workload, "PodsReady")
    rows = (jobset.get("status") or {}).get("replicatedJobsStatus") or ()
    ready = {row["name"]: int(row.get("ready") or 0) + int(row.get("succeeded") or 0) for row in rows}
    return all(
        ready.get(role["name"], 0) >= int(role.get("replicas") or 1) for role in jobset["spec"]["replicatedJobs"]
    )


def _since(obj: Json | None, kind: str) -> str:
    return str((condition(obj, kind) or {}).get("lastTransitionTime") or "") if holds(obj, kind) else ""
