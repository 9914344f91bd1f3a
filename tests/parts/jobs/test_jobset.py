from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.parts.jobs.lab import Take, container, pod, replicated, template, with_flavor, with_pool, without_nodes
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import MachineType
from training_platform.config.model.node_pool import BLOCK_LEVELS, SLICE_LEVELS, GpuSharing
from training_platform.config.model.queues import Share
from training_platform.parts.jobs.gke.gke_job import on_gke
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.gke.pod_sizes import pod_parts, usable_disk_gib, usable_memory_gib
from training_platform.parts.jobs.gke.pods import NOT_MOVED
from training_platform.parts.jobs.gke.rules import gke_findings
from training_platform.parts.jobs.gke.volumes import shared_memory
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.resources.kueue import configuration
from training_platform.resources.launcher import launcher
from training_platform.resources.tenancy import resource_quota

MULTISLICE = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2}"
ONE_SLICE = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 1}"
ONE_HOST = "gke: {cluster: tpus, flavor: tpu-v5e-2x4, slices: 1}"
SPOT = "gke: {cluster: tpus, flavor: tpu-v5e-4x4-spot, slices: 12}"
GPU = "gke: {cluster: gpus, flavor: h100, nodes: 3}"
PART = "gke: {cluster: gpus, flavor: a100-40, nodes: 2}"
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}


@pytest.mark.parametrize(
    ("target", "jobs", "pods", "chips"),
    [
        (MULTISLICE, 2, 4 * 8 // 4, {"google.com/tpu": "4"}),
        (GPU, 1, 3, {"nvidia.com/gpu": "8"}),
    ],
)
def test_a_slice_is_a_job_and_a_host_is_a_pod_with_all_chips(
    take: Take, target: str, jobs: int, pods: int, chips: dict[str, str]
) -> None:
    resolved = take(target)
    job = replicated(resolved)["template"]["spec"]

    assert replicated(resolved)["replicas"] == jobs
    assert (job["parallelism"], job["completions"], job["completionMode"]) == (pods, pods, "Indexed")
    assert container(resolved)["resources"]["requests"] == {**chips, "memory": "0", "ephemeral-storage": "0"}


def test_a_failure_restarts_the_set_and_never_one_pod(take: Take) -> None:
    job = take("retries: 7\ngke: {cluster: gpus, flavor: h100, nodes: 1}")

    assert jobset(job)["spec"]["failurePolicy"]["maxRestarts"] == 7
    assert replicated(job)["template"]["spec"]["backoffLimit"] == 0
    assert pod(job)["restartPolicy"] == "Never"


@pytest.mark.parametrize(
    ("pool", "memory", "disk"),
    [
        # GKE keeps shares of 1,872 GiB by steps; of 16 local SSDs a tenth and 100 GiB.
        ("a3-highgpu-8g", int(0.9 * (1872 - 1 - 0.8 - 0.8 - 6.72 - 0.02 * 1744 - 0.1)), int(0.75 * (5400 - 100))),
        # Of a boot disk of 100 GB GKE keeps 6 GiB and 35%, and the kubelet evicts at a tenth.
        ("g2-standard-4", int(0.9 * (16 - 1 - 0.8 - 0.8 - 0.1)), int(0.75 * (0.9 * 100 - 6 - 0.35 * 100))),
    ],
)
def test_a_job_is_limited_to_a_share_of_its_vm(take: Take, pool: str, memory: int, disk: int) -> None:
    flavor = take(GPU).flavor
    assert flavor is not None
    vm = dataclasses.replace(flavor.pools[0], machine=MACHINE_TYPES[pool])

    assert (usable_memory_gib(vm), usable_disk_gib(vm)) == (memory, disk)


@pytest.mark.parametrize(
    ("fields", "disk"),
    [
        ("", 3975),
        ("disk_gib: 50\n", 50),
        ("mounts: [{name: data, source: {bucket: checkpoints}, file_cache_gib: 100}]\n", 4075),
    ],
)
def test_a_cache_of_files_is_beside_what_the_program_may_fill(take: Take, fields: str, disk: int) -> None:
    assert container(take(fields + GPU))["resources"]["limits"]["ephemeral-storage"] == f"{disk}Gi"


def test_an_exit_code_that_is_not_to_be_retried_ends_the_job(take: Take) -> None:
    job = take("retry_on: [75, 3]\n" + GPU)
    disrupted, retried = replicated(job)["template"]["spec"]["podFailurePolicy"]["rules"]

    assert "onPodConditions" in disrupted
    codes = {"containerName": "training", "operator": "In", "values": [3, 75, 126, 127, 128]}
    assert retried == {"action": "FailJob", "onExitCodes": codes}
    rules = jobset(job)["spec"]["failurePolicy"]["rules"]
    assert [(rule["action"], rule["onJobFailureReasons"]) for rule in rules] == [
        ("FailJobSet", ["PodFailurePolicy"]),
        ("RestartJobSet", ["PodFailurePolicy"]),
        ("RestartJobSetAndIgnoreMaxRestarts", ["PodFailurePolicy"]),
        ("FailJobSet", ["BackoffLimitExceeded"]),
    ]
    assert [rule.get("onJobFailureMessagePatterns") for rule in rules] == [
        ["failed with exit code (126|127|128) "], ["failed with exit code"], None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "actions"),
    [("", ["FailJobSet"]), ("retry_on: [75]\n", ["FailJobSet", "RestartJobSet", "FailJobSet"])],
    ids=["alone", "beside exit codes"],
)
def test_interruptions_that_count_have_no_rule_of_their_own(take: Take, fields: str, actions: list[str]) -> None:
    policy = jobset(take(f"count_interruptions: true\nretries: 20\n{fields}{GPU}"))["spec"]["failurePolicy"]

    assert policy["maxRestarts"] == 20
    assert [rule["action"] for rule in policy.get("rules", ())] == actions


