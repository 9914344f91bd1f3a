from __future__ import annotations

import pulumi

from modules.vertex import Tensorboard, TensorboardArgs
from training_platform.checks.planning.recorder import Plan, record
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.scope import Scope

TENSORBOARD = "gcp:vertex/aiTensorboard:AiTensorboard"
LABELS = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}


def deploy(region: str = "us-central1", *, protected: bool = True) -> Plan:
    scope = Scope(
        environment="prod", team="vision", project="example-vision", labels=LABELS, deletion_protection=protected
    )

    def program() -> None:
        made = Tensorboard(f"tensorboard-{region}", TensorboardArgs(scope=scope, region=region))
        pulumi.export("resource_name", made.resource_name)

    return record(program, project="training-platform", stack_name="prod-vision")


def test_a_team_has_a_tensorboard_in_the_region_of_its_jobs() -> None:
    plan = deploy("us-west4")

    assert plan.one(TENSORBOARD, "tensorboard-us-west4-tensorboard").inputs == {
        "displayName": "prod-vision-us-west4",
        "description": "Experiments of prod-vision",
        "project": "example-vision",
        "region": "us-west4",
        "labels": LABELS,
    }
    assert plan.outputs == {"resource_name": UNKNOWN}
    assert [resource.type for resource in plan.resources if resource.custom] == [TENSORBOARD]


def test_deletion_protection_decides_whether_experiments_can_go() -> None:
    assert deploy().one(TENSORBOARD).options["protect"] is True
    assert "protect" not in deploy(protected=False).one(TENSORBOARD).options
