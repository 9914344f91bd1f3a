"""Ray's clusters and jobs and TrainJobs of a team, by the real controllers, with all that admission has there.

``TRAINING_PLATFORM_KUBERAY`` and ``TRAINING_PLATFORM_TRAINER`` name the controllers of KubeRay and Kubeflow Trainer,
the same with ``_DEFINITIONS`` the folders of their CustomResourceDefinitions (``ray-operator/config/crd/bases`` and
``manifests/base/crds`` of their sources). Nodes are objects only, so no container runs: a test says what becomes of
pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.kube.clusters import NEEDED
from tests.kube.deployed import FLAVOR, GPU, TEAM, deployed
from tests.kube.operators import (
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


def test_a_ray_cluster_that_runs_does_not_grow(operated: Operated) -> None:
    """Its operator would create pods before Kueue looks."""
    small = with_field(ray_cluster(), "spec.workerGroupSpecs", ray(1)["workerGroupSpecs"])
    operated.make(RAYCLUSTERS, small)
    until(lambda: operated.nodes_of_pods(of_ray("rays")), lambda nodes: len(nodes) == 1)
    (group,) = operated.get(f"{RAYCLUSTERS}/rays")["spec"]["workerGroupSpecs"]
    more = {"workerGroupSpecs": [{**group, "maxReplicas": 2, "replicas": 2}]}

    assert "keeps its size" in operated.changed(f"{RAYCLUSTERS}/rays", {"spec": more})
    assert operated.changed(f"{RAYCLUSTERS}/rays", {"spec": {**more, "suspend": True}}) == ""
    assert operated.changed(f"{RAYCLUSTERS}/rays", {"metadata": {"annotations": {"note": "mine"}}}) == ""


def test_a_train_job_that_runs_keeps_its_pods_and_is_deleted_with_them(operated: Operated) -> None:
    operated.make(RUNTIMES, runtime())
    operated.make(TRAINJOBS, train_job())
    until(lambda: operated.nodes_of_pods("jobset.sigs.k8s.io/jobset-name=tune"), lambda nodes: nodes == BOTH)

    assert operated.changed(f"{TRAINJOBS}/tune", {"spec": {"runtimePatches": []}})
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


def test_a_train_job_that_would_never_start_for_a_field_that_kueue_loses_is_refused(operated: Operated) -> None:
    operated.make(RUNTIMES, runtime())
    ending = patched({"spec": {"terminationGracePeriodSeconds": 60}})

    # Trainer 2.3 knows the field and our policy refuses it; 2.2 does not know it.
    refusal = operated.refusal(TRAINJOBS, with_field(train_job(), "spec.runtimePatches", [ending]))
    assert "terminationGracePeriodSeconds" in refusal


HEAD = "spec.headGroupSpec"


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
