"""Probes of Kueue: queues that it does not serve, and a cohort that the run creates, in which it has to admit jobs.

Flavor, cohort, queues and namespace belong to the run, so that nobody else's quota is used. All jobs but one request a
resource that no node has, so their pods never run, and no node is started.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from training_platform.catalog.types import Json
from training_platform.clients.google_services import CloudLogging
from training_platform.clients.kubernetes_api import (
    CLUSTER_QUEUES,
    COHORTS,
    JOBSETS,
    LOCAL_QUEUES,
    WORKLOADS,
    ApiKind,
)
from training_platform.parts.jobs.gke.pods import CONTAINER, ROLE, job_spec, pod_template
from training_platform.parts.jobs.runs.logs import earlier_attempts, gke_logs, recorded_end
from training_platform.parts.jobs.runs.on_gke import condition, gke_run, holds, words, workload_of
from training_platform.parts.verify.cluster_probes import short_name
from training_platform.parts.verify.object_record import wait_for
from training_platform.parts.verify.pod_probes import namespace_of_run, pod_spec, programs
from training_platform.parts.verify.probes import Answer, Platform, proven, refuted, undecided
from training_platform.resources.kueue import API_VERSION, PRIORITY_LABEL, QUEUE_LABEL
from training_platform.resources.pod_admission import CONFINED
from training_platform.resources.scope import TEAM_LABEL

FLAVORS: Final = ApiKind("apis/kueue.x-k8s.io/v1beta2", "resourceflavors")
JOBS: Final = ApiKind("apis/batch/v1", "jobs")
# The label that counts a pod's restarts. Source: JobSet v0.12.0, RestartsKey and pkg/controllers/jobset_controller.go.
_ATTEMPT: Final = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
RESOURCE: Final = "verify.training-platform.invalid/piece"
"""A resource that no machine has. The quota of a queue is two pieces of it."""


def queues_active(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict on each queue and cohort that Kueue does not serve, and one per cluster on all others."""
    for path, api in platform.clusters.items():
        cluster_name = short_name(path)
        for kind in (CLUSTER_QUEUES, COHORTS):
            bodies = list(api.objects(kind, ""))
            served = 0
            for body in bodies:
                active = condition(body, "Active") or {}
                is_stopped = (body.get("spec") or {}).get("stopPolicy") not in (None, "None")
                if active.get("status") == "False" and not is_stopped:
                    name = f"{kind.plural} {body['metadata']['name']} of {cluster_name}"
                    yield refuted(f"{name} is not active: {active.get('reason')}", str(active.get("message", "")))
                else:
                    served += 1
            if served:
                yield proven(f"{served} of {len(bodies)} {kind.plural} of {cluster_name} are active")


