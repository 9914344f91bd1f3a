"""Persistent resources and TensorBoards of a team."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.plans import PlannedStack, composed
from tests.training_platform.resources.persistent_resources import LABELS, RESOURCE, deploy, scope
from training_platform.resources.scope import Scope, persistent_resource_id
from training_platform.resources.vertex import tensorboard

names = st.from_regex(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?", fullmatch=True)


def pool(plan: PlannedStack) -> dict[str, Any]:
    (planned_pool,) = plan.one(RESOURCE).inputs["resourcePools"]
    assert isinstance(planned_pool, dict)
    return planned_pool


def test_the_stack_file_decides_what_the_resource_is() -> None:
    plan = deploy()

    assert plan.one(RESOURCE, "vertex-tuning-persistent-resource").inputs == {
        "name": "prod-vision-tuning",
        "displayName": "prod-vision-tuning",
        "project": "example-vision",
        "location": "us-central1",
        "resourcePools": [
            {
                "id": "machines",
                "machineSpec": {
                    "machineType": "a2-highgpu-1g",
                    "acceleratorType": "NVIDIA_TESLA_A100",
                    "acceleratorCount": 1,
                },
                "replicaCount": "1",
                "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
            }
        ],
        "resourceRuntimeSpec": {"serviceAccountSpec": {"enableCustomServiceAccount": True}},
        "labels": LABELS,
    }
    assert [resource.type for resource in plan.resources if resource.custom] == [RESOURCE]


def test_counts_are_texts_and_autoscaling_has_both_bounds() -> None:
    scaled = pool(deploy(replicas=2, max_replicas=4))

    assert scaled["replicaCount"] == "2"
    assert scaled["autoscalingSpec"] == {"minReplicaCount": "2", "maxReplicaCount": "4"}


def test_the_autoscalers_count_is_not_undone() -> None:
    assert deploy(max_replicas=4).one(RESOURCE).options["ignoreChanges"] == ["resourcePools[*].replicaCount"]


MORE = {"servers": {"machine_type": "n2-standard-8", "replicas": 2, "boot_disk": {"type": "pd-standard"}}}


def test_only_the_count_of_a_pool_that_scales_is_left_to_the_autoscaler() -> None:
    assert deploy(max_replicas=4, more_pools=MORE).one(RESOURCE).options["ignoreChanges"] == [
        "resourcePools[0].replicaCount"
    ]


def test_a_pool_cannot_have_the_name_of_the_first() -> None:
    with pytest.raises(ValidationError, match="more_pools has machines, which is already the name of the first pool"):
        deploy(more_pools={"machines": MORE["servers"]})


def test_a_change_that_the_provider_cannot_send_replaces() -> None:
    assert deploy().one(RESOURCE).options["replaceOnChanges"] == ["displayName", "resourcePools"]


def test_a_disk_without_a_type_is_no_disk_of_vertex() -> None:
    with pytest.raises(ValidationError, match=r"boot_disk\.type"):
        deploy(boot_disk={"type": None})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"accelerator": "t4"}, "is not compatible with a2-highgpu-1g, which includes GPUs"),
        ({"machine_type": "n1-standard-8", "accelerator_count": 2}, "accelerator_count needs accelerator"),
        ({"machine_type": "n1-standard-8", "accelerator": "h100"}, "h100"),
    ],
)
def test_what_no_machine_has_attached_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        deploy(**fields)


def test_the_fixed_name_is_free_before_it_is_taken_again_and_machines_have_time_to_start() -> None:
    options = deploy().one(RESOURCE).options

    assert options["deleteBeforeReplace"] is True
    assert options["customTimeouts"] == {"create": "60m", "update": "60m", "delete": "60m"}


@given(names, names, names)
def test_every_resource_has_an_id_that_vertex_takes(environment: str, name: str, key: str) -> None:
    assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", persistent_resource_id(scope(environment, name), key))


TENSORBOARD = "gcp:vertex/aiTensorboard:AiTensorboard"


def deploy_tensorboard(region: str = "us-central1", *, protected: bool = True) -> PlannedStack:
    scope = Scope(
        environment="prod", team="vision", project="example-vision", labels=LABELS, deletion_protection=protected
    )

    return composed(lambda into: into.add(tensorboard(region, scope)))


def test_a_team_has_a_tensorboard_in_the_region_of_its_jobs() -> None:
    plan = deploy_tensorboard("us-west4")

    assert plan.one(TENSORBOARD, "tensorboard-us-west4-tensorboard").inputs == {
        "displayName": "prod-vision-us-west4",
        "description": "Experiments of prod-vision",
        "project": "example-vision",
        "region": "us-west4",
        "labels": LABELS,
    }
    assert [resource.type for resource in plan.resources if resource.custom] == [TENSORBOARD]


def test_deletion_protection_decides_whether_experiments_can_go() -> None:
    assert deploy_tensorboard().one(TENSORBOARD).options["protect"] is True
    assert "protect" not in deploy_tensorboard(protected=False).one(TENSORBOARD).options
