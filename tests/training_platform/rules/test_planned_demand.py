from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.plans import planned_demand
from training_platform.quota.charges import Charge
from training_platform.quota.demand import demand_of_views
from training_platform.resources.planned import UNKNOWN, Planned
from training_platform.resources.resource_types import FILESTORE, NODE_POOL, PERSISTENT_RESOURCE, ROUTER_NAT
from training_platform.rules import views_of_plan
from training_platform.views.view import View

IN_PLACE = {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1}
H100 = {"machineType": "a3-highgpu-8g", "bootDisk": {"sizeGb": 200, "diskType": "pd-ssd"}}


def planned(resource_type: str, name: str = "thing", **inputs: Any) -> Planned:
    return Planned(stack="dev", type=resource_type, name=name, inputs=inputs)


def pool(config: dict[str, Any], most: Any, name: str = "h100-pool", **inputs: Any) -> Planned:
    place = {"project": "p", "location": "us-central1", "nodeLocations": ["us-central1-a"], "upgradeSettings": IN_PLACE}
    return planned(NODE_POOL, name, **{**place, **inputs}, nodeConfig=config, autoscaling={"maxNodeCount": most})


def amounts(charges: list[Charge]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for charge in charges:
        totals[charge.key.quota_id] = totals.get(charge.key.quota_id, 0) + charge.amount
    return totals


def test_planned_pools_are_summed_at_their_maximum() -> None:
    found = amounts(planned_demand([pool(H100, 4.0), pool(H100, 2, "eval-pool")]))

    assert found["GPUS-PER-GPU-FAMILY-per-project-region"] == (4 + 2) * 8
    assert found["SSD-TOTAL-GB-per-project-region"] == (4 + 2) * 200
    assert found["INSTANCES-per-project-region"] == 4 + 2


def test_pool_of_a_regional_cluster_is_counted_in_three_zones() -> None:
    assert amounts(planned_demand([pool(H100, 4, nodeLocations=None)]))["GPUS-ALL-REGIONS-per-project"] == 4 * 3 * 8


@pytest.mark.parametrize(
    ("upgrades", "capacity", "more"),
    [
        ({"strategy": "SURGE", "maxSurge": 0}, {}, 0),
        ({"strategy": "SURGE", "maxSurge": 2}, {}, 2),
        ({"strategy": "BLUE_GREEN"}, {}, 4),
        (None, {}, 1),  # what GKE does where nobody says
        ({"strategy": "SURGE", "maxSurge": 2}, {"flexStart": True}, 0),
    ],
)
def test_room_for_upgrades_is_counted(upgrades: Any, capacity: dict[str, Any], more: int) -> None:
    found = amounts(planned_demand([pool({**H100, **capacity}, 4, upgradeSettings=upgrades)]))

    assert found["INSTANCES-per-project-region"] == 4 + more
    assert found["SSD-TOTAL-GB-per-project-region"] == (4 + more) * 200


def test_a_slice_over_several_hosts_needs_no_room_for_upgrades() -> None:
    config, placement = {"machineType": "ct5lp-hightpu-4t"}, {"type": "COMPACT", "tpuTopology": "4x8"}
    found = amounts(planned_demand([pool(config, 8, placementPolicy=placement, upgradeSettings=None)]))

    assert found["INSTANCES-per-project-region"] == 8


def test_disk_that_is_left_out_has_gkes_defaults() -> None:
    found = amounts(planned_demand([pool({"machineType": "a2-highgpu-1g"}, 2)]))

    assert found["DISKS-TOTAL-GB-per-project-region"] == 2 * 100


def test_slices_are_held_by_slice() -> None:
    config = {"machineType": "ct5lp-hightpu-4t"}
    placement = {"type": "COMPACT", "tpuTopology": "4x8"}
    charges = planned_demand([pool(config, 8, f"v5e-{index}-pool", placementPolicy=placement) for index in range(3)])
    chips = [charge for charge in charges if charge.unit == "chips"]

    assert [charge.amount for charge in chips] == [32, 32, 32]
    assert {charge.holder.step for charge in chips} == {32}
    assert {charge.holder.field for charge in chips} == {("slices",)}


def test_gpus_attached_to_a_persistent_resource_are_counted() -> None:
    machine = {"machineType": "n1-standard-16", "acceleratorType": "NVIDIA_TESLA_V100", "acceleratorCount": 2.0}
    resource = planned(
        PERSISTENT_RESOURCE, project="p", location="us-central1",
        resourcePools=[{"id": "machines", "machineSpec": machine, "replicaCount": "3"}],
    )  # fmt: skip

    found = amounts(planned_demand([resource]))

    assert found["CustomModelTrainingV100GPUsPerProjectPerRegion"] == 3 * 2
    assert found["CustomModelTrainingCPUsPerProjectPerRegion"] == 3 * 16


def test_every_pool_of_a_persistent_resource_is_counted_with_its_own_disk() -> None:
    pools = [
        {
            "machineSpec": {"machineType": "a2-highgpu-1g"},
            "replicaCount": "1",
            "autoscalingSpec": {"maxReplicaCount": "4"},
            "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
        },
        {"machineSpec": {"machineType": "n2-standard-8"}, "replicaCount": "2"},
    ]
    found = amounts(
        planned_demand([planned(PERSISTENT_RESOURCE, project="p", location="us-central1", resourcePools=pools)])
    )

    assert found == {
        "CustomModelTrainingA100GPUsPerProjectPerRegion": 4,
        "CustomModelTrainingN2CPUsPerProjectPerRegion": 2 * 8,
        "CustomModelTrainingPDSSDPerProjectPerRegion": 4 * 200 + 2 * 100,
    }


def test_filestore_and_addresses_are_counted() -> None:
    resources = [
        planned(FILESTORE, project="p", tier="ZONAL", location="us-central1-a", fileShares={"capacityGb": 2048.0}),
        planned(ROUTER_NAT, "a", project="p", region="us-central1"),
        planned(ROUTER_NAT, "b", project="p", region="us-west4", natIps=["x", "y"]),
    ]

    found = amounts(planned_demand(resources))

    assert found == {"EnterpriseStorageGibPerRegion": 2048, "IN-USE-ADDRESSES-per-project-region": 1 + 2}


def test_machine_outside_the_catalogue_charges_nothing() -> None:
    assert planned_demand([pool({"machineType": "a9-highgpu-8g"}, 4)]) == []


def test_what_is_unknown_is_a_note_and_hides_no_other() -> None:
    charges, notes = demand_of_views(views_of_plan([pool(H100, UNKNOWN), pool(H100, 2, "eval-pool")]))

    assert amounts(charges)["GPUS-ALL-REGIONS-per-project"] == 2 * 8
    assert [(note.severity, note.rule) for note in notes] == [("note", "quota-not-counted")]


def test_project_is_the_stacks_where_a_resource_names_none() -> None:
    charges, _ = demand_of_views(views_of_plan([pool(H100, 1, project=None)]), project="example-train")

    assert {charge.key.project for charge in charges} == {"example-train"}


def test_managed_lustre_is_counted_in_its_zone(flawless: dict[str, Callable[..., View]]) -> None:
    charges, notes = demand_of_views([flawless["lustre"](capacity_gib=18_000)], project="p")

    assert notes == []
    assert [(str(charge.key), charge.amount) for charge in charges] == [("Capacity in us-central1-a", 18_000)]


def test_a_throughput_of_lustre_outside_the_catalogue_charges_nothing(flawless: dict[str, Callable[..., View]]) -> None:
    assert demand_of_views([flawless["lustre"](mbps_per_tib=40)]) == ([], [])


def test_parts_of_networks_are_counted_by_kind() -> None:
    parts = {
        "gcp:compute/network:Network": {},
        "gcp:compute/subnetwork:Subnetwork": {"region": "us-west4"},
        "gcp:compute/firewall:Firewall": {},
        "gcp:compute/router:Router": {"region": "us-west4"},
        "gcp:compute/address:Address": {"region": "us-west4", "addressType": "EXTERNAL"},
        "gcp:compute/globalAddress:GlobalAddress": {"addressType": "INTERNAL"},
    }
    found = planned_demand([planned(kind, project="p", **inputs) for kind, inputs in parts.items()])

    assert amounts(found) == {
        f"{name}-per-project": 1 for name in ("NETWORKS", "SUBNETWORKS", "FIREWALLS", "ROUTERS")
    } | {"STATIC-ADDRESSES-per-project-region": 1}
    assert {charge.key.location for charge in found if charge.key.quota_id.startswith("STATIC")} == {"us-west4"}


def test_an_internal_address_counts_against_no_limit_of_external_ones() -> None:
    address = planned("gcp:compute/address:Address", project="p", region="us-west4", addressType="INTERNAL")

    assert planned_demand([address]) == []
