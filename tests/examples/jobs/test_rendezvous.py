"""PyTorch and JAX, started as the pods of a run are: by the platform's variables, without an option or an address."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.examples.jobs.conftest import EXAMPLES, free_port
from tests.examples.jobs.data_sets import MAKE_TENSORS
from tests.support.lab import ENVIRONMENT, write_lab
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.naming import as_run
from training_platform.parts.jobs.resolve import parse_job

pytestmark = [pytest.mark.examples, pytest.mark.timeout(400)]
RUN = "train-bcdfg"
SMALL = ENVIRONMENT.replace("a2-highgpu-4g", "a2-highgpu-1g")
JAX = """\
import os, jax
rank, nodes = int(os.environ["NODE_RANK"]), int(os.environ["NUM_NODES"])
jax.distributed.initialize(num_processes=nodes, process_id=rank, cluster_detection_method="deactivate")
from jax.experimental.multihost_utils import process_allgather
print(rank, *process_allgather(jax.numpy.array([rank])).flatten().tolist())
"""


def pods(folder: Path, flavor: str) -> list[dict[str, str]]:
    """Return the variables of each pod of a run over two VMs, which are this machine."""
    text = f"environment: lab\nimage: registry.example.com/a:1\ngke: {{cluster: gpus, flavor: {flavor}, nodes: 2}}\n"
    job, _ = parse_job(parse_source(text, "jobs/vision/train.yaml"), read_workspace(write_lab(folder, lab=SMALL)))
    assert job is not None
    (role,) = jobset(as_run(job, RUN))["spec"]["replicatedJobs"]
    rows = role["template"]["spec"]["template"]["spec"]["containers"][0]["env"]
    port = str(free_port())
    first = f"{RUN}-slice-0-0.{RUN}"
    named = [(row["name"], row.get("value", "RANK").replace(first, "127.0.0.1").replace("29500", port)) for row in rows]
    return [{**os.environ, **{name: value.replace("RANK", str(rank)) for name, value in named}} for rank in range(2)]


def ended(commands: list[list[str]], environments: list[dict[str, str]]) -> list[list[str]]:
    """Run a program in each pod, and return the lines of each."""
    programs = [
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        for command, env in zip(commands, environments, strict=True)
    ]
    outputs = [program.communicate(timeout=180)[0].splitlines() for program in programs]
    assert [program.returncode for program in programs] == [0, 0]
    return outputs


def test_torchrun_trains_on_all_gpus_of_two_vms_without_an_option(python: str, tmp_path: Path) -> None:
    data = tmp_path / "data.pt"
    subprocess.run([python, "-c", MAKE_TENSORS, str(data)], check=True, capture_output=True)
    every = pods(tmp_path / "lab", "h100")
    assert {env["PET_NPROC_PER_NODE"] for env in every} == {"8"}
    torchrun = [python, "-m", "torch.distributed.run", str(EXAMPLES / "fsdp_torch" / "train.py")]
    options = [f"--data={data}", f"--checkpoints={tmp_path / 'run'}", "--strategy=ddp", "--steps=4", "--batch=4"]

    # Two processes stand for the eight of a VM, which this machine has no memory for.
    outputs = ended([[*torchrun, *options]] * 2, [{**env, "PET_NPROC_PER_NODE": "2"} for env in every])

    assert "checkpoint 4" in outputs[0]
    assert "checkpoint 4" not in outputs[1]  # the first process of all writes


def test_jax_counts_the_devices_of_both_vms(python: str, tmp_path: Path) -> None:
    outputs = ended([[python, "-c", JAX]] * 2, [{**env, "JAX_PLATFORMS": "cpu"} for env in pods(tmp_path, "h100")])

    assert [lines[-1] for lines in outputs] == ["0 0 1", "1 0 1"]


def test_one_process_for_each_vm_needs_no_launcher(python: str, tmp_path: Path) -> None:
    program = (
        "import torch, torch.distributed as dist; dist.init_process_group('gloo'); "
        "total = torch.ones(1); dist.all_reduce(total); print(dist.get_rank(), int(total))"
    )

    outputs = ended([[python, "-c", program]] * 2, pods(tmp_path, "a100-40"))

    assert [lines[-1] for lines in outputs] == ["0 2", "1 2"]
