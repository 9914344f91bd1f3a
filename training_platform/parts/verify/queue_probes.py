"""Probes of Kueue: queues that it does not serve, and a cohort of the run's own in which jobs are admitted and run.

Flavor, cohort, queues and namespace are the run's own, so that nobody's quota is used. All jobs but one ask for a
resource that no node has: their pods never run, and no node is started.
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
from training_platform.parts.verify.cluster_probes import short
from training_platform.parts.verify.object_record import wait_for
from training_platform.parts.verify.pod_probes import namespace_of_run, pod_of, programs
from training_platform.parts.verify.probes import Answer, Platform, proven, refuted, undecided
from training_platform.resources.kueue import API_VERSION, PRIORITY_LABEL, QUEUE_LABEL
from training_platform.resources.scope import TEAM_LABEL

FLAVORS: Final = ApiKind("apis/kueue.x-k8s.io/v1beta2", "resourceflavors")
JOBS: Final = ApiKind("apis/batch/v1", "jobs")
# The label that counts a pod's restarts. Source: JobSet v0.12.0, RestartsKey and pkg/controllers/jobset_controller.go.
_ATTEMPT: Final = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
RESOURCE: Final = "verify.training-platform.invalid/piece"
"""A resource that no machine has; a queue of the run has two pieces of it."""


def queues_active(platform: Platform) -> Iterator[Answer]:
    """Answer for queues and cohorts that Kueue does not serve, and for the others by cluster."""
    for path, api in platform.clusters.items():
        for kind in (CLUSTER_QUEUES, COHORTS):
            bodies, served = list(api.objects(kind, "")), 0
            for body in bodies:
                active = condition(body, "Active") or {}
                held = (body.get("spec") or {}).get("stopPolicy") not in (None, "None")
                if active.get("status") == "False" and not held:
                    name = f"{kind.plural} {body['metadata']['name']} of {short(path)}"
                    yield refuted(f"{name} is not active: {active.get('reason')}", str(active.get("message", "")))
                else:
                    served += 1
            if served:
                yield proven(f"{served} of {len(bodies)} {kind.plural} of {short(path)} are active")


def queues_admission(platform: Platform) -> Iterator[Answer]:
    """Answer for each step, in every cluster that has Kueue."""
    for cohort in _cohorts(platform, (API_VERSION,), {RESOURCE: "2"}):
        yield from [cohort] if isinstance(cohort, Answer) else cohort.play()


def queues_job(platform: Platform) -> Iterator[Answer]:
    """Answer for a job's life as `job list`, `job logs` and `job why` read it, also once its pods are gone."""
    for cohort in _cohorts(platform, (API_VERSION, JOBSETS.api_version), {"cpu": "1", "memory": "1Gi"}):
        yield from [cohort] if isinstance(cohort, Answer) else cohort.life()


def _cohorts(platform: Platform, apis: Iterable[str], quota: Mapping[str, str]) -> Iterator[_Cohort | Answer]:
    """Yield a cohort in each cluster, or which API it lacks."""
    for path, api in platform.clusters.items():
        missing = [version for version in apis if not api.kinds(version)]
        yield undecided(f"{short(path)} lacks {missing[0]}") if missing else _Cohort(platform, path, quota)


