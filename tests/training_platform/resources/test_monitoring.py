from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
from pydantic import ValidationError

from local_google_cloud.api import CloudSettings, LocalCloud
from tests.support.places import ORGANISATION, ROOT
from tests.support.plans import PlannedStack, composed, planned_stacks
from tests.support.promql import matchers, metrics, problems, selectors
from training_platform.config.model import environment
from training_platform.config.model.cluster import SoftwareSpec
from training_platform.config.workspace import read_workspace
from training_platform.resources.kueue import kueue_values
from training_platform.resources.monitoring import (
    UNSEEN,
    UNTRIED,
    AlertRule,
    DashboardChart,
    DashboardSubject,
    alert_resources,
    alert_rules,
    dashboard,
    log_rules,
    parts,
    platform_dashboard,
    team_dashboard,
)
from training_platform.resources.resource_types import DASHBOARD
from training_platform.resources.scope import Scope, environment_scope, team_scope
from training_platform.resources.stack_resource import UNKNOWN, StackResource

CHANNEL = "gcp:monitoring/notificationChannel:NotificationChannel"
POLICY = "gcp:monitoring/alertPolicy:AlertPolicy"
LABELS = {"environment": "prod", "managed-by": "training-platform"}
CLUSTERS = ("prod-us-central1", "prod-us-west4")
WITHOUT_SOFTWARE = {"system", "pod", "dcgm", "quota", "filestore"}  # sources that nothing has to be installed for


def deploy(
    *, clusters: tuple[str, ...] = CLUSTERS, software: dict[str, SoftwareSpec] | None = None, **fields: Any
) -> PlannedStack:
    installed = {name: SoftwareSpec() for name in clusters} | (software or {})
    scope = Scope(environment="prod", team=None, project="example-train-prod", labels=LABELS, deletion_protection=True)
    spec = environment.AlertsSpec(**{"emails": ("oncall@example.com",), "undocumented": True, **fields})

    return composed(lambda into: alert_resources("alerts", spec, installed, scope, into), "alerts")


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

    assert {policy.name for policy in plan.of(POLICY)} == {f"alerts-{name}" for name in (*alert_rules(), *LOGS)}
    assert {resource.type for resource in plan.resources if resource.custom} == {POLICY, CHANNEL}


def test_an_alert_on_a_metric_that_no_document_confirms_is_off_unless_it_is_asked_for_and_says_so() -> None:
    undocumented = {name for name, rule in alert_rules().items() if rule.undocumented}

    policies = {policy.name.removeprefix("alerts-") for policy in deploy(undocumented=False).of(POLICY)}

    assert undocumented == {"GpuXid"}
    assert policies == (alert_rules().keys() | LOGS.keys()) - undocumented
    assert all(str(rule.undocumented) in rule.documentation for rule in alert_rules().values() if rule.undocumented)
    assert not environment.AlertsSpec().undocumented


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
    assert len(plan.of(POLICY)) == len(alert_rules()) + len(LOGS)


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
    first, other = CLUSTERS

    plan = deploy(software={other: software})

    for name, rule in alert_rules().items():
        (condition,) = plan.one(POLICY, f"alerts-{name}").inputs["conditions"]
        query = condition["conditionPrometheusQueryLanguage"]["query"]
        assert query == rule.query((first,) if rule.needs in missing else CLUSTERS, "example-train-prod")


def test_no_alert_is_made_that_no_cluster_has_series_for() -> None:
    plan = deploy(software={name: SoftwareSpec(kueue="none", jobset="none") for name in CLUSTERS})

    alerts = {policy.name.removeprefix("alerts-") for policy in plan.of(POLICY)}
    assert alerts == {name for name, rule in alert_rules().items() if rule.needs in WITHOUT_SOFTWARE} | LOGS.keys()


def test_an_entry_of_a_log_that_tells_of_maintenance_is_an_incident_for_each_node() -> None:
    policy = deploy().one(POLICY, "alerts-HostMaintenance").inputs

    matched = policy["conditions"][0]["conditionMatchedLog"]
    assert set(matched["labelExtractors"]) == {"node", "starts"}
    assert policy["alertStrategy"] == {"notificationRateLimit": {"period": "3600s"}}
    assert policy["notificationChannels"] == [UNKNOWN]
    assert policy["documentation"]["content"].endswith(UNSEEN)


