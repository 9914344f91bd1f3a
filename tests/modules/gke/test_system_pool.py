"""The pool for everything that is no training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from modules.gke import NodeServiceAccount, NodeServiceAccountArgs, SystemPool, SystemPoolArgs
from training_platform.checks.planning.recorder import Plan
from training_platform.config.model.node_pool import PathwaysPoolSpec, SystemPoolSpec
from training_platform.resources.node_pools import initial_nodes_per_zone
from training_platform.resources.planned import UNKNOWN, Planned
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
NODE_POOL = "gcp:container/nodePool:NodePool"
MEMBER = "gcp:projects/iAMMember:IAMMember"


def pool(scope: Scope, location: str = "us-west4", **fields: Any) -> SystemPool:
    args = SystemPoolArgs(
        scope=scope,
        spec=SystemPoolSpec.model_validate(fields),
        cluster="prod-gpu",
        location=location,
        service_account=NodeServiceAccount("nodes", NodeServiceAccountArgs(scope=scope)),
    )
    return SystemPool("gpu-system", args)


@pytest.fixture
def planned(scope: Scope, deploy: Deploy) -> Planned:
    return deploy(lambda: pool(scope)).one(NODE_POOL, "gpu-system-pool")


def test_the_pool_belongs_to_its_cluster(planned: Planned) -> None:
    assert planned.inputs["project"] == "example-train-prod"
    assert planned.inputs["cluster"] == "prod-gpu"
    assert planned.inputs["location"] == "us-west4"
    assert planned.inputs["name"] == "system"


def test_the_minimum_and_maximum_are_over_all_zones(scope: Scope, deploy: Deploy) -> None:
    inputs = deploy(lambda: pool(scope, min_nodes=4, max_nodes=9)).one(NODE_POOL).inputs

    assert inputs["autoscaling"] == {
        "totalMinNodeCount": 4,
        "totalMaxNodeCount": 9,
        "locationPolicy": "BALANCED",
    }
    assert "nodeCount" not in inputs


@pytest.mark.parametrize(
    ("location", "least", "most", "each"),
    [
        ("us-west4-a", 2, 6, 2),
        ("us-west4", 3, 6, 1),
        ("us-west4", 2, 6, 1),  # 3 VMs, of which the autoscaler may take one away
        ("us-west4", 4, 6, 2),
        ("us-west4", 4, 5, 1),  # 2 in each of 3 zones would be 6, over the maximum
        ("us-west4", 1, 2, 0),
    ],
)
def test_a_zone_starts_with_its_part_of_the_minimum(location: str, least: int, most: int, each: int) -> None:
    spec = SystemPoolSpec(min_nodes=least, max_nodes=most)

    assert initial_nodes_per_zone(spec, location) == each


def test_the_pool_of_heads_starts_empty_and_takes_nothing_but_heads(scope: Scope, deploy: Deploy) -> None:
    def program() -> None:
        nodes = NodeServiceAccount("nodes", NodeServiceAccountArgs(scope=scope))
        args = SystemPoolArgs(
            scope=scope, spec=PathwaysPoolSpec(max_nodes=3), cluster="prod-gpu", location="us-west4",
            service_account=nodes,
        )  # fmt: skip
        SystemPool("gpu-pathways", args)

    inputs = deploy(program).one(NODE_POOL, "gpu-pathways-pool").inputs

    assert (inputs["name"], inputs["initialNodeCount"]) == ("cpu-np", 0)
    assert (inputs["autoscaling"]["totalMinNodeCount"], inputs["autoscaling"]["totalMaxNodeCount"]) == (0, 3)
    assert inputs["nodeConfig"]["machineType"] == "n2-standard-64"
    taint = {"key": "training-platform/pathways", "value": "true", "effect": "NO_SCHEDULE"}
    assert inputs["nodeConfig"]["taints"] == [taint]


def test_the_first_size_reaches_gke_and_is_never_compared_again(scope: Scope, deploy: Deploy) -> None:
    planned = deploy(lambda: pool(scope, location="us-west4-a", min_nodes=2)).one(NODE_POOL)

    assert planned.inputs["initialNodeCount"] == 2
    assert planned.options["ignoreChanges"] == ["initialNodeCount"]


def test_pods_of_every_kind_find_room_beside_one_another(planned: Planned) -> None:
    node = planned.inputs["nodeConfig"]

    assert node.keys().isdisjoint({"taints", "guestAccelerators", "spot", "flexStart", "reservationAffinity"})
    assert planned.inputs.keys().isdisjoint({"placementPolicy", "nodeLocations", "queuedProvisioning"})
    assert planned.inputs["maxPodsPerNode"] == 64


def test_an_upgrade_brings_a_vm_before_it_takes_one(planned: Planned) -> None:
    assert planned.inputs["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0}
    assert planned.inputs["management"] == {"autoRepair": True, "autoUpgrade": True}


def test_the_machine_and_its_boot_disk_reach_gke(scope: Scope, deploy: Deploy) -> None:
    disk = {"type": "pd-ssd", "size_gb": 57}
    node = deploy(lambda: pool(scope, machine_type="e2-standard-8", boot_disk=disk)).one(NODE_POOL).inputs["nodeConfig"]

    assert node["machineType"] == "e2-standard-8"
    assert node["bootDisk"] == {"sizeGb": 57, "diskType": "pd-ssd"}


def test_nodes_are_private_shielded_and_hide_their_account_from_pods(planned: Planned) -> None:
    node = planned.inputs["nodeConfig"]

    assert planned.inputs["networkConfig"] == {"enablePrivateNodes": True}
    assert node["serviceAccount"] is UNKNOWN
    assert node["oauthScopes"] == ["https://www.googleapis.com/auth/cloud-platform"]
    assert node["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
    assert node["shieldedInstanceConfig"] == {"enableSecureBoot": True, "enableIntegrityMonitoring": True}
    assert node["resourceLabels"] == {"environment": "prod", "managed-by": "training-platform"}


def test_nodes_wait_for_their_roles_and_a_new_pool_for_the_old_ones_end(planned: Planned) -> None:
    waits = planned.options["dependsOn"]

    assert {name for kind, name in waits if kind == MEMBER} == {
        "nodes-artifactregistry.reader",
        "nodes-container.defaultNodeServiceAccount",
        "nodes-serviceusage.serviceUsageConsumer",
    }
    assert planned.options["deleteBeforeReplace"] is True
    assert planned.options["customTimeouts"] == {"update": "8h"}
