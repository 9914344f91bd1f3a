from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.model.node_pool import BLOCK_LEVELS, SLICE_LEVELS
from training_platform.jobs.gke.jobset import jobset
from training_platform.jobs.gke.pods import shared_memory
from training_platform.jobs.gke.rules import gke_findings
from training_platform.jobs.resolve import ResolvedJob

Take = Callable[..., ResolvedJob]
GPU = "gke: {cluster: gpus, flavor: h100, nodes: 2}"
ONE_GPU = "gke: {cluster: gpus, flavor: a100-40, nodes: 1}"
MOUNTS = """\
mounts:
  - {name: data, source: {directory: data}, read_only: true}
  - {name: own, source: {directory: own}, path: /data}
  - {name: cache, source: {bucket: checkpoints}, caches: true, file_cache_gib: 50}
"""
BLOCK, HOST = "cloud.google.com/gce-topology-block", "kubernetes.io/hostname"


def template(job: ResolvedJob) -> dict[str, Any]:
    found = jobset(job)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert isinstance(found, dict)
    return found


def by_name(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in items}


def test_a_directory_is_the_teams_folder_of_its_claim_and_a_whole_share_all_of_it(take: Take) -> None:
    pod = template(take(MOUNTS + GPU))["spec"]
    mounts, volumes = by_name(pod["containers"][0]["volumeMounts"]), by_name(pod["volumes"])

    assert volumes["mount-data"]["persistentVolumeClaim"] == {"claimName": "data"}
    assert mounts["mount-data"] == {
        "name": "mount-data", "mountPath": "/mnt/nfs/data", "subPath": "vision/data", "readOnly": True,
    }  # fmt: skip
    assert mounts["mount-own"] == {"name": "mount-own", "mountPath": "/data"}


