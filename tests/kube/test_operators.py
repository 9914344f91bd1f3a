"""Ray's clusters and jobs and TrainJobs of a team, by the real controllers, with all that admission has there.

``TRAINING_PLATFORM_KUBERAY`` and ``TRAINING_PLATFORM_TRAINER`` name the controllers of KubeRay and Kubeflow Trainer,
the same with ``_DEFINITIONS`` the folders of their CustomResourceDefinitions (``ray-operator/config/crd/bases`` and
``manifests/base/crds`` of their sources). Nodes are objects only, so no container runs: a test says what becomes of
pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pytest

from tests.kube.clusters import NEEDED
from tests.kube.deployed import FLAVOR, GPU, TEAM, deployed
from tests.kube.operators import (
    GRACE_SECONDS,
    JOBS,
    JOBSETS,
    OPERATORS,
    RAYCLUSTERS,
    RAYJOBS,
    RUNTIMES,
    TRAINJOBS,
    Operated,
    about,
    owned,
    pods_of,
    ray,
    ray_cluster,
    runtime,
    train_job,
    with_field,
)
from tests.kube.queues import Json, until
from training_platform.resources.admission_policy import PODSET_LABEL

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

DEFINITIONS = ("TRAINING_PLATFORM_KUBERAY_DEFINITIONS", "TRAINING_PLATFORM_TRAINER_DEFINITIONS")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    needed = (*NEEDED, "jobset", "kuberay", "trainer")
    with deployed(tmp_path_factory.mktemp("operators"), OPERATORS, needed, DEFINITIONS) as cluster_of_team:
        operated = Operated(cluster_of_team.kueue.client)
        for path, body in KINDS_OF_JOBS.values():
            until(partial(operated.refusal, path, owned(body)), lambda refusal: "must have no controller" in refusal)
        yield operated


@pytest.fixture
def operated(cluster: Operated) -> Iterator[Operated]:
    yield cluster
    cluster.clear()


def ray_job(name: str = "sweep") -> Json:
    spec = {"suspend": True, "shutdownAfterJobFinishes": True, "entrypoint": "python sweep.py", "rayClusterSpec": ray()}
    return {**about("RayJob", name, "ray.io/v1"), "spec": spec}


KINDS_OF_JOBS = {
    "RayCluster": (RAYCLUSTERS, ray_cluster("again")),
    "RayJob": (RAYJOBS, ray_job("again")),
    "TrainJob": (TRAINJOBS, train_job("again")),
}


BOTH = {"gpu-0", "gpu-1"}


def of_ray(name: str) -> str:
    return f"ray.io/cluster={name}"


def test_a_ray_cluster_is_admitted_whole_and_a_second_one_waits_whole(operated: Operated) -> None:
    operated.make(RAYCLUSTERS, ray_cluster("first"))
    operated.runs(TEAM, "first", FLAVOR)
    until(lambda: operated.nodes_of_pods(of_ray("first")), lambda nodes: nodes == BOTH)
    head = until(lambda: operated.pods(f"{of_ray('first')},ray.io/node-type=head"), bool)[0]

    operated.make(RAYCLUSTERS, ray_cluster("second"))

    until(lambda: operated.get(f"{RAYCLUSTERS}/first").get("status", {}), lambda now: now.get("state") == "ready")
    operated.waits(TEAM, "second")
    assert operated.get(f"{RAYCLUSTERS}/second")["spec"]["suspend"] is True
    assert operated.pods(of_ray("second")) == []
    used = operated.get(f"/api/v1/namespaces/{TEAM}/resourcequotas/team")["status"]["used"]
    assert (used["pods"], used[f"requests.{GPU}"], used["count/rayclusters.ray.io"]) == ("3", "16", "2")
    assert (head["spec"]["nodeName"], head["metadata"]["labels"][PODSET_LABEL]) == ("other", "head")
    operated.delete(f"{RAYCLUSTERS}/first")
    operated.gone(of_ray("first"))
    until(lambda: operated.nodes_of_pods(of_ray("second")), lambda nodes: nodes == BOTH)


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "TrainJob"])
def test_a_job_gives_way_to_one_of_more_priority_and_comes_back_whole(operated: Operated, kind: str) -> None:
    path, body = KINDS_OF_JOBS[kind]
    selector = f"kueue.x-k8s.io/podset in ({'node' if kind == 'TrainJob' else 'gpus'})"
    operated.make(RUNTIMES, runtime())
    operated.make(path, body)
    until(lambda: operated.nodes_of_pods(selector), lambda nodes: nodes == BOTH)
    before = operated.pods(selector)[0]["spec"]

    operated.submit(TEAM, "urgent", 8, priority="high")

    operated.gone(selector)
    operated.runs(TEAM, "urgent", FLAVOR)
    operated.waits(TEAM, body["metadata"]["name"])
    operated.delete(f"{JOBS}/urgent")
    operated.gone("job-name=urgent")
    until(lambda: operated.nodes_of_pods(selector), lambda nodes: nodes == BOTH)
    after = operated.pods(selector)[0]["spec"]
    for field in ("nodeSelector", "tolerations"):
        assert after[field] == before[field]


def test_a_ray_job_gets_its_cluster_and_then_its_submitter(operated: Operated) -> None:
    operated.make(RAYJOBS, ray_job())
    operated.runs(TEAM, "sweep", FLAVOR)
    name = operated.cluster_of("sweep")

    until(lambda: operated.nodes_of_pods(of_ray(name)), lambda nodes: nodes == BOTH)

    def submitters() -> list[Json]:
        operated.pods(of_ray(name))  # once all are ready
        return operated.pods("job-name=sweep")

    (submitter,) = until(submitters, lambda pods: bool(pods) and "nodeName" in pods[0]["spec"])
    assert (submitter["spec"]["nodeName"], submitter["metadata"]["labels"][PODSET_LABEL]) == ("other", "submitter")
    assert operated.workloads() == ["sweep"]


def test_a_train_job_is_admitted_whole_and_a_second_one_waits_whole(operated: Operated) -> None:
    operated.make(RUNTIMES, runtime())
    for name in ("first", "second"):
        operated.make(TRAINJOBS, train_job(name))

    of_first = "jobset.sigs.k8s.io/jobset-name=first"
    until(lambda: operated.nodes_of_pods(of_first), lambda nodes: nodes == BOTH)
    operated.waits(TEAM, "second")
    for pod in operated.pods(of_first):
        assert pod["metadata"]["labels"][PODSET_LABEL] == "node"
        assert pod["spec"]["terminationGracePeriodSeconds"] == GRACE_SECONDS
    assert operated.pods("jobset.sigs.k8s.io/jobset-name=second") == []
    assert operated.workloads() == ["first", "second"]
    operated.delete(f"{TRAINJOBS}/first")
    operated.gone(of_first)
    of_second = "jobset.sigs.k8s.io/jobset-name=second"
    until(lambda: operated.nodes_of_pods(of_second), lambda nodes: nodes == BOTH)


def test_members_change_no_part_of_an_admitted_job(operated: Operated) -> None:
    """Kueue has counted the job, and would not count what members add to a part of it."""
    operated.make(RAYJOBS, ray_job())
    name = operated.cluster_of("sweep")
    (group,) = operated.get(f"{RAYCLUSTERS}/{name}")["spec"]["workerGroupSpecs"]
    more = {"spec": {"workerGroupSpecs": [{**group, "replicas": 3, "maxReplicas": 3}]}}
    refusal = "only its controller may change"  # readable: deployed as it is
    assert refusal in operated.changed(f"{RAYCLUSTERS}/{name}", more)
    operated.delete(f"{RAYJOBS}/sweep")
    operated.gone(of_ray(name))

    operated.make(RUNTIMES, runtime())
    operated.make(TRAINJOBS, train_job())
    until(lambda: operated.nodes_of_pods("jobset.sigs.k8s.io/jobset-name=tune"), lambda nodes: nodes == BOTH)
    larger = {"spec": {"parallelism": 3, "completions": 3}}
    assert refusal in operated.changed(f"{JOBS}/tune-node-0", larger)
    assert refusal in operated.changed(f"{JOBSETS}/tune", {"spec": {"suspend": True}})


def test_a_ray_cluster_is_deleted_with_its_pods_only(operated: Operated) -> None:
    operated.make(RAYCLUSTERS, ray_cluster())
    until(lambda: operated.nodes_of_pods(of_ray("rays")), lambda nodes: nodes == BOTH)

    assert "deleted with its pods" in operated.deleted(f"{RAYCLUSTERS}/rays", propagationPolicy="Orphan")
    assert "deleted with its pods" in operated.deleted(f"{RAYCLUSTERS}/rays", orphanDependents=True)
    assert "only controllers may add finalizers" in operated.changed(
        f"{RAYCLUSTERS}/rays", {"metadata": {"finalizers": ["orphan"]}}
    )

    assert operated.deleted(f"{RAYCLUSTERS}/rays") == ""
    operated.gone(of_ray("rays"))


@pytest.mark.parametrize("field", ["replicas", "numOfHosts"])
def test_a_ray_cluster_that_runs_does_not_grow(operated: Operated, field: str) -> None:
    """Its operator would create pods before Kueue looks."""
    small = with_field(ray_cluster(), "spec.workerGroupSpecs", ray(1)["workerGroupSpecs"])
    operated.make(RAYCLUSTERS, small)
    until(lambda: operated.nodes_of_pods(of_ray("rays")), lambda nodes: len(nodes) == 1)
    (group,) = operated.get(f"{RAYCLUSTERS}/rays")["spec"]["workerGroupSpecs"]
    more = {"workerGroupSpecs": [{**group, "maxReplicas": 2, field: 2}]}

    assert "keeps its size" in operated.changed(f"{RAYCLUSTERS}/rays", {"spec": more})
    assert operated.changed(f"{RAYCLUSTERS}/rays", {"spec": {**more, "suspend": True}}) == ""
    assert operated.changed(f"{RAYCLUSTERS}/rays", {"metadata": {"annotations": {"note": "mine"}}}) == ""


@pytest.mark.parametrize(
    "patches",
    [
        [],
        [{"manager": "example.com/ada", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": []}}}}],
    ],
)
def test_a_train_job_that_runs_keeps_its_pods_and_is_deleted_with_them(operated: Operated, patches: list[Json]) -> None:
    operated.make(RUNTIMES, runtime())
    operated.make(TRAINJOBS, train_job())
    until(lambda: operated.nodes_of_pods("jobset.sigs.k8s.io/jobset-name=tune"), lambda nodes: nodes == BOTH)

    assert operated.changed(f"{TRAINJOBS}/tune", {"spec": {"runtimePatches": patches}})
    assert operated.changed(f"{TRAINJOBS}/tune", {"spec": {"trainer": {"numNodes": 3}}})
    assert "deleted with its pods" in operated.deleted(f"{TRAINJOBS}/tune", propagationPolicy="Orphan")
    assert operated.deleted(f"{TRAINJOBS}/tune") == ""
    operated.gone("jobset.sigs.k8s.io/jobset-name=tune")


def test_a_runtime_does_not_shrink_while_jobs_of_it_wait(operated: Operated) -> None:
    """Kueue would count the new pods, and the job would run with those that it was created with."""
    operated.make(RUNTIMES, runtime())
    smaller = with_field(runtime(), "spec.template.spec.replicatedJobs.0.template.spec.template", pods_of("node"))

    assert "the spec of a runtime cannot change" in operated.changed(f"{RUNTIMES}/torch", {"spec": smaller["spec"]})
    assert operated.changed(f"{RUNTIMES}/torch", {"metadata": {"annotations": {"note": "mine"}}}) == ""


def patched(template: Json) -> Json:
    """Return what a TrainJob may change of the pods of its runtime."""
    jobs = [{"name": "node", "template": {"spec": {"template": template}}}]
    return {"manager": "example.com/ada", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


FORGED = {PODSET_LABEL: "node"}
WORKER = "spec.workerGroupSpecs.0"
HEAD = "spec.headGroupSpec"
ATTEMPTS: Mapping[str, tuple[str, Json, str]] = {
    "the head may change pods": (
        RAYCLUSTERS, with_field(ray_cluster(), "spec.enableInTreeAutoscaling", True), "cannot scale its cluster",
    ),
    "a job's head may change pods": (
        RAYJOBS, with_field(ray_job(), "spec.rayClusterSpec.enableInTreeAutoscaling", True), "cannot scale its cluster",
    ),
    "the dashboard stands on the internet": (
        RAYCLUSTERS, with_field(ray_cluster(), f"{HEAD}.enableIngress", True), "cannot have an Ingress",
    ),
    "a job's dashboard stands on the internet": (
        RAYJOBS, with_field(ray_job(), (
            "spec.rayClusterSpec.headGroupSpec.enableIngress"
        ), True), "cannot have an Ingress",
    ),
    "workers pass for admitted ones": (
        RAYCLUSTERS, with_field(ray_cluster(), (
            f"{WORKER}.template.metadata.labels"
        ), FORGED), "only Kueue may set the label",
    ),
    "a runtime's pods pass for admitted ones": (
        RUNTIMES,
        with_field(runtime(), "spec.template.spec.replicatedJobs.0.template.spec.template.metadata.labels", FORGED),
        "only Kueue may set the label",
    ),
    "workers choose a node": (
        RAYCLUSTERS, with_field(ray_cluster(), f"{WORKER}.template.spec.nodeName", "gpu-node"), "may not be set",
    ),
    "the head takes a GPU's node": (
        RAYCLUSTERS, with_field(ray_cluster(), f"{HEAD}.template.spec.tolerations", [{"operator": "Exists"}]),
        "may tolerate neither",
    ),
    "workers end in a year": (
        RAYCLUSTERS,
        with_field(ray_cluster(), f"{WORKER}.template.spec.terminationGracePeriodSeconds", 31_536_000),
        "within 900 seconds",
    ),
    "a runtime's pods end in a year": (
        RUNTIMES,
        with_field(
            runtime(),
            "spec.template.spec.replicatedJobs.0.template.spec.template.spec.terminationGracePeriodSeconds",
            31_536_000,
        ),
        "within 900 seconds",
    ),
    "a head takes another's priority": (
        RAYJOBS,
        with_field(ray_job(), "spec.rayClusterSpec.headGroupSpec.template.spec.priorityClassName", "gmp-critical"),
        "only these priority classes",
    ),
    "its queue knows no such priority": (
        RAYCLUSTERS, ray_cluster(**{"kueue.x-k8s.io/priority-class": "of-others"}), "only these priority classes",
    ),
    "a finalizer holds the namespace": (
        TRAINJOBS,
        with_field(train_job(), "metadata.finalizers", ["example.com/own"]),
        "only controllers may add finalizers",
    ),
    "it would never start, for a field that Kueue loses": (
        TRAINJOBS,
        with_field(train_job(), "spec.runtimePatches", [patched({"spec": {"terminationGracePeriodSeconds": 60}})]),
        "terminationGracePeriodSeconds",  # which 2.3 knows and our policy refuses, and 2.2 does not know
    ),
    "a TrainJob's pods pass for admitted ones": (
        TRAINJOBS, with_field(train_job(), "spec.runtimePatches", [patched({"metadata": {"labels": FORGED}})]),
        "only Kueue may set the label",
    ),
}  # fmt: skip


def test_a_patch_may_tolerate_the_nodes_of_what_its_runtime_requests(operated: Operated) -> None:
    operated.make(RUNTIMES, runtime())
    tolerating = patched({"spec": {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}})

    assert operated.refusal(TRAINJOBS, with_field(train_job(), "spec.runtimePatches", [tolerating])) == ""


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_job_that_would_gain_more_than_its_queue_gives_is_refused(operated: Operated, attempt: str) -> None:
    path, body, says = ATTEMPTS[attempt]
    if path == TRAINJOBS:
        operated.make(RUNTIMES, runtime())

    assert says in operated.refusal(path, body)


def test_pods_of_a_ray_cluster_obey_the_namespace(operated: Operated) -> None:
    """Its operator makes them and not a member: what refuses pods refuses these too."""
    annotations = {"devices.gke.io/container.head": "- path: /dev/kmsg"}  # on pods alone these are judged
    spoiled = with_field(ray_cluster(), f"{HEAD}.template.metadata.annotations", annotations)
    operated.make(RAYCLUSTERS, spoiled)
    operated.runs(TEAM, "rays", FLAVOR)

    def events() -> str:
        every = operated.get(f"/api/v1/namespaces/{TEAM}/events")["items"]
        return " ".join(str(event.get("message")) for event in every if event.get("type") == "Warning")

    until(events, lambda messages: "may use devices of the node" in messages)
    assert operated.pods(f"{of_ray('rays')},ray.io/node-type=head") == []
