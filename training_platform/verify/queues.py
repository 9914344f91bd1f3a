"""Probes of Kueue: the queues as planned, and a cohort of the run's own in which jobs are admitted and preempted.

The jobs ask for a resource that no node has, so their pods never run, no node is started, and nobody's quota is used:
flavor, cohort, queues and namespace are the run's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import (
    CLUSTER_QUEUES,
    COHORTS,
    LOCAL_QUEUES,
    PROVISIONING_REQUESTS,
    WORKLOADS,
    ApiKind,
    ClusterApi,
)
from training_platform.config.pools import pools
from training_platform.resources.kueue import API_VERSION, PRIORITY_LABEL, QUEUE_LABEL
from training_platform.resources.node_pools import node_pool_name
from training_platform.resources.scope import TEAM_LABEL
from training_platform.verify.clusters import MAKER, POOL_LABEL, cluster_of, namespace_of_run, objects_as_planned
from training_platform.verify.ledger import wait_for
from training_platform.verify.probes import Answer, Platform, probe, proven, refuted, undecided

FLAVORS: Final = ApiKind("apis/kueue.x-k8s.io/v1beta2", "resourceflavors")
JOBS: Final = ApiKind("apis/batch/v1", "jobs")
POD_TEMPLATES: Final = ApiKind("api/v1", "podtemplates")
RESOURCE: Final = "verify.training-platform.invalid/piece"
"""A resource that no machine has; a queue of the run has two pieces of it."""


@probe("queues-as-planned", stage="queues", proves="Flavors, cohorts, queues, priorities are as planned, and active.",
       roles=("roles/container.viewer",), needs=("kubeconfig",), after=("cluster-answers",))  # fmt: skip
def queues_as_planned(platform: Platform) -> Iterator[Answer]:
    """Answer for Kueue's objects, and for queues that Kueue does not serve."""
    yield from objects_as_planned(platform, queues=True)
    for path, api in platform.clusters.items():
        for kind in (CLUSTER_QUEUES, COHORTS):
            for body in api.objects(kind, ""):
                active = _condition(body, "Active")
                held = (body.get("spec") or {}).get("stopPolicy") not in (None, "None")
                if active.get("status") == "False" and not held:
                    name = f"{kind.plural} {body['metadata']['name']} of {path.rpartition('/')[2]}"
                    yield refuted(f"{name} is not active: {active.get('reason')}", str(active.get("message", "")))


@probe("queues-admission", stage="queues", proves="Kueue admits, borrows, reclaims and preempts.",
       roles=MAKER, needs=("kubeconfig",), after=("queues-as-planned",), minutes=3,
       makes="a namespace, a flavor, a cohort of two queues, and four jobs whose pods never run")  # fmt: skip
def queues_admission(platform: Platform) -> Iterator[Answer]:
    """Answer for each step, in every cluster that has Kueue."""
    for path, api in platform.clusters.items():
        if api.kinds(API_VERSION):
            yield from _Cohort(platform, path).play()
        else:
            yield undecided(f"{path.rpartition('/')[2]} has no Kueue")


