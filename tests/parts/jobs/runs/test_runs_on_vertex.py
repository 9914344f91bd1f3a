"""Runs on Vertex AI, in the local cloud over HTTP: the same commands by the same client that asks Google's service."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import Result

from local_google_cloud.api import Clock, Store, serve
from tests.parts.jobs.runs.vertex_cloud import (
    JOB,
    PROJECT,
    Cloud,
    Command,
    job_command,
    replica,
    submit,
    write_repository,
)
from tests.support.lab import TODAY
from training_platform.clients.google_services import CloudLogging, CloudStorage
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.runs import logs
from training_platform.parts.jobs.runs.on_vertex import vertex_run
from training_platform.parts.jobs.runs.state import Run
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.quota.snapshot import read_snapshots
from training_platform.resources.resource_types import LOG_BUCKET, LOG_SINK, LOG_VIEW
from training_platform.resources.stack_plan import stack_plan


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The organisation's repository with one job, ``jobs/vision/train.yaml``."""
    return write_repository(tmp_path / "lab")


@pytest.fixture
def vertex(root: Path) -> Cloud:
    """The local cloud, with a clock that tests advance, and the environment's view of logs."""
    cloud = Cloud(root)
    add_view(cloud, "lab-vertex-jobs")
    return cloud


def add_view(cloud: Cloud, name: str) -> str:
    """Create a view of what jobs on Vertex AI write; return its name in Google Cloud."""
    views = f"projects/{PROJECT}/locations/global/buckets/_Default/views"
    body = {"filter": 'resource.type="ml_job"'}
    assert cloud.cloud.handle("logging", "POST", f"v2/{views}", [("viewId", name)], body)[0] == 200
    return f"{views}/{name}"


@pytest.fixture
def job(root: Path, vertex: Cloud) -> Iterator[Command]:
    """Return a function that runs ``training-platform job`` against the local cloud."""
    with serve(vertex.cloud) as port:
        yield job_command(root, port)


pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")


def row(job: Command, run: str) -> dict[str, Any]:
    (run_row,) = json.loads(job("status", run, "--format", "json").stdout)
    return dict(run_row)


def state(job: Command, run: str) -> str:
    return str(row(job, run)["state"])


def write_job(root: Path, text: str) -> None:
    (root / "jobs" / "vision" / "train.yaml").write_text(text)


def test_a_run_waits_runs_and_ends(job: Command, vertex: Cloud, root: Path) -> None:
    run = submit(job, root)

    assert state(job, run) == "waiting"
    explanation = job("why", run).stdout
    assert f"{run} is PENDING in us-central1" in explanation
    assert "With flex-start it waits for a3-highgpu-8g for 21600s at most and then fails" in explanation
    vertex.now += 60
    assert state(job, run) == "running"
    vertex.now += 600
    assert job("wait", run, "--timeout", "0").exit_code == 0
    assert job("why", run).stdout == f"{run} has succeeded.\n"


def test_a_run_tries_each_place_and_waits_at_the_first(job: Command, root: Path) -> None:
    one_target = next(line for line in JOB.splitlines() if line.startswith("vertex: "))
    first = one_target.removeprefix("vertex: ")
    second = "{region: us-central1, machine_type: a2-highgpu-1g}"
    write_job(root, JOB.replace(first, f"[{first}, {second}]"))

    result = job("submit", str(root / "jobs" / "vision" / "train.yaml"), "--wherever", "0")

    assert result.exit_code == 0, result.output
    run = result.stdout.strip()
    tried = re.findall("^# (.+): not started in 0 minutes", result.stderr, re.MULTILINE)
    assert tried == ["vertex us-central1 a3-highgpu-8g flex-start", "vertex us-central1 a2-highgpu-1g on-demand"]
    runs = json.loads(job("list", "--team", "vision", "--format", "json").stdout)
    assert [listed["state"] for listed in runs if listed["name"] != run] == ["cancelled", "cancelled"]
    assert state(job, run) == "waiting"
    assert "With flex-start it waits for a3-highgpu-8g" in job("why", run).stdout


