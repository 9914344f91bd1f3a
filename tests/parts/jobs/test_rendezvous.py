"""Variables by which the VMs of a run find each other, and launchers that name other numbers of VMs."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.parts.jobs.lab import Judge, Take, container
from training_platform.parts.jobs.naming import as_run
from training_platform.parts.jobs.vertex.custom_job import custom_job

H100 = "gke: {cluster: gpus, flavor: h100, nodes: 2}"
SLICES = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2}"
VERTEX = "vertex: {region: us-central1, machine_type: a3-highgpu-8g, replicas: 3}"
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
PROGRAM = f"command: [python3, -c, {json.dumps(SHOW)}]\n"


def on_gke(take: Take, text: str) -> dict[str, Any]:
    """Return the container that trains."""
    return container(as_run(take(text), "train-bcdfg"))


def variables(training: dict[str, Any]) -> dict[str, Any]:
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in training["env"]}


def started(training: dict[str, Any], **node_variables: str) -> dict[str, str]:
    """Start a container with its own Python, and return what its program sees."""
    job_variables = {variable["name"]: variable["value"] for variable in training["env"] if "value" in variable}
    command = [sys.executable, *training["command"][1:], *training["args"]]
    command = [sys.executable if part == "python3" else part for part in command]
    ran = subprocess.run(
        command, env={"PATH": os.environ["PATH"], **job_variables, **node_variables}, check=True, stdout=subprocess.PIPE
    )
    seen: dict[str, str] = json.loads(ran.stdout)
    return seen


def test_torchrun_needs_no_option_on_two_vms_of_gke(take: Take) -> None:
    environment = variables(on_gke(take, f"command: [torchrun, train.py]\n{H100}"))

    first = "train-bcdfg-slice-0-0.train-bcdfg"
    index = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
    platforms_own = {
        name: value for name, value in environment.items() if name.startswith("NCCL") or name == "LD_LIBRARY_PATH"
    }
    assert environment == platforms_own | {
        "NUM_NODES": "2", "NODE_RANK": index, "NODE_NAMES": f"{first},train-bcdfg-slice-0-1.train-bcdfg",
        "MASTER_ADDR": first, "MASTER_PORT": "29500", "ACCELERATORS_PER_NODE": "8",
        "PET_NNODES": "2", "PET_NODE_RANK": index, "PET_NPROC_PER_NODE": "8",
        "PET_MASTER_ADDR": first, "PET_MASTER_PORT": "29500", "JAX_COORDINATOR_ADDRESS": f"{first}:29500",
    }  # fmt: skip


@pytest.mark.parametrize("how", ["args: [--rdzv-backend=c10d, train.py]", "env: {PET_RDZV_BACKEND: c10d}"])
def test_only_c10d_gets_an_endpoint(take: Take, how: str) -> None:
    environment = variables(on_gke(take, f"command: [torchrun]\n{how}\n{H100}"))

    assert environment["PET_RDZV_ENDPOINT"] == "train-bcdfg-slice-0-0.train-bcdfg:29500"


def test_processes_are_counted_if_a_vm_has_one(take: Take) -> None:
    single = "vertex: {region: us-central1, machine_type: a2-highgpu-1g}"
    spec = custom_job(take(single))["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]

    assert {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost"}.items() <= variables(spec).items()
    assert "WORLD_SIZE" not in variables(on_gke(take, H100))


def test_a_variable_of_the_job_wins_over_that_of_its_nodes(take: Take) -> None:
    port = "env: {MASTER_PORT: '1234'}\n"
    spec = custom_job(take(f"{PROGRAM}{port}{VERTEX}"))["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    cluster = {"cluster": {"workerpool0": ["a:2222"]}, "task": {"type": "workerpool0", "index": 0}}

    assert variables(on_gke(take, f"{port}{H100}"))["MASTER_PORT"] == "1234"
    assert started(spec, CLUSTER_SPEC=json.dumps(cluster))["MASTER_PORT"] == "1234"


@pytest.mark.parametrize(("index", "host"), [(0, 0), (1, 0), (1, 7)])
def test_vms_of_several_slices_are_numbered_one_after_the_other(take: Take, index: int, host: int) -> None:
    training = on_gke(take, PROGRAM + SLICES)
    label = {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/job-index']"}}
    assert variables(training)["SLICE_INDEX"] == label

    seen = started(training, SLICE_INDEX=str(index), JOB_COMPLETION_INDEX=str(host))

    assert (seen["NODE_RANK"], seen["NUM_NODES"]) == (str(8 * index + host), str(2 * 8))
    assert seen["NODE_NAMES"].split(",")[8 * index + host] == f"train-bcdfg-slice-{index}-{host}.train-bcdfg"
    assert seen["MASTER_ADDR"] == "train-bcdfg-slice-0-0.train-bcdfg"
    assert not [name for name in seen if name.startswith(("PET_", "JAX_"))]


POOLS = {"workerpool0": ["one:2222"], "workerpool1": ["two:2222", "three:2222"], "workerpool3": ["judge:2222"]}


@pytest.mark.parametrize(
    ("pool", "index", "rank"), [("workerpool0", 0, "0"), ("workerpool1", 1, "2"), ("workerpool3", 0, None)]
)
def test_vertex_ai_says_who_is_who_when_the_program_starts(take: Take, pool: str, index: int, rank: str | None) -> None:
    spec = custom_job(take(PROGRAM + VERTEX))["jobSpec"]["workerPoolSpecs"][1]["containerSpec"]

    seen = started(spec, CLUSTER_SPEC=json.dumps({"cluster": POOLS, "task": {"type": pool, "index": index}}))

    expected = {
        "NODE_RANK": rank, "NUM_NODES": "3", "NODE_NAMES": "one,two,three", "MASTER_ADDR": "one",
        "MASTER_PORT": "2222", "PET_NODE_RANK": rank, "PET_NNODES": "3", "PET_NPROC_PER_NODE": "8",
        "JAX_COORDINATOR_ADDRESS": "one:2222",
    }  # fmt: skip
    had = {name: seen.get(name) for name in expected}
    assert had == (expected if rank else dict.fromkeys(expected) | {"PET_NPROC_PER_NODE": "8"})


def test_names_that_no_program_could_start_with_are_left_out(take: Take) -> None:
    long = f"jobs/vision/{'t' * 40}.yaml"
    many = take("vertex: {region: us-central1, machine_type: a2-highgpu-1g}\n" + H100, long)
    assert many.spec.gke is not None
    spec = many.spec.model_copy(update={"gke": many.spec.gke.model_copy(update={"nodes": 2000})})

    seen = variables(container(as_run(dataclasses.replace(many, spec=spec), "r" * 40)))

    assert seen["NUM_NODES"] == "2000"
    assert "NODE_NAMES" not in seen


@pytest.mark.parametrize(
    ("text", "path", "nearest"),
    [
        ("command: [torchrun]\nargs: [--nnodes=3, train.py]", "args[0]", 2),
        ("command: [torchrun, --nnodes, '3', train.py]", "command[1]", 2),
        ("command: [torchrun]\nargs: [--nnodes=3:4, train.py]", "args[0]", 2),
        ("command: [torchrun]\nargs: [--nproc_per_node, '4', train.py]", "args[0]", 8),
        ("command: [bash, -c, accelerate launch --num_machines 4 train.py]", "command[2]", 2),
        ("command: [/opt/bin/deepspeed, --num_gpus=4, train.py]", "command[1]", 8),
        ("command: [python, -m, torch.distributed.run, --nnodes=1, train.py]", "command[3]", 2),
        ("command: [torchrun, train.py]\nenv: {PET_NPROC_PER_NODE: '1'}", "env.PET_NPROC_PER_NODE", 8),
        ("command: [accelerate, launch, --num_processes=8, train.py]", "command[2]", 16),
        ("command: [torchrun, --standalone, train.py]", "command[1]", None),
        ("command: [torchrun, train.py]\nenv: {MASTER_ADDR: localhost}", "env.MASTER_ADDR", None),
        ("command: [torchrun, train.py]\nenv: {CUDA_VISIBLE_DEVICES: '0,1'}", "env.CUDA_VISIBLE_DEVICES", None),
        ("command: [torchrun, train.py]\nenv: {WORLD_SIZE: '2'}", "env.WORLD_SIZE", None),
    ],
)
def test_a_launcher_that_names_other_numbers_is_a_warning(
    verdict: Judge, text: str, path: str, nearest: int | None
) -> None:
    (finding,) = verdict(f"{text}\n{H100}", "gke").findings

    assert (finding.rule, finding.severity, finding.path) == ("job-launcher", "warning", path)
    assert finding.nearest == (None if nearest is None else str(nearest))


@pytest.mark.parametrize(
    "text",
    [
        "command: [torchrun]\nargs: [--nnodes=2, --nproc-per-node=gpu, train.py]",
        "command: [torchrun]\nargs: ['--nnodes=1:4', --nproc-per-node=8, train.py]",
        "command: [torchrun]\nargs: [--nnodes=$(NUM_NODES), train.py]",
        "command: [accelerate, launch, --num_processes=16, train.py]",
        "command: [python, train.py]\nargs: [--num_processes=4]",
        "command: [torchrun, train.py]\nenv: {CUDA_VISIBLE_DEVICES: '0,1,2,3,4,5,6,7'}",
        "command: [python, train.py]\nargs: [--num_nodes=7]",
    ],
)
def test_a_launcher_that_names_the_jobs_own_numbers_is_right(verdict: Judge, text: str) -> None:
    findings = verdict(f"{text}\n{H100}", "gke").findings

    assert [finding for finding in findings if finding.severity != "note"] == []


def test_each_target_is_compared_with_its_own_number_of_vms(verdict: Judge) -> None:
    text = f"command: [torchrun, --nnodes=2, train.py]\n{H100}\n{VERTEX}"

    assert verdict(text, "gke").findings == ()
    (finding,) = (finding for finding in verdict(text, "vertex").findings if finding.rule == "job-launcher")
    assert "3 on Vertex AI" in finding.message


def test_one_node_may_use_its_own_address(verdict: Judge) -> None:
    text = "command: [torchrun, --standalone, train.py]\nenv: {MASTER_ADDR: localhost}\n"

    assert verdict(text + H100.replace("nodes: 2", "nodes: 1"), "gke").findings == ()


@pytest.mark.parametrize(
    ("program", "target", "notes"),
    [
        ("[python, train.py]", H100, 1),
        ("[/usr/bin/python3.11, -m, train]", VERTEX, 1),
        ("[python, -m, torch.distributed.run, train.py]", H100, 0),
        ("[python, train_jax.py]", H100, 0),
        ("[torchrun, train.py]", H100, 0),
        ("[python, train.py]", SLICES, 0),
        ("[python, train.py]", "gke: {cluster: gpus, flavor: a100-40, gpus: 1}", 0),
    ],
)
def test_one_process_for_several_gpus_is_noted(verdict: Judge, program: str, target: str, notes: int) -> None:
    findings = verdict(f"command: {program}\n{target}", "vertex" if target == VERTEX else "gke").findings

    rows = [(row.rule, row.severity, row.path, row.nearest) for row in findings if row.rule == "job-launcher"]
    assert rows == [("job-launcher", "note", "command[0]", "torchrun")] * notes


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("vertex: {region: us-central1, machine_type: a2-highgpu-1g, capacity: spot}", "vertex.capacity"),
        ("gke: {cluster: tpus, flavor: tpu-v5e-4x4-spot, slices: 1}", "gke.flavor"),
        ("output: checkpoints\ngke: {cluster: tpus, flavor: tpu-v5e-4x4-spot, slices: 1}", None),
        ("mounts: [{name: a, source: {bucket: far}}]\ngke: {cluster: tpus, flavor: tpu-v5e-4x4-spot, slices: 1}", None),
        (H100, None),
    ],
)
def test_a_job_on_spot_vms_that_keeps_nothing_is_noted(verdict: Judge, text: str, path: str | None) -> None:
    findings = verdict(text, "vertex" if text.startswith("vertex") else "gke").findings

    rows = [(row.severity, row.path) for row in findings if row.rule == "job-output"]
    assert rows == ([("note", path)] if path else [])
