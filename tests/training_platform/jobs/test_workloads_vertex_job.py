from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.vertex.custom_job import charges, custom_job
from training_platform.jobs.vertex.pools import vms
from training_platform.resources.cloud_names import bucket_id, jobs_account_email, persistent_resource_id

Take = Callable[..., ResolvedJob]
H100 = "region: us-central1, machine_type: a3-highgpu-8g"
TPU = "region: us-west4, machine_type: ct5lp-hightpu-4t, topology: 4x8"
CPU = "region: us-central1, machine_type: n2-standard-8"
TUNING = "region: us-central1, machine_type: a2-highgpu-1g, persistent_resource: tuning, boot_disk: {size_gb: 200}"


def body(take: Take, target: str, rest: str = "") -> dict[str, Any]:
    return custom_job(take(f"{rest}vertex: {{{target}}}"))


def spec(take: Take, target: str, rest: str = "") -> dict[str, Any]:
    found = body(take, target, rest)["jobSpec"]
    assert isinstance(found, dict)
    return found


def test_the_body_is_a_custom_job_of_the_rest_api(take: Take) -> None:
    target = (
        f"{H100}, replicas: 3, capacity: flex-start, timeout_hours: 72, max_wait_hours: 48, boot_disk: {{size_gb: 500}}"
    )
    pool = {
        "machineSpec": {"machineType": "a3-highgpu-8g", "acceleratorType": "NVIDIA_H100_80GB", "acceleratorCount": 8},
        "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 500},
        "containerSpec": {
            "imageUri": "registry.example.com/train:1",
            "command": ["python"],
            "args": ["train"],
            "env": [{"name": "OUTPUT_URI", "value": "gs://example-lab-lab-vision-checkpoints/train"}],
        },
    }

    assert body(take, target, "command: [python]\nargs: [train]\noutput: checkpoints\n") == {
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


def test_names_are_those_by_which_the_components_create_things(take: Take) -> None:
    job = take(f"output: checkpoints\nvertex: {{{TUNING}}}")
    found = custom_job(job)["jobSpec"]

    assert found["serviceAccount"] == jobs_account_email(job.scope)
    assert found["baseOutputDirectory"]["outputUriPrefix"] == f"gs://{bucket_id(job.scope, 'checkpoints')}/train"
    assert found["persistentResourceId"] == persistent_resource_id(job.scope, "tuning") == "lab-vision-tuning"


@pytest.mark.parametrize(("replicas", "counts"), [(1, ["1"]), (2, ["1", "1"]), (9, ["1", "8"])])
def test_the_first_pool_has_one_replica_and_the_second_the_rest(take: Take, replicas: int, counts: list[str]) -> None:
    pools = spec(take, f"{H100}, replicas: {replicas}")["workerPoolSpecs"]

    assert [pool["replicaCount"] for pool in pools] == counts
    assert all({**pool, "replicaCount": ""} == {**pools[0], "replicaCount": ""} for pool in pools)


@pytest.mark.parametrize(
    ("target", "machine"),
    [
        (TPU, {"machineType": "ct5lp-hightpu-4t", "tpuTopology": "4x8"}),
        (CPU, {"machineType": "n2-standard-8"}),
        (TUNING, {"machineType": "a2-highgpu-1g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1}),
    ],
)
def test_gpus_are_spelt_out_and_tpus_follow_from_machine_and_topology(
    take: Take, target: str, machine: dict[str, Any]
) -> None:
    (pool,) = spec(take, target)["workerPoolSpecs"]

    assert pool["machineSpec"] == machine


@pytest.mark.parametrize(
    ("capacity", "scheduling"),
    [
        ("", {"strategy": "STANDARD", "timeout": "86400s"}),
        ("capacity: on-demand, timeout_hours: 1", {"strategy": "STANDARD", "timeout": "3600s"}),
        ("capacity: spot", {"strategy": "SPOT", "timeout": "86400s"}),
        # Left out, the API would wait for a day too; 0 is to wait for ever.
        ("capacity: flex-start", {"strategy": "FLEX_START", "timeout": "86400s", "maxWaitDuration": "86400s"}),
        (
            "capacity: flex-start, max_wait_hours: 0",
            {"strategy": "FLEX_START", "timeout": "86400s", "maxWaitDuration": "0s"},
        ),
    ],
)
def test_the_wait_is_written_for_flex_start_and_for_nothing_else(
    take: Take, capacity: str, scheduling: dict[str, str]
) -> None:
    assert spec(take, f"{H100}, {capacity}")["scheduling"] == scheduling


def test_only_what_the_file_says_is_written(take: Take) -> None:
    found = spec(take, CPU)

    assert found.keys() == {"workerPoolSpecs", "scheduling", "serviceAccount"}
    assert found["workerPoolSpecs"][0]["containerSpec"].keys() == {"imageUri", "env"}


def test_every_key_is_in_camel_case(take: Take) -> None:
    def keys(value: Any) -> list[str]:
        if isinstance(value, list):
            return [key for item in value for key in keys(item)]
        return [*value, *keys(list(value.values()))] if isinstance(value, dict) else []

    found = keys(spec(take, f"{TUNING}", "output: checkpoints\ncommand: [a]\nargs: [b]\n"))

    assert len(found) > 15
    assert [key for key in found if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", key)] == []


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
    found = charges(take(f"vertex: {{{target}}}"))

    assert {usage.keys[0].quota_id.removesuffix("PerProjectPerRegion"): usage.amount for usage in found} == charged
    assert {usage.keys[0].project for usage in found} <= {"example-lab"}


@pytest.mark.parametrize(("target", "count"), [(TPU, 8), (TPU.replace("4x8", "2x2"), 1), (f"{H100}, replicas: 3", 3)])
def test_a_tpu_slice_is_as_many_vms_as_its_topology_takes(take: Take, target: str, count: int) -> None:
    vertex = take(f"vertex: {{{target}}}").spec.vertex

    assert vertex is not None
    assert vms(vertex) == count


def test_a_job_for_gke_alone_is_no_custom_job(take: Take) -> None:
    with pytest.raises(ValueError, match="job train has no vertex target"):
        custom_job(take("gke: {cluster: gpus, flavor: h100, nodes: 1}"))


T4 = "region: us-central1, machine_type: n1-standard-8, accelerator: t4, accelerator_count: 2"


def test_attached_gpus_are_spelt_out_for_every_replica_and_for_a_chief_of_its_own(take: Take) -> None:
    pools = spec(take, f"{T4}, replicas: 2, chief: {{machine_type: n1-standard-16, accelerator: v100}}")

    def machines(found: dict[str, Any]) -> list[Any]:
        return [each["machineSpec"] for each in found["workerPoolSpecs"]]

    assert machines(pools) == [
        {"machineType": "n1-standard-16", "acceleratorType": "NVIDIA_TESLA_V100", "acceleratorCount": 1},
        {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2},
    ]


def test_attached_gpus_are_charged(take: Take) -> None:
    found = {usage.keys[0].quota_id: usage.amount for usage in charges(take(f"vertex: {{{T4}, replicas: 3}}"))}

    assert found["CustomModelTrainingT4GPUsPerProjectPerRegion"] == 3 * 2
    assert found["CustomModelTrainingCPUsPerProjectPerRegion"] == 3 * 8
