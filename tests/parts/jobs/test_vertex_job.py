"""Roles at their places, tuning jobs, pipelines, and what they charge."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.parts.jobs.lab import Lab, Take
from tests.support.lab import ENVIRONMENT
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.vertex.custom_job import charges, custom_job, job_spec, training_pipeline, vertex_body
from training_platform.resources.launcher import PLAN_VARIABLE, launcher

H100 = "region: us-central1, machine_type: a3-highgpu-8g"
TPU = "region: us-west4, machine_type: ct5lp-hightpu-4t, topology: 4x8"
CPU = "region: us-central1, machine_type: n2-standard-8"
TUNING = "region: us-central1, machine_type: a2-highgpu-1g, persistent_resource: tuning, boot_disk: {size_gb: 200}"


def body(take: Take, target: str, fields: str = "") -> dict[str, Any]:
    return custom_job(take(f"{fields}vertex: {{{target}}}"))


def spec(take: Take, target: str, fields: str = "") -> dict[str, Any]:
    job_spec = body(take, target, fields)["jobSpec"]
    assert isinstance(job_spec, dict)
    return job_spec


def test_the_body_is_a_custom_job_of_the_rest_api(take: Take) -> None:
    target = f"{H100}, replicas: 3, capacity: flex-start, timeout_hours: 72, max_wait: 48h, boot_disk: {{size_gb: 500}}"
    pool = {
        "machineSpec": {"machineType": "a3-highgpu-8g", "acceleratorType": "NVIDIA_H100_80GB", "acceleratorCount": 8},
        "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 500},
        "containerSpec": {
            "imageUri": "registry.example.com/train:1",
            "command": ["python3", "-c", launcher()],
            "args": ["python", "train"],
        },
    }
    job_body = body(take, target, "command: [python]\nargs: [train]\noutput: checkpoints\n")
    for worker_pool in job_body["jobSpec"]["workerPoolSpecs"]:
        env = {row["name"]: row["value"] for row in worker_pool["containerSpec"].pop("env")}
        assert env["OUTPUT_URI"] == "gs://example-lab-lab-vision-checkpoints/train"
    assert job_body == {
        "displayName": "train",
        "labels": {"cost-center": "vision", "environment": "lab", "team": "vision", "managed-by": "training-platform"},
        "jobSpec": {
            "workerPoolSpecs": [{**pool, "replicaCount": "1"}, {**pool, "replicaCount": "2"}],
            "scheduling": {
                "strategy": "FLEX_START",
                "timeout": "259200s",
                "maxWaitDuration": "172800s",
                "restartJobOnWorkerRestart": True,
            },
            "serviceAccount": "lab-vision-jobs@example-lab.iam.gserviceaccount.com",
            "baseOutputDirectory": {"outputUriPrefix": "gs://example-lab-lab-vision-checkpoints/train"},
        },
    }


@pytest.mark.parametrize(
    ("capacity", "scheduling"),
    [
        ("", {"strategy": "STANDARD", "timeout": "86400s"}),
        ("capacity: spot", {"strategy": "SPOT", "timeout": "86400s"}),
        # Left out, the API would wait for a day too; 0 is to wait for ever.
        ("capacity: flex-start", {"strategy": "FLEX_START", "timeout": "86400s", "maxWaitDuration": "86400s"}),
        (
            "capacity: flex-start, max_wait: 0s",
            {"strategy": "FLEX_START", "timeout": "86400s", "maxWaitDuration": "0s"},
        ),
        (
            "capacity: flex-start, max_wait: 30m",
            {"strategy": "FLEX_START", "timeout": "86400s", "maxWaitDuration": "1800s"},
        ),
    ],
)
def test_the_wait_is_written_for_flex_start_and_for_nothing_else(
    take: Take, capacity: str, scheduling: dict[str, str]
) -> None:
    assert spec(take, f"{H100}, {capacity}")["scheduling"] == scheduling


@pytest.mark.parametrize(
    ("target", "charged"),
    [
        (
            f"{H100}, replicas: 2, capacity: flex-start, boot_disk: {{size_gb: 500}}",
            {"CustomModelTrainingPreemptibleH100GPUs": 2 * 8, "CustomModelTrainingPDSSD": 2 * 500},
        ),
        (f"{H100}, capacity: spot", {"CustomModelTrainingPreemptibleH100GPUs": 8, "CustomModelTrainingPDSSD": 100}),
        (f"{H100}", {"CustomModelTrainingH100GPUs": 8, "CustomModelTrainingPDSSD": 100}),
        (TPU, {"CustomModelTrainingV5ETPU": 4 * 8, "CustomModelTrainingPDSSD": (4 * 8 // 4) * 100}),
        (TUNING, {}),
    ],
)
def test_spot_and_flex_start_charge_the_preemptible_quota(take: Take, target: str, charged: dict[str, int]) -> None:
    usages = charges(take(f"vertex: {{{target}}}"))

    assert {usage.keys[0].quota_id.removesuffix("PerProjectPerRegion"): usage.amount for usage in usages} == charged
    assert {usage.keys[0].project for usage in usages} <= {"example-lab"}


T4 = "region: us-central1, machine_type: n1-standard-8, accelerator: t4, accelerator_count: 2"


def test_attached_gpus_are_charged(take: Take) -> None:
    amounts = {usage.keys[0].quota_id: usage.amount for usage in charges(take(f"vertex: {{{T4}, replicas: 3}}"))}

    assert amounts["CustomModelTrainingT4GPUsPerProjectPerRegion"] == 3 * 2
    assert amounts["CustomModelTrainingCPUsPerProjectPerRegion"] == 3 * 8


A100 = "region: us-central1, machine_type: a2-highgpu-8g"
CPU_BODY = "region: us-central1, machine_type: n1-standard-16"
REDUCERS = "reducers: {replicas: 3}"
EVALUATOR = "evaluator: {machine_type: n1-standard-32}"
CHIEF = "chief: {machine_type: n1-standard-16}"
SWEEP = "sweep: {parameters: {lr: {values: [1, 0.1]}, kind: {values: [a, b, c]}}, metric: loss, parallel: 4}\n"
FOLDER = "gs://example-lab-lab-vision-checkpoints/train"


def pools(take: Take, target: str) -> list[tuple[str, str] | None]:
    """Return machine type and replicas of each place, None for an empty one."""
    specs = custom_job(take(f"vertex: {{{target}}}"))["jobSpec"]["workerPoolSpecs"]
    return [
        (worker_pool["machineSpec"]["machineType"], worker_pool["replicaCount"]) if worker_pool else None
        for worker_pool in specs
    ]


@pytest.mark.parametrize(
    ("target", "places"),
    [
        (f"{A100}, replicas: 4, {REDUCERS}", [("a2-highgpu-8g", "1"), ("a2-highgpu-8g", "3"), ("n1-highcpu-16", "3")]),
        (f"{A100}, {EVALUATOR}", [("a2-highgpu-8g", "1"), None, None, ("n1-standard-32", "1")]),
        (f"{A100}, replicas: 2, {EVALUATOR}",
         [("a2-highgpu-8g", "1"), ("a2-highgpu-8g", "1"), None, ("n1-standard-32", "1")]),
        (f"{A100}, replicas: 3, {CHIEF}", [("n1-standard-16", "1"), ("a2-highgpu-8g", "2")]),
    ],
    ids=["reducers", "an evaluator", "evaluator beside workers", "chief"],
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
    collection, body = vertex_body(take(f"{SWEEP}vertex: {{{CPU_BODY}}}"))

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
    assert body["trialJobSpec"] == custom_job(take(f"vertex: {{{CPU_BODY}}}"))["jobSpec"]


@pytest.mark.parametrize(
    ("bounds", "spec"),
    [
        ("min: 1, max: 8", {"integerValueSpec": {"minValue": "1", "maxValue": "8"}, "scaleType": "UNIT_LINEAR_SCALE"}),
        ("min: 0.5, max: 8, scale: log",
         {"doubleValueSpec": {"minValue": 0.5, "maxValue": 8}, "scaleType": "UNIT_LOG_SCALE"}),
    ],
)  # fmt: skip
def test_a_search_is_between_whole_or_any_numbers(take: Take, bounds: str, spec: dict[str, Any]) -> None:
    counts = "trials: 20, max_failed_trials: 2"
    sweep = f"sweep: {{method: bayesian, {counts}, goal: minimize, metric: loss, parameters: {{x: {{{bounds}}}}}}}\n"
    _, body = vertex_body(take(f"{sweep}vertex: {{{CPU_BODY}}}"))

    assert body["studySpec"]["parameters"] == [{"parameterId": "x", **spec}]
    assert body["studySpec"]["algorithm"] == "ALGORITHM_UNSPECIFIED"  # Bayesian, the service's own
    assert body["studySpec"]["metrics"] == [{"metricId": "loss", "goal": "MINIMIZE"}]
    assert (body["maxTrialCount"], body["maxFailedTrialCount"]) == (20, 2)


def test_a_pipeline_has_the_data_set_before_the_job_and_the_model_after_it(take: Take) -> None:
    pipeline = "pipeline: {data_set: '7', split: {training: 70, test: 20}, model: {name: vit, image: 'a:1'}}"
    job = take(f"output: checkpoints\nvertex: {{{CPU_BODY}, {pipeline}}}")
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
    job = take(f"{SWEEP}output: checkpoints\nvertex: {{{CPU_BODY}, pipeline: {{model: {{name: vit, image: 'a:1'}}}}}}")
    alone = take(f"{SWEEP}output: checkpoints\nvertex: {{{CPU_BODY}}}")
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
    job = take(f"vertex: {{{CPU_BODY}, pipeline: {{data_set: '7', read_as: bigquery}}}}")
    assert job.spec.vertex is not None
    assert job.spec.vertex.pipeline is not None

    config = training_pipeline(job, job.spec.vertex.pipeline)["inputDataConfig"]
    assert config["bigqueryDestination"] == {"outputUri": "bq://example-lab"}
    assert "gcsDestination" not in config


@pytest.mark.parametrize(
    ("retries", "replicas", "expected"),
    [(0, 1, {"disableRetries": True}), (0, 2, {"disableRetries": True}), (3, 1, {}),
     (3, 2, {"restartJobOnWorkerRestart": True})],
)  # fmt: skip
def test_all_vms_start_again_together_or_none_does(
    take: Take, retries: int, replicas: int, expected: dict[str, bool]
) -> None:
    job = take(f"retries: {retries}\nvertex: {{{CPU_BODY}, replicas: {replicas}}}")

    scheduling = custom_job(job)["jobSpec"]["scheduling"]
    assert {key: value for key, value in scheduling.items() if key not in ("strategy", "timeout")} == expected


def test_places_and_names_are_written_as_the_service_wants_them(take: Take) -> None:
    fields = "output: checkpoints\ntensorboard: true\nexperiment: vit\nprofiler: true\n"
    key = "projects/example-lab/locations/us-central1/keyRings/a/cryptoKeys/b"
    body = custom_job(take(f"{fields}vertex: {{{CPU_BODY}, network: projects/1/global/networks/lab, kms_key: {key}}}"))
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


@pytest.mark.parametrize(("repository", "spec"), [("", "pythonPackageSpec"), ("us", "containerSpec")])
def test_a_package_runs_under_the_launcher_where_pip_needs_the_repository(
    take: Take, new_lab: Lab, repository: str, spec: str
) -> None:
    line = f"    python_repository: {repository}\n" if repository else ""
    root = new_lab(lab=ENVIRONMENT + line)
    (root / "train.py").write_text("")
    text = "environment: lab\nsource: {file: train.py}\noutput: checkpoints\n"
    job = take(f"{text}vertex: {{region: us-central1, machine_type: n1-standard-16}}", workspace=read_workspace(root))

    (pool,) = custom_job(job)["jobSpec"]["workerPoolSpecs"]

    assert spec in pool
    plan = [row["value"] for row in pool[spec]["env"] if row["name"] == PLAN_VARIABLE]
    assert [json.loads(value)["index"] for value in plan] == [
        f"https://{repository}-python.pkg.dev/example-lab/lab-python/simple/"
    ] * bool(repository)
