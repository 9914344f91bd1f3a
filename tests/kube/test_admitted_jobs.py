"""Jobs that Kueue admitted, on real controllers: what members try to keep, or to grow, past their team's quota."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.kube.clusters import NEEDED
from tests.kube.deployed import GPU, TEAM, deployed
from tests.kube.operators import JOBS, JOBSETS, MERGE, PODS, about, owned, pods_of, with_field
from tests.kube.queues import KUEUE, Json, Queues, until
from tests.kube.server import MEMBER
from training_platform.resources.scope import TEAM_LABEL

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

NOTHING_TO_EDIT = ("project: example-train-dev", "project: example-train-dev")
QUEUE = f"{KUEUE}/clusterqueues/{TEAM}"


class Team(Queues):
    """A team's namespace and queue, as one of its members uses them and as kubelets see its pods."""

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(client)
        self._http = client

    def ask(self, method: str, path: str, body: Json | None = None, **query: str) -> str:
        """Call the API server as a member; return the refusal."""
        headers = MEMBER | MERGE if method == "PATCH" else MEMBER
        answer = self._http.request(method, path, json=body, params=query, headers=headers)
        return "" if answer.is_success else str(answer.json()["message"])

    def run(self, path: str, body: Json, pods: int) -> None:
        """Submit a job and wait until it is counted and its pods have nodes."""
        assert self.ask("POST", path, body) == ""
        until(self.placed, lambda placed: len(placed) == pods)
        until(self.counted, lambda gpus: gpus == 8 * pods)

    def pods(self) -> list[Json]:
        return [pod for pod in self.get(PODS)["items"] if not pod["metadata"].get("deletionTimestamp")]

    def placed(self) -> list[str]:
        """Return the nodes of all pods that are not being deleted."""
        return [pod["spec"]["nodeName"] for pod in self.pods() if pod["spec"].get("nodeName")]

    def counted(self) -> int:
        """Return the GPUs that Kueue counts in the team's queue."""
        flavors = self.get(QUEUE)["status"]["flavorsUsage"]
        return sum(
            int(resource["total"]) for flavor in flavors for resource in flavor["resources"] if resource["name"] == GPU
        )

    def freed(self) -> None:
        """Wait until pods and quota are gone."""
        self.gone_from(TEAM, PODS)
        until(self.counted, lambda gpus: gpus == 0)

    def clear(self) -> None:
        for path in (JOBS, JOBSETS, PODS):
            self.delete(path)
        self.freed()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with deployed(tmp_path_factory.mktemp("admitted"), NOTHING_TO_EDIT, (*NEEDED, "jobset")) as cluster_of_team:
        team = Team(cluster_of_team.kueue.client)
        until(
            lambda: team.ask("POST", JOBS, owned(job()), dryRun="All"),
            lambda refusal: "must have no controller" in refusal,
        )
        yield team


@pytest.fixture
def team(cluster: Team) -> Iterator[Team]:
    yield cluster
    cluster.clear()


