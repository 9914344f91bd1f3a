"""Rules about labels, protection, alerts and charts: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stack_files import environment, workspace_of
from tests.training_platform.rules.builders import bucket, check, cluster, filestore, labelled
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.catalog import CHARTS
from training_platform.config.model.stack import parse_stack
from training_platform.config.names import Locator
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.resources.resource_types import ALERT_POLICY, RELEASE
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import RULES, evaluate, program, views_of_model
from training_platform.views.access import AlertPolicyView
from training_platform.views.adapters import views_of_plan

TABLE = [
    Rule(
        "label-form",
        labelled,
        passes=[
            {"labels": {"a" * 63: "b" * 63}},
            {"labels": {"a": ""}},
            {"labels": {f"k{index}": "v" for index in range(64)}},
        ],
        finds=[
            {"labels": {"a" * 64: "b"}},
            {"labels": {"a": "b" * 64}},
            {"labels": {"A": "b"}},
            {"labels": {"1a": "b"}},
            {"labels": {"a": "x.y"}},
            {"labels": {f"k{index}": "v" for index in range(65)}},
            Found({"labels": {"a": "X.y"}}, "x-y"),
        ],
    ),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        ({"environment": "dev", "team": "vision", "more": "x"}, []),
        ({"environment": "dev"}, ["team: vision"]),
        ({"team": "vision"}, ["environment: dev"]),
        ({"environment": "prod", "team": "vision"}, ["environment: dev"]),
        ({}, ["environment: dev", "team: vision"]),
        (None, ["environment: dev", "team: vision"]),
    ],
)
def test_resource_carries_environment_and_team(labels: dict[str, str] | None, missing: list[str]) -> None:
    findings = check("labels", labelled(labels=labels))

    assert [finding.nearest for finding in findings] == missing
    assert {finding.path for finding in findings} <= {"labels"}


def test_production_filestore_is_protected() -> None:
    assert check("filestore-deletion-protection", filestore(), production=True) == []
    assert check("filestore-deletion-protection", filestore(deletion_protection=False)) == []
    (finding,) = check("filestore-deletion-protection", filestore(deletion_protection=False), production=True)

    assert finding.path == "deletion_protection"


def test_production_cluster_is_protected() -> None:
    assert check("cluster-deletion-protection", cluster(), production=True) == []
    assert check("cluster-deletion-protection", cluster(deletion_protection=False)) == []
    assert len(check("cluster-deletion-protection", cluster(deletion_protection=False), production=True)) == 1


def test_production_bucket_keeps_its_objects() -> None:
    assert check("bucket-force-destroy", bucket(), production=True) == []
    assert check("bucket-force-destroy", bucket(force_destroy=True)) == []
    assert len(check("bucket-force-destroy", bucket(force_destroy=True), production=True)) == 1


@pytest.mark.parametrize(
    ("production", "team", "severities"),
    [
        (True, None, []),
        (False, None, []),
        (None, None, ["error"]),
        (None, "vision", []),  # said once, where the line goes
        (UNKNOWN, None, []),  # a program without a stack file, whose config of the pack may say it
    ],
)
def test_an_environment_says_whether_it_is_production(
    production: bool | None, team: str | None, severities: list[str]
) -> None:
    whole = program([cluster()], stack="dev", environment="dev", team=team, production=production)

    assert [finding.severity for finding in evaluate(whole, [RULES["production-said"]])] == severities


RULE = "alerts-reach-nobody"


def found(alerts: dict[str, Any], *, clusters: bool = True) -> list[Finding]:
    section = environment(None if clusters else {}, production=True, alerts=alerts)
    workspace = workspace_of({"env": {"environment": section}})
    stack = workspace.stacks["env"]
    views = views_of_model(stack, workspace)
    whole = program(views, stack="env", environment="env", team=None, production=True)
    return evaluate(whole, [RULES[RULE]], stack)


def test_alerts_without_an_address_are_found_once_at_their_line() -> None:
    (finding,) = found({"enabled": True})

    assert (finding.severity, finding.path) == ("warning", "alerts.emails")
    assert finding.position is not None
    assert "notify nobody" in finding.message


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


RULE_CHARTS = "chart-version-untested"
TEXT = """\
config:
  training-platform:environment:
    project: example-train
    production: false
    charts:
      kueue: {version: "0.20.0"}
    clusters:
      a: {location: us-central1-a, subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}}
"""


def found_charts(
    chart: str, version: str | None, *, clusters: tuple[str, ...] = ("a",), ours: bool = True
) -> list[Finding]:
    stack = parse_stack("env", parse_source(TEXT, "stacks/Pulumi.env.yaml"))
    inputs: dict[str, Any] = {"name": "kueue", "chart": chart, "version": version}
    planned = [
        StackResource(stack="env", type=RELEASE, name=f"{cluster}-kueue-release", inputs=inputs, options={})
        for cluster in clusters
    ]
    locator = Locator(stack.section) if ours and stack.section else None
    views = views_of_plan(planned, locator)
    whole = program(views, stack="env", environment="env", team=None, production=False)
    return evaluate(whole, [RULES[RULE_CHARTS]], stack if ours else None)


@pytest.mark.parametrize("version", ["0.20.0", "0.18.6", "1.19.2", "0.190.0"])
def test_a_version_of_another_minor_is_found_at_its_line(version: str) -> None:
    (finding,) = found_charts("oci://mirror.example.com/charts/kueue", version)

    assert (finding.severity, finding.path, finding.nearest) == (
        "warning",
        "charts.kueue.version",
        CHARTS["kueue"].version,
    )
    assert finding.position is not None
    assert finding.position.line == 6
    assert finding.allowed == "0.19.x"
    assert finding.unjudged == "chart of an untested version"


@pytest.mark.parametrize("version", ["0.19.0", "0.19.2", "0.19.9", "0.19", None])
def test_patches_of_a_tested_version_and_folders_are_not_found(version: str | None) -> None:
    assert found_charts("oci://registry.k8s.io/kueue/charts/kueue", version) == []


def test_two_clusters_with_one_version_are_one_finding() -> None:
    assert len(found_charts("kueue", "0.20.0", clusters=("a", "a-b"))) == 1


def test_a_chart_of_somebody_else_is_not_judged() -> None:
    assert found_charts("oci://registry.example.com/charts/queues", "0.20.0") == []


def test_in_a_program_without_a_stack_file_it_is_the_input() -> None:
    (finding,) = found_charts("kueue", "0.20.0", ours=False)

    assert finding.path == "version"


def test_charts_whose_place_is_not_called_after_them_are_judged_too() -> None:
    (finding,) = found_charts("oci://mirror.example.com/kubeflow-trainer", "2.4.0", ours=False)

    assert finding.nearest == CHARTS["trainer"].version


@pytest.mark.parametrize("name", sorted(CHARTS.keys() - {"wandb-launch"}))  # which nothing here installs
def test_what_the_catalogue_installs_is_tested_and_says_what_an_upgrade_touches(name: str) -> None:
    chart = CHARTS[name]

    assert any(chart.version.startswith(f"{minor}.") for minor in chart.tested)
    assert chart.tested_with
    assert chart.upgrade
