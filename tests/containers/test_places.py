"""Pods where Kueue's topology-aware placement puts them: on two real nodes, of one and of two VMs of GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.containers.conftest import GPUS, PLACED, Seen
from tests.containers.nodes import node, outfit, python_image
from tests.containers.pods import log
from tests.parts.jobs.runs.gke_cluster import CLUSTER, Cluster, until
from training_platform.config.workspace import read_workspace

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(400), pytest.mark.usefixtures("_blocks")]

ROOMS = {"gke-blocks-0": 8, "gke-blocks-1": 16}  # GPUs by node; each node is a sub-block
SHOWS_RANK = "import os, time; print('begun', os.environ['NODE_RANK']); time.sleep(600)"


@pytest.fixture(scope="module")
def _blocks(cluster: Cluster, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    image = python_image()
    programs = Path(os.environ["TRAINING_PLATFORM_CONTAINERS"])
    flavor = read_workspace(root).flavors("lab", CLUSTER)[PLACED]
    with ExitStack() as stack:
        for name, gpus in ROOMS.items():
            logs = tmp_path_factory.mktemp("blocks") / name
            stack.enter_context(node(cluster.server, name, image, programs=programs, logs=logs))
            places = {level: f"{name}-{index}" for index, level in enumerate(flavor.topology_levels[:-1])}
            outfit(cluster.server, name, {**flavor.node_labels, **places}, {GPUS: gpus})
        yield
    for name in ROOMS:
        cluster.client.delete(f"/api/v1/nodes/{name}")


@pytest.fixture
def places(cluster: Cluster, submit: Callable[..., str]) -> Callable[..., list[str]]:
    """Return a function that submits a job of some VMs, and returns the nodes of its running programs by rank."""

    def placed(vms: int, **target: object) -> list[str]:
        run = submit(SHOWS_RANK, gke={"cluster": CLUSTER, "flavor": PLACED, "nodes": vms, **target})

        def nodes() -> dict[str, str]:
            return {log(cluster, pod).removeprefix("begun "): pod["spec"].get("nodeName") for pod in cluster.pods(run)}

        ranks = [f"{rank}\n" for rank in range(vms)]
        placed_nodes = until(nodes, lambda by_rank: sorted(by_rank) == ranks)
        return [placed_nodes[rank] for rank in ranks]

    return placed


def test_vms_that_must_be_near_each_other_run_in_one_sub_block(places: Callable[..., list[str]]) -> None:
    assert places(2, placement={"level": "subblock", "required": True}) == ["gke-blocks-1"] * 2


def test_vms_that_no_sub_block_holds_run_in_two_with_neighbouring_ranks_together(
    places: Callable[..., list[str]],
) -> None:
    nodes = places(3)

    assert sorted(nodes) == ["gke-blocks-0", "gke-blocks-1", "gke-blocks-1"]
    assert nodes[1] == "gke-blocks-1"


def test_vms_that_must_be_near_each_other_wait_if_no_sub_block_holds_them(
    cluster: Cluster, submit: Callable[..., str], seen: Callable[[str], Seen]
) -> None:
    placement = {"level": "subblock", "required": True}
    run = submit(SHOWS_RANK, gke={"cluster": CLUSTER, "flavor": PLACED, "nodes": 3, "placement": placement})

    last = until(lambda: seen(run), lambda now: "Kueue says" in now.why)

    assert "until one subblock of h100-reservation has room for all 3 VMs" in last.why
    assert last.state == "waiting"
    assert cluster.pods(run) == []
