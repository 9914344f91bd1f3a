"""A node that is lost with its kubelet and containers, as a VM is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.containers.conftest import GPUS, NODE, Seen
from tests.containers.nodes import node, outfit, python_image
from tests.containers.pods import WAIT, begun
from tests.parts.jobs.runs.gke_cluster import CLUSTER, Cluster, until
from training_platform.config.workspace import read_workspace

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(400)]

LOST = "gke-h100-1"


def test_a_run_whose_node_is_lost_starts_on_another_without_a_retry(
    cluster: Cluster, root: Path, tmp_path: Path, submit: Callable[..., str], seen: Callable[[str], Seen]
) -> None:
    image = python_image()
    programs = Path(os.environ["TRAINING_PLATFORM_CONTAINERS"])
    with node(cluster.server, LOST, image, programs=programs, logs=tmp_path / LOST):
        outfit(cluster.server, LOST, read_workspace(root).flavors("lab", CLUSTER)["h100"].node_labels, {GPUS: 8})
        cordon(cluster, on=True)
        run = submit(WAIT, retries=0)
        assert begun(cluster, run)["spec"]["nodeName"] == LOST
        cordon(cluster, on=False)
    cluster.client.delete(f"/api/v1/nodes/{LOST}")  # as GKE does, once the VM does not exist

    assert begun(cluster, run, attempt=1, seconds=180)["spec"]["nodeName"] == NODE
    last = until(lambda: seen(run), lambda now: now.state == "running")
    assert (last.restarts, last.interruptions) == (0, 1)


def cordon(cluster: Cluster, *, on: bool) -> None:
    cluster.patch(f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": on}})
