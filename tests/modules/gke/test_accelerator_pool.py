"""GKE node pools of every kind: names, places, sizes, placement and order."""

from __future__ import annotations

from collections.abc import Callable

import pulumi
import pytest

from modules.gke import AcceleratorPool, AcceleratorPoolArgs, NodeServiceAccount, NodeServiceAccountArgs
from training_platform.checks.planning.recorder import Plan
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.pools import cluster_pools
from training_platform.resources.node_pools import node_pool_name
from training_platform.resources.planned import UNKNOWN, Planned
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
NODE_POOL = "gcp:container/nodePool:NodePool"
MEMBER = "gcp:projects/iAMMember:IAMMember"
RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"}
KINDS = ("v4 slices", "v5e hosts", "H100 flex-start", "H100 reserved", "A100", "A100 80 GB")


def test_each_slice_over_several_vms_is_a_pool_of_its_own(pool_plan: Callable[..., Plan]) -> None:
    plan = pool_plan("v4 slices")

    assert [pool.name for pool in plan.of(NODE_POOL)] == ["west-train-0-pool", "west-train-1-pool"]
    assert [pool.inputs["name"] for pool in plan.of(NODE_POOL)] == ["train-0", "train-1"]
    assert [pool.name for pool in plan.of("training-platform:gke:AcceleratorPool")] == ["west-train-0", "west-train-1"]


@pytest.mark.parametrize("kind", ["v5e hosts", "H100 reserved", "A100"])
def test_vms_that_stand_alone_share_a_pool(kind: str, pool_plan: Callable[..., Plan]) -> None:
    (pool,) = pool_plan(kind).of(NODE_POOL)

    assert (pool.name, pool.inputs["name"]) == ("west-train-pool", "train")


def test_the_longest_name_fits_gke() -> None:
    spec = {"machine_type": "ct4p-hightpu-4t", "topology": "2x2x4", "slices": 1000}
    cluster = {"location": "us-central2-b", "subnet": RANGES, "node_pools": {"p" * 30: spec}}
    (pool,) = cluster_pools("c" * 30, ClusterSpec.model_validate(cluster))

    names = {node_pool_name(pool, gke_pool) for gke_pool in pool.gke_pools}
    assert len(names) == 1000
    assert max(len(name) for name in names) <= 40


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_belongs_to_its_cluster_project_and_one_zone(kind: str, planned: Callable[..., Planned]) -> None:
    inputs = planned(kind).inputs

    assert inputs["project"] == "example-train-prod"
    assert inputs["cluster"] == "prod-west"
    assert inputs["location"] == ("us-central2-b" if kind == "v4 slices" else "us-west4")
    assert inputs["nodeLocations"] == ["us-central2-b" if kind == "v4 slices" else "us-west4-a"]


def test_without_a_zone_a_regional_clusters_pool_takes_all_zones_and_counts_per_zone(
    planned: Callable[..., Planned],
) -> None:
    inputs = planned("A100", zone=None, min_nodes=1).inputs

    assert "nodeLocations" not in inputs
    assert inputs["initialNodeCount"] == 1
    assert inputs["autoscaling"] == {"minNodeCount": 1, "maxNodeCount": 3, "locationPolicy": "ANY"}


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        ("v4 slices", 16 // 4, 16 // 4),  # the first of two slices is always there
        ("v5e hosts", 1, 8),
        ("H100 flex-start", 0, 5),
        ("H100 reserved", 4, 6),
        ("A100", 0, 3),
    ],
)
def test_a_pool_scales_by_the_pair_per_zone(kind: str, least: int, most: int, planned: Callable[..., Planned]) -> None:
    inputs = planned(kind).inputs

    assert inputs["autoscaling"] == {"minNodeCount": least, "maxNodeCount": most, "locationPolicy": "ANY"}
    assert inputs["initialNodeCount"] == least
    assert "nodeCount" not in inputs


def test_a_slice_that_may_go_is_whole_or_not_there(pool_plan: Callable[..., Plan]) -> None:
    second = pool_plan("v4 slices").one(NODE_POOL, "west-train-1-pool")

    assert second.inputs["autoscaling"] == {"minNodeCount": 0, "maxNodeCount": 16 // 4, "locationPolicy": "ANY"}
    assert second.inputs["initialNodeCount"] == 0


@pytest.mark.parametrize(
    ("kind", "ignored"),
    [
        ("v4 slices", ["initialNodeCount"]),
        ("v5e hosts", ["initialNodeCount"]),
        ("H100 flex-start", ["initialNodeCount", "upgradeSettings"]),
        ("H100 reserved", ["initialNodeCount"]),
        ("A100", ["initialNodeCount"]),
    ],
)
def test_what_gke_changes_by_itself_is_no_change_of_ours(
    kind: str, ignored: list[str], planned: Callable[..., Planned]
) -> None:
    assert planned(kind).options["ignoreChanges"] == ignored


@pytest.mark.parametrize(("kind", "pods"), [("v4 slices", 16), ("v5e hosts", 32), ("A100", 32)])
def test_a_vm_takes_the_block_of_addresses_that_its_pods_need(
    kind: str, pods: int, planned: Callable[..., Planned]
) -> None:
    assert planned(kind).inputs["maxPodsPerNode"] == pods


def test_hosts_of_a_slice_are_joined_in_its_topology(planned: Callable[..., Planned]) -> None:
    assert planned("v4 slices").inputs["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "2x2x4"}


@pytest.mark.parametrize("kind", ["v5e hosts", "H100 flex-start", "H100 reserved", "A100", "A100 80 GB"])
def test_nothing_else_has_a_placement(kind: str, planned: Callable[..., Planned]) -> None:
    assert "placementPolicy" not in planned(kind).inputs


def test_one_more_chip_than_a_host_has_makes_a_slice(planned: Callable[..., Planned]) -> None:
    four = {"machine_type": "ct5lp-hightpu-4t", "slices": 1, "min_slices": 0}

    assert "placementPolicy" not in planned("v5e hosts", **four, topology="2x2").inputs
    assert planned("v5e hosts", **four, topology="2x4").inputs["placementPolicy"]["tpuTopology"] == "2x4"


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_wait_for_their_roles_and_a_new_pool_for_the_old_ones_end(
    kind: str, planned: Callable[..., Planned]
) -> None:
    options = planned(kind).options

    assert {name for type_, name in options["dependsOn"] if type_ == MEMBER} == {
        "nodes-artifactregistry.reader",
        "nodes-container.defaultNodeServiceAccount",
        "nodes-serviceusage.serviceUsageConsumer",
    }
    assert options["deleteBeforeReplace"] is True
    assert options["customTimeouts"] == {"update": "8h"}
    assert options["protect"] is True


def test_a_pool_is_a_child_of_its_component_and_tells_its_id(scope: Scope, deploy: Deploy) -> None:
    spec = {"location": "us-west4", "subnet": RANGES, "node_pools": {"train": {"machine_type": "a2-highgpu-8g"}}}
    (pool,) = cluster_pools("west", ClusterSpec.model_validate(spec))

    def program() -> None:
        nodes = NodeServiceAccount("nodes", NodeServiceAccountArgs(scope=scope))
        args = AcceleratorPoolArgs(
            scope=scope, pool=pool, gke_pool=pool.gke_pools[0], cluster="c", location="us-west4", service_account=nodes
        )
        pulumi.export("id", AcceleratorPool("west-train", args).node_pool_id)

    plan = deploy(program)

    assert plan.one(NODE_POOL).parent == ("training-platform:gke:AcceleratorPool", "west-train")
    assert plan.outputs == {"id": UNKNOWN}