def test_the_last_lines_of_a_failed_attempt_stay_with_its_pod(take: Take) -> None:
    assert container(take(GPU))["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_an_interruption_uses_up_no_restart(take: Take) -> None:
    job = take(GPU)
    on_pods, _ = replicated(job)["template"]["spec"]["podFailurePolicy"]["rules"]
    _, on_jobs = jobset(job)["spec"]["failurePolicy"]["rules"]

    assert on_pods == {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert on_jobs["onJobFailureReasons"] == ["PodFailurePolicy"]  # the reason that FailJob gives a Job
    assert on_jobs["action"] == "RestartJobSetAndIgnoreMaxRestarts"


def test_a_finished_job_goes_when_its_workload_does(take: Take) -> None:
    kept = configuration(())["objectRetentionPolicies"]["workloads"]["afterFinished"]

    assert f"{jobset(take(GPU))['spec']['ttlSecondsAfterFinished'] // 3600}h" == kept


@pytest.mark.parametrize(
    ("target", "annotations"), [(MULTISLICE, EXCLUSIVE), (ONE_SLICE, EXCLUSIVE), (ONE_HOST, None), (GPU, None)]
)
def test_slices_over_several_hosts_have_a_node_pool_for_themselves(
    take: Take, target: str, annotations: dict[str, str] | None
) -> None:
    assert jobset(take(target))["metadata"].get("annotations") == annotations


def test_the_job_is_in_the_teams_queue_and_has_its_labels(take: Take) -> None:
    metadata = jobset(take(GPU))["metadata"]

    assert (metadata["name"], metadata["namespace"]) == ("train", "vision")
    assert metadata["labels"] == {
        "cost-center": "vision",
        "environment": "lab",
        "team": "vision",
        "managed-by": "training-platform",
        "kueue.x-k8s.io/queue-name": "vision",
    }


def test_a_priority_is_a_label(take: Take) -> None:
    labels = jobset(take(GPU.replace("3", "3, priority: low")))["metadata"]["labels"]

    assert labels["kueue.x-k8s.io/priority-class"] == "low"


def test_tpu_pods_choose_their_nodes_by_flavor_accelerator_and_topology(take: Take) -> None:
    pod_spec = pod(take(SPOT))

    assert pod_spec["nodeSelector"] == {
        "training-platform/flavor": "tpu-v5e-4x4-spot",
        "cloud.google.com/gke-spot": "true",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x4",
    }
    assert pod_spec["tolerations"] == [
        {"key": "google.com/tpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    ]
    assert pod_spec["serviceAccountName"] == "training"


def test_tpu_hosts_open_the_ports_by_which_they_find_each_other(take: Take) -> None:
    assert container(take(MULTISLICE))["ports"] == [{"containerPort": 8471}, {"containerPort": 8080}]
    assert "ports" not in container(take(GPU))


def test_the_network_of_the_node_comes_with_dns_for_peers(take: Take) -> None:
    spec = pod(take(PART.replace("2}", "2, host_network: true}")))

    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")


def test_the_container_runs_what_the_file_says(take: Take) -> None:
    training = container(take(f"command: [python, -m]\nargs: [train]\nenv: {{B: one, A: two}}\n{PART}"))

    assert training["image"] == "registry.example.com/train:1"
    assert (training["command"], training["args"]) == (["python3", "-c", launcher()], ["python", "-m", "train"])
    assert without_nodes(training) == [{"name": "B", "value": "one"}, {"name": "A", "value": "two"}]


def test_an_image_runs_its_own_program_without_the_launcher(take: Take) -> None:
    training = container(take(f"args: [train]\n{PART}"))

    assert "command" not in training
    assert training["args"] == ["train"]


def test_the_output_is_a_folder_of_the_teams_bucket(take: Take) -> None:
    training = container(take(f"output: checkpoints\n{PART}", file="jobs/vision/second.yaml"))

    folder = "gs://example-lab-lab-vision-checkpoints/second"
    assert without_nodes(training) == [
        {"name": "AIP_MODEL_DIR", "value": f"{folder}/model/"},
        {"name": "AIP_CHECKPOINT_DIR", "value": f"{folder}/checkpoints/"},
        {"name": "AIP_TENSORBOARD_LOG_DIR", "value": f"{folder}/logs/"},
        {"name": "OUTPUT_URI", "value": folder},
    ]


def test_a_variable_of_the_file_wins(take: Take) -> None:
    variables = "env: {OUTPUT_URI: elsewhere, AIP_MODEL_DIR: there}"
    training = container(take(f"output: checkpoints\n{variables}\n{PART}"))

    values = [(variable["name"], variable["value"]) for variable in without_nodes(training)]
    assert ("OUTPUT_URI", "elsewhere") in values
    assert ("AIP_MODEL_DIR", "there") in values
    assert len(dict(values)) == len(values)


GPU_TARGET = "gke: {cluster: gpus, flavor: h100, nodes: 2}"
ONE_GPU = "gke: {cluster: gpus, flavor: a100-40, nodes: 1}"
MOUNTS = """\
mounts:
  - {name: data, source: {directory: data}, read_only: true}
  - {name: own, source: {directory: own}, path: /data}
  - {name: cache, source: {bucket: checkpoints}, caches: true, file_cache_gib: 50}
"""
BLOCK = "cloud.google.com/gce-topology-block"
HOST = "kubernetes.io/hostname"


def annotations_of(job: ResolvedJob) -> dict[str, str]:
    return dict(template(job)["metadata"]["annotations"])


def by_name(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in items}


def test_a_directory_is_the_teams_folder_of_its_claim_and_a_whole_share_all_of_it(take: Take) -> None:
    job = take(MOUNTS + GPU_TARGET)
    mounts = by_name(container(job)["volumeMounts"])
    volumes = by_name(pod(job)["volumes"])

    assert volumes["mount-data"]["persistentVolumeClaim"] == {"claimName": "data"}
    assert mounts["mount-data"] == {
        "name": "mount-data", "mountPath": "/mnt/nfs/data", "subPath": "data", "readOnly": True,
    }  # fmt: skip
    assert mounts["mount-own"] == {"name": "mount-own", "mountPath": "/data"}


def test_a_bucket_is_mounted_by_the_driver_that_the_pod_requests(take: Take) -> None:
    pod_template = template(take(MOUNTS + GPU_TARGET))

    assert by_name(pod_template["spec"]["volumes"])["mount-cache"]["csi"] == {
        "driver": "gcsfuse.csi.storage.gke.io",
        "volumeAttributes": {
            "bucketName": "example-lab-lab-vision-checkpoints",
            "mountOptions": "implicit-dirs",
            "fileCacheCapacity": "50Gi",
            "fileCacheForRangeRead": "true",
        },
    }
    assert pod_template["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"


def test_on_the_vms_network_the_driver_acts_as_the_pods_account(take: Take) -> None:
    pod_template = template(take(MOUNTS + ONE_GPU.replace("1}", "1, host_network: true}")))

    assert (
        by_name(pod_template["spec"]["volumes"])["mount-cache"]["csi"]["volumeAttributes"]["hostNetworkPodKSA"]
        == "true"
    )


def test_paths_and_caches_are_variables_by_the_mounts_name(take: Take) -> None:
    training = container(take(MOUNTS + GPU_TARGET))
    variables = {variable["name"]: variable["value"] for variable in without_nodes(training)}
    cache = "/gcs/example-lab-lab-vision-checkpoints"

    assert (variables["MOUNT_DATA"], variables["MOUNT_OWN"], variables["MOUNT_CACHE"]) == (
        "/mnt/nfs/data",
        "/data",
        cache,
    )
    assert (variables["HF_HOME"], variables["TORCH_HOME"]) == (f"{cache}/huggingface", f"{cache}/torch")


@pytest.mark.parametrize(
    ("fields", "target", "volume"),
    [
        ("", ONE_GPU.replace("nodes", "gpus"), {"medium": "Memory", "sizeLimit": f"{70 // 2}Gi"}),
        ("memory_gib: 64\n", ONE_GPU, {"medium": "Memory", "sizeLimit": "32Gi"}),
        ("shared_memory_gib: 64\n", GPU_TARGET, {"medium": "Memory", "sizeLimit": "64Gi"}),
        ("shared_memory_gib: 0\n", ONE_GPU, None),
    ],
    ids=["1 GPU", "own memory", "a size", "none"],
)
def test_shared_memory_is_half_of_the_memory_beside_every_accelerator(
    take: Take, fields: str, target: str, volume: dict[str, str] | None
) -> None:
    volumes = by_name(template(take(fields + target))["spec"].get("volumes", []))

    assert volumes.get("shared-memory", {}).get("emptyDir") == volume


@pytest.mark.parametrize(
    ("fields", "medium"),
    [
        ("", None),
        ("data_loaders: 8\n", {"medium": "Memory"}),
        ("data_loaders: 8\nshared_memory_gib: 16\n", {"medium": "Memory", "sizeLimit": "16Gi"}),
    ],
    ids=["no data loaders", "data loaders", "a size"],
)
def test_shared_memory_is_memory_without_accelerators_for_data_loaders(
    take: Take, fields: str, medium: dict[str, str] | None
) -> None:
    assert (shared_memory(on_gke(take(fields + GPU_TARGET)), chips=0) or {}).get("emptyDir") == medium


@pytest.mark.parametrize(
    ("fields", "requested", "limit"),
    [
        ("", "0", "1644Gi"),
        ("shared_memory_gib: 16\n", "16Gi", "1644Gi"),
        ("shared_memory_gib: 1700\n", "1700Gi", "1700Gi"),
        ("memory_gib: 64\nshared_memory_gib: 16\n", "64Gi", "64Gi"),
        ("memory_gib: 64\n", "64Gi", "64Gi"),
    ],
)
def test_shared_memory_is_part_of_the_memory_that_is_requested(
    take: Take, fields: str, requested: str | None, limit: str | None
) -> None:
    training = container(take(fields + GPU_TARGET))

    assert training["resources"]["requests"].get("memory") == requested
    assert training["resources"]["limits"].get("memory") == limit


def parted(job: ResolvedJob) -> tuple[dict[str, str], dict[str, str]]:
    """Return the container's requests and limits, without accelerators."""
    resources = container(job)["resources"]
    return tuple(  # type: ignore[return-value] # of two
        {name: size for name, size in resources[kind].items() if "/" not in name} for kind in ("requests", "limits")
    )


ONE_OF_FOUR = "gke: {cluster: gpus, flavor: a100-40, gpus: 1}"


def test_a_job_beside_others_asks_for_its_part_of_the_vm(take: Take) -> None:
    requests, limits = parted(take(ONE_OF_FOUR))

    disk = int(0.75 * (0.9 * 100 - 6 - 0.35 * 100))
    assert requests == {"cpu": str(int(48 * 0.9 / 4)), "memory": "70Gi", "ephemeral-storage": f"{disk // 4}Gi"}
    assert limits == {"memory": "70Gi", "ephemeral-storage": "30Gi"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("cpu: 3\n", ("3", "70Gi", None)),
        ("memory_gib: 100\n", ("10", "100Gi", None)),
        ("disk_gib: 40\n", ("10", "70Gi", "40Gi")),
        ("shared_memory_gib: 90\n", ("10", "90Gi", None)),
    ],
)
def test_its_own_figures_win_over_its_part(take: Take, fields: str, expected: tuple[str, str, str | None]) -> None:
    requests, limits = parted(take(fields + ONE_OF_FOUR))
    cpu, memory, disk = expected

    assert (requests["cpu"], requests["memory"]) == (cpu, memory)
    assert limits["memory"] == memory
    assert disk is None or requests["ephemeral-storage"] == limits["ephemeral-storage"] == disk


def test_a_job_may_fill_as_much_disk_as_a_model_needs_where_the_vm_has_it(take: Take) -> None:
    job = take(ONE_OF_FOUR)

    def disk(size_gb: int) -> int:
        assert job.flavor is not None
        spec = job.flavor.pools[-1].spec
        boot_disk = spec.boot_disk.model_copy(update={"size_gb": size_gb})
        return pod_parts(on_gke(with_pool(job, spec=spec.model_copy(update={"boot_disk": boot_disk})))).disk

    assert disk(200) == 30  # a quarter of 78
    assert disk(60) == int(0.75 * (60 * 0.9 - 6 - 0.35 * 60))
    assert disk(1000) == int(0.75 * (1000 * 0.9 - 100) / 4)


def test_a_whole_vm_is_not_limited_by_smaller_vms_of_its_flavor(take: Take) -> None:
    whole = take(ONE_GPU)
    part = take(ONE_OF_FOUR)
    assert whole.flavor is not None
    assert [pool.machine.chips for pool in whole.flavor.pools] == [1, 4]

    assert pod_parts(on_gke(whole)).memory == 293
    assert pod_parts(on_gke(part)).memory == min(70, int(293 / 4))


def test_a_place_on_a_shared_gpu_is_a_part_of_its_vm(take: Take) -> None:
    job = take(ONE_OF_FOUR)
    assert job.flavor is not None
    shared = job.flavor.pools[-1].spec.model_copy(update={"sharing": GpuSharing(max_clients=2)})

    assert pod_parts(on_gke(with_pool(job, spec=shared))).memory == int(293 / 8)


GPU_VMS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "gpu" and machine.chips > 1]


@pytest.mark.parametrize("machine", GPU_VMS, ids=lambda machine: machine.name)
def test_as_many_parts_as_gpus_fit_on_a_vm_and_into_the_teams_quota(take: Take, machine: MachineType) -> None:
    job = with_pool(take(ONE_OF_FOUR), machine=machine)
    flavor = job.flavor
    parts = pod_parts(on_gke(job))
    assert flavor is not None
    every = {"cpu": parts.cpus * machine.chips, "memory": parts.asked_memory * machine.chips}

    assert every["cpu"] <= machine.vcpus * 0.9
    assert machine.memory_gb * 0.5 <= every["memory"] <= usable_memory_gib(flavor.pools[0])
    assert parts.asked_disk * machine.chips <= usable_disk_gib(flavor.pools[0])
    share = Share(nominal_quota=machine.chips, borrowing_limit=0)
    quota = resource_quota({"flavor": share}, {"flavor": flavor})
    assert every["cpu"] <= int(quota["requests.cpu"])
    assert every["memory"] <= int(quota["requests.memory"].removesuffix("Gi"))


LOCAL = "command: [python, train.py]\noutput: checkpoints\nlocal_checkpoints: {size_gib: 100}\n"
MEMORY = LOCAL.replace("100", "100, medium: memory")


@pytest.mark.parametrize(
    ("fields", "folder", "requested", "limit"),
    [
        (LOCAL, {"sizeLimit": "100Gi"}, ("0", "100Gi"), "1644Gi"),
        (MEMORY, {"medium": "Memory", "sizeLimit": "100Gi"}, ("100Gi", "0"), "1644Gi"),
        (f"shared_memory_gib: 16\n{MEMORY}", {"medium": "Memory", "sizeLimit": "100Gi"}, ("116Gi", "0"), "1644Gi"),
    ],
)
def test_local_checkpoints_count_as_memory_or_disk_of_the_pod(
    take: Take, fields: str, folder: dict[str, str], requested: tuple[str, str], limit: str
) -> None:
    job = take(fields + GPU_TARGET)
    training = container(job)
    requests = training["resources"]["requests"]

    assert by_name(pod(job)["volumes"])["local-checkpoints"]["emptyDir"] == folder
    assert {"name": "local-checkpoints", "mountPath": "/local-checkpoints"} in training["volumeMounts"]
    assert {"name": "LOCAL_CHECKPOINT_DIR", "value": "/local-checkpoints"} in training["env"]
    assert (requests["memory"], requests["ephemeral-storage"]) == requested
    assert training["resources"]["limits"]["memory"] == limit


def test_a_program_is_told_how_many_data_loaders_it_has(take: Take) -> None:
    training = container(take("data_loaders: 8\n" + GPU_TARGET))

    assert {"name": "DATA_LOADERS", "value": "8"} in training["env"]


def test_pods_ask_for_the_narrowest_level_of_a_flavor_with_a_topology(take: Take) -> None:
    job = take(GPU_TARGET)

    placed = annotations_of(with_flavor(job, topology_levels=("cloud.google.com/gce-topology-zone", BLOCK, HOST)))

    assert placed["kueue.x-k8s.io/podset-preferred-topology"] == BLOCK
    assert "kueue.x-k8s.io/podset-preferred-topology" not in annotations_of(job)


def test_a_job_chooses_how_near_its_vms_are(take: Take) -> None:
    job = take(GPU_TARGET.replace("}", ", placement: {level: subblock, required: true}}"))

    placed = annotations_of(with_flavor(job, topology_levels=BLOCK_LEVELS))

    assert placed["kueue.x-k8s.io/podset-required-topology"] == "cloud.google.com/gce-topology-subblock"
    assert "kueue.x-k8s.io/podset-preferred-topology" not in placed


@pytest.mark.parametrize("levels", [BLOCK_LEVELS, SLICE_LEVELS])
def test_a_job_on_one_vm_asks_for_any_place_of_a_topology(take: Take, levels: tuple[str, ...]) -> None:
    """Otherwise Kueue never gives it a flavor with a topology in a queue that also has one without."""
    job = take(GPU_TARGET.replace("nodes: 2", "nodes: 1"))

    placed = annotations_of(with_flavor(job, topology_levels=levels))

    kueue_annotations = {name: value for name, value in placed.items() if name.startswith("kueue.x-k8s.io/")}
    assert kueue_annotations == {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}
    assert "kueue.x-k8s.io/podset-unconstrained-topology" not in annotations_of(job)


LEVELS = "block, subblock, host"


@pytest.mark.parametrize(
    ("levels", "placement", "expected"),
    [
        ((), "level: block", [("h100 has no topology", None)]),
        (SLICE_LEVELS, "level: block", [("h100 always puts each slice on VMs of one node pool", None)]),
        (BLOCK_LEVELS, "level: blok", [(f"'blok' is not a level of h100. Allowed: {LEVELS}", "block")]),
        (BLOCK_LEVELS, f"level: {BLOCK_LEVELS[1]}", [(f"is not a level of h100. Allowed: {LEVELS}", "subblock")]),
        (BLOCK_LEVELS, "level: hostname", [("'hostname' is not a level of h100", "host")]),
        (
            BLOCK_LEVELS,
            "level: host, required: true",
            [("a host has only one VM of h100, but the job has 2", "subblock")],
        ),
        (BLOCK_LEVELS, "level: host", []),
        (BLOCK_LEVELS, "level: block, required: true", []),
    ],
)
def test_a_level_is_one_of_the_flavors_topology(
    take: Take, levels: tuple[str, ...], placement: str, expected: list[tuple[str, str | None]]
) -> None:
    job = take(GPU_TARGET.replace("}", f", placement: {{{placement}}}}}"))

    findings = [
        finding for finding in gke_findings(with_flavor(job, topology_levels=levels)) if finding.rule == "job-placement"
    ]

    assert [finding.nearest for finding in findings] == [nearest for _, nearest in expected]
    for finding, (words, _) in zip(findings, expected, strict=True):
        assert words in f"{finding.message}. Allowed: {finding.allowed}"
        assert finding.path.startswith("gke.placement")


def test_each_slice_of_a_job_is_whole_where_kueue_knows_the_slices(take: Take) -> None:
    job = take("gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2}\n")

    placed = annotations_of(with_flavor(job, topology_levels=SLICE_LEVELS))

    assert placed == {
        **NOT_MOVED,
        "kueue.x-k8s.io/podset-slice-required-topology": "cloud.google.com/gke-nodepool",
        "kueue.x-k8s.io/podset-slice-size": str(4 * 8 // 4),
    }
