from __future__ import annotations

from typing import Any

import pytest

from tests.support.plans import planned_demand
from tests.training_platform.rules.builders import lustre
from training_platform.quota.charges import Charge
from training_platform.quota.demand import demand_of_views
from training_platform.resources.resource_types import NODE_POOL
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import views_of_plan

IN_PLACE = {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1}
H100 = {"machineType": "a3-highgpu-8g", "bootDisk": {"sizeGb": 200, "diskType": "pd-ssd"}}


def planned(resource_type: str, name: str = "thing", **inputs: Any) -> StackResource:
    return StackResource(stack="dev", type=resource_type, name=name, inputs=inputs)


def pool(config: dict[str, Any], max_nodes: Any, name: str = "h100-pool", **inputs: Any) -> StackResource:
    place = {"project": "p", "location": "us-central1", "nodeLocations": ["us-central1-a"], "upgradeSettings": IN_PLACE}
    return planned(NODE_POOL, name, **{**place, **inputs}, nodeConfig=config, autoscaling={"maxNodeCount": max_nodes})


def amounts(charges: list[Charge]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for charge in charges:
        totals[charge.key.quota_id] = totals.get(charge.key.quota_id, 0) + charge.amount
    return totals


def test_pool_of_a_regional_cluster_is_counted_in_three_zones() -> None:
    assert amounts(planned_demand([pool(H100, 4, nodeLocations=None)]))["GPUS-ALL-REGIONS-per-project"] == 4 * 3 * 8


@pytest.mark.parametrize(
    ("upgrades", "capacity", "more"),
    [
        (None, {}, 1),  # what GKE does where nobody says
        ({"strategy": "SURGE", "maxSurge": 2}, {"flexStart": True}, 0),
    ],
)
def test_room_for_upgrades_is_counted(upgrades: Any, capacity: dict[str, Any], more: int) -> None:
    demand = amounts(planned_demand([pool({**H100, **capacity}, 4, upgradeSettings=upgrades)]))

    assert demand["INSTANCES-per-project-region"] == 4 + more
    assert demand["SSD-TOTAL-GB-per-project-region"] == (4 + more) * 200


def test_disk_that_is_left_out_has_gkes_defaults() -> None:
    demand = amounts(planned_demand([pool({"machineType": "a2-highgpu-1g"}, 2)]))

    assert demand["DISKS-TOTAL-GB-per-project-region"] == 2 * 100


def test_machine_outside_the_catalogue_charges_nothing() -> None:
    assert planned_demand([pool({"machineType": "a9-highgpu-8g"}, 4)]) == []


def test_what_is_unknown_is_a_note_and_hides_no_other() -> None:
    charges, notes = demand_of_views(views_of_plan([pool(H100, UNKNOWN), pool(H100, 2, "eval-pool")]))

    assert amounts(charges)["GPUS-ALL-REGIONS-per-project"] == 2 * 8
    assert [(note.severity, note.rule) for note in notes] == [("note", "quota-not-counted")]


def test_project_is_the_stacks_where_a_resource_names_none() -> None:
    charges, _ = demand_of_views(views_of_plan([pool(H100, 1, project=None)]), project="example-train")

    assert {charge.key.project for charge in charges} == {"example-train"}


def test_a_throughput_of_lustre_outside_the_catalogue_charges_nothing() -> None:
    assert demand_of_views([lustre(mbps_per_tib=40)]) == ([], [])


def test_an_internal_address_counts_against_no_limit_of_external_ones() -> None:
    address = planned("gcp:compute/address:Address", project="p", region="us-west4", addressType="INTERNAL")

    assert planned_demand([address]) == []
