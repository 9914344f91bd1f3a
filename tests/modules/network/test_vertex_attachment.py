"""Vertex AI reaches the VPC by an attachment that the environment makes, and teams name it."""

from __future__ import annotations

from typing import Any

from tests.stacks.test_reach import ENVIRONMENT, TEAM, planned
from training_platform.resources.register import (
    METADATA_STORE,
    NETWORK_ATTACHMENT,
    PERSISTENT_RESOURCE,
    SERVICE,
    SUBNETWORK,
)

NAME = "env-vertex-us-central1"


def test_an_attachment_has_a_subnet_of_its_own_and_lets_in_whom_the_agent_adds() -> None:
    plan = planned(ENVIRONMENT, TEAM, "env")
    found, subnet = plan.one(NETWORK_ATTACHMENT), plan.one(SUBNETWORK, "vertex-network-us-central1-subnet")

    assert (found.inputs["name"], found.inputs["connectionPreference"]) == (NAME, "ACCEPT_MANUAL")
    assert subnet.inputs["ipCidrRange"] == ENVIRONMENT["network_attachments"]["us-central1"]
    assert (SUBNETWORK, subnet.name) in found.options["dependsOn"] or len(found.inputs["subnetworks"]) == 1
    assert found.options["ignoreChanges"] == ["producerAcceptLists"]
    assert found.options["replaceOnChanges"] == ["subnetworks"]  # a subnet that is named cannot be deleted
    assert found.options["protect"]


def test_a_persistent_resource_names_the_one_of_its_region() -> None:
    vertex: dict[str, Any] = {
        "persistent_resources": {
            "r": {"region": "us-central1", "machine_type": "a2-highgpu-1g", "network_attachment": "environment"}
        }
    }
    team = {**TEAM, "vertex": vertex, "project": None, "buckets": {}}
    interface = planned(ENVIRONMENT, team, "team").one(PERSISTENT_RESOURCE).inputs["pscInterfaceConfig"]

    project = ENVIRONMENT["project"]
    assert interface == {"networkAttachment": f"projects/{project}/regions/us-central1/networkAttachments/{NAME}"}


def test_the_metadata_store_is_the_default_one_with_the_key() -> None:
    plan = planned(ENVIRONMENT, TEAM, "env")
    store = plan.one(METADATA_STORE)

    assert (store.inputs["name"], store.inputs["region"]) == ("default", "us-central1")
    assert store.inputs["encryptionSpec"] == {"kmsKeyName": ENVIRONMENT["encryption"]["keys"][0]}
    assert store.options["protect"]
    assert "aiplatform.googleapis.com" in {each.inputs["service"] for each in plan.of(SERVICE)}
    without = planned({**ENVIRONMENT, "metadata_stores": [], "network_attachments": {}}, TEAM, "env")
    assert "aiplatform.googleapis.com" not in {each.inputs["service"] for each in without.of(SERVICE)}
    assert not without.of(METADATA_STORE) + without.of(NETWORK_ATTACHMENT)
