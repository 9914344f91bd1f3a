"""What can befall a run on Vertex AI, in the local cloud over HTTP, and what ``job why`` says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.training_platform.jobs.runs.vertex_cloud import JOB, PROJECT, Cloud, Command, submit
from training_platform.sandbox.cloud.faults.scenario import parse_scenario

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")

STOCKOUT = "stockouts: {none: {machine_type: a3-highgpu-8g, location: us-central1-a, for_seconds: 30000}}"
ON_DEMAND = "capacity: flex-start, max_wait_hours: 6"
OTHERS = "the machine is in "


def play(vertex: Cloud, text: str) -> None:
    vertex.cloud.faults.add(parse_scenario(text, "scenario.yaml"))


def rewrite(root: Path, old: str, new: str) -> None:
    """Change the job's file."""
    assert old in JOB
    (root / "jobs" / "vision" / "train.yaml").write_text(JOB.replace(old, new))


def state(job: Command, run: str) -> str:
    return str(json.loads(job("status", run, "--format", "json").stdout)[0]["state"])


def test_a_run_that_dws_lets_wait_says_for_how_long_at_most(job: Command, vertex: Cloud, root: Path) -> None:
    play(vertex, STOCKOUT)
    run = submit(job, root)

    said = job("why", run).stdout
    assert f"{run} is QUEUED in us-central1" in said
    assert f"waits for a3-highgpu-8g, for {6 * 3600}s at most, then it fails" in said
    vertex.now += 30_001
    assert job("wait", run, "--timeout", "0").exit_code == 1


def test_a_run_that_waited_too_long_says_what_would_wait_on(job: Command, vertex: Cloud, root: Path) -> None:
    play(vertex, STOCKOUT)
    run = submit(job, root)
    vertex.now += 6 * 3600 + 1

    said = job("why", run).stdout

    assert state(job, run) == "failed"
    assert f"{run} waited {6 * 3600}s for a3-highgpu-8g, and us-central1 did not have it" in said
    assert "A longer max_wait_hours waits on" in said
    assert OTHERS in said


def test_a_run_that_finds_vms_in_time_goes_on(job: Command, vertex: Cloud, root: Path) -> None:
    play(vertex, STOCKOUT.replace("30000", "600"))
    run = submit(job, root)
    assert state(job, run) == "waiting"

    vertex.now += 601 + 61
    assert state(job, run) == "waiting"
    vertex.now += 61
    assert state(job, run) == "running"


def test_a_stock_out_on_demand_says_what_waits_and_where_else(job: Command, vertex: Cloud, root: Path) -> None:
    rewrite(root, JOB, JOB.replace(f"a3-highgpu-8g, {ON_DEMAND}", "a2-highgpu-1g"))
    play(vertex, STOCKOUT.replace("a3-highgpu-8g", "a2-highgpu-1g"))
    run = submit(job, root)
    vertex.now += 61

    said = job("why", run).stdout

    assert state(job, run) == "failed"
    assert "us-central1 has no a2-highgpu-1g left. capacity: flex-start waits for it" in said
    assert OTHERS in said


def test_a_stock_out_of_attached_gpus_names_them_and_no_flex_start(job: Command, vertex: Cloud, root: Path) -> None:
    t4 = "n1-standard-8, accelerator: t4, accelerator_count: 2"
    rewrite(root, JOB, JOB.replace(f"a3-highgpu-8g, {ON_DEMAND}", t4))
    quotas = root / "stacks" / "quotas" / f"{PROJECT}.yaml"
    quotas.write_text(quotas.read_text().replace("TrainingA100GPUs", "TrainingT4GPUs"))
    play(vertex, STOCKOUT.replace("a3-highgpu-8g", "n1-standard-8"))
    run = submit(job, root)
    vertex.now += 61

    said = job("why", run).stdout

    assert "us-central1 has no n1-standard-8 with 2 t4 left. flex-start has none of it; the machine is in " in said
    assert "europe-west4" in said


