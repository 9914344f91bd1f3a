"""Values with one right answer, as a policy whose enforcement level is ``remediate`` puts them in their place."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, ResourceValidationArgs, ResourceValidationPolicy
from pulumi_policy.deserialize import deserialize_properties, serialize_properties
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from tests.training_platform.policy.pack_run import OPTIONS, pool, urn
from training_platform.policy.pack import policies

BUCKET = "gcp:storage/bucket:Bucket"
SETTINGS = {"labels": {"environment": "prod", "team": "vision"}}
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "hush"}


def remedied(policy: str, kind: str, inputs: dict[str, Any]) -> Any:
    """Return the new inputs as the engine is given them, None where nothing was changed."""
    (remediating,) = (candidate for candidate in policies(None) if candidate.name == policy)
    assert isinstance(remediating, ResourceValidationPolicy)
    props = unknown_checking_proxy(deserialize_properties(copy.deepcopy(inputs), True))
    where = urn(kind, "x", "dev", "another")
    new = remediating.remediate(ResourceValidationArgs(kind, props, where, "x", OPTIONS, None, SETTINGS.get(policy)))
    return None if new is None else serialize_properties(new)  # type: ignore[arg-type] # given at once


def test_no_policy_remediates_unless_a_config_says_so() -> None:
    assert EnforcementLevel.REMEDIATE not in {policy.enforcement_level for policy in policies(None)}


def test_labels_are_set_and_others_are_kept() -> None:
    new = remedied("labels", BUCKET, {"name": "b", "labels": {"cost": "7", "team": "speech"}})

    assert new == {"name": "b", "labels": {"cost": "7", "team": "vision", "environment": "prod"}}


def test_labels_are_set_where_there_are_none() -> None:
    assert remedied("labels", BUCKET, {"name": "b"})["labels"] == {"environment": "prod", "team": "vision"}


def test_labels_of_a_node_pool_are_those_of_its_machines() -> None:
    kind, _, inputs = pool()

    new = remedied("labels", kind, inputs)

    assert new["nodeConfig"]["resourceLabels"] == {"environment": "prod", "team": "vision"}
    assert {
        **new,
        "nodeConfig": {**new["nodeConfig"], "resourceLabels": inputs["nodeConfig"]["resourceLabels"]},
    } == inputs


def test_what_is_unknown_or_secret_stays_so() -> None:
    inputs = {"name": UNKNOWN_STRING_VALUE, "location": SECRET, "labels": {"cost": SECRET}}

    new = remedied("labels", BUCKET, inputs)

    assert (new["name"], new["location"], new["labels"]["cost"]) == (UNKNOWN_STRING_VALUE, SECRET, SECRET)
    assert new["labels"]["team"] == "vision"


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        (BUCKET, {"labels": {"environment": "prod", "team": "vision"}}),
        (BUCKET, {"labels": UNKNOWN_STRING_VALUE}),
        (BUCKET, {"labels": {"environment": UNKNOWN_STRING_VALUE, "team": "vision"}}),
        ("gcp:compute/network:Network", {}),
    ],
)
def test_labels_that_are_right_unknown_or_impossible_are_left_alone(kind: str, inputs: dict[str, Any]) -> None:
    assert remedied("labels", kind, inputs) is None


@pytest.mark.parametrize("spelling", ["diskType", "bootDisk"])
def test_a_boot_disk_gets_the_one_type_that_its_machine_boots_from(spelling: str) -> None:
    disk = {"diskType": "pd-ssd"} if spelling == "diskType" else {"bootDisk": {"diskType": "pd-ssd", "sizeGb": 200.0}}
    kind, _, inputs = pool()
    node = {"machineType": "a4-highgpu-8g", **disk}

    new = remedied("disks", kind, {**inputs, "nodeConfig": node})["nodeConfig"]

    disk_fields = new if spelling == "diskType" else new["bootDisk"]
    assert disk_fields["diskType"] == "hyperdisk-balanced"
    assert new.keys() == node.keys()


def test_a_boot_disk_of_a_machine_with_several_types_is_left_alone() -> None:
    kind, _, inputs = pool()
    node = {"machineType": "a2-highgpu-8g", "diskType": "hyperdisk-balanced"}

    assert remedied("disks", kind, {**inputs, "nodeConfig": node}) is None


def test_a_boot_disk_type_that_is_not_known_yet_is_left_alone() -> None:
    kind, _, inputs = pool()
    node = {"machineType": "a4-highgpu-8g", "diskType": UNKNOWN_STRING_VALUE}

    assert remedied("disks", kind, {**inputs, "nodeConfig": node}) is None
