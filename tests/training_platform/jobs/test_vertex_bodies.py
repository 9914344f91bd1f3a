"""Roles at their places, tuning jobs, pipelines, and what they charge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.vertex.custom_job import charges, custom_job, job_spec, training_pipeline, vertex_body

Take = Callable[..., ResolvedJob]
A100 = "region: us-central1, machine_type: a2-highgpu-8g"
CPU = "region: us-central1, machine_type: n1-standard-16"
REDUCERS, EVALUATOR = "reducers: {replicas: 3}", "evaluator: {machine_type: n1-standard-32}"
CHIEF = "chief: {machine_type: n1-standard-16}"
SWEEP = "sweep: {parameters: {lr: {values: [1, 0.1]}, kind: {values: [a, b, c]}}, metric: loss, parallel: 4}\n"
FOLDER = "gs://example-lab-lab-vision-checkpoints/train"


def pools(take: Take, target: str) -> list[tuple[str, str] | None]:
    """Return machine type and replicas of each place, None for an empty one."""
    specs = custom_job(take(f"vertex: {{{target}}}"))["jobSpec"]["workerPoolSpecs"]
    return [(each["machineSpec"]["machineType"], each["replicaCount"]) if each else None for each in specs]


@pytest.mark.parametrize(
    ("target", "places"),
    [
        (f"{A100}, replicas: 4, {REDUCERS}", [("a2-highgpu-8g", "1"), ("a2-highgpu-8g", "3"), ("n1-highcpu-16", "3")]),
        (f"{A100}, {EVALUATOR}", [("a2-highgpu-8g", "1"), None, None, ("n1-standard-32", "1")]),
        (f"{A100}, replicas: 2, {EVALUATOR}",
         [("a2-highgpu-8g", "1"), ("a2-highgpu-8g", "1"), None, ("n1-standard-32", "1")]),
        (f"{A100}, replicas: 3, {CHIEF}", [("n1-standard-16", "1"), ("a2-highgpu-8g", "2")]),
    ],
    ids=["reducers", "evaluator alone", "evaluator beside workers", "chief"],
)  # fmt: skip
def test_each_role_has_its_place_and_those_before_it_are_empty(
    take: Take, target: str, places: list[tuple[str, str] | None]
) -> None:
    assert pools(take, target) == places


def test_reducers_run_their_server_and_nothing_of_the_job(take: Take) -> None:
    job = take(f"command: [python]\nargs: [a]\nvertex: {{{A100}, replicas: 2, {REDUCERS}}}")

    *_, reducers = custom_job(job)["jobSpec"]["workerPoolSpecs"]
    assert reducers["containerSpec"] == {
        "imageUri": "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    }


def test_all_pools_are_charged_and_all_trials_at_a_time(take: Take) -> None:
    target = f"vertex: {{{A100}, replicas: 2, {REDUCERS}}}"

    def charged(job: ResolvedJob) -> dict[str, float]:
        return {use.keys[0].quota_id.removesuffix("PerProjectPerRegion"): use.amount for use in charges(job)}

    assert charged(take(target)) == {
        "CustomModelTrainingA100GPUs": 2 * 8,
        "CustomModelTrainingCPUs": 3 * 16,
        "CustomModelTrainingPDSSD": (2 + 3) * 100,
    }
    assert charged(take(SWEEP + target))["CustomModelTrainingA100GPUs"] == 4 * 2 * 8
    assert charged(take(SWEEP.replace("4", "9") + target))["CustomModelTrainingA100GPUs"] == 2 * 3 * 2 * 8


def test_a_grid_is_a_tuning_job_with_all_of_its_points(take: Take) -> None:
    collection, body = vertex_body(take(f"{SWEEP}vertex: {{{CPU}}}"))

    assert collection == "hyperparameterTuningJobs"
    assert (body["maxTrialCount"], body["parallelTrialCount"]) == (2 * 3, 4)
    assert body["studySpec"] == {
        "metrics": [{"metricId": "loss", "goal": "MAXIMIZE"}],
        "parameters": [
            {"parameterId": "lr", "discreteValueSpec": {"values": [0.1, 1]}},
            {"parameterId": "kind", "categoricalValueSpec": {"values": ["a", "b", "c"]}},
        ],
        "algorithm": "GRID_SEARCH",
    }
    assert body["trialJobSpec"] == custom_job(take(f"vertex: {{{CPU}}}"))["jobSpec"]


@pytest.mark.parametrize(
    ("bounds", "spec"),
    [
        ("min: 1, max: 8", {"integerValueSpec": {"minValue": "1", "maxValue": "8"}, "scaleType": "UNIT_LINEAR_SCALE"}),
        ("min: 0.5, max: 8, scale: log",
         {"doubleValueSpec": {"minValue": 0.5, "maxValue": 8}, "scaleType": "UNIT_LOG_SCALE"}),
    ],
)  # fmt: skip
def test_a_search_is_between_whole_or_any_numbers(take: Take, bounds: str, spec: dict[str, Any]) -> None:
    sweep = f"sweep: {{method: bayesian, trials: 20, goal: minimize, metric: loss, parameters: {{x: {{{bounds}}}}}}}\n"
    _, body = vertex_body(take(f"{sweep}vertex: {{{CPU}}}"))

    assert body["studySpec"]["parameters"] == [{"parameterId": "x", **spec}]
    assert body["studySpec"]["algorithm"] == "ALGORITHM_UNSPECIFIED"  # Bayesian, the service's own
    assert body["studySpec"]["metrics"] == [{"metricId": "loss", "goal": "MINIMIZE"}]
    assert body["maxTrialCount"] == 20


def test_a_pipeline_has_the_data_set_before_the_job_and_the_model_after_it(take: Take) -> None:
    pipeline = "pipeline: {data_set: '7', split: {training: 70, test: 20}, model: {name: vit, image: 'a:1'}}"
    job = take(f"output: checkpoints\nvertex: {{{CPU}, {pipeline}}}")
    collection, body = vertex_body(job)

    assert collection == "trainingPipelines"
    assert body["trainingTaskDefinition"].endswith("custom_task_1.0.0.yaml")
    assert body["inputDataConfig"] == {
        "datasetId": "7",
        "gcsDestination": {"outputUriPrefix": f"{FOLDER}/data"},
        "fractionSplit": {"trainingFraction": 0.7, "validationFraction": 0.1, "testFraction": 0.2},
    }
    assert body["modelToUpload"] == {"displayName": "vit", "containerSpec": {"imageUri": "a:1"}}
    assert job_spec(body) == body["trainingTaskInputs"] == custom_job(job)["jobSpec"]


def test_a_sweep_in_a_pipeline_is_its_tuning_task(take: Take) -> None:
    job = take(f"{SWEEP}output: checkpoints\nvertex: {{{CPU}, pipeline: {{model: {{name: vit, image: 'a:1'}}}}}}")
    alone = take(f"{SWEEP}output: checkpoints\nvertex: {{{CPU}}}")
    collection, body = vertex_body(job)

    assert collection == "trainingPipelines"
    assert body["trainingTaskDefinition"].endswith("/hyperparameter_tuning_task_1.0.0.yaml")
    assert body["trainingTaskInputs"] == {
        key: value for key, value in vertex_body(alone).body.items() if key not in ("displayName", "labels")
    }
    assert body["modelToUpload"]["displayName"] == "vit"
    assert job_spec(body) == custom_job(job)["jobSpec"]
    assert charges(job) == charges(alone)


def test_a_table_is_read_from_bigquery_in_the_teams_project(take: Take) -> None:
    job = take(f"vertex: {{{CPU}, pipeline: {{data_set: '7', read_as: bigquery}}}}")
    assert job.spec.vertex is not None
    assert job.spec.vertex.pipeline is not None

    config = training_pipeline(job, job.spec.vertex.pipeline)["inputDataConfig"]
    assert config["bigqueryDestination"] == {"outputUri": "bq://example-lab"}
    assert "gcsDestination" not in config


@pytest.mark.parametrize(
    ("retries", "replicas", "said"),
    [(0, 1, {"disableRetries": True}), (0, 2, {"disableRetries": True}), (3, 1, {}),
     (3, 2, {"restartJobOnWorkerRestart": True})],
)  # fmt: skip
def test_all_vms_start_again_together_or_none_does(
    take: Take, retries: int, replicas: int, said: dict[str, bool]
) -> None:
    job = take(f"retries: {retries}\nvertex: {{{CPU}, replicas: {replicas}}}")

    scheduling = custom_job(job)["jobSpec"]["scheduling"]
    assert {key: value for key, value in scheduling.items() if key not in ("strategy", "timeout")} == said


def test_places_and_names_are_written_as_the_service_wants_them(take: Take) -> None:
    rest = "output: checkpoints\ntensorboard: true\nexperiment: vit\nprofiler: true\n"
    key = "projects/example-lab/locations/us-central1/keyRings/a/cryptoKeys/b"
    body = custom_job(take(f"{rest}vertex: {{{CPU}, network: projects/1/global/networks/lab, kms_key: {key}}}"))
    contexts = "projects/example-lab/locations/us-central1/metadataStores/default/contexts"

    assert body["encryptionSpec"] == {"kmsKeyName": key}
    assert {name: value for name, value in body["jobSpec"].items() if isinstance(value, (str, bool))} == {
        "serviceAccount": "lab-vision-jobs@example-lab.iam.gserviceaccount.com",
        "network": "projects/1/global/networks/lab",
        "tensorboard": "{tensorboard:example-lab/us-central1/lab-vision-us-central1}",
        "experiment": f"{contexts}/vit",
        "experimentRun": f"{contexts}/vit-train",
        "enableDashboardAccess": True,
    }