def test_a_run_is_cancelled(job: Command, root: Path) -> None:
    run = submit(job, root)

    assert job("cancel", run).stdout == f"{run} is being stopped.\n"
    assert state(job, run) == "cancelled"
    assert job("why", run).stdout.startswith(f"{run} was cancelled at ")
    assert job("wait", run).exit_code == 1
    assert job("cancel", run).stdout == f"{run} has ended already: cancelled.\n"


def test_runs_are_listed_although_a_cluster_does_not_answer(job: Command, root: Path) -> None:
    runs = {submit(job, root) for _ in range(2)}

    listed = job("list", "--team", "vision", "--kubeconfig", "/dev/null", "--format", "json")

    assert {listed_run["name"] for listed_run in json.loads(listed.stdout)} == runs
    assert listed.exit_code == 2
    assert "training-platform: No kubeconfig can be read" in listed.stderr


def test_a_job_on_machines_that_are_not_deployed_is_told_to_deploy_them(job: Command, root: Path) -> None:
    kept = "machine_type: a2-highgpu-1g, persistent_resource: tuning, boot_disk: {size_gb: 200}"
    path = root / "jobs" / "vision" / "train.yaml"
    text = JOB.replace("machine_type: a3-highgpu-8g, capacity: flex-start, max_wait: 6h", kept)
    path.write_text(text)

    result = job("submit", str(path))

    assert result.exit_code == 2
    assert "There is no persistent resource lab-vision-tuning in projects/example-lab" in result.stderr
    assert "deploy the team's stack first" in result.stderr


STOCKOUT = "stockout=a3-highgpu-8g"
ON_DEMAND = "capacity: flex-start, max_wait: 6h"
OTHERS = "Vertex AI also offers the machine in "
MODEL = "pipeline: {model: {name: a, image: 'registry.example.com/serve:1'}}"
PIPELINE = JOB.replace(ON_DEMAND, f"{ON_DEMAND}, {MODEL}")


def rewrite(root: Path, old: str, new: str) -> None:
    """Change the job's file."""
    assert old in JOB
    write_job(root, JOB.replace(old, new))


@pytest.mark.parametrize("text", [JOB, PIPELINE], ids=["a job", "a pipeline"])
def test_a_run_that_waited_too_long_names_the_field_for_a_longer_wait(
    job: Command, vertex: Cloud, root: Path, text: str
) -> None:
    write_job(root, text)
    vertex.cloud.faults.add(STOCKOUT)
    run = submit(job, root)
    vertex.now += 6 * 3600 + 1

    explanation = job("why", run).stdout

    assert state(job, run) == "failed"
    assert f"{run} waited {6 * 3600}s for a3-highgpu-8g, and us-central1 did not have it" in explanation
    assert "Set a longer max_wait" in explanation
    assert OTHERS in explanation


def test_a_stock_out_of_attached_gpus_names_them_and_no_flex_start(job: Command, vertex: Cloud, root: Path) -> None:
    t4 = "n1-standard-8, accelerator: t4, accelerator_count: 2"
    rewrite(root, f"a3-highgpu-8g, {ON_DEMAND}", t4)
    quotas = root / "stacks" / "quotas" / f"{PROJECT}.yaml"
    quotas.write_text(quotas.read_text().replace("TrainingA100GPUs", "TrainingT4GPUs"))
    vertex.cloud.faults.add(STOCKOUT.replace("a3-highgpu-8g", "n1-standard-8"))
    run = submit(job, root)
    vertex.now += 61

    explanation = job("why", run).stdout

    assert (
        "us-central1 has no n1-standard-8 with 2 t4 left. Vertex AI does not offer flex-start for this machine; "
        "Vertex AI also offers the machine in " in explanation
    )
    assert "europe-west4" in explanation


