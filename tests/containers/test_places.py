"""Pods where Kueue's topology-aware placement puts them: on two real nodes, of one and of two VMs of GPUs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.containers.conftest import PLACED, Seen
from tests.containers.pods import log
from tests.parts.jobs.runs.gke_cluster import CLUSTER, Cluster, until

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(400), pytest.mark.usefixtures("blocks")]

SHOWS_RANK = "import os, time; print('begun', os.environ['NODE_RANK']); time.sleep(600)"


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

    last = until(lambda: seen(run), lambda now: "Kueue reports" in now.why)

    assert "until one subblock of h100-reservation has room for all 3 VMs" in last.why
    assert last.state == "waiting"
    assert cluster.pods(run) == []
