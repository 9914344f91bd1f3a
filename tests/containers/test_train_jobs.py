"""A TrainJob of one worker, as a member of the team submits it, on a real node of the sample cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.containers.nodes import IMAGE, NODE, bridge, node, on_this_machine, outfit, python_image
from tests.kube.clusters import NEEDED
from tests.kube.deployed import FLAVOR, GPU, GPU_TAINT, TEAM, without_nodes
from tests.kube.operators import OPERATORS, RUNTIMES, TRAINJOBS, Operated, runtime, train_job, with_field
from tests.kube.queues import Json, until

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(400)]

DEFINITIONS = ("TRAINING_PLATFORM_KUBERAY_DEFINITIONS", "TRAINING_PLATFORM_TRAINER_DEFINITIONS")
PROGRAM = "import os; print(*(os.environ[f'PET_{name}'] for name in ('NNODES', 'NODE_RANK', 'NPROC_PER_NODE')))"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    image = python_image()
    programs = Path(os.environ["TRAINING_PLATFORM_CONTAINERS"])
    folder = tmp_path_factory.mktemp("operators")
    (folder / "share").mkdir()
    needed = (*NEEDED, "jobset", "kuberay", "trainer")
    change = on_this_machine(folder)
    with ExitStack() as stack:
        dev = without_nodes(folder / "dev", OPERATORS, needed, DEFINITIONS, kubelets=True, change=change)
        lab = stack.enter_context(dev)
        stack.enter_context(bridge())
        server = lab.kueue.server
        stack.enter_context(node(server, NODE, image, programs=programs, logs=folder / NODE))
        outfit(server, NODE, lab.node_labels(), {GPU: 16})
        server.merge(f"/api/v1/nodes/{NODE}", {"spec": {"taints": [GPU_TAINT]}})
        yield Operated(lab.kueue.client)


@pytest.fixture(autouse=True)
def _ended(cluster: Operated) -> Iterator[None]:
    """Delete a test's jobs, of this cluster."""
    yield
    cluster.clear()


def test_a_train_job_of_one_worker_runs_and_completes(cluster: Operated) -> None:
    job = with_field(train_job(nodes=1), "spec.trainer.image", IMAGE)
    job = with_field(job, "spec.trainer.command", ["python3", "-c", PROGRAM])
    cluster.make(RUNTIMES, runtime())
    cluster.make(TRAINJOBS, job)

    cluster.runs(TEAM, "tune", FLAVOR)

    def conditions() -> list[Json]:
        status: Any = cluster.get(f"{TRAINJOBS}/tune").get("status", {})
        return [condition for condition in status.get("conditions", ()) if condition["status"] == "True"]

    ended = until(conditions, lambda rows: any(row["type"] in ("Complete", "Failed") for row in rows))
    assert [row["type"] for row in ended] == ["Complete"]