@pytest.mark.parametrize(("retries", "ends"), [("", "waiting"), ("retries: 0\n", "failed")])
def test_a_spot_run_that_loses_its_vms_says_whether_it_starts_again(
    retries: str, ends: str, job: Command, vertex: Cloud, root: Path
) -> None:
    spot = JOB.replace(ON_DEMAND, "replicas: 2, capacity: spot")
    write_job(root, retries + spot)
    run = submit(job, root)
    vertex.now += 61
    assert state(job, run) == "running"
    (record,) = (record for record in vertex.cloud.store.all() if "/customJobs/" in record.name)
    if ends == "waiting":  # what Vertex AI does to a spot job that loses its VMs
        record.meta["job"] |= {"phase": "PENDING", "since": vertex.now}
        record.body["state"] = "JOB_STATE_PENDING"
    else:
        del record.meta["job"]
        error = {"code": 14, "message": "The job's spot VMs were preempted."}
        record.body |= {"state": "JOB_STATE_FAILED", "endTime": record.body["startTime"], "error": error}

    assert state(job, run) == ends
    explanation = job("why", run).stdout
    if ends == "waiting":
        assert "lost its VMs, and waits for new ones" in explanation
        vertex.now += 61 + 601
        assert state(job, run) == "succeeded"
    else:
        assert "lost its spot VMs and may not restart. With retries above 0" in explanation


def test_a_run_that_exceeds_the_quota_beside_others_waits_and_says_beside_which(
    job: Command, vertex: Cloud, root: Path
) -> None:
    rewrite(root, ON_DEMAND, "replicas: 2, capacity: flex-start")
    first = submit(job, root)
    second = submit(job, root)  # 2 * 2 * 8 GPUs are the whole quota of 32
    vertex.now += 61
    third = submit(job, root)
    vertex.now += 61

    assert [state(job, run) for run in (first, second, third)] == ["running", "running", "waiting"]
    explanation = job("why", third).stdout
    assert f"{third} is QUEUED in us-central1" in explanation
    assert "while the project's remaining custom training quota is too small" in explanation
    assert f"Other runs of team vision on it: {', '.join(sorted((first, second)))}." in explanation
    job("cancel", first)
    vertex.now += 1
    assert state(job, third) == "waiting"
    vertex.now += 61
    assert state(job, third) == "running"


SWEEP = "sweep: {parameters: {lr: {values: [0.1, 0.2]}}, metric: accuracy}\n"


@pytest.fixture
def run(job: Command, root: Path, request: pytest.FixtureRequest) -> str:
    """The run of a pipeline; parametrized, it has the lines given before those of its file."""
    write_job(root, getattr(request, "param", "") + PIPELINE)
    return submit(job, root)


def bodies(vertex: Cloud, kind: str) -> list[dict[str, Any]]:
    return [record.body for record in vertex.cloud.store.all() if record.name.split("/")[-2] == kind]


def working(vertex: Cloud, run: str) -> str:
    """Return the id of the job that the only pipeline names."""
    vertex.cloud.settle()
    (pipeline,) = bodies(vertex, "trainingPipelines")
    assert pipeline["displayName"] == run
    ((field, name),) = pipeline["trainingTaskMetadata"].items()
    assert field in ("backingCustomJob", "backingHyperparameterTuningJob")
    return str(name).rpartition("/")[2]


def test_a_sweep_is_a_run_as_others_are(job: Command, vertex: Cloud, root: Path) -> None:
    write_job(root, SWEEP + JOB)
    run = submit(job, root)

    assert row(job, run)["identity"].split("/")[-2] == "hyperparameterTuningJobs"
    assert "waits for a3-highgpu-8g" in job("why", run).stdout
    assert job("cancel", run).exit_code == 0
    assert state(job, run) == "cancelled"


@pytest.mark.parametrize("labelled", [True, False])
def test_a_pipeline_whose_job_waits_is_waiting_though_it_says_that_it_runs(
    job: Command, vertex: Cloud, run: str, labelled: bool
) -> None:
    if not labelled:
        for custom_job in bodies(vertex, "customJobs"):
            del custom_job["labels"]

    assert state(job, run) == "waiting"
    assert bodies(vertex, "trainingPipelines")[0]["state"] == "PIPELINE_STATE_RUNNING"
    assert "With flex-start it waits for a3-highgpu-8g for 21600s at most" in job("why", run).stdout
    vertex.now += 61
    assert state(job, run) == "running"
    assert row(job, run)["started"] == bodies(vertex, "customJobs")[0]["startTime"]


