"""Scenarios of queues, planned from stack files and played by Kueue's own controller; nodes are objects only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.kube.clusters import kueue_cluster
from tests.kube.queues import ENVIRONMENT, Json, Queues, planned, stacks, until
from training_platform.checks.comparison.refusals import placed_flavors
from training_platform.config.model.node_pool import BLOCK_LEVELS
from training_platform.config.reading.declaration import located
from training_platform.config.workspace import Workspace
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queues]:
    settings = configuration(["reservation", "spot", "queued-provisioning"])
    with kueue_cluster(tmp_path_factory.mktemp("queues"), settings) as cluster:
        yield Queues(cluster.client)


@pytest.fixture
def queues(cluster: Queues) -> Iterator[Queues]:
    yield cluster
    cluster.clear()


def shares(**quotas: int) -> dict[str, Any]:
    return {"main": {name.replace("_", "-"): {"nominal_quota": quota} for name, quota in quotas.items()}}


def test_what_is_lent_is_borrowed_and_taken_back(queues: Queues) -> None:
    queues.deploy({name: {"shares": shares(h100_reservation=16)} for name in ("vision", "nlp")})
    queues.submit("vision", "own", 16)
    queues.submit("vision", "borrowed", 16)
    queues.runs("vision", "own")
    queues.runs("vision", "borrowed")

    queues.submit("nlp", "back", 16)

    queues.runs("nlp", "back")
    assert {queues.flavor("vision", name) for name in ("own", "borrowed")} == {"h100-reservation", None}


def test_what_was_lent_goes_back_to_the_team_that_is_promised_it(queues: Queues) -> None:
    teams = {"vision": {"shares": shares(h100_reservation=16)}, "nlp": {"shares": shares(h100_reservation=0)}}
    queues.deploy(teams, lend_unpromised=True)
    queues.submit("nlp", "idle", 48)
    queues.runs("nlp", "idle")

    queues.deploy({**teams, "vision": {"shares": shares(h100_reservation=32)}}, lend_unpromised=True)
    queues.submit("vision", "promised", 32)

    queues.runs("vision", "promised")
    queues.waits("nlp", "idle")


def test_a_held_queue_starts_nothing_and_a_drained_one_stops_what_runs(queues: Queues) -> None:
    team: dict[str, Any] = {"shares": shares(h100_reservation=16)}
    queues.deploy({"vision": team})
    queues.submit("vision", "first", 8)
    queues.runs("vision", "first")

    queues.deploy({"vision": {**team, "hold": {"main": "Hold"}}})
    queues.submit("vision", "second", 8)
    queues.waits("vision", "second")
    queues.runs("vision", "first")

    queues.deploy({"vision": {**team, "hold": {"main": "HoldAndDrain"}}})
    queues.waits("vision", "first")

    queues.deploy({"vision": team})
    queues.runs("vision", "first")
    queues.runs("vision", "second")


BLOCK = "cloud.google.com/gce-topology-block"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
SLICE = {
    "kueue.x-k8s.io/podset-slice-required-topology": "cloud.google.com/gke-nodepool",
    "kueue.x-k8s.io/podset-slice-size": "2",
}
MEGA = "h100-mega-reservation"
TPU = "tpu-v5e-2x4"


def in_blocks(queues: Queues) -> None:
    """Add four nodes of A3 Mega in two blocks."""
    levels = BLOCK_LEVELS[:-1]
    for index in range(4):
        places = {level: f"{level.rpartition('-')[2]}-{index // 2}" for level in levels[:-1]}
        labels = {**places, levels[-1]: f"host-{index}", "training-platform/flavor": MEGA}
        labels["cloud.google.com/gke-accelerator"] = "nvidia-h100-mega-80gb"
        queues.node(f"mega-{index}", labels, "nvidia.com/gpu", 8)


def test_a_job_of_a_block_gets_nodes_of_one_block_and_one_that_fits_none_waits(queues: Queues) -> None:
    in_blocks(queues)
    queues.deploy({"vision": {"shares": shares(h100_mega_reservation=32)}})
    queues.submit("vision", "three", 8, pods=3, flavor=MEGA, annotations={REQUIRED: BLOCK})
    queues.waits("vision", "three")

    queues.submit("vision", "two", 8, pods=2, flavor=MEGA, annotations={REQUIRED: BLOCK})

    queues.runs("vision", "two", MEGA)
    blocks = ({"mega-0", "mega-1"}, {"mega-2", "mega-3"})
    until(lambda: queues.nodes_of("vision", "two"), lambda nodes: nodes in blocks)
    queues.waits("vision", "three")


@pytest.mark.parametrize(("before", "taken"), [(True, False), (False, True)])
def test_a_flavor_takes_a_topology_and_keeps_it(queues: Queues, before: bool, taken: bool) -> None:
    def flavor(aware: bool) -> tuple[Workspace, Json]:
        clusters = yaml.safe_load(ENVIRONMENT)["clusters"]
        clusters["main"]["node_pools"]["placed"]["topology_aware"] = aware
        files = stacks({"clusters": clusters}, {})
        (placed,) = (body for body in planned(files) if body["metadata"]["name"] == MEGA)
        return files, {**placed, "metadata": {"name": f"placed-{before}".lower()}}

    base, old = flavor(before)
    head, new = flavor(not before)
    queues.apply(old)

    if taken:
        queues.apply(new)
    else:
        with pytest.raises(AssertionError, match="topologyName is immutable when topologyName is set"):
            queues.apply(new)
    assert [finding.rule for finding in located(placed_flavors(head, base))] == ([] if taken else ["placed-flavor"])


def test_a_job_of_slices_gets_them_whole_and_another_when_a_node_of_its_own_dies(queues: Queues) -> None:
    for index in range(4):
        labels = {"cloud.google.com/gke-nodepool": f"slices-{index // 2}", "training-platform/flavor": TPU}
        labels |= {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}
        queues.node(f"tpu-{index}", {**labels, "cloud.google.com/gke-tpu-topology": "2x4"}, "google.com/tpu", 4)
    queues.deploy({"vision": {"shares": {"main": {TPU: {"nominal_quota": 16}}}}})

    queues.submit("vision", "one", 4, pods=2, flavor=TPU, annotations=SLICE, resource="google.com/tpu")

    queues.runs("vision", "one", TPU)
    slices = [{"tpu-0", "tpu-1"}, {"tpu-2", "tpu-3"}]
    first = until(lambda: queues.nodes_of("vision", "one"), lambda nodes: nodes in slices)
    queues.delete(f"/api/v1/nodes/{min(first)}")
    slices.remove(first)
    until(lambda: queues.nodes_of("vision", "one"), lambda nodes: nodes in slices)


QUEUED = "h100-queued-provisioning"


def test_a_queued_job_starts_when_its_vms_come_late_and_on_these_alone(queues: Queues) -> None:
    queues.deploy({"vision": {"shares": shares(h100_queued_provisioning=8)}})
    queues.submit("vision", "late", 8)
    request = queues.request("vision", "late")
    assert queues.flavor("vision", "late") is None

    queues.says(request, "Provisioned", ResizeRequestName="resize-1")

    queues.runs("vision", "late", QUEUED)
    selector = "autoscaling.gke.io/provisioning-request"
    job = queues.get("/apis/batch/v1/namespaces/vision/jobs/late")["spec"]["template"]["spec"]
    assert job["nodeSelector"][selector] == "resize-1"
