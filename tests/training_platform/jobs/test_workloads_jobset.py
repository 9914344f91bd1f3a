from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.jobs.gke.jobset import jobset
from training_platform.jobs.resolve import ResolvedJob
from training_platform.resources.kueue.configuration import configuration
from training_platform.sandbox.kubernetes.schemas.crds import CrdSchema

Take = Callable[..., ResolvedJob]
MULTISLICE = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2}"
ONE_SLICE = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 1}"
ONE_HOST = "gke: {cluster: tpus, flavor: tpu-v5e-2x4, slices: 1}"
SPOT = "gke: {cluster: tpus, flavor: tpu-v5e-4x4-spot, slices: 12}"
GPU = "gke: {cluster: gpus, flavor: h100, nodes: 3}"
PART = "gke: {cluster: gpus, flavor: a100-40, nodes: 2}"
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}


def replicated(manifest: dict[str, Any]) -> dict[str, Any]:
    (found,) = manifest["spec"]["replicatedJobs"]
    assert isinstance(found, dict)
    return found


def pod(manifest: dict[str, Any]) -> dict[str, Any]:
    found = replicated(manifest)["template"]["spec"]["template"]["spec"]
    assert isinstance(found, dict)
    return found


def container(manifest: dict[str, Any]) -> dict[str, Any]:
    (found,) = pod(manifest)["containers"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("target", [MULTISLICE, ONE_SLICE, ONE_HOST, SPOT, GPU, PART])
@pytest.mark.parametrize(
    "rest",
    ["", "command: [a]\nargs: [b]\nenv: {A: b}\noutput: checkpoints\n"],
    ids=["least", "most"],
)
def test_a_server_with_the_jobset_crd_takes_it(take: Take, schema: CrdSchema, target: str, rest: str) -> None:
    assert schema.errors(jobset(take(rest + target))) == []


def test_that_server_refuses_what_is_not_a_jobset(take: Take, schema: CrdSchema) -> None:
    manifest = jobset(take(MULTISLICE))
    manifest["spec"]["replicatedJobs"][0]["replicas"] = "2"
    manifest["spec"]["slices"] = 2

    assert [error.split(":")[0] for error in schema.errors(manifest)] == [
        "spec.replicatedJobs[0].replicas",
        "spec.slices",
    ]


@pytest.mark.parametrize(
    ("target", "jobs", "pods", "chips"),
    [
        (MULTISLICE, 2, 4 * 8 // 4, {"google.com/tpu": "4"}),
        (ONE_SLICE, 1, 4 * 8 // 4, {"google.com/tpu": "4"}),
        (ONE_HOST, 1, 2 * 4 // 8, {"google.com/tpu": "8"}),
        (SPOT, 12, 4 * 4 // 4, {"google.com/tpu": "4"}),
        (GPU, 1, 3, {"nvidia.com/gpu": "8"}),
        (PART, 1, 2, {"nvidia.com/gpu": "4"}),
    ],
)
def test_a_slice_is_a_job_and_a_host_is_a_pod_with_all_chips(
    take: Take, target: str, jobs: int, pods: int, chips: dict[str, str]
) -> None:
    manifest = jobset(take(target))
    job = replicated(manifest)["template"]["spec"]

    assert replicated(manifest)["replicas"] == jobs
    assert (job["parallelism"], job["completions"], job["completionMode"]) == (pods, pods, "Indexed")
    assert container(manifest)["resources"] == {"requests": chips, "limits": chips}


def test_a_failure_restarts_the_set_and_never_one_pod(take: Take) -> None:
    manifest = jobset(take("retries: 7\ngke: {cluster: gpus, flavor: h100, nodes: 1}"))

    assert manifest["spec"]["failurePolicy"]["maxRestarts"] == 7
    assert replicated(manifest)["template"]["spec"]["backoffLimit"] == 0
    assert pod(manifest)["restartPolicy"] == "Never"


@pytest.mark.parametrize("target", [MULTISLICE, SPOT, GPU])
def test_an_interruption_uses_up_no_restart(take: Take, target: str) -> None:
    manifest = jobset(take(target))
    (on_pods,) = replicated(manifest)["template"]["spec"]["podFailurePolicy"]["rules"]
    (on_jobs,) = manifest["spec"]["failurePolicy"]["rules"]

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


def test_the_job_is_in_the_teams_queue_and_bears_its_labels(take: Take) -> None:
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
    found = pod(jobset(take(SPOT)))

    assert found["nodeSelector"] == {
        "training-platform/flavor": "tpu-v5e-4x4-spot",
        "cloud.google.com/gke-spot": "true",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x4",
    }
    assert found["tolerations"] == [
        {"key": "google.com/tpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    ]
    assert found["serviceAccountName"] == "training"


def test_gpu_pods_choose_their_nodes_by_flavor_and_accelerator(take: Take) -> None:
    found = pod(jobset(take(GPU)))

    assert found["nodeSelector"] == {
        "training-platform/flavor": "h100",
        "cloud.google.com/gke-accelerator": "nvidia-h100-80gb",
    }
    assert [toleration["key"] for toleration in found["tolerations"]] == ["nvidia.com/gpu"]


def test_tpu_hosts_open_the_ports_by_which_they_find_each_other(take: Take) -> None:
    assert container(jobset(take(MULTISLICE)))["ports"] == [{"containerPort": 8471}, {"containerPort": 8080}]
    assert "ports" not in container(jobset(take(GPU)))


def test_the_network_of_the_node_comes_with_dns_for_peers(take: Take) -> None:
    on, off = (pod(jobset(take(PART.replace("2}", f"2, host_network: {value}}}")))) for value in ("true", "false"))

    assert (on["hostNetwork"], on["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert off.keys().isdisjoint({"hostNetwork", "dnsPolicy"})


def test_the_container_runs_what_the_file_says(take: Take) -> None:
    found = container(jobset(take(f"command: [python, -m]\nargs: [train]\nenv: {{B: one, A: two}}\n{PART}")))

    assert found["image"] == "registry.example.com/train:1"
    assert (found["command"], found["args"]) == (["python", "-m"], ["train"])
    assert found["env"] == [{"name": "B", "value": "one"}, {"name": "A", "value": "two"}]


def test_the_output_is_a_folder_of_the_teams_bucket(take: Take) -> None:
    found = container(jobset(take(f"output: checkpoints\n{PART}", file="jobs/vision/second.yaml")))

    folder = "gs://example-lab-lab-vision-checkpoints/second"
    assert found["env"] == [
        {"name": "AIP_MODEL_DIR", "value": f"{folder}/model/"},
        {"name": "AIP_CHECKPOINT_DIR", "value": f"{folder}/checkpoints/"},
        {"name": "AIP_TENSORBOARD_LOG_DIR", "value": f"{folder}/logs/"},
        {"name": "OUTPUT_URI", "value": folder},
    ]


def test_a_variable_of_the_file_wins(take: Take) -> None:
    own = "env: {OUTPUT_URI: elsewhere, AIP_MODEL_DIR: there}"
    found = container(jobset(take(f"output: checkpoints\n{own}\n{PART}")))

    values = [(each["name"], each["value"]) for each in found["env"]]
    assert ("OUTPUT_URI", "elsewhere") in values
    assert ("AIP_MODEL_DIR", "there") in values
    assert len(dict(values)) == len(values)


def test_a_job_for_vertex_alone_is_no_jobset(take: Take) -> None:
    with pytest.raises(ValueError, match="job train has no gke target"):
        jobset(take("vertex: {region: us-central1, machine_type: n2-standard-8}"))