def test_the_job_of_a_pipeline_is_no_run_of_its_own(job: Command, run: str) -> None:
    job("status", run)  # the pipeline names its job from its second answer on

    listed = job("list", "--team", "vision", "--kubeconfig", "/dev/null", "--format", "json")

    assert [listed_run["name"] for listed_run in json.loads(listed.stdout)] == [run]
    assert json.loads(listed.stdout)[0]["state"] == "waiting"


def test_lines_are_read_by_the_id_of_the_pipelines_job(job: Command, vertex: Cloud, run: str) -> None:
    vertex.now += 61
    pipeline_id = identity(job, run)
    write(vertex, "a", replica(working(vertex, run), "workerpool0-0"), textPayload="step 1")

    assert job("logs", run).stdout.splitlines() == [
        "service | Waiting for job to be provisioned.",
        "service | Job is running.",
        "workerpool0-0 | step 1",
    ]
    assert pipeline_id != working(vertex, run)


@pytest.mark.parametrize("run", [SWEEP], indirect=True)
def test_lines_of_trials_start_with_their_number(job: Command, vertex: Cloud, run: str) -> None:
    vertex.now += 61
    tuning = working(vertex, run)
    (body,) = bodies(vertex, "hyperparameterTuningJobs")
    place = body["name"].replace(f"hyperparameterTuningJobs/{tuning}", "customJobs")
    body["trials"] = [{"id": str(number), "customJob": f"{place}/100{number}"} for number in (1, 2)]
    write(vertex, "a", replica("1001", "workerpool0-0"), textPayload="by its job")
    vertex.now += 1
    label = {"ml.googleapis.com/trial_id": "2"}
    write(vertex, "a", replica(tuning, "workerpool0-0"), textPayload="by its label", labels=label)

    assert job("logs", run).stdout.splitlines()[2:] == [
        "trial-1 workerpool0-0 | by its job",
        "trial-2 workerpool0-0 | by its label",
    ]


def test_a_cancelled_pipeline_stops_its_job(job: Command, vertex: Cloud, run: str) -> None:
    vertex.now += 61

    assert job("cancel", run).exit_code == 0

    assert state(job, run) == "cancelled"
    assert bodies(vertex, "customJobs")[0]["state"] == "JOB_STATE_CANCELLED"
    assert job("why", run).stdout.startswith(f"{run} was cancelled at ")


def test_a_pipeline_whose_job_has_ended_goes_on_and_says_so(job: Command, vertex: Cloud, run: str) -> None:
    vertex.now += 61 + 601
    working(vertex, run)
    (pipeline,) = bodies(vertex, "trainingPipelines")
    assert pipeline["modelToUpload"]["name"].startswith(pipeline["name"].partition("/trainingPipelines/")[0])
    pipeline["state"] = "PIPELINE_STATE_RUNNING"  # as it is while the model is uploaded

    assert state(job, run) == "running"
    assert "The training has ended, but the pipeline still runs" in job("why", run).stdout


def test_a_pipeline_whose_job_somebody_deleted_is_shown_by_itself(job: Command, vertex: Cloud, run: str) -> None:
    vertex.now += 61 + 601
    name = working(vertex, run)
    vertex.cloud.store.delete(next(record.name for record in vertex.cloud.store.all() if record.name.endswith(name)))

    assert state(job, run) == "succeeded"
    assert job("why", run).stdout == f"{run} has succeeded.\n"
    assert job("logs", run).stdout == ""


