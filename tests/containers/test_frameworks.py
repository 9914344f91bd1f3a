"""Programs of ``examples/jobs/`` with PyTorch over two VMs, which find each other by the names of their pods.

The libraries are those of the Python that TRAINING_PLATFORM_EXAMPLES_PYTHON names, which has to have the version of the
image's: pods see them as a folder of their bucket, so that the image stays small. Processes talk by gloo, on CPUs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.containers.buckets import BUCKET, MOUNTS, Buckets
from tests.containers.conftest import PLACED, Seen
from tests.containers.names import names
from tests.containers.nodes import examples_python, libraries
from tests.containers.pods import log
from tests.parts.jobs.runs.gke_cluster import CLUSTER, Cluster, Command, until
from tests.support.places import ROOT

pytestmark = [
    pytest.mark.kube,
    pytest.mark.containers,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("blocks", "_names"),
]

TORCHRUN = ["python3", "-m", "torch.distributed.run", "--nproc-per-node=1"]
EXAMPLES = """\
import sys, torch
torch.manual_seed(1)
inputs = torch.randn(4096, 64)
torch.save({"inputs": inputs, "labels": inputs[:, :10].argmax(1)}, sys.argv[1])
"""
KILL = """\
import os, pathlib
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    if b"/code/train.py" in (folder / "cmdline").read_bytes() and folder.name != "1":
        os.kill(int(folder.name), 9)
"""


@pytest.fixture(scope="module")
def _names(cluster: Cluster) -> Iterator[None]:
    with cluster.server.client() as client, names(client):
        yield


@pytest.fixture(scope="module")
def bucket(buckets: Buckets) -> Iterator[Path]:
    """The team's bucket, with the libraries."""
    folder = buckets.folder / BUCKET
    with libraries(folder / "packages"):
        yield folder


Torchrun = Callable[..., str]


@pytest.fixture
def torchrun(bucket: Path, submit: Callable[..., str]) -> Torchrun:
    """Return a function that submits a program of an example on two VMs, and returns its run."""

    def submitted(program: str, *options: str, env: dict[str, str], **fields: Any) -> str:
        code = bucket / "code"
        code.mkdir(exist_ok=True)
        shutil.copy(ROOT / "examples" / "jobs" / program, code)
        command = [*TORCHRUN, f"/gcs/{BUCKET}/code/{Path(program).name}", *options]
        variables = {"PYTHONPATH": f"/gcs/{BUCKET}/packages", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **env}
        target = {"cluster": CLUSTER, "flavor": PLACED, "nodes": 2}
        return submit("", command=command, env=variables, mounts=MOUNTS, gke=target, **fields)

    return submitted


def first_log(cluster: Cluster, run: str) -> str:
    """Return the log of the pod of rank 0."""
    index = "batch.kubernetes.io/job-completion-index"
    pods = [pod for pod in cluster.pods(run) if pod["metadata"]["annotations"][index] == "0"]
    return log(cluster, pods[-1]) if pods else ""


def test_torchrun_on_two_vms_gathers_what_both_have(cluster: Cluster, torchrun: Torchrun, job: Command) -> None:
    run = torchrun("all_gather/gather.py", env={"BYTES": str(1 << 20)}, retries=0)

    assert job("wait", run, "--timeout", "4").exit_code == 0, job("why", run).stdout
    assert "2 processes: bus bandwidth" in first_log(cluster, run)


def test_a_sharded_model_goes_on_from_its_checkpoint_after_a_process_is_killed(
    cluster: Cluster, bucket: Path, torchrun: Torchrun, job: Command, seen: Callable[[str], Seen]
) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on PATH")
    subprocess.run([examples_python(), "-c", EXAMPLES, str(bucket / "examples.pt")], check=True)
    data = f"--data=/gcs/{BUCKET}/examples.pt"
    run = torchrun(
        "fsdp_torch/train.py", data, "--steps=300", "--checkpoint-every=50", env={}, retries=1, output="checkpoints"
    )
    until(lambda: first_log(cluster, run), lambda text: "checkpoint 100" in text, 180)

    job("exec", run, "--node", "1", "--", "python3", "-c", KILL)

    assert job("wait", run, "--timeout", "4").exit_code == 0, job("why", run).stdout
    text = first_log(cluster, run)
    assert re.search(r"from step [1-9]\d* of the output\n", text)
    assert "step 1 loss" not in text
    assert "step 300 loss" in text
    last = seen(run)
    assert (last.state, last.restarts, last.interruptions) == ("succeeded", 1, 0)