class _Cohort:
    """A cohort of the run's own, with queues ``a`` and ``b`` of the same quota."""

    def __init__(self, platform: Platform, cluster: str, quota: Mapping[str, str]) -> None:
        self._platform, self._cluster = platform, cluster
        self._maker, self._api = platform.maker, platform.clusters[cluster]
        self._name = platform.maker.name()
        self._namespace = namespace_of_run(platform, cluster, {TEAM_LABEL: self._name})
        self._make(FLAVORS, "ResourceFlavor", self._name, {})
        for queue in "ab":
            rows = [{"name": name, "nominalQuota": amount} for name, amount in quota.items()]
            flavor = {"name": self._name, "resources": rows}
            spec = {
                "cohortName": self._name,
                "namespaceSelector": {"matchLabels": {TEAM_LABEL: self._name}},
                "resourceGroups": [{"coveredResources": list(quota), "flavors": [flavor]}],
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            }
            self._make(CLUSTER_QUEUES, "ClusterQueue", f"{self._name}-{queue}", spec)
            self._make(LOCAL_QUEUES, "LocalQueue", queue, {"clusterQueue": f"{self._name}-{queue}"}, self._namespace)

    def play(self) -> Iterator[Answer]:
        """Yield whether jobs are admitted, borrow, are preempted for the owner, and for a higher priority."""
        self._job("first", "a")
        yield self._answer("first", "Admitted", "a job within its queue's quota is admitted")
        self._job("second", "a")
        yield self._answer("second", "Admitted", "a job borrows what another queue of the cohort leaves idle")
        self._job("third", "b")
        yield self._answer("third", "Admitted", "a queue reclaims its quota from the one that borrowed it")
        evicted = [name for name in ("first", "second") if self._evicted(name) == "Preempted"]
        says = "the job that borrowed was preempted, and no other"
        yield proven(says, f"{evicted[0]}: Preempted") if len(evicted) == 1 else refuted(says, f"preempted: {evicted}")
        environment = self._platform.environment
        priorities = sorted(environment.priorities, key=lambda name: environment.priorities[name])
        if not priorities or environment.priorities[priorities[-1]] <= 0:
            yield undecided("a higher priority preempts within a queue", "the environment has no priority above 0")
            return
        self._job("urgent", "b", {PRIORITY_LABEL: priorities[-1]})
        yield self._answer("urgent", "Admitted", f"a job of priority {priorities[-1]} is admitted before others")
        says = "the job of the same queue with less priority was preempted"
        reason = self._evicted("third")
        yield (proven if reason == "Preempted" else refuted)(says, f"third: {reason}")

    def life(self) -> Iterator[Answer]:
        """Yield whether a job restarts after its first failure and ends, and whether its lines and end are found."""
        api, namespace, run = self._api, self._namespace, f"{self._name}-job"
        pod = pod_of(self._platform, programs()["attempt"], container=CONTAINER, env={"RUN": run})
        pod["containers"][0]["env"].append({"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": _ATTEMPT}}})
        template = {"spec": job_spec(1, pod_template({}, pod))}
        body = {
            "apiVersion": JOBSETS.api_version, "kind": "JobSet",
            "metadata": {"name": run, "namespace": namespace, "labels": {QUEUE_LABEL: "a"}},
            "spec": {"failurePolicy": {"maxRestarts": 1},
                     "replicatedJobs": [{"name": ROLE, "replicas": 1, "template": template}]},
        }  # fmt: skip
        self._maker.make(self._cluster, JOBSETS, body)

        def jobset() -> Json:
            return api.get(JOBSETS, namespace, run) or body

        wait_for(lambda: holds(jobset(), "Completed") or holds(jobset(), "Failed"), self._platform.seconds)
        last = gke_run(jobset(), workload_of(jobset(), api.objects(WORKLOADS, namespace)), short(self._cluster))
        says, seen = "a job that fails once restarts, and ends", f"{run}: {last.state}, {last.restarts} restarts"
        if last.state not in ("succeeded", "failed"):
            yield undecided(f"{says}: it is {last.state} after {self._platform.seconds:.0f} s", last.reason or seen)
            return
        yield (proven if (last.state, last.restarts) == ("succeeded", 1) else refuted)(says, last.reason or seen)
        lines = [line for _, line in gke_logs(api, namespace, run, follow=False)]
        written = [line for line in lines if line == f"attempt 1 of {run}"]
        says = "the cluster has the lines of a job that ended"
        yield proven(says, written[0]) if written else refuted(says, f"{len(lines)} lines, none of {run}")
        log = CloudLogging(f"projects/{self._platform.contents.project}", self._platform.endpoint("logging"))
        place = (short(self._cluster), namespace, run)
        end = wait_for(lambda: recorded_end(log, *place), self._platform.seconds)
        says = "Cloud Logging has the record of the job's end"
        held = end is not None and end[0] == "succeeded"
        yield (proven if held else refuted)(says, str(end[1].get("reason")) if end else f"no event of {run}")

        def first() -> str:
            return next((one for one in earlier_attempts(log, *place) if f"attempt 0 of {run}" in one), "")

        says = "Cloud Logging has the lines of an attempt whose pods are gone"
        told = wait_for(first, self._platform.seconds)
        yield proven(says, told) if told else refuted(says, f"none of the first attempt of {run}")

    def _job(self, name: str, queue: str, labels: Mapping[str, str] | None = None) -> None:
        pieces = {RESOURCE: "2"}
        container = {"name": "a", "image": "verify.invalid/none", "resources": {"requests": pieces, "limits": pieces}}
        pod = {"restartPolicy": "Never", "containers": [container]}
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": self._namespace, "labels": {QUEUE_LABEL: queue, **(labels or {})}},
            "spec": {"suspend": True, "backoffLimit": 0, "template": {"spec": pod}},
        }
        self._maker.make(self._cluster, JOBS, body)

    def _make(self, kind: ApiKind, name_of_kind: str, name: str, spec: Json, namespace: str = "") -> None:
        about = {"name": name, **({"namespace": namespace} if namespace else {})}
        body = {"apiVersion": API_VERSION, "kind": name_of_kind, "metadata": about, "spec": spec}
        self._maker.make(self._cluster, kind, body)

    def _workload(self, job: str) -> Json | None:
        for workload in self._api.objects(WORKLOADS, self._namespace):
            if any(owner["name"] == job for owner in workload["metadata"].get("ownerReferences") or ()):
                return workload
        return None

    def _evicted(self, job: str) -> str:
        return str((condition(self._workload(job), "Evicted") or {}).get("reason"))

    def _answer(self, job: str, kind: str, says: str) -> Answer:
        """Return whether a job's workload gets a condition; what Kueue says of it otherwise is the evidence."""
        if wait_for(lambda: holds(self._workload(job), kind), self._platform.seconds):
            return proven(says, f"{job}: {words(self._workload(job), kind)}")
        workload = self._workload(job)
        if workload is None:
            return refuted(f"{says}: Kueue does not see the job", f"{job}: no Workload")
        return refuted(says, f"{job}: {words(workload, 'QuotaReserved') or 'Kueue says nothing'}")