def test_the_submission_is_recorded_beside_the_output(
    job: Command, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, bytes] = {}
    monkeypatch.setattr(CloudStorage, "put", lambda _, uri, content, __: written.update({uri: content}))

    run = job("submit", str(root / "jobs" / "vision" / "train.yaml")).stdout.strip()

    ((uri, content),) = written.items()
    record = json.loads(content)
    assert uri == f"gs://example-lab-lab-vision-checkpoints/{run}/run.json"
    assert (record["runs"], record["file"], record["place"]) == ([run], "jobs/vision/train.yaml", "us-central1")
    assert record["bodies"][0]["displayName"] == run


def test_a_record_that_cannot_be_written_stops_no_run(job: Command, root: Path) -> None:
    result = job("submit", str(root / "jobs" / "vision" / "train.yaml"))

    assert result.exit_code == 0
    assert "# run.json is not in the run's output: Cloud Storage rejects gs://" in result.stderr
    assert job("status", result.stdout.strip()).exit_code == 0


GKE = """\
environment: lab
image: registry.example.com/train:1
gke: {cluster: gpus, flavor: h100, nodes: 2}
"""


def write(cloud: Cloud, log: str, resource: dict[str, Any], **entry: Any) -> None:
    """Write an entry as a program's VM would."""
    body = {"logName": f"projects/{PROJECT}/logs/{log}", "resource": resource, "entries": [entry]}
    assert cloud.cloud.handle("logging", "POST", "v2/entries:write", [], body) == (200, {})


def identity(job: Command, run: str) -> str:
    return str(row(job, run)["identity"]).rpartition("/")[2]


def test_lines_of_vertex_ai_are_in_order_each_with_its_replica(job: Command, vertex: Cloud, root: Path) -> None:
    run = submit(job, root)
    other = submit(job, root)
    vertex.now += 61
    job_id = identity(job, run)
    write(vertex, "workerpool0-0", replica(job_id, "workerpool0-0"), jsonPayload={"message": "step 1\n"})
    vertex.now += 1
    write(vertex, "workerpool0-0", replica(identity(job, other), "workerpool0-0"), textPayload="another's")
    write(vertex, "workerpool1-0", replica(job_id, "workerpool1-0"), textPayload="step 2")

    result = job("logs", run)

    assert result.stdout.splitlines() == [
        "service | Waiting for job to be provisioned.",
        "service | Job is running.",
        "workerpool0-0 | step 1",
        "workerpool1-0 | step 2",
    ]
    last = json.loads(job("logs", run, "--format", "json").stdout.splitlines()[-1])
    assert last == {"source": "workerpool1-0", "text": "step 2"}


