"""Jobs of Pathways as they are rendered, under the real JobSet, Kueue and scheduler; nodes are objects only."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.kube.clusters import KINDS, NEEDED, kueue_cluster
from tests.kube.heads import JOBSETS, NODE_POOL, Heads
from tests.kube.jobs_on_nodes import SUBNET, left
from tests.kube.queues import KUEUE, planned, stacks, until
from training_platform.config.expansion import HEADS_NAME, HEADS_TAINT
from training_platform.config.reading.source import parse_source
from training_platform.parts.jobs.common_rules import job_findings
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.naming import as_run
from training_platform.parts.jobs.resolve import parse_job
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

SLICES = {"machine_type": "ct5lp-hightpu-4t", "topology": "2x4", "slices": 2, "min_slices": 2}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Heads]:
    settings = configuration(["on-demand"])
    with kueue_cluster(tmp_path_factory.mktemp("pathways"), settings, KINDS, (*NEEDED, "jobset")) as cluster:
        yield Heads(cluster.client)


@pytest.fixture
def queues(cluster: Heads) -> Iterator[Heads]:
    yield cluster
    cluster.delete(JOBSETS)
    until(lambda: left(cluster, "vision"), lambda pods: not pods)
    cluster.clear()
    flavors = f"{KUEUE}/resourceflavors"  # one that has a topology keeps it
    cluster.delete(flavors)
    until(lambda: cluster.get(flavors)["items"], lambda items: not items)


@pytest.mark.parametrize("aware", [False, True])
def test_a_job_is_admitted_whole_and_a_second_one_waits_whole(queues: Heads, aware: bool) -> None:
    """Where Kueue places the slices, the queue has a flavor without a topology beside theirs."""
    slices = {**SLICES, "topology_aware": aware}
    plain = {"plain": {**SLICES, "topology": "4x4"}} if aware else {}
    pools = {"pathways": {"max_nodes": 2}, "node_pools": {"slices": slices, **plain}}
    clusters = {"main": {"location": "us-central1-a", "subnet": SUBNET, **pools}}
    flavor = "tpu-v5e-2x4"
    shares = {flavor: {"nominal_quota": 16}}
    if aware:
        shares["tpu-v5e-4x4"] = {"nominal_quota": 16}
    team = {"shares": {"main": shares}, "buckets": {"state": {"location": "us-central1"}}}
    workspace = stacks({"clusters": clusters}, {"vision": team})
    gke = {"cluster": "main", "flavor": flavor, "slices": 2, "pathways": True}
    text = json.dumps({"environment": "lab", "image": "registry.example.com/train:1", "output": "state", "gke": gke})
    job, findings = parse_job(parse_source(text, "jobs/vision/train.yaml"), workspace)
    assert job is not None, findings
    assert [str(finding) for finding in job_findings(job) if finding.severity == "error"] == []
    queues.deploy_all(planned(workspace))
    labels = workspace.flavors("lab", "main")[flavor].node_labels
    for index in range(4):
        queues.node(f"tpu-{index}", {**labels, NODE_POOL: f"slices-{index // 2}"}, "google.com/tpu", 4)
    key, value = HEADS_TAINT
    taints = [{"key": key, "value": value, "effect": "NoSchedule"}]
    for index in range(2):
        queues.node(f"head-{index}", {NODE_POOL: HEADS_NAME}, "example.com/none", 1, taints=taints)

    for run in ("train-first", "train-second"):
        queues.create(JOBSETS, jobset(as_run(job, run)))

    whole = {"head": {HEADS_NAME}, "slice": {"slices-0", "slices-1"}}
    until(lambda: queues.nodes_of_roles("train-first"), lambda now: now == whole)
    until(lambda: len(queues.pods("train-first")), lambda pods: pods == 1 + 4)
    queues.waits("vision", "train-second")
    assert queues.pods("train-second") == []
    queues.end("train-first")
    until(lambda: queues.nodes_of_roles("train-second"), lambda now: now == whole)
