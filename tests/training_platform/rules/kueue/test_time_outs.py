"""One flex-start pool makes every job of its cluster wait a day: said at its line where reserved pools stand beside."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.resources.kueue import PODS_READY_MINUTES, configuration
from training_platform.rules import RULES, evaluate, program, views_of_model

RULE = "flex-start-beside-reserved"


def pool(capacity: str) -> dict[str, Any]:
    run = {"max_run_hours": 10} if capacity in ("flex-start", "queued-provisioning") else {}
    reserved = {"reservation": "h100"} if capacity == "reservation" else {}
    return {"machine_type": "a3-highgpu-8g", "capacity": capacity, **run, **reserved}


def found(capacities: list[str], **more: Any) -> list[Finding]:
    cluster = {
        "location": "us-central1-a",
        "subnet": {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"},
        "node_pools": {each: pool(each) for each in capacities},
    }
    section = {"project": "example-train", "production": True, **more, "clusters": {"c": cluster}}
    text = yaml.safe_dump({"config": {"training-platform:environment": section}})
    stack = parse_stack("env", parse_source(text, "stacks/Pulumi.env.yaml"))
    workspace = cross_check(Workspace(None, {"env": stack}))  # type: ignore[arg-type] # no file is read
    views = views_of_model(workspace.stacks["env"], workspace)
    whole = program(views, stack="env", environment="env", team=None, production=True)
    return evaluate(whole, [RULES[RULE]], stack)


def test_flex_start_beside_a_reserved_pool_is_found_at_its_line() -> None:
    (each,) = found(["flex-start", "reservation"])

    assert (each.severity, each.nearest) == ("warning", "queued-provisioning")
    assert each.path == "clusters.c.node_pools.flex-start.capacity"
    assert each.position is not None
    assert "reserved machines of reservation for 24 hours" in each.message


@pytest.mark.parametrize(
    "capacities", [["flex-start", "spot"], ["queued-provisioning", "reservation"], ["reservation", "on-demand"]]
)
def test_without_reserved_machines_or_with_queued_provisioning_there_is_nothing_to_find(capacities: list[str]) -> None:
    assert found(capacities) == []


def test_where_somebody_gets_the_alerts_it_is_theirs() -> None:
    assert found(["flex-start", "reservation"], alerts={"emails": ["ml-platform@example.com"]}) == []


@pytest.mark.parametrize("capacity", PODS_READY_MINUTES)
def test_only_flex_start_makes_kueue_wait_for_a_day(capacity: Any) -> None:
    minutes = int(configuration([capacity, "reservation"])["waitForPodsReady"]["timeout"].removesuffix("m"))

    assert (minutes == 24 * 60) is (capacity == "flex-start")
    assert minutes >= 30