def test_a_bucket_is_mounted_by_the_driver_which_the_pod_asks_for(take: Take) -> None:
    found = template(take(MOUNTS + GPU))

    assert by_name(found["spec"]["volumes"])["mount-cache"]["csi"] == {
        "driver": "gcsfuse.csi.storage.gke.io",
        "volumeAttributes": {
            "bucketName": "example-lab-lab-vision-checkpoints",
            "mountOptions": "implicit-dirs",
            "fileCacheCapacity": "50Gi",
            "fileCacheForRangeRead": "true",
        },
    }
    assert found["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"


def test_on_the_vms_network_the_driver_acts_as_the_pods_account(take: Take) -> None:
    found = template(take(MOUNTS + ONE_GPU.replace("1}", "1, host_network: true}")))

    assert by_name(found["spec"]["volumes"])["mount-cache"]["csi"]["volumeAttributes"]["hostNetworkPodKSA"] == "true"


def test_paths_and_caches_are_variables_by_the_mounts_name(take: Take) -> None:
    (container,) = template(take(MOUNTS + GPU))["spec"]["containers"]
    variables = {each["name"]: each["value"] for each in container["env"]}
    cache = "/gcs/example-lab-lab-vision-checkpoints"

    assert (variables["MOUNT_DATA"], variables["MOUNT_OWN"], variables["MOUNT_CACHE"]) == (
        "/mnt/nfs/data",
        "/data",
        cache,
    )
    assert (variables["HF_HOME"], variables["TORCH_HOME"]) == (f"{cache}/huggingface", f"{cache}/torch")


@pytest.mark.parametrize(
    ("rest", "target", "volume"),
    [
        ("", GPU, {"medium": "Memory"}),
        ("", ONE_GPU, {"medium": "Memory"}),
        ("shared_memory_gib: 64\n", GPU, {"medium": "Memory", "sizeLimit": "64Gi"}),
        ("shared_memory_gib: 0\n", ONE_GPU, None),
    ],
    ids=["8 GPUs", "4 GPUs", "a size", "none"],
)
def test_shared_memory_is_memory_where_a_vm_has_several_gpus(
    take: Take, rest: str, target: str, volume: dict[str, str] | None
) -> None:
    volumes = by_name(template(take(rest + target))["spec"].get("volumes", []))

    assert volumes.get("shared-memory", {}).get("emptyDir") == volume


@pytest.mark.parametrize(
    ("rest", "medium"),
    [
        ("", None),
        ("data_loaders: 8\n", {"medium": "Memory"}),
        ("data_loaders: 8\nshared_memory_gib: 16\n", {"medium": "Memory", "sizeLimit": "16Gi"}),
    ],
    ids=["no data loaders", "data loaders", "a size"],
)
def test_shared_memory_is_memory_beside_one_gpu_for_data_loaders(
    take: Take, rest: str, medium: dict[str, str] | None
) -> None:
    assert (shared_memory(take(rest + GPU), 1) or {}).get("emptyDir") == medium


@pytest.mark.parametrize(
    ("rest", "requested", "limit"),
    [
        ("", None, None),
        ("shared_memory_gib: 16\n", "16Gi", None),
        ("memory_gib: 64\nshared_memory_gib: 16\n", "64Gi", "64Gi"),
        ("memory_gib: 64\n", "64Gi", "64Gi"),
    ],
)
def test_shared_memory_is_part_of_the_memory_that_is_requested(
    take: Take, rest: str, requested: str | None, limit: str | None
) -> None:
    (container,) = template(take(rest + GPU))["spec"]["containers"]

    assert container["resources"]["requests"].get("memory") == requested
    assert container["resources"]["limits"].get("memory") == limit


def test_a_program_is_told_how_many_data_loaders_it_has(take: Take) -> None:
    (container,) = template(take("data_loaders: 8\n" + GPU))["spec"]["containers"]

    assert {"name": "DATA_LOADERS", "value": "8"} in container["env"]


def test_pods_ask_for_the_narrowest_level_of_a_flavor_with_a_topology(take: Take) -> None:
    job = take(GPU)
    assert job.flavor is not None
    flavor = dataclasses.replace(job.flavor, topology_levels=("cloud.google.com/gce-topology-zone", BLOCK, HOST))

    placed = template(dataclasses.replace(job, flavor=flavor))["metadata"]["annotations"]

    assert placed["kueue.x-k8s.io/podset-preferred-topology"] == BLOCK
    assert "kueue.x-k8s.io/podset-preferred-topology" not in template(job).get("metadata", {}).get("annotations", {})


def test_a_job_says_how_near_its_vms_are(take: Take) -> None:
    job = take(GPU.replace("}", ", placement: {level: subblock, required: true}}"))
    assert job.flavor is not None
    flavor = dataclasses.replace(job.flavor, topology_levels=BLOCK_LEVELS)

    placed = template(dataclasses.replace(job, flavor=flavor))["metadata"]["annotations"]

    assert placed["kueue.x-k8s.io/podset-required-topology"] == "cloud.google.com/gce-topology-subblock"
    assert "kueue.x-k8s.io/podset-preferred-topology" not in placed


@pytest.mark.parametrize("levels", [BLOCK_LEVELS, SLICE_LEVELS])
def test_a_job_on_one_vm_asks_for_any_place_of_a_topology(take: Take, levels: tuple[str, ...]) -> None:
    """Kueue gives it no flavor with a topology else, in a queue that has one without."""
    job = take(GPU.replace("nodes: 2", "nodes: 1"))
    assert job.flavor is not None
    flavor = dataclasses.replace(job.flavor, topology_levels=levels)

    placed = template(dataclasses.replace(job, flavor=flavor))["metadata"]["annotations"]

    asked = {name: value for name, value in placed.items() if name.startswith("kueue.x-k8s.io/")}
    assert asked == {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}
    assert "kueue.x-k8s.io/podset-unconstrained-topology" not in template(job).get("metadata", {}).get(
        "annotations", {}
    )


LEVELS = "block, subblock, host"


@pytest.mark.parametrize(
    ("levels", "placement", "said"),
    [
        ((), "level: block", [("h100 has no topology", None)]),
        (SLICE_LEVELS, "level: block", [("h100 puts each slice on VMs of one node pool already", None)]),
        (BLOCK_LEVELS, "level: blok", [(f"'blok' is not a level of h100. Allowed: {LEVELS}", "block")]),
        (BLOCK_LEVELS, f"level: {BLOCK_LEVELS[1]}", [(f"is not a level of h100. Allowed: {LEVELS}", "subblock")]),
        (BLOCK_LEVELS, "level: hostname", [("'hostname' is not a level of h100", "host")]),
        (BLOCK_LEVELS, "level: host, required: true", [("one host has one VM of h100, and the job has 2", "subblock")]),
        (BLOCK_LEVELS, "level: host", []),
        (BLOCK_LEVELS, "level: block, required: true", []),
    ],
)
def test_a_level_is_one_of_the_flavors_topology(
    take: Take, levels: tuple[str, ...], placement: str, said: list[tuple[str, str | None]]
) -> None:
    job = take(GPU.replace("}", f", placement: {{{placement}}}}}"))
    assert job.flavor is not None
    flavor = dataclasses.replace(job.flavor, topology_levels=levels)

    found = [each for each in gke_findings(dataclasses.replace(job, flavor=flavor)) if each.rule == "job-placement"]

    assert [each.nearest for each in found] == [nearest for _, nearest in said]
    for each, (words, _) in zip(found, said, strict=True):
        assert words in f"{each.message}. Allowed: {each.allowed}"
        assert each.path.startswith("gke.placement")


def test_each_slice_of_a_job_is_whole_where_kueue_knows_the_slices(take: Take) -> None:
    job = take("gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2}\n")
    assert job.flavor is not None
    flavor = dataclasses.replace(job.flavor, topology_levels=SLICE_LEVELS)

    placed = template(dataclasses.replace(job, flavor=flavor))["metadata"]["annotations"]

    assert placed == {
        "kueue.x-k8s.io/podset-slice-required-topology": "cloud.google.com/gke-nodepool",
        "kueue.x-k8s.io/podset-slice-size": str(4 * 8 // 4),
    }
