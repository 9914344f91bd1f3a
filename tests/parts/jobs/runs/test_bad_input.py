"""Failures while a command runs: one sentence, the documented exit code, and nothing half submitted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from local_google_cloud.api import Refusal, serve
from tests.parts.jobs.runs import vertex_cloud
from tests.parts.jobs.runs.api_stub import write_kubeconfig
from tests.parts.jobs.runs.stub_lab import FOLLOWING, JOB, KUEUE, RUN, SETS, Lab, one_sentence, stub_lab
from tests.support.lab import write_lab
from training_platform.cli.main import app

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")

UNREACHABLE = "cannot be reached"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with stub_lab(tmp_path) as lab:
        yield lab


def closed(lab: Lab) -> None:
    write_kubeconfig(lab.kubeconfig, "http://127.0.0.1:9", "lab-gpus")


def no_context(lab: Lab) -> None:
    write_kubeconfig(lab.kubeconfig, "http://127.0.0.1:9", "another")


def refusing(method: str, end: str, status: int, message: str = "no") -> Callable[[Lab], None]:
    def change(lab: Lab) -> None:
        lab.api.refusals[method, end] = (status, message)

    return change


def without_queue(lab: Lab) -> None:
    lab.api.lists[f"{KUEUE}/localqueues"].clear()


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (closed, f"Cluster gpus {UNREACHABLE}: "),
        (no_context, "The kubeconfig has no context gke_example-lab_us-central1_lab-gpus or lab-gpus."),
        (refusing("*", "", 401), "Cluster gpus rejected your credentials: they have expired"),
        (refusing("*", "", 403, "jobsets is forbidden"), "Cluster gpus denies access: jobsets is forbidden"),
        (refusing("*", "", 200, ""), "Cluster gpus answers with something that is not JSON"),
        (refusing("*", "", 503, "etcd is away"), "Cluster gpus rejects the request (503): etcd is away"),
    ],
)
@pytest.mark.parametrize("command", ["submit", *FOLLOWING])
def test_an_unreachable_cluster_gives_one_sentence(
    command: str, broken: Callable[[Lab], None], sentence: str, lab: Lab
) -> None:
    broken(lab)

    one_sentence(lab(command), sentence)
    assert lab.api.created == []


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (without_queue, "Cluster gpus has no LocalQueue vision in namespace vision: the job would wait there forever"),
        (refusing("POST", "jobsets", 409), "Cluster gpus has a run train-x already; leave --run out for a new name."),
        (
            refusing("POST", "jobsets", 422, "denied by a webhook"),
            "Cluster gpus rejects the request (422): denied by a webhook",
        ),
    ],
)
def test_a_failed_submission_leaves_nothing(broken: Callable[[Lab], None], sentence: str, lab: Lab) -> None:
    broken(lab)

    one_sentence(lab("submit", "--run", "train-x"), sentence)
    assert lab.api.created == []


def test_a_grid_with_a_refused_point_is_withdrawn(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    path = lab.root / "jobs" / "vision" / "train.yaml"
    path.write_text(f"sweep: {{parameters: {{lr: {{values: [1, 2, 3]}}}}}}\n{JOB}")
    answer = lab.api.answer

    def full(method: str, url: str, body: Any) -> tuple[int, Any]:
        if method == "POST" and "dryRun" not in url and len(lab.api.created) == 2:
            return 403, {"kind": "Status", "message": "exceeded quota"}
        return answer(method, url, body)

    monkeypatch.setattr(lab.api, "answer", full)

    one_sentence(lab("submit", "--run", "train-x"), "Cluster gpus denies access: exceeded quota")
    deleted = [request for request in lab.api.requests if request.startswith("DELETE")]
    assert deleted == [f"DELETE {SETS}/{jobset['metadata']['name']}" for jobset in lab.api.created]
    assert len(deleted) == 2


def publish_waits(lab: Lab, text: str) -> None:
    folder = lab.root / "stacks" / "waits"
    folder.mkdir()
    (folder / "lab-gpus.json").write_text(text)


def test_a_published_table_of_waits_is_quoted_with_its_time(lab: Lab) -> None:
    row = {"namespace": "vision", "job": RUN, "queue": "vision", "needs": "8 nvidia.com/gpu", "priority": 0}
    rows = [{**row, "waits_seconds": 60, "start": [0, 3600, 7200]}]
    publish_waits(lab, json.dumps({"moment": "2026-11-22T10:00:00Z", "runs": 50, "notes": [], "jobs": rows}))
    table = "According to the table of 2026-11-22 10:00 UTC"
    start = f"{RUN} starts at 2026-11-22 11:00 UTC"

    assert f"{table}, {start}" in lab("why").stdout
    assert f"# {table}, 1 job of vision waited; {start}" in lab("submit").stderr


def test_a_broken_table_of_waits_stops_nothing(lab: Lab) -> None:
    publish_waits(lab, "{}")

    done = lab("why")

    assert done.exit_code == 0
    assert "lab-gpus.json is not a table of waits" in done.stderr


def beside(lab: Lab, **runs: str | None) -> None:
    """Fill the cluster with runs, oldest first, each with the flavor that it holds; None waits."""
    sets = []
    workloads = []
    for number, (name, flavor) in enumerate(runs.items()):
        live = lab.live()
        about = {"name": name, "uid": str(number), "creationTimestamp": f"2026-11-22T1{number}:00:00Z"}
        sets.append({**live, "metadata": {**live["metadata"], **about}})
        row = {"status": str(flavor is not None), "lastTransitionTime": f"2026-11-22T1{number}:05:00Z"}
        status: dict[str, Any] = {"conditions": [{"type": kind, **row} for kind in CONDITIONS]}
        if flavor:
            status["admission"] = {"podSetAssignments": [{"flavors": {"nvidia.com/gpu": flavor}}]}
        owned = {"name": f"w-{number}", "uid": f"w-{number}", "ownerReferences": [{"uid": str(number)}]}
        workloads.append({"metadata": owned, "spec": {}, "status": status})
    lab.api.lists |= {SETS: sets, f"{KUEUE}/workloads": workloads}


CONDITIONS = ("QuotaReserved", "Admitted", "PodsReady")
POOL = "Pool h100 has at most 8 VMs"


def test_a_run_of_another_flavor_is_not_reported_as_holding_the_quota(lab: Lab) -> None:
    beside(lab, **{"train-holds": "h100", "other-holds": "a100-40", "train-first": None, RUN: None})

    explanation = lab("why").stdout

    assert "Runs of the team that use this quota: train-holds since 2026-11-22T10:05:00Z." in explanation
    assert "Waiting runs of the team that were submitted earlier: train-first." in explanation
    assert POOL not in explanation


@pytest.mark.parametrize("ready", [True, False])
def test_pools_are_asked_about_while_an_admitted_run_waits_for_its_vms(lab: Lab, ready: bool) -> None:
    beside(lab, **{RUN: "h100"})
    lab.api.lists[f"{KUEUE}/workloads"][0]["status"]["conditions"][2]["status"] = str(ready)

    assert (POOL in lab("why").stdout) is not ready


@pytest.mark.parametrize(
    ("end", "status", "code"),
    [("/nodes", 403, 0), ("/nodes", 503, 2), ("requests", 403, 0), ("requests", 404, 0), ("requests", 503, 2)],
)
def test_why_goes_on_without_what_members_may_not_read_and_ends_where_a_cluster_fails(
    end: str, status: int, code: int, lab: Lab
) -> None:
    pod = {"metadata": {"name": "train-0"}, "spec": {"nodeName": "a"}, "status": {"phase": "Pending"}}
    owned = {"metadata": {"name": "w", "uid": "2", "ownerReferences": [{"uid": "1"}]}, "spec": {}, "status": {}}
    lab.api.lists |= {"/api/v1/namespaces/vision/pods": [pod], f"{KUEUE}/workloads": [owned], "/api/v1/nodes": []}
    lab.api.refusals["GET", end] = (status, "no")

    assert lab("why").exit_code == code


def test_a_queue_deleted_after_the_submission_is_reported(lab: Lab) -> None:
    without_queue(lab)

    result = lab("why")

    assert result.exit_code == 0
    assert f"The queue vision of {RUN} does not exist in namespace vision of gpus" in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("train:1", "train:1", False),
        ("train:1", "train:2", True),
        ("--rate=1", "--rate=2", True),
        ("nodes: 2", "nodes: 3", True),
        ("flavor: h100, nodes: 2", "flavor: a100-40, nodes: 1", True),
    ],
)
def test_a_job_file_changed_after_the_submission_is_reported(old: str, new: str, changed: bool, lab: Lab) -> None:
    live = lab.api.lists[SETS][0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    live["nodeSelector"] = {**live["nodeSelector"], "added-by": "kueue"}
    path = lab.root / "jobs" / "vision" / "train.yaml"
    path.write_text(path.read_text().replace(old, new))

    explanation = lab("why").stdout

    assert (f"jobs/vision/train.yaml differs from the submitted {RUN}" in explanation) is changed


def test_a_run_of_a_deleted_file_is_found_by_its_team(lab: Lab) -> None:
    (lab.root / "jobs" / "vision" / "train.yaml").unlink()

    one_sentence(lab("status"), "--team searches all places of a team")
    result = lab("status", "--team", "vision", "--format", "json")
    assert [row["name"] for row in json.loads(result.stdout)] == [RUN]


def test_200_runs_are_listed_by_one_paged_list_of_each_kind_and_cluster(lab: Lab) -> None:
    live = lab.live()
    sets = [
        {**live, "metadata": {**live["metadata"], "name": f"train-{number:05}", "uid": str(number)}}
        for number in range(200)
    ]
    owned = [
        {"metadata": {"name": f"jobset-{number}", "ownerReferences": [{"uid": str(number)}]}, "spec": {}}
        for number in range(200)
    ]
    lab.api.lists |= {SETS: sets, f"{KUEUE}/workloads": owned}
    (lab.root / "stacks" / "Pulumi.lab-nlp.yaml").unlink()

    result = lab("list", "--team", "vision", "--format", "json")

    assert len(json.loads(result.stdout)) == 200
    assert Counter(lab.api.requests) == {f"GET {SETS}": 1, f"GET {KUEUE}/workloads": 1}


@pytest.fixture
def vertex(tmp_path: Path) -> Iterator[tuple[vertex_cloud.Cloud, vertex_cloud.Command, Path]]:
    root = vertex_cloud.write_repository(tmp_path / "vertex")
    cloud = vertex_cloud.Cloud(root)
    with serve(cloud.cloud) as port:
        yield cloud, vertex_cloud.job_command(root, port), root / "jobs" / "vision" / "train.yaml"


def jobs_of(cloud: vertex_cloud.Cloud) -> int:
    path = f"v1/projects/{vertex_cloud.PROJECT}/locations/us-central1/customJobs"
    return len(cloud.cloud.handle("aiplatform", "GET", path, [], None)[1].get("customJobs", ()))


def refuse_everything(cloud: vertex_cloud.Cloud, monkeypatch: pytest.MonkeyPatch, code: int, *verbs: str) -> None:
    """Let the local cloud refuse all requests of some verbs."""
    served_cloud = cloud.cloud
    handle = served_cloud.handle

    def refuse(service: str, verb: str, *args: Any, **options: Any) -> tuple[int, Any]:
        if verb not in verbs:
            return handle(service, verb, *args, **options)
        refusal = Refusal(code, "Refused.")
        return refusal.code, refusal.body(service)

    monkeypatch.setattr(served_cloud, "handle", refuse)


@pytest.mark.parametrize(
    ("code", "verbs", "sentence"),
    [
        (401, ("GET", "POST"), "Vertex AI rejected your credentials; they may have expired. Log in"),
        (503, ("POST",), "Vertex AI rejects the request (503) in projects/"),
    ],
)
def test_an_unreachable_vertex_ai_gives_one_sentence(
    code: int,
    verbs: tuple[str, ...],
    sentence: str,
    vertex: tuple[vertex_cloud.Cloud, vertex_cloud.Command, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud, job, file = vertex
    with monkeypatch.context() as refusing:
        refuse_everything(cloud, refusing, code, *verbs)
        one_sentence(job("submit", str(file)), sentence)

    assert jobs_of(cloud) == 0


@pytest.mark.parametrize("command", FOLLOWING)
def test_a_token_that_expired_after_the_submission_gives_one_sentence(
    command: str, vertex: tuple[vertex_cloud.Cloud, vertex_cloud.Command, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud, job, file = vertex
    run = job("submit", str(file)).stdout.strip()
    refuse_everything(cloud, monkeypatch, 401, "GET", "POST")

    one_sentence(job(command, run), "Vertex AI rejected your credentials; ")


def test_a_namesake_on_vertex_ai_is_refused(vertex: tuple[vertex_cloud.Cloud, vertex_cloud.Command, Path]) -> None:
    cloud, job, file = vertex
    assert job("submit", str(file), "--run", "train-again").exit_code == 0

    one_sentence(job("submit", str(file), "--run", "train-again"), "Vertex AI has a run train-again in projects/")
    assert jobs_of(cloud) == 1


@pytest.mark.parametrize("command", [("job", "list"), ("persistent-resource", "list"), ("adopt", "p", "--stack", "s")])
@pytest.mark.parametrize("address", ["nonsense", "https://cloud.example.com", "http://[::1", ""])
def test_a_local_cloud_elsewhere_is_sent_no_credentials(tmp_path: Path, command: tuple[str, ...], address: str) -> None:
    result = CliRunner().invoke(app, [*command, "--local-cloud", address, "--root", str(write_lab(tmp_path / "lab"))])

    one_sentence(result, f"--local-cloud {address!r} is not a server on this machine: write http://127.0.0.1:PORT.")
