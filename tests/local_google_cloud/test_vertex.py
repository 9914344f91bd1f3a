"""Training jobs of Vertex AI from creation to end, and persistent resources."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.state.cloud import CloudSettings
from tests.local_google_cloud.client import LOCATION, PROJECT, Client, Json

PARENT = f"aiplatform/v1beta1/{LOCATION}"
JOBS = f"{PARENT}/customJobs"
H100 = "a3-highgpu-8g"
SECONDS = {"aiplatform.jobs.pending": 60.0, "aiplatform.jobs.running": 600.0}


def spec(strategy: str | int = "STANDARD", machine: str = "n1-standard-4", **scheduling: Any) -> Json:
    pool = {
        "machineSpec": {"machineType": machine},
        "replicaCount": "1",
        "containerSpec": {"imageUri": "example.com/a"},
    }
    return {"workerPoolSpecs": [pool], "scheduling": {"strategy": strategy, **scheduling}}


def job(*args: Any, name: str = "train", **scheduling: Any) -> Json:
    return {"displayName": name, "jobSpec": spec(*args, **scheduling)}


@pytest.fixture
def vertex(ask: Client) -> Client:
    ask.cloud.settings = CloudSettings(durations=SECONDS)
    return ask


def state(client: Client, job: Json) -> str:
    short = job["name"].partition("/locations/")[2]
    return str(client.done("GET", f"aiplatform/v1beta1/projects/{PROJECT}/locations/{short}")["state"])


def test_a_job_waits_runs_and_ends_by_the_clock(vertex: Client, time: list[float]) -> None:
    created = vertex.done("POST", JOBS, job())

    assert created["state"] == "JOB_STATE_PENDING"
    assert "startTime" not in created
    time[0] += 59
    assert state(vertex, created) == "JOB_STATE_PENDING"
    time[0] += 1
    assert state(vertex, created) == "JOB_STATE_RUNNING"
    time[0] += 600
    (ended,) = vertex.done("GET", JOBS)["customJobs"]
    assert ended["state"] == "JOB_STATE_SUCCEEDED"
    assert ended["startTime"] < ended["endTime"]


@pytest.mark.parametrize(
    ("kind", "body", "prefix"),
    [
        ("hyperparameterTuningJobs", {"trialJobSpec": spec(), "maxTrialCount": 2}, "JOB_STATE"),
        ("trainingPipelines", {"trainingTaskDefinition": "x.yaml", "trainingTaskInputs": spec()}, "PIPELINE_STATE"),
        ("trainingPipelines", {"trainingTaskDefinition": "x.yaml", "trainingTaskInputs": {"trialJobSpec": spec()}},
         "PIPELINE_STATE"),
    ],
)  # fmt: skip
def test_tuning_jobs_and_pipelines_go_the_same_way(
    kind: str, body: Json, prefix: str, vertex: Client, time: list[float]
) -> None:
    created = vertex.done("POST", f"{PARENT}/{kind}", {"displayName": "a", **body})

    seen = [created["state"]]
    for seconds in (60, 600):
        time[0] += seconds
        seen.append(state(vertex, created))
    assert seen == [f"{prefix}_PENDING", f"{prefix}_RUNNING", f"{prefix}_SUCCEEDED"]
    assert vertex("POST", f"{PARENT}/{kind}", {"displayName": "a"}).code == 400


@pytest.mark.parametrize(
    ("inputs", "field", "kind"),
    [
        (spec(), "backingCustomJob", "customJobs"),
        ({"trialJobSpec": spec(), "maxTrialCount": 2}, "backingHyperparameterTuningJob", "hyperparameterTuningJobs"),
    ],
)
def test_a_pipeline_runs_while_the_job_that_it_names_waits(
    inputs: Json, field: str, kind: str, vertex: Client, time: list[float]
) -> None:
    body = {"displayName": "a", "trainingTaskDefinition": "x.yaml", "trainingTaskInputs": inputs, "labels": {"a": "b"}}
    created = vertex.done("POST", f"{PARENT}/trainingPipelines", body | {"modelToUpload": {"displayName": "vit"}})
    assert "trainingTaskMetadata" not in created

    (pipeline,) = vertex.done("GET", f"{PARENT}/trainingPipelines")["trainingPipelines"]
    (job,) = vertex.done("GET", f"{PARENT}/{kind}")[kind]

    assert pipeline["trainingTaskMetadata"] == {field: job["name"]}
    assert (pipeline["state"], job["state"]) == ("PIPELINE_STATE_RUNNING", "JOB_STATE_PENDING")
    assert (job.get("jobSpec") or job["trialJobSpec"], job["labels"]) == (spec(), {"a": "b"})
    assert vertex("DELETE", f"{PARENT}/trainingPipelines/{created['name'].rpartition('/')[2]}").code == 400
    time[0] += 660
    (ended,) = vertex.done("GET", f"{PARENT}/trainingPipelines")["trainingPipelines"]
    assert ended["state"] == "PIPELINE_STATE_SUCCEEDED"
    assert ended["modelToUpload"]["name"].startswith(f"{job['name'].partition('/' + kind)[0]}/models/")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({**spec(), "workerPools": []}, 'Unknown name "workerPools"'),
        ({"trialJobSpec": {**spec(), "serviceAcount": "a"}}, 'Unknown name "serviceAcount"'),
        (spec("SLOW"), "SLOW"),
    ],
)
def test_the_inputs_of_a_pipeline_are_those_of_the_job_that_works_for_it(
    inputs: Json, message: str, vertex: Client
) -> None:
    body = {"displayName": "a", "trainingTaskDefinition": "x.yaml", "trainingTaskInputs": inputs}

    answer = vertex("POST", f"{PARENT}/trainingPipelines", body)

    assert answer.code == 400
    assert answer.message.startswith("Unable to parse `training_pipeline.training_task_inputs`")
    assert message in answer.message
    assert vertex.done("GET", f"{PARENT}/trainingPipelines") == {}


def test_an_enum_in_the_inputs_of_a_pipeline_may_be_a_double(vertex: Client) -> None:
    inputs = json.loads(json.dumps(spec()).replace('"STANDARD"', "6.0"))  # as generated clients send it
    body = {"displayName": "a", "trainingTaskDefinition": "x.yaml", "trainingTaskInputs": inputs}

    vertex.done("POST", f"{PARENT}/trainingPipelines", body)

    assert vertex.done("GET", JOBS)["customJobs"][0]["jobSpec"]["scheduling"]["strategy"] == "FLEX_START"


def test_a_job_that_is_cancelled_ends_and_one_that_ended_stays(vertex: Client, time: list[float]) -> None:
    created, other = (vertex.done("POST", JOBS, job(name=name)) for name in ("one", "two"))
    path = f"{JOBS}/{created['name'].rpartition('/')[2]}"
    assert vertex("DELETE", path).code == 400

    assert vertex.done("POST", f"{path}:cancel", {}) == {}

    assert state(vertex, created) == "JOB_STATE_CANCELLED"
    time[0] += 700
    assert state(vertex, created) == "JOB_STATE_CANCELLED"
    assert state(vertex, other) == "JOB_STATE_SUCCEEDED"
    vertex.done("POST", f"{JOBS}/{other['name'].rpartition('/')[2]}:cancel", {})
    assert state(vertex, other) == "JOB_STATE_SUCCEEDED"
    assert vertex.done("DELETE", path)["done"] is True
    assert vertex("GET", path).code == 404


STOCKOUT = f"stockout={H100}"


def test_a_job_that_does_not_wait_fails_where_there_are_no_vms(vertex: Client, time: list[float]) -> None:
    vertex.cloud.faults.add(STOCKOUT)
    created = vertex.done("POST", JOBS, job("STANDARD", H100))
    other = vertex.done("POST", JOBS, job())

    time[0] += 61
    assert (state(vertex, created), state(vertex, other)) == ("JOB_STATE_FAILED", "JOB_STATE_RUNNING")
    error = vertex.done("GET", f"{JOBS}/{created['name'].rpartition('/')[2]}")["error"]
    assert error["code"] == 8
    assert error["message"].startswith("Resources are insufficient in region: us-central1.")


def test_a_flex_start_job_is_queued_until_there_are_vms_or_its_wait_is_over(vertex: Client, time: list[float]) -> None:
    vertex.cloud.faults.add(STOCKOUT)
    patient = vertex.done("POST", JOBS, job("FLEX_START", H100, name="patient"))
    hasty = vertex.done("POST", JOBS, job("FLEX_START", H100, name="hasty", maxWaitDuration="120s"))

    assert (patient["state"], hasty["state"]) == ("JOB_STATE_QUEUED", "JOB_STATE_QUEUED")
    time[0] += 121
    assert (state(vertex, patient), state(vertex, hasty)) == ("JOB_STATE_QUEUED", "JOB_STATE_FAILED")
    vertex.cloud.faults.clear(STOCKOUT)
    assert state(vertex, patient) == "JOB_STATE_PENDING"
    time[0] += 60
    assert state(vertex, patient) == "JOB_STATE_RUNNING"


def test_flex_start_needs_one_machine_for_all_pools(vertex: Client) -> None:
    body = job("FLEX_START", H100)
    body["jobSpec"]["workerPoolSpecs"] += job("FLEX_START", "a2-highgpu-1g")["jobSpec"]["workerPoolSpecs"]

    assert "same machine configuration" in vertex("POST", JOBS, body).message


def test_a_job_fails_half_way_and_the_next_does_not(vertex: Client, time: list[float]) -> None:
    vertex.cloud.faults.add("failure=aiplatform.customJobs")
    created = vertex.done("POST", JOBS, job())

    time[0] += 60 + 299
    assert state(vertex, created) == "JOB_STATE_RUNNING"
    time[0] += 1
    assert vertex.done("GET", JOBS)["customJobs"][0]["error"] == {"code": 13, "message": "Internal error."}
    assert state(vertex, created) == "JOB_STATE_FAILED"
    other = vertex.done("POST", JOBS, job())
    time[0] += 660
    assert state(vertex, other) == "JOB_STATE_SUCCEEDED"


def test_quota_is_held_until_the_end(vertex: Client, time: list[float]) -> None:
    def used() -> float:
        return sum(vertex.cloud.quota.used(PROJECT).values())

    before = used()
    vertex.done("POST", JOBS, job())
    assert used() > before
    time[0] += 660
    vertex.done("GET", JOBS)
    assert used() == before


def test_attached_gpus_hold_their_own_quota(vertex: Client) -> None:
    body = job()
    body["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] |= {
        "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2,
    }  # fmt: skip

    vertex.done("POST", JOBS, body)

    used = {key.quota_id: amount for key, amount in vertex.cloud.quota.used(PROJECT).items()}
    assert used["CustomModelTrainingT4GPUsPerProjectPerRegion"] == 2


def test_a_job_that_cannot_be_is_refused(vertex: Client) -> None:
    assert "Nearest: n1-standard-4" in vertex("POST", JOBS, job("STANDARD", "n1-standart-4")).message
    assert vertex("POST", JOBS, {"displayName": "a", "jobSpec": {}}).code == 400
    assert vertex("POST", JOBS, {"jobSpec": spec()}).code == 400
    absent = {"displayName": "a", "jobSpec": {**spec(), "persistentResourceId": "none"}}
    assert vertex("POST", JOBS, absent).code == 404


def test_what_time_did_survives_a_restart(make: Callable[..., LocalCloud], time: list[float], tmp_path: Any) -> None:
    first = Client(make(tmp_path / "cloud.json"))
    first.enable(PROJECT, "aiplatform")
    first.cloud.settings = CloudSettings(durations=SECONDS)
    created = first.done("POST", JOBS, job())

    second = Client(make(tmp_path / "cloud.json"))
    second.cloud.settings = CloudSettings(durations=SECONDS)
    assert state(second, created) == "JOB_STATE_PENDING"
    time[0] += 660
    assert state(second, created) == "JOB_STATE_SUCCEEDED"


RESOURCES = f"aiplatform/v1/{LOCATION}/persistentResources"
KEPT = f"{RESOURCES}/kept"
POOLS: list[Json] = [
    {"id": "head", "machineSpec": {"machineType": "n2-standard-8"}, "replicaCount": "1"},
    {"id": "workers", "machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"},
]


def create(ask: Client, body: Json, name: str = "kept") -> Any:
    return ask("POST", RESOURCES, body, persistentResourceId=name)


def sized(*counts: Any) -> Json:
    return {"resourcePools": [{**pool, "replicaCount": count} for pool, count in zip(POOLS, counts, strict=True)]}


def test_put_is_not_offered_and_a_patch_needs_a_mask(ask: Client) -> None:
    assert create(ask, {"resourcePools": POOLS}).code == 200

    put = ask("PUT", KEPT, sized("1", "2"))
    bare = ask("PATCH", KEPT, sized("1", "2"))

    assert (put.code, bare.code) == (404, 400)
    assert bare.message == "update_mask is required"
    assert [pool["replicaCount"] for pool in ask.done("GET", KEPT)["resourcePools"]] == ["1", "1"]


def test_a_mask_below_the_pools_changes_their_sizes_and_nothing_else(ask: Client) -> None:
    create(ask, {"resourcePools": POOLS})
    body = sized("2", "3")
    body["resourcePools"][0]["machineSpec"] = {"machineType": "n2-standard-16"}

    ask.done("PATCH", KEPT, body, updateMask="resource_pools.replica_count")

    pools = ask.done("GET", KEPT)["resourcePools"]
    assert [pool["replicaCount"] for pool in pools] == ["2", "3"]
    assert [pool["machineSpec"]["machineType"] for pool in pools] == ["n2-standard-8", "n1-standard-4"]


def test_counts_are_returned_as_strings_and_a_string_that_is_no_number_is_refused(ask: Client) -> None:
    """As in proto3 JSON, where a 64-bit integer may be written as a number or a string, and is read as a string."""
    code = create(ask, sized(1, "2")).code
    refused = create(ask, sized("1", "two"), "other")

    assert (code, refused.code) == (200, 400)
    assert [pool["replicaCount"] for pool in ask.done("GET", KEPT)["resourcePools"]] == ["1", "2"]


def test_a_deletion_cancels_the_jobs_on_a_resource_and_no_other(ask: Client) -> None:
    create(ask, {"resourcePools": POOLS})
    ask.cloud.settings = CloudSettings(durations={"aiplatform.jobs.running": 600.0})
    on_resource = ask.done("POST", JOBS, {"displayName": "a", "jobSpec": {**spec(), "persistentResourceId": "kept"}})
    alone = ask.done("POST", JOBS, {"displayName": "b", "jobSpec": spec()})
    assert {state(ask, on_resource), state(ask, alone)} == {"JOB_STATE_RUNNING"}

    ask.done("DELETE", KEPT)

    assert state(ask, on_resource) == "JOB_STATE_CANCELLED"
    assert state(ask, alone) == "JOB_STATE_RUNNING"


def test_an_id_is_taken_until_the_old_one_is_gone(ask: Client) -> None:
    create(ask, {"resourcePools": POOLS})
    ask.cloud.settings = CloudSettings(durations={"aiplatform.persistentResources": 600.0})
    ask.done("DELETE", KEPT)

    assert create(ask, {"resourcePools": POOLS}).code == 409