def job(pods: int = 2, **metadata: Any) -> Json:
    body = about("Job", "train", "batch/v1")
    body["metadata"] |= metadata
    template = with_field(pods_of("a", 8), "spec.restartPolicy", "Never")
    counts = {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
    return {**body, "spec": {"suspend": True, **counts, "template": template}}


def jobset() -> Json:
    body = about("JobSet", "train", "jobset.x-k8s.io/v1alpha2")
    single = job()["spec"]
    del single["suspend"]
    return {**body, "spec": {"suspend": True, "replicatedJobs": [{"name": "a", "template": {"spec": single}}]}}


KINDS = {"Job": (JOBS, job), "JobSet": (JOBSETS, jobset)}
ORPHANING = [
    ("Job", {}),
    ("Job", {"propagationPolicy": "Orphan"}),
    ("Job", {"orphanDependents": True}),
    ("JobSet", {"propagationPolicy": "Orphan"}),
    ("JobSet", {"orphanDependents": True}),
]
ENDING = [
    ("Job", {"propagationPolicy": "Background"}),  # kubectl's default
    ("Job", {"propagationPolicy": "Foreground"}),  # of `job cancel`, and of JobSet's controller
    ("Job", {"orphanDependents": False}),
    ("JobSet", {}),
    ("JobSet", {"propagationPolicy": "Foreground"}),
]


@pytest.mark.parametrize("whole", [False, True], ids=["one", "all"])
@pytest.mark.parametrize(("kind", "options"), ORPHANING)
def test_a_job_is_not_deleted_without_its_pods(team: Team, kind: str, options: Json, whole: bool) -> None:
    path, body = KINDS[kind]
    team.run(path, body(), 2)

    assert "deleted with its pods" in team.ask("DELETE", path if whole else f"{path}/train", options)

    assert len(team.placed()) == 2
    assert team.counted() == 16


def test_the_options_of_a_query_are_those_of_a_body(team: Team) -> None:
    team.run(JOBS, job(), 2)

    assert "deleted with its pods" in team.ask("DELETE", f"{JOBS}/train", propagationPolicy="Orphan")
    assert team.ask("DELETE", f"{JOBS}/train", propagationPolicy="Foreground") == ""
    team.freed()


@pytest.mark.parametrize(("kind", "options"), ENDING)
def test_a_job_that_is_deleted_with_its_pods_frees_its_quota(team: Team, kind: str, options: Json) -> None:
    path, body = KINDS[kind]
    team.run(path, body(), 2)

    assert team.ask("DELETE", f"{path}/train", options) == ""

    team.freed()


@pytest.mark.parametrize(
    "more",
    [
        {"parallelism": 2, "completions": 2},
        {"parallelism": 2},
        {"parallelism": 2, "completions": 2, "suspend": False},
    ],
)
def test_a_job_that_runs_does_not_grow(team: Team, more: Json) -> None:
    """Its controller would create a pod before Kueue looks."""
    team.run(JOBS, job(1), 1)

    assert "keeps its size" in team.ask("PATCH", f"{JOBS}/train", {"spec": more})

    assert len(team.pods()) == 1


def test_a_job_that_is_stopped_grows_and_is_counted_anew(team: Team) -> None:
    team.run(JOBS, job(1), 1)

    assert team.ask("PATCH", f"{JOBS}/train", {"spec": {"suspend": True, "parallelism": 2, "completions": 2}}) == ""

    def placed() -> list[str]:
        team.reap(TEAM)
        return team.placed()

    until(placed, lambda nodes: len(nodes) == 2)
    until(team.counted, lambda gpus: gpus == 16)


def test_a_jobset_that_runs_does_not_grow(team: Team) -> None:
    team.run(JOBSETS, jobset(), 2)
    (replicated,) = jobset()["spec"]["replicatedJobs"]

    assert team.ask("PATCH", f"{JOBSETS}/train", {"spec": {"replicatedJobs": [{**replicated, "replicas": 2}]}})

    assert len(team.pods()) == 2


def test_a_node_is_drained(team: Team) -> None:
    team.run(JOBS, job(1), 1)
    (pod,) = (pod["metadata"]["name"] for pod in team.pods())
    evicted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": TEAM}}

    team.create(f"{PODS}/{pod}/eviction", evicted)

    until(lambda: [pod["metadata"]["name"] for pod in team.pods()], lambda names: pod not in names)


def test_a_namespace_is_deleted_with_the_jobs_in_it(team: Team) -> None:
    """Its controller deletes collections, and says nothing of pods."""
    home = {"metadata": {"name": "leaving", "labels": {TEAM_LABEL: "leaving"}}}
    team.create("/api/v1/namespaces", home)
    for path, body in KINDS.values():
        held = with_field(body(), "metadata.namespace", "leaving")
        team.create(path.replace(f"/{TEAM}/", "/leaving/"), held)

    team.delete("/api/v1/namespaces/leaving")

    def names() -> list[str]:
        return [namespace["metadata"]["name"] for namespace in team.get("/api/v1/namespaces")["items"]]

    until(names, lambda namespaces: "leaving" not in namespaces)