class _Cohort:
    """A cohort of the run's own, with queues ``a`` and ``b`` of two pieces each."""

    def __init__(self, platform: Platform, cluster: str) -> None:
        self._platform, self._cluster = platform, cluster
        self._maker, self._api = platform.maker, platform.clusters[cluster]
        self._name = platform.maker.name()
        self._namespace = namespace_of_run(platform, cluster, {TEAM_LABEL: self._name})
        self._make(FLAVORS, "ResourceFlavor", self._name, {})
        for queue in "ab":
            quota = {"name": RESOURCE, "nominalQuota": "2"}
            flavor = {"name": self._name, "resources": [quota]}
            spec = {
                "cohortName": self._name,
                "namespaceSelector": {"matchLabels": {TEAM_LABEL: self._name}},
                "resourceGroups": [{"coveredResources": [RESOURCE], "flavors": [flavor]}],
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
        evicted = [
            name for name in ("first", "second") if self._condition(name, "Evicted").get("reason") == "Preempted"
        ]
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
        reason = self._condition("third", "Evicted").get("reason")
        yield (proven if reason == "Preempted" else refuted)(says, f"third: {reason}")

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

    def _condition(self, job: str, kind: str) -> Json:
        workload = _workload_of(self._api, self._namespace, job)
        return _condition(workload or {}, kind)

    def _answer(self, job: str, kind: str, says: str) -> Answer:
        """Return whether a job's workload gets a condition; what Kueue says of it otherwise is the evidence."""
        held = wait_for(lambda: self._condition(job, kind).get("status") == "True", self._platform.seconds)
        if held:
            return proven(says, f"{job}: {self._condition(job, kind).get('message', kind)}")
        if _workload_of(self._api, self._namespace, job) is None:
            return refuted(f"{says}: Kueue does not see the job", f"{job}: no Workload")
        return refuted(says, f"{job}: {self._condition(job, 'QuotaReserved').get('message', 'Kueue says nothing')}")


def _workload_of(api: ClusterApi, namespace: str, job: str) -> Json | None:
    for workload in api.objects(WORKLOADS, namespace):
        if any(owner["name"] == job for owner in workload["metadata"].get("ownerReferences") or ()):
            return workload
    return None


def _condition(body: Mapping[str, Any], kind: str) -> Json:
    rows = (body.get("status") or {}).get("conditions") or ()
    return next((dict(row) for row in rows if row["type"] == kind), {})


@probe("queues-request", stage="queues", proves="GKE accepts a request for queued VMs, which is then deleted.",
       roles=MAKER, needs=("kubeconfig", "pool"), after=("cluster-answers",), by_name=True, minutes=6, usd=30.0,
       makes="a request for one VM of the pool of --pool, deleted as soon as GKE accepts it")  # fmt: skip
def queues_request(platform: Platform) -> Iterator[Answer]:
    """Answer for a pool of queued provisioning; VMs that come before the deletion cost their minutes."""
    wanted = platform.options["pool"]
    for pool in pools(platform.environment):
        cluster, named = cluster_of(platform, pool), wanted in (pool.name, f"{pool.cluster}.{pool.name}")
        if not (named and cluster and pool.gke_pools and pool.machine.accelerator):
            continue
        namespace = namespace_of_run(platform, cluster)
        chips = {pool.machine.accelerator.resource: str(pool.machine.chips)}
        container = {"name": "a", "image": "verify.invalid/none", "resources": {"limits": chips}}
        selector = {POOL_LABEL: node_pool_name(pool, pool.gke_pools[0])}
        spec = {"containers": [container], "nodeSelector": selector, "tolerations": [{"operator": "Exists"}]}
        about = {"name": "request", "namespace": namespace}
        template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": about, "template": {"spec": spec}}
        platform.maker.make(cluster, POD_TEMPLATES, template)
        request = {
            "apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": about,
            "spec": {"provisioningClassName": "queued-provisioning.gke.io",
                     "podSets": [{"count": 1, "podTemplateRef": {"name": "request"}}]},
        }  # fmt: skip
        platform.maker.make(cluster, PROVISIONING_REQUESTS, request)
        api = platform.clusters[cluster]

        def look(api: ClusterApi = api, namespace: str = namespace) -> Json:
            return api.get(PROVISIONING_REQUESTS, namespace, "request") or {}

        says = f"GKE accepts a request for a VM of {wanted}"
        if wait_for(lambda: _condition(look(), "Accepted").get("status") == "True", platform.seconds):
            yield proven(says, "Accepted")
        elif failed := _condition(look(), "Failed").get("message"):
            yield refuted(says, str(failed))
        else:
            yield undecided(says, "GKE has not answered yet")
        return
    yield undecided(f"{wanted} is not a pool of a cluster that can be asked")