def test_lines_of_several_pages_are_printed_once_each(
    job: Command, vertex: Cloud, root: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("training_platform.clients.google_services._LOG_PAGE", 7)
    run = submit(job, root)
    job_id = identity(job, run)
    for number in range(20):
        vertex.now += 1
        write(vertex, "a", replica(job_id, "workerpool0-0"), textPayload=f"line {number}")

    lines = [line for line in job("logs", run).stdout.splitlines() if line.startswith("workerpool0-0")]

    assert lines == [f"workerpool0-0 | line {number}" for number in range(20)]


def test_following_goes_on_until_the_run_has_ended(job: Command, vertex: Cloud, root: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(logs, "_CLOUD_POLL_SECONDS", 0.05)
    run = submit(job, root)
    job_id = identity(job, run)
    results: list[Result] = []
    follower = threading.Thread(target=lambda: results.append(job("logs", run, "--follow")))
    follower.start()
    for number in range(3):
        vertex.now += 100
        write(vertex, "a", replica(job_id, "workerpool0-0"), textPayload=f"line {number}")
    vertex.now += 700
    follower.join(timeout=30)

    lines = results[0].stdout.splitlines()
    assert [line for line in lines if "line" in line] == [f"workerpool0-0 | line {number}" for number in range(3)]
    assert lines[-1] == "service | Job has ended."
    assert len(lines) == len(set(lines))


def test_a_line_that_two_polls_see_is_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_CLOUD_POLL_SECONDS", 0)
    first, second = (
        {"insertId": str(number), "timestamp": "2026-11-22T10:00:00Z", "textPayload": f"line {number}"}
        for number in (1, 2)
    )
    polls = iter([[first], [first, second], [second]])
    ends = iter([False, False, True])
    queries: list[str] = []

    class Log:
        def entries(self, query: str) -> list[dict[str, str]]:
            queries.append(query)
            return next(polls)

    run = Run(
        name="train-bcdfg", job="train", team="vision", target="vertex", place="us-central1",
        identity="projects/1/locations/us-central1/customJobs/7", state="running", created="2026-11-22T09:00:00Z",
    )  # fmt: skip
    ids = iter([{"7": ""}, {"7": ""}, {"7": "", "8": "1"}])
    log = cast("CloudLogging", Log())
    lines = list(logs.vertex_lines(log, run, lambda: next(ids), ended=lambda: next(ends)))

    assert [line[1] for line in lines] == ["line 1", "line 2"]
    assert 'timestamp>="2026-11-22T09:00:00Z"' in queries[0]
    assert 'timestamp>="2026-11-22T10:00:00Z"' in queries[1]
    assert queries[2] == (  # a trial that began may have older lines than the last one
        'resource.type="ml_job" AND resource.labels.job_id=("7" OR "8") AND timestamp>="2026-11-22T09:00:00Z"'
    )


def deploy_logs(cloud: Cloud, root: Path) -> None:
    """Create the log bucket of team vision with its sinks and view, as its stack plans them."""
    workspace = read_workspace(root)
    plan = stack_plan(workspace.stacks["lab-vision"], workspace)
    assert plan is not None
    for planned in plan.planned({LOG_BUCKET, LOG_SINK, LOG_VIEW}):
        inputs = planned.inputs
        above = f"projects/{PROJECT}"
        if planned.type == LOG_BUCKET:
            path = f"{above}/locations/global/buckets:createAsync"
            query = [("bucketId", inputs["bucketId"])]
            body = {"retentionDays": inputs["retentionDays"]}
        elif planned.type == LOG_SINK:
            path = f"{above}/sinks"
            query = [("uniqueWriterIdentity", "true")]
            body = {name: inputs[name] for name in ("name", "destination", "filter")}
        else:
            path = f"{above}/locations/global/buckets/{inputs['bucket']}/views"
            query = [("viewId", inputs["name"])]
            body = {}
        status, answer = cloud.cloud.handle("logging", "POST", f"v2/{path}", query, body)
        assert status == 200, answer


@pytest.fixture
def empty_cluster(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job on GKE whose cluster has no objects."""
    write_job(root, GKE)

    class Empty:
        def get(self, *_: Any) -> None:
            return None

    monkeypatch.setattr("training_platform.clients.kubernetes_api.connect", lambda *_, **__: Empty())


@pytest.fixture
def deployed_logs(root: Path, vertex: Cloud) -> None:
    """The deployed log bucket of the job's team."""
    deploy_logs(vertex, root)


CONTAINER = {"cluster_name": "lab-gpus", "namespace_name": "vision", "container_name": "training"}


@pytest.mark.usefixtures("empty_cluster", "deployed_logs")
def test_a_run_whose_objects_are_gone_still_says_how_it_ended_and_what_it_wrote(job: Command, vertex: Cloud) -> None:
    for pod, text in (("train-bcdfg-slice-0-0-x", "step 1"), ("train-bcdfh-slice-0-0-x", "another run's")):
        labels = {**CONTAINER, "pod_name": pod}
        write(vertex, "stdout", {"type": "k8s_container", "labels": labels}, textPayload=text)
    about = {"kind": "JobSet", "namespace": "vision", "name": "train-bcdfg"}
    event = {"reason": "ReachedMaxRestarts", "message": "jobset failed due to reaching max", "involvedObject": about}
    cluster = {"type": "k8s_cluster", "labels": {"cluster_name": "lab-gpus"}}
    write(vertex, "events", cluster, jsonPayload={"reason": "Restarting", "involvedObject": about})
    write(vertex, "events", cluster, jsonPayload=event)

    run_row = row(job, "train-bcdfg")

    assert (run_row["state"], run_row["gone"], run_row["reason"]) == (
        "failed",
        True,
        "jobset failed due to reaching max",
    )
    assert job("logs", "train-bcdfg").stdout == "slice-0-0-x | step 1\n"
    assert job("wait", "train-bcdfg").exit_code == 1
    assert "train-bcdfg failed, and its objects no longer exist" in job("why", "train-bcdfg").stdout
    assert job("cancel", "train-bcdfg").stdout == "train-bcdfg has ended already: failed.\n"


@pytest.mark.usefixtures("empty_cluster")
def test_logs_of_a_team_that_is_not_deployed_give_one_sentence(job: Command) -> None:
    result = job("logs", "train-bcdfg")

    assert result.exit_code == 2
    assert "buckets/lab-vision/views/jobs" in result.stderr


@pytest.mark.usefixtures("empty_cluster", "deployed_logs")
def test_why_says_how_each_attempt_ended_and_what_it_wrote_last(job: Command, vertex: Cloud) -> None:
    about = {"kind": "JobSet", "namespace": "vision", "name": "train-bcdfg"}
    cluster = {"type": "k8s_cluster", "labels": {"cluster_name": "lab-gpus"}}
    reasons = (*logs.RESTARTS, "ReachedMaxRestarts")
    for number, reason in enumerate(reasons):
        labels = {**CONTAINER, "pod_name": f"train-bcdfg-slice-0-0-{number}"}
        for step in range(4 if number != 1 else 0):
            vertex.now += 1
            text = f"attempt {number} step {step}"
            write(vertex, "stdout", {"type": "k8s_container", "labels": labels}, textPayload=text)
        vertex.now += 1
        event = {"reason": reason, "message": f"end {number}", "involvedObject": about}
        write(vertex, "events", cluster, jsonPayload=event)
        vertex.now += 1

    _, first, second, third = job("why", "train-bcdfg").stdout.splitlines()

    lines = [" / ".join(f"slice-0-0-{n} | attempt {n} step {step}" for step in (1, 2, 3)) for n in (0, 2)]
    assert first.startswith("Attempt 1 failed at ")
    assert first.endswith(f': "end 0". Its log ended with: "{lines[0]}".')
    assert second.startswith("Attempt 2 was interrupted at ")
    assert second.endswith(': "end 1". Cloud Logging has no lines of this attempt.')
    assert third.endswith(f': "end 2". Its log ended with: "{lines[1]}".')


@pytest.mark.usefixtures("empty_cluster", "deployed_logs")
def test_an_unknown_run_is_not_found(job: Command) -> None:
    result = job("status", "train-bcdfg")

    assert result.exit_code == 2
    assert result.stderr.startswith("training-platform: Run train-bcdfg does not exist in gke gpus and gke tpus;")


def test_a_local_cloud_in_which_nothing_is_deployed_asks_for_the_sandbox(root: Path) -> None:
    with serve(
        judged_cloud([], read_snapshots(root, TODAY).by_project, store=Store(None), clock=Clock(lambda: 0.0))
    ) as port:
        refused = job_command(root, port)("submit", str(root / "jobs" / "vision" / "train.yaml"))

    assert refused.exit_code == 2
    assert "training-platform sandbox up STACK" in refused.stderr
    assert "gcloud" not in refused.stderr


def test_a_shell_on_vertex_ai_is_a_field_of_the_job(job: Command, root: Path) -> None:
    run = submit(job, root)

    for command in ("exec", "top"):
        assert "vertex.web_access: true in its job file" in job(command, run).stderr


def test_the_accelerators_of_a_run_are_those_of_all_replicas() -> None:
    pools = [
        {"replicaCount": "3", "machineSpec": {"acceleratorCount": 4}},
        {},
        {"machineSpec": {"acceleratorCount": 2}},
    ]
    body = {"name": "projects/p/locations/us-central1/customJobs/1", "jobSpec": {"workerPoolSpecs": pools}}

    assert vertex_run(body).accelerators == 3 * 4 + 2
