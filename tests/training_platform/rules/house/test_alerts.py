"""An alert policy that tells nobody is a warning, once for a stack."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.register import ALERT_POLICY
from training_platform.rules import RULES, evaluate, program, views_of_model
from training_platform.views.access import AlertPolicyView

RULE = "alerts-reach-nobody"


def found(alerts: dict[str, Any], *, clusters: bool = True) -> list[Finding]:
    cluster = {
        "location": "us-central1-a",
        "subnet": {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"},
    }
    section = {"project": "example-train", "production": True, "alerts": alerts}
    section["clusters"] = {"c": cluster} if clusters else {}
    text = yaml.safe_dump({"config": {"training-platform:environment": section}})
    stack = parse_stack("env", parse_source(text, "stacks/Pulumi.env.yaml"))
    workspace = cross_check(Workspace(None, {"env": stack}))  # type: ignore[arg-type] # no file is read
    views = views_of_model(workspace.stacks["env"], workspace)
    whole = program(views, stack="env", environment="env", team=None, production=True)
    return evaluate(whole, [RULES[RULE]], stack)


def test_alerts_without_an_address_are_found_once_at_their_line() -> None:
    (each,) = found({"enabled": True})

    assert (each.severity, each.path) == ("warning", "alerts.emails")
    assert each.position is not None
    assert "reach nobody" in each.message


@pytest.mark.parametrize("alerts", [{"emails": ["ml-platform@example.com"]}, {"enabled": False}])
def test_alerts_that_somebody_gets_or_nobody_asked_for_are_no_finding(alerts: dict[str, Any]) -> None:
    assert found(alerts) == []


def test_without_clusters_there_is_nothing_to_watch() -> None:
    assert found({"enabled": True}, clusters=False) == []


def test_a_channel_that_only_the_deployment_names_counts() -> None:
    def policy(channels: list[Any]) -> AlertPolicyView:
        inputs = {"notificationChannels": channels}
        return AlertPolicyView(stack="env", type=ALERT_POLICY, name="watch", inputs=inputs)

    assert policy([UNKNOWN]).channels == 1
    assert policy([]).channels == 0