LOGS = log_rules()
RULES = alert_rules()
PROJECT = "example-train-prod"
LIMIT_CHARACTERS = 8192  # of the documentation of an alert policy
LIMIT_BYTES = 10240
ROW: dict[str, Any] = {
    "title": "Something",
    "severity": "WARNING",
    "needs": "system",
    "for_seconds": 30,
    "expr": 'up{cluster=~"${clusters}"} == 0',
    "meaning": "It is so.",
    "action": "Look.",
    "source": "nowhere",
}


@pytest.mark.parametrize("name", RULES)
def test_every_expression_is_promql(name: str) -> None:
    assert promql_parser.parse(RULES[name].query(CLUSTERS, PROJECT)).prettify()


@pytest.mark.parametrize("name", RULES)
def test_no_expression_looks_at_another_environment(name: str) -> None:
    rule = RULES[name]
    label = {"system": "cluster_name", "quota": "project_id", "filestore": "project_id"}.get(rule.needs, "cluster")
    series = selectors(rule.query(CLUSTERS, PROJECT))

    assert series
    matched = {matchers(selector)[label] for selector in series}
    together = PROJECT if label == "project_id" else "|".join(CLUSTERS)
    assert matched == (set(CLUSTERS) if rule.each_cluster else {together})


@pytest.mark.parametrize("name", RULES)
def test_every_metric_and_label_has_a_source(name: str) -> None:
    rule = RULES[name]

    assert problems(rule.query(CLUSTERS, PROJECT), rule.needs) == []


@pytest.mark.parametrize("name", RULES)
def test_system_metrics_say_which_resource_they_are_of(name: str) -> None:
    rule = RULES[name]
    for selector in selectors(rule.query(CLUSTERS, PROJECT)):
        of_google = rule.needs in ("system", "quota", "filestore")
        assert of_google == ("monitored_resource" in matchers(selector))
        assert of_google == (":" in str(selector.name))
        assert (rule.needs == "system") == str(selector.name).startswith("kubernetes_io:")


@pytest.mark.parametrize("name", RULES)
def test_who_is_told_reads_what_it_means_what_to_do_and_that_the_threshold_is_untried(name: str) -> None:
    text = RULES[name].documentation

    assert RULES[name].meaning in text
    assert f"**What to do:** {RULES[name].action}" in text
    assert text.endswith(UNTRIED)
    assert len(text) <= LIMIT_CHARACTERS
    assert len(text.encode()) <= LIMIT_BYTES


def test_no_two_rules_have_one_title() -> None:
    assert len({rule.title for rule in RULES.values()}) == len(RULES)


def test_a_rule_for_each_cluster_is_true_where_it_is_true_for_one() -> None:
    rule = AlertRule(**{**ROW, "each_cluster": True, "expr": 'absent(up{cluster="${cluster}"})'})

    assert rule.query(("a", "b"), PROJECT) == 'absent(up{cluster="a"}) or absent(up{cluster="b"})'


def test_other_rules_match_all_clusters_at_once() -> None:
    assert AlertRule(**ROW).query(("a", "b"), PROJECT) == 'up{cluster=~"a|b"} == 0'


def test_kueue_has_as_many_replicas_as_its_chart_is_given() -> None:
    cluster = read_workspace(ORGANISATION).stacks["prod"].environment
    assert cluster
    for spec in cluster.clusters.values():
        planned_replicas = kueue_values("a", spec)["controllerManager"]["replicas"]
        assert RULES["KueueReplicaDown"].query(("a",), PROJECT).endswith(f" < {planned_replicas}")