@pytest.mark.parametrize(("retries", "ends"), [("", "waiting"), ("retries: 0\n", "failed")])
def test_a_spot_run_that_loses_its_vms_says_whether_it_starts_again(
    retries: str, ends: str, job: Command, vertex: Cloud, root: Path
) -> None:
    spot = JOB.replace(ON_DEMAND, "replicas: 2, capacity: spot")
    (root / "jobs" / "vision" / "train.yaml").write_text(retries + spot)
    run = submit(job, root)
    vertex.now += 61
    assert state(job, run) == "running"
    play(vertex, "preemptions: {gone: {location: us-central1, times: 1}}")

    assert state(job, run) == ends
    said = job("why", run).stdout
    if ends == "waiting":
        assert "lost its VMs, and waits for others" in said
        vertex.now += 61 + 601
        assert state(job, run) == "succeeded"
    else:
        assert "lost its spot VMs and may not start again: with retries above 0" in said


def test_a_spot_run_that_is_interrupted_ten_times_still_ends(job: Command, vertex: Cloud, root: Path) -> None:
    rewrite(root, ON_DEMAND, "replicas: 2, capacity: spot")
    run = submit(job, root)
    for number in range(10):
        vertex.now += 61
        assert state(job, run) == "running"
        play(vertex, f"preemptions: {{gone-{number}: {{location: us-central1, times: 1}}}}")
        assert state(job, run) == "waiting"

    vertex.now += 61 + 601
    assert job("wait", run, "--timeout", "0").exit_code == 0


def test_a_run_that_exceeds_the_quota_beside_others_waits_and_says_beside_which(
    job: Command, vertex: Cloud, root: Path
) -> None:
    rewrite(root, ON_DEMAND, "replicas: 2, capacity: flex-start")
    first, second = submit(job, root), submit(job, root)  # 2 * 2 * 8 GPUs are the whole quota of 32
    vertex.now += 61
    third = submit(job, root)
    vertex.now += 61

    assert [state(job, run) for run in (first, second, third)] == ["running", "running", "waiting"]
    said = job("why", third).stdout
    assert f"{third} is QUEUED in us-central1" in said
    assert "while the project has too little quota of custom training left" in said
    assert f"Runs of team vision that have VMs there: {', '.join(sorted((first, second)))}." in said
    job("cancel", first)
    vertex.now += 1
    assert state(job, third) == "waiting"
    vertex.now += 61
    assert state(job, third) == "running"


def test_a_run_that_exceeds_the_quota_alone_is_never_sent(job: Command, vertex: Cloud, root: Path) -> None:
    rewrite(root, ON_DEMAND, "replicas: 5, capacity: flex-start")

    refused = job("submit", str(root / "jobs" / "vision" / "train.yaml"))

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "is charged 40 GPUs, and the limit is 32" in refused.stderr
    assert json.loads(job("list", "--kubeconfig", "/dev/null", "--team", "vision", "--format", "json").stdout) == []


def test_a_run_that_was_cancelled_says_so(job: Command, vertex: Cloud, root: Path) -> None:
    run = submit(job, root)
    vertex.now += 61
    job("cancel", run)

    assert state(job, run) == "cancelled"
    assert job("why", run).stdout.startswith(f"{run} was cancelled at ")


SWEEP = "sweep: {parameters: {lr: {values: [0.1, 0.2]}}, metric: accuracy}\n"


def test_a_sweep_is_a_run_as_others_are(job: Command, vertex: Cloud, root: Path) -> None:
    (root / "jobs" / "vision" / "train.yaml").write_text(SWEEP + JOB)
    run = submit(job, root)

    (row,) = json.loads(job("status", run, "--format", "json").stdout)
    assert row["identity"].split("/")[-2] == "hyperparameterTuningJobs"
    assert "waits for a3-highgpu-8g" in job("why", run).stdout
    assert job("cancel", run).exit_code == 0
    assert state(job, run) == "cancelled"


def test_a_pipeline_is_a_run_as_others_are(job: Command, vertex: Cloud, root: Path) -> None:
    text = JOB.replace(
        ON_DEMAND, f"{ON_DEMAND}, pipeline: {{model: {{name: a, image: 'registry.example.com/serve:1'}}}}"
    )
    (root / "jobs" / "vision" / "train.yaml").write_text(text)
    run = submit(job, root)

    vertex.now += 61
    assert state(job, run) == "running"
    vertex.now += 601
    assert job("wait", run, "--timeout", "0").exit_code == 0
