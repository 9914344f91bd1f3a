"""Managed Lustre instances of an environment, and data sets on them."""

from __future__ import annotations

from typing import Any

from tests.stacks.test_reach import ENVIRONMENT, TEAM, planned
from training_platform.checks.planning.recorder import Plan
from training_platform.resources.register import CLUSTER, FIREWALL, LUSTRE, SERVICE, SERVICE_CONNECTION

VOLUME = "kubernetes:core/v1:PersistentVolume"


def environment(**changes: Any) -> dict[str, Any]:
    scratch = {"location": "us-central1-a", "capacity_gib": 18000, **changes}
    return {**ENVIRONMENT, "lustre": {"scratch": scratch}, "data_sets": {"fast": {"lustre": {"instance": "scratch"}}}}


def plan(stack: str = "env", **changes: Any) -> Plan:
    return planned(environment(**changes), TEAM, stack)


def test_an_instance_is_in_the_vpc_with_its_key_and_labels() -> None:
    found = plan(mbps_per_tib=500).one(LUSTRE, "lustre-scratch-instance")

    assert found.inputs["instanceId"] == "env-scratch"
    assert (found.inputs["capacityGib"], found.inputs["perUnitStorageThroughput"]) == ("18000", "500")
    assert found.inputs["kmsKey"] == ENVIRONMENT["encryption"]["keys"][0]
    assert found.inputs["labels"]["environment"] == "env"
    assert found.inputs["accessRulesOptions"] == {"defaultSquashMode": "NO_SQUASH"}
    assert found.options["protect"]
    assert (SERVICE_CONNECTION, "network-services") in found.options["dependsOn"]


def test_root_is_squashed_to_nobody() -> None:
    options = plan(squash_root=True).one(LUSTRE).inputs["accessRulesOptions"]

    assert options == {"defaultSquashMode": "ROOT_SQUASH", "defaultSquashUid": 65534, "defaultSquashGid": 65534}


def test_its_servers_reach_their_clients_and_its_api_is_enabled() -> None:
    whole = plan()
    rule = whole.one(FIREWALL, "network-lustre").inputs

    assert rule["sourceRanges"] == [ENVIRONMENT["private_services_range"]]
    assert rule["allows"] == [{"protocol": "tcp"}]
    assert "lustre.googleapis.com" in {each.inputs["service"] for each in whole.of(SERVICE)}
    assert whole.one(CLUSTER).inputs["addonsConfig"]["lustreCsiDriverConfig"] == {"enabled": True}


def test_an_environment_without_one_has_nothing_of_it() -> None:
    without = planned({**ENVIRONMENT, "lustre": {}, "data_sets": {}}, TEAM, "env")

    assert not without.of(LUSTRE)
    assert "network-lustre" not in {each.name for each in without.of(FIREWALL)}
    assert "lustre.googleapis.com" not in {each.inputs["service"] for each in without.of(SERVICE)}


def test_a_team_mounts_it_by_the_address_that_the_environment_exports() -> None:
    found = plan("team").one(VOLUME, "data-fast-c-volume").inputs["spec"]["csi"]

    assert found["volumeHandle"] == "example-reach/us-central1-a/env-scratch"
    assert found["volumeAttributes"]["filesystem"] == "lustre"
    assert "ip" in found["volumeAttributes"]