def test_a_placeholder_of_the_other_kind_is_refused() -> None:
    with pytest.raises(KeyError, match="clusters"):
        AlertRule(**{**ROW, "each_cluster": True}).query(("a",), PROJECT)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("severity", "PAGE"),
        ("needs", "loki"),
        ("for_seconds", 31),
        ("action", ""),
        ("runbook", "a key that no rule has"),
    ],
)
def test_a_spoiled_rule_is_refused(field: str, value: Any) -> None:
    assert AlertRule(**ROW).for_seconds == 30
    with pytest.raises(ValidationError, match=field):
        AlertRule(**{**ROW, field: value})


def test_the_page_for_who_is_on_call_has_a_section_for_each_alert_and_no_other() -> None:
    sections = re.split(
        r"^### (\w+)$", (ROOT / "docs" / "reference" / "alerts.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )

    assert sorted(sections[1::2]) == sorted([*RULES, *LOGS])
    assert [name for name, text in zip(sections[1::2], sections[2::2], strict=True) if len(text.split()) < 10] == []


PLATFORM = DashboardSubject(
    kind="platform",
    title="prod: platform",
    project="example-train-prod",
    clusters=["prod-us-central1", "prod-us-west4"],
    instances=["prod-homes", "prod-scratch"],
)
TEAM = DashboardSubject(
    kind="team",
    title="prod-vision: queues and jobs",
    project="example-train-prod",
    clusters=["prod-us-central1"],
    team="vision",
    instances=["prod-scratch"],
)
SUBJECTS = {"platform": PLATFORM, "team": TEAM}
CHARTS = {chart.title: chart for part in parts() for chart in part.charts}
ROW_DASHBOARDS: dict[str, Any] = {"title": "Something", "needs": "kueue", "expr": "kueue_pending_workloads"}


def tiles(subject: DashboardSubject) -> list[dict[str, Any]]:
    dashboard_tiles: list[dict[str, Any]] = dashboard(subject)["mosaicLayout"]["tiles"]
    return dashboard_tiles


def queries(subject: DashboardSubject) -> Iterator[tuple[str, str]]:
    """Yield every query of a dashboard, with the source that its chart names."""
    for tile in tiles(subject):
        widget = tile["widget"]
        for line in widget.get("xyChart", {}).get("dataSets", ()):
            yield line["timeSeriesQuery"]["prometheusQuery"], CHARTS[widget["title"]].needs


@pytest.mark.parametrize("kind", SUBJECTS)
def test_every_metric_and_label_of_a_dashboard_has_a_source(kind: str) -> None:
    dashboard_queries = list(queries(SUBJECTS[kind]))

    assert len(dashboard_queries) > 10
    assert [problem for query, needs in dashboard_queries for problem in problems(query, needs)] == []


def test_gauges_of_kueue_are_asked_of_its_leader_since_each_replica_has_them() -> None:
    kueue_queries = [query for subject in SUBJECTS.values() for query, needs in queries(subject) if needs == "kueue"]
    kueue_queries += [rule.query(("a",), "p") for rule in alert_rules().values() if rule.needs == "kueue"]
    kueue_series = [selector for query in kueue_queries for selector in selectors(query)]
    counted = re.compile("up|.*_(total|bucket)")  # which the leader alone counts, or each replica its own

    assert len(kueue_series) > 20
    for selector in kueue_series:
        assert counted.fullmatch(str(selector.name)) or matchers(selector).get("replica_role") == "follower"


@pytest.mark.parametrize("name", metrics())
def test_every_source_says_where_it_was_read_and_all_of_its_metrics_are_used(name: str) -> None:
    pairs = [pair for subject in SUBJECTS.values() for pair in queries(subject)]
    pairs += [(rule.query(("a",), "p"), rule.needs) for rule in alert_rules().values()]
    used = {str(selector.name) for query, needs in pairs if needs == name for selector in selectors(query)}

    assert re.search(r"https://|/", metrics()[name]["source"])
    assert {re.sub("_bucket$", "", metric) for metric in used} == set(metrics()[name]["metrics"])


@pytest.mark.parametrize("kind", SUBJECTS)
def test_the_api_takes_it(kind: str) -> None:
    cloud = LocalCloud(["example"], settings=CloudSettings(check_services=False))
    body = dashboard(SUBJECTS[kind])

    code, answer = cloud.handle("monitoring", "POST", "v1/projects/example/dashboards", [], body)

    assert code == 200
    assert {name: answer.get(name) for name in body} == body


def test_a_team_sees_its_own_queues_pods_and_instances_alone() -> None:
    for query, needs in queries(TEAM):
        for selector in selectors(query):
            labels = matchers(selector)
            if needs == "kueue":
                assert labels["cluster_queue"] == "vision"
            elif needs == "filestore":
                assert labels["instance_name"] == "prod-scratch"
            else:
                namespace = labels.get("namespace") or labels.get("namespace_name") or labels.get("entity_namespace")
                assert namespace == "vision"
            if needs != "filestore":
                assert labels.get("cluster", labels.get("cluster_name")) == "prod-us-central1"


def test_the_platform_sees_all_clusters_of_its_environment_and_no_other() -> None:
    for query, needs in queries(PLATFORM):
        for selector in selectors(query):
            labels = matchers(selector)
            if needs in ("quota", "filestore"):
                assert labels["project_id"] == "example-train-prod"
            else:
                assert labels.get("cluster", labels.get("cluster_name")) == "prod-us-central1|prod-us-west4"


def test_without_filestore_no_chart_looks_for_it() -> None:
    without = DashboardSubject(kind="platform", title="a", project="example-train-prod", clusters=["a"])

    assert "filestore" not in {needs for _, needs in queries(without)}
    assert "Filestore" not in {tile["widget"].get("title") for tile in tiles(without)}


def test_errors_of_gpus_are_told_apart_by_the_codes_that_the_alert_knows() -> None:
    kinds = CHARTS["GPUs whose last XID error came within an hour, by kind"].lines
    hardware = {code for kind, expr in kinds.items() if "program" not in kind for code in re.findall(r"== (\d+)", expr)}

    assert hardware == set(re.findall(r"== (\d+)", alert_rules()["GpuXid"].expr))
    for kind, expr in kinds.items():
        assert sorted(re.findall(r"== (\d+)", expr), key=int) == re.findall(r"\d+", kind)


@pytest.mark.parametrize(
    ("field", "value"),
    [("needs", "loki"), ("only", "nobody"), ("plot", "PIE"), ("on", "platform")],
)
def test_a_spoiled_chart_is_refused(field: str, value: Any) -> None:
    assert DashboardChart(**ROW_DASHBOARDS).unit == "1"
    with pytest.raises(ValidationError, match=field):
        DashboardChart(**{**ROW_DASHBOARDS, field: value})


def planned(*stacks: str) -> Iterator[list[StackResource]]:
    """Yield what is registered of each stack's dashboards."""
    workspace = read_workspace(ORGANISATION)
    for _, plan in planned_stacks(workspace, [workspace.stacks[stack] for stack in stacks]):
        yield plan.of(DASHBOARD)


def test_an_environment_and_each_team_of_it_have_one_in_the_environments_project() -> None:
    (platform,), (team,) = planned("prod", "prod-vision")

    assert platform.inputs["project"] == team.inputs["project"] == "example-train-prod"
    assert (platform.name, team.name) == ("dashboard-platform", "dashboard-team")
    assert json.loads(team.inputs["dashboardJson"])["displayName"] == "prod-vision: queues and jobs"
    assert "prod-us-central1" in platform.inputs["dashboardJson"]


@pytest.mark.parametrize("field", ["clusters", "dashboards"])
def test_without_clusters_or_dashboards_there_is_none(field: str) -> None:
    stacks = read_workspace(ORGANISATION).stacks
    environment = stacks["prod"].environment
    team = stacks["prod-vision"].team
    assert environment
    assert team
    without = environment.model_copy(update={field: {} if field == "clusters" else False})
    alone = team.model_copy(update={"shares": {}} if field == "clusters" else {})

    assert list(platform_dashboard(without, environment_scope("prod", without))) == []
    assert list(team_dashboard(alone, without, team_scope(alone, without))) == []
    assert len(list(platform_dashboard(environment, environment_scope("prod", environment)))) == 1
    assert len(list(team_dashboard(team, environment, team_scope(team, environment)))) == 1