def queues_admission(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on admission, borrowing, reclaiming and preemption in each cluster with Kueue."""
    for cohort in _cohorts(platform, (API_VERSION,), {RESOURCE: "2"}):
        if isinstance(cohort, Answer):
            yield cohort
        else:
            yield from cohort.admission_answers()


def queues_job(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on a job as `job list`, `job logs` and `job why` show it, also after its pods are deleted."""
    for cohort in _cohorts(platform, (API_VERSION, JOBSETS.api_version), {"cpu": "1", "memory": "1Gi"}):
        if isinstance(cohort, Answer):
            yield cohort
        else:
            yield from cohort.job_answers()


def _cohorts(platform: Platform, api_versions: Iterable[str], quota: Mapping[str, str]) -> Iterator[_Cohort | Answer]:
    """Yield a test cohort in each cluster, or a verdict that names the API that a cluster does not have."""
    for path, api in platform.clusters.items():
        missing = [version for version in api_versions if not api.kinds(version)]
        if missing:
            yield undecided(f"{short_name(path)} lacks {missing[0]}")
        else:
            yield _Cohort(platform, path, quota)


class _Cohort:
    """A cohort that the run creates in a cluster, with queues ``a`` and ``b`` that have equal quota."""

    def __init__(self, platform: Platform, cluster: str, quota: Mapping[str, str]) -> None:
        self._platform = platform
        self._cluster = cluster
        self._maker = platform.maker
        self._api = platform.clusters[cluster]
        self._name = platform.maker.name()
        self._namespace = namespace_of_run(platform, cluster, {TEAM_LABEL: self._name})
        self._create(FLAVORS, "ResourceFlavor", {"name": self._name}, {})
        quotas = [{"name": resource, "nominalQuota": amount} for resource, amount in quota.items()]
        flavor = {"name": self._name, "resources": quotas}
        for queue in "ab":
            cluster_queue = f"{self._name}-{queue}"
            spec = {
                "cohortName": self._name,
                "namespaceSelector": {"matchLabels": {TEAM_LABEL: self._name}},
                "resourceGroups": [{"coveredResources": list(quota), "flavors": [flavor]}],
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            }
            self._create(CLUSTER_QUEUES, "ClusterQueue", {"name": cluster_queue}, spec)
            metadata = {"name": queue, "namespace": self._namespace}
            self._create(LOCAL_QUEUES, "LocalQueue", metadata, {"clusterQueue": cluster_queue})

    def admission_answers(self) -> Iterator[Answer]:
        """Yield whether jobs are admitted, can borrow, and are preempted by jobs of the owner or of higher priority."""
        self._create_job("first", "a")
        yield self._admission("first", "a job within its queue's quota is admitted")
        self._create_job("second", "a")
        yield self._admission("second", "a job borrows the idle quota of another queue in the cohort")
        self._create_job("third", "b")
        yield self._admission("third", "a queue reclaims its quota from the borrowing queue")
        preempted = [name for name in ("first", "second") if self._eviction_reason(name) == "Preempted"]
        says = "only the borrowing job was preempted"
        if len(preempted) == 1:
            yield proven(says, f"{preempted[0]}: Preempted")
        else:
            yield refuted(says, f"preempted: {preempted}")
        priorities = self._platform.environment.priorities
        highest = max(priorities, key=lambda name: priorities[name], default=None)
        if highest is None or priorities[highest] <= 0:
            yield undecided("a higher priority preempts within a queue", "the environment has no priority above 0")
            return
        self._create_job("urgent", "b", {PRIORITY_LABEL: highest})
        yield self._admission("urgent", f"a job of priority {highest} is admitted before others")
        says = "the job with the lower priority in the same queue was preempted"
        reason = self._eviction_reason("third")
        if reason == "Preempted":
            yield proven(says, f"third: {reason}")
        else:
            yield refuted(says, f"third: {reason}")

    def job_answers(self) -> Iterator[Answer]:
        """Yield whether a job restarts after a failure and then ends, and whether its lines and its end are logged."""
        run = f"{self._name}-job"
        jobset = self._create_jobset(run)

        def current_jobset() -> Json:
            return self._api.get(JOBSETS, self._namespace, run) or jobset

        def has_ended() -> bool:
            current = current_jobset()
            return holds(current, "Completed") or holds(current, "Failed")

        wait_for(has_ended, self._platform.seconds)
        jobset = current_jobset()
        workload = workload_of(jobset, self._api.objects(WORKLOADS, self._namespace))
        state = gke_run(jobset, workload, short_name(self._cluster))
        says = "a job that fails once restarts, and ends"
        evidence = state.reason or f"{run}: {state.state}, {state.restarts} restarts"
        if state.state not in ("succeeded", "failed"):
            yield undecided(f"{says}: the job is {state.state} after {self._platform.seconds:.0f} s", evidence)
            return
        if state.state == "succeeded" and state.restarts == 1:
            yield proven(says, evidence)
        else:
            yield refuted(says, evidence)
        yield self._lines_in_cluster(run)
        yield from self._logged_answers(run)

    def _create_jobset(self, run: str) -> Json:
        """Create a JobSet with one pod that fails in its first attempt."""
        pod = pod_spec(self._platform, programs()["attempt"], container=CONTAINER, env={"RUN": run})
        pod["containers"][0]["env"].append({"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": _ATTEMPT}}})
        template = {"spec": job_spec(1, pod_template({}, pod))}
        jobset = {
            "apiVersion": JOBSETS.api_version,
            "kind": "JobSet",
            "metadata": {"name": run, "namespace": self._namespace, "labels": {QUEUE_LABEL: "a"}},
            "spec": {
                "failurePolicy": {"maxRestarts": 1},
                "replicatedJobs": [{"name": ROLE, "replicas": 1, "template": template}],
            },
        }
        self._maker.make(self._cluster, JOBSETS, jobset)
        return jobset

    def _lines_in_cluster(self, run: str) -> Answer:
        lines = [line for _, line in gke_logs(self._api, self._namespace, run, follow=False)]
        says = "the cluster has the log lines of an ended job"
        expected = f"attempt 1 of {run}"
        if expected in lines:
            return proven(says, expected)
        return refuted(says, f"{len(lines)} lines, none of {run}")

    def _logged_answers(self, run: str) -> Iterator[Answer]:
        """Yield whether Cloud Logging has the end of a job, and the lines of its first attempt."""
        log = CloudLogging(f"projects/{self._platform.contents.project}", self._platform.endpoint("logging"))
        cluster_name = short_name(self._cluster)
        end = wait_for(lambda: recorded_end(log, cluster_name, self._namespace, run), self._platform.seconds)
        says = "Cloud Logging has the record of the job's end"
        if end is None:
            yield refuted(says, f"no event of {run}")
        else:
            state, event, _ = end
            answer = proven if state == "succeeded" else refuted
            yield answer(says, str(event.get("reason")))

        def first_attempt() -> str:
            for line in earlier_attempts(log, cluster_name, self._namespace, run):
                if f"attempt 0 of {run}" in line:
                    return line
            return ""

        says = "Cloud Logging has the log lines of an attempt whose pods no longer exist"
        line = wait_for(first_attempt, self._platform.seconds)
        if line:
            yield proven(says, line)
        else:
            yield refuted(says, f"no line of the first attempt of {run}")

    def _create_job(self, name: str, queue: str, labels: Mapping[str, str] | None = None) -> None:
        pieces = {RESOURCE: "2"}
        container = {"name": "a", "image": "verify.invalid/none", "resources": {"requests": pieces, "limits": pieces},
                     "securityContext": dict(CONFINED)}  # fmt: skip
        pod = {"restartPolicy": "Never", "containers": [container]}
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": self._namespace, "labels": {QUEUE_LABEL: queue, **(labels or {})}},
            "spec": {"suspend": True, "backoffLimit": 0, "template": {"spec": pod}},
        }
        self._maker.make(self._cluster, JOBS, body)

    def _create(self, kind: ApiKind, kind_name: str, metadata: Json, spec: Json) -> None:
        body = {"apiVersion": API_VERSION, "kind": kind_name, "metadata": metadata, "spec": spec}
        self._maker.make(self._cluster, kind, body)

    def _workload(self, job: str) -> Json | None:
        for workload in self._api.objects(WORKLOADS, self._namespace):
            if any(owner["name"] == job for owner in workload["metadata"].get("ownerReferences") or ()):
                return workload
        return None

    def _eviction_reason(self, job: str) -> str:
        return str((condition(self._workload(job), "Evicted") or {}).get("reason"))

    def _admission(self, job: str, says: str) -> Answer:
        """Return a verdict on a job's admission. If it is not admitted, the evidence is Kueue's quota message."""
        if wait_for(lambda: holds(self._workload(job), "Admitted"), self._platform.seconds):
            return proven(says, f"{job}: {words(self._workload(job), 'Admitted')}")
        workload = self._workload(job)
        if workload is None:
            return refuted(f"{says}: Kueue does not see the job", f"{job}: no Workload")
        return refuted(says, f"{job}: {words(workload, 'QuotaReserved') or 'Kueue reports no reason'}")
