"""Jobs of Pathways: a head with the program, and slices that do what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training_platform.jobs.conftest import ENVIRONMENT, VISION, write_lab
from training_platform.catalog import MACHINE_TYPES
from training_platform.config.workspace import read_workspace
from training_platform.jobs.gke.jobset import jobset
from training_platform.jobs.gke.pathways import VERSIONS, images, pathways_findings
from training_platform.jobs.resolve import ResolvedJob
from training_platform.sandbox.kubernetes.schemas.crds import CrdSchema

Take = Callable[..., ResolvedJob]
TARGET = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2, pathways: true}"
JOB = f"command: [python, train.py]\noutput: checkpoints\n{TARGET}"
NODE_POOL = "alpha.jobset.sigs.k8s.io/exclusive-topology"


@pytest.fixture
def manifest(take: Take, schema: CrdSchema) -> dict[str, Any]:
    made = jobset(take(JOB))
    assert schema.errors(made) == []
    return made


def pods(manifest: dict[str, Any]) -> list[Any]:
    return [each["template"]["spec"]["template"]["spec"] for each in manifest["spec"]["replicatedJobs"]]


def arguments(container: dict[str, Any]) -> dict[str, str]:
    return dict(each.removeprefix("--").split("=", 1) for each in container["args"])


def variables(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container["env"]}


def test_the_program_is_in_the_head_alone_and_its_end_is_the_jobs(manifest: dict[str, Any]) -> None:
    head, workers = pods(manifest)
    spec = manifest["spec"]

    assert [each["command"] for each in head["containers"]] == [["python", "train.py"]]
    assert [each["name"] for each in workers["containers"]] == ["pathways-worker"]
    assert [each["replicas"] for each in spec["replicatedJobs"]] == [1, 2]
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["head"]
    assert spec["coordinator"]["replicatedJob"] == "head"


def test_jax_manager_proxy_and_workers_find_each_other(manifest: dict[str, Any]) -> None:
    head, workers = pods(manifest)
    name = manifest["metadata"]["name"]
    address = f"{name}-head-0-0.{name}"  # JobSet's name of the head's pod
    manager, proxy = head["initContainers"]
    (program,), (worker,) = head["containers"], workers["containers"]
    ports = {each["name"]: str(each["ports"][0]["containerPort"]) for each in (manager, proxy, worker)}

    assert variables(program)["JAX_PLATFORMS"] == "proxy"
    assert variables(program)["JAX_BACKEND_TARGET"] == f"grpc://{address}:{ports['pathways-proxy']}"
    for each in (proxy, worker):
        assert arguments(each)["resource_manager_address"] == f"{address}:{ports['pathways-rm']}"
    for each in (manager, proxy, worker):
        assert arguments(each)["server_port"] == ports[each["name"]]
        assert arguments(each)["gcs_scratch_location"].endswith(f"/{name}/pathways")
    assert arguments(manager)["instance_type"] == "tpuv5e:4x8"
    assert arguments(manager)["instance_count"] == variables(worker)["MEGASCALE_NUM_SLICES"] == "2"


def test_the_head_has_a_vm_of_its_pool_and_each_slice_a_node_pool_for_itself(manifest: dict[str, Any]) -> None:
    head, workers = pods(manifest)
    alone = [each["template"]["metadata"]["annotations"][NODE_POOL] for each in manifest["spec"]["replicatedJobs"]]

    assert alone == ["kubernetes.io/hostname", "cloud.google.com/gke-nodepool"]
    assert NODE_POOL not in manifest["metadata"].get("annotations", {})
    assert head["nodeSelector"] == {"cloud.google.com/gke-nodepool": "cpu-np"}
    assert [each["key"] for each in head["tolerations"]] == ["training-platform/pathways"]
    assert workers["nodeSelector"]["training-platform/flavor"] == "tpu-v5e-4x8"


def test_no_pod_asks_for_what_a_teams_namespace_refuses(manifest: dict[str, Any]) -> None:
    for pod in pods(manifest):
        assert "hostNetwork" not in pod
        assert [each for each in pod.get("volumes", []) if "hostPath" in each] == []
        assert [
            each for each in (*pod["containers"], *pod.get("initContainers", [])) if "securityContext" in each
        ] == []


def found(job: ResolvedJob) -> list[tuple[str, str, str | None]]:
    return [(each.rule, each.path, each.nearest) for each in pathways_findings(job)]


def test_a_sound_job_is_no_finding(take: Take) -> None:
    assert found(take(JOB)) == []


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (TARGET, ("job-pathways", "output", None)),
        (f"cpu: 39\n{JOB}", None),
        (f"cpu: 40\n{JOB}", ("job-pathways", "cpu", "39")),  # of 64, 8 and 16 are Pathways' own
        (f"memory_gib: 124\n{JOB}", ("job-pathways", "memory_gib", "123")),  # of 256
        (JOB.replace("tpus, flavor: tpu-v5e-4x8, slices: 2", "gpus, flavor: h100, nodes: 2"), None),
    ],
)
def test_what_a_job_of_pathways_cannot_be_is_found_at_its_field(
    take: Take, text: str, right: tuple[str, str, str | None] | None
) -> None:
    rows = found(take(text))

    if "h100" in text:
        assert rows == [("job-pathways", "gke.pathways", "false")] * 2  # no TPUs, and no pool for heads
    else:
        assert rows == ([right] if right else [])


def test_a_cluster_without_a_pool_for_heads_is_found(take: Take, tmp_path: Path) -> None:
    root = write_lab(tmp_path, lab=ENVIRONMENT.replace("        pathways: {max_nodes: 2}\n", ""))

    (row,) = pathways_findings(take(JOB, workspace=read_workspace(root)))

    assert row.path == "gke.pathways"
    assert "has no pool for heads of Pathways jobs" in row.message


@pytest.mark.parametrize(
    ("aware", "alone", "refused"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_slices_that_kueue_places_are_found_in_a_queue_without_other_flavors(
    take: Take, tmp_path: Path, aware: bool, alone: bool, refused: bool
) -> None:
    pool = "slices: 4, min_slices: 4, topology_aware: true}" if aware else "slices: 4, min_slices: 4}"
    others = re.findall(r"^        tpu-v5e-(?!4x8:).*\n", VISION, re.MULTILINE)
    assert len(others) == 3
    vision = VISION
    for line in others if alone else ():
        vision = vision.replace(line, "")
    root = write_lab(tmp_path, lab=ENVIRONMENT.replace("slices: 4, min_slices: 2}", pool), lab_vision=vision)

    rows = found(take(JOB, workspace=read_workspace(root)))

    assert rows == ([("job-pathways", "gke.flavor", None)] if refused else [])


def test_images_from_elsewhere_are_found_unless_the_environment_has_them_from_its_own(
    take: Take, tmp_path: Path
) -> None:
    sources = "    project: example-lab\n    image_sources: [example.com/]\n"
    mirrored = "    node_images: {node-pathways: example.com/server, node-pathways-proxy: example.com/proxy}\n"
    texts = (sources, sources + mirrored)
    jobs = [
        take(
            JOB,
            workspace=read_workspace(
                write_lab(tmp_path / name, lab=ENVIRONMENT.replace("    project: example-lab\n", text))
            ),
        )
        for name, text in zip(("elsewhere", "own"), texts, strict=True)
    ]

    assert [found(each) for each in jobs] == [[("job-image-source", "gke.pathways", None)] * 2, []]
    assert {each["image"] for pod in pods(jobset(jobs[1])) for each in pod.get("initContainers", [])} == {
        "example.com/server",
        "example.com/proxy",
    }


def test_both_images_are_of_one_version_of_jax(take: Take) -> None:
    tags = {image.rpartition(":")[2] for image in images(take(JOB)).values()}

    assert len(tags) == 1
    assert re.fullmatch(r"jax-\d+\.\d+\.\d+", tags.pop())


def test_all_machine_types_of_tpus_over_several_vms_have_a_name_in_pathways() -> None:
    tpus = {name for name, machine in MACHINE_TYPES.items() if machine.kind == "tpu" and machine.multi_host}

    assert tpus <= VERSIONS.keys()
