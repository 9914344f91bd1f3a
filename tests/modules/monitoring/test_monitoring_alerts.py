from __future__ import annotations

from typing import Any

import pytest

from modules.monitoring import Alerts, AlertsArgs
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model import environment
from training_platform.config.model.cluster import SoftwareSpec
from training_platform.resources.monitoring import alert_rules
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.scope import Scope

CHANNEL = "gcp:monitoring/notificationChannel:NotificationChannel"
POLICY = "gcp:monitoring/alertPolicy:AlertPolicy"
LABELS = {"environment": "prod", "managed-by": "training-platform"}
CLUSTERS = ("prod-us-central1", "prod-us-west4")
WITHOUT_SOFTWARE = {"system", "pod", "dcgm", "quota", "filestore"}  # sources that nothing has to be installed for


def deploy(
    *, clusters: tuple[str, ...] = CLUSTERS, software: dict[str, SoftwareSpec] | None = None, **fields: Any
) -> Plan:
    installed = {name: SoftwareSpec() for name in clusters} | (software or {})
    scope = Scope(environment="prod", team=None, project="example-train-prod", labels=LABELS, deletion_protection=True)
    spec = environment.AlertsSpec(**{"emails": ("oncall@example.com",), **fields})

    def program() -> None:
        Alerts("alerts", AlertsArgs(scope=scope, spec=spec, clusters=installed))

    return record(program, project="training-platform", stack_name="prod")


def test_a_policy_says_what_is_wrong_to_whom_and_what_to_do() -> None:
    rule = alert_rules()["NodeInterruptions"]

    assert deploy().one(POLICY, "alerts-NodeInterruptions").inputs == {
        "displayName": f"prod: {rule.title}",
        "project": "example-train-prod",
        "combiner": "OR",
        "conditions": [
            {
                "displayName": rule.title,
                "conditionPrometheusQueryLanguage": {
                    "query": rule.query(CLUSTERS, "example-train-prod"),
                    "alertRule": "NodeInterruptions",
                    "duration": "0s",
                    "evaluationInterval": "60s",
                    "disableMetricValidation": True,
                },
            }
        ],
        "severity": "WARNING",
        "documentation": {"content": rule.documentation, "mimeType": "text/markdown"},
        "notificationChannels": [UNKNOWN],
        "userLabels": LABELS,
    }


def test_every_rule_is_a_policy_and_nothing_else_is() -> None:
    plan = deploy()

    assert {policy.name for policy in plan.of(POLICY)} == {f"alerts-{name}" for name in alert_rules()}
    assert {resource.type for resource in plan.resources if resource.custom} == {POLICY, CHANNEL}
    assert {resource.parent for resource in plan.resources if resource.custom} == {
        ("training-platform:monitoring:Alerts", "alerts")
    }


def test_how_long_a_rule_holds_and_how_bad_it_is_reaches_its_policy() -> None:
    policy = deploy().one(POLICY, "alerts-KueueControllerDown").inputs

    assert policy["conditions"][0]["conditionPrometheusQueryLanguage"]["duration"] == "300s"
    assert policy["severity"] == "CRITICAL"


def test_an_address_is_a_channel_named_after_it_whatever_its_place() -> None:
    plan = deploy(emails=("b@example.com", "a@example.com"))
    turned = deploy(emails=("a@example.com", "b@example.com"))

    assert plan.one(CHANNEL, "alerts-b-at-example.com").inputs == {
        "type": "email",
        "displayName": "prod: b@example.com",
        "project": "example-train-prod",
        "labels": {"email_address": "b@example.com"},
        "userLabels": LABELS,
    }
    assert {channel.name for channel in plan.of(CHANNEL)} == {channel.name for channel in turned.of(CHANNEL)}
    assert {len(policy.inputs["notificationChannels"]) for policy in plan.of(POLICY)} == {2}


def test_without_addresses_incidents_open_and_nobody_is_told() -> None:
    plan = deploy(emails=())

    assert plan.of(CHANNEL) == []
    assert len(plan.of(POLICY)) == len(alert_rules())


@pytest.mark.parametrize("fields", [{"enabled": False}, {"clusters": ()}])
def test_nothing_is_watched_where_nothing_is_to_be(fields: dict[str, Any]) -> None:
    assert [resource for resource in deploy(**fields).resources if resource.custom] == []


@pytest.mark.parametrize(
    ("software", "missing"),
    [
        (SoftwareSpec(kueue="none"), {"kueue"}),
        (SoftwareSpec(kueue="existing"), {"kueue"}),
        (SoftwareSpec(jobset="existing"), {"jobset-controller"}),
        (SoftwareSpec(jobset="none"), {"jobset", "jobset-controller"}),
        (SoftwareSpec(metrics=False), {"kueue", "jobset-controller"}),
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, set) else str(value),
)
def test_an_alert_watches_only_clusters_that_have_its_series(software: SoftwareSpec, missing: set[str]) -> None:
    one, other = CLUSTERS

    plan = deploy(software={other: software})

    for name, rule in alert_rules().items():
        (condition,) = plan.one(POLICY, f"alerts-{name}").inputs["conditions"]
        query = condition["conditionPrometheusQueryLanguage"]["query"]
        assert query == rule.query((one,) if rule.needs in missing else CLUSTERS, "example-train-prod")


def test_no_alert_is_made_that_no_cluster_has_series_for() -> None:
    plan = deploy(software={name: SoftwareSpec(kueue="none", jobset="none") for name in CLUSTERS})

    made = {each.name.removeprefix("alerts-") for each in plan.of(POLICY)}
    assert made == {name for name, rule in alert_rules().items() if rule.needs in WITHOUT_SOFTWARE}
