"""Dashboards, alert policies and budgets of an environment or a team, built from the YAML files in ``data``.

``alerts.yaml`` contains the conditions, ``dashboards.yaml`` the charts, and ``metrics.yaml`` the metrics of each
source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, TypeAdapter

from training_platform.catalog.reading import read_file
from training_platform.catalog.types import Json
from training_platform.config.model.cluster import SoftwareSpec
from training_platform.config.model.environment import AlertsSpec, BudgetSpec, Environment
from training_platform.config.model.team import Team
from training_platform.config.reading.section import Section
from training_platform.resources import gcp
from training_platform.resources.filestore import instance_name
from training_platform.resources.gke import cluster_name
from training_platform.resources.kueue import REPLICAS
from training_platform.resources.plan import Component, Resource
from training_platform.resources.scope import Scope, slug

NAME = "dashboard"
# The columns of the grid, and the size of a chart on it.
COLUMNS = 12
WIDTH = 6
HEIGHT = 4
_FILE = Path(__file__).parent / "data" / "dashboards.yaml"
_ANY = ".+"


class DashboardChart(Section):
    """A chart of one expression, or of several keyed by legend label. ``only`` limits it to one kind of dashboard.

    ``unit`` is a UCUM unit, as in metric descriptors: ``10^2.%`` shows a ratio in percent.
    """

    title: str = Field(min_length=1)
    only: Literal["platform", "team"] | None = None
    needs: MetricSource
    unit: str = "1"
    plot: Literal["LINE", "STACKED_AREA"] = "LINE"
    expr: str | dict[str, str]

    @property
    def lines(self) -> Mapping[str, str]:
        """The expressions, keyed by legend label. The label of a single expression is empty."""
        return {"": self.expr} if isinstance(self.expr, str) else self.expr


class DashboardPart(Section):
    """A section of a dashboard: a heading, a text, and the charts about one topic."""

    title: str = Field(min_length=1)
    text: str | None = None
    charts: list[DashboardChart] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class DashboardSubject:
    """What a dashboard shows: names to insert into its expressions. Without a team, it shows all teams."""

    kind: Literal["platform", "team"]
    title: str
    project: str
    clusters: Iterable[str]
    team: str | None = None
    instances: Iterable[str] = ()


@cache
def parts() -> list[DashboardPart]:
    """Return all sections of dashboards; they are read only once. Raises pydantic.ValidationError for invalid rows."""
    return TypeAdapter(list[DashboardPart]).validate_python(read_file(_FILE)["sections"])


def platform_dashboard(environment: Environment, scope: Scope) -> Iterator[Resource]:
    """Yield the dashboard of an environment, if it has clusters and dashboards are enabled."""
    if environment.dashboards and environment.clusters:
        clusters = [cluster_name(scope, key, spec) for key, spec in environment.clusters.items()]
        instances = [instance_name(scope.environment, key) for key in environment.filestore]
        yield _declared(
            DashboardSubject(
                kind="platform",
                title=f"{scope.environment}: platform",
                project=environment.project,
                clusters=clusters,
                instances=instances,
            )
        )


def team_dashboard(team: Team, environment: Environment, scope: Scope) -> Iterator[Resource]:
    """Yield the dashboard of a team with shares, in the environment's project, which contains the clusters' metrics."""
    if environment.dashboards and team.shares:
        clusters = [cluster_name(scope, key, environment.clusters[key]) for key in team.shares]
        instances = {instance_name(scope.environment, folder.filestore) for folder in team.directories.values()}
        yield _declared(
            DashboardSubject(
                kind="team",
                title=f"{scope.prefix}: queues and jobs",
                project=environment.project,
                clusters=clusters,
                team=team.name,
                instances=instances,
            )
        )


def _declared(subject: DashboardSubject) -> Resource:
    return gcp.dashboard(
        f"{NAME}-{subject.kind}", project=subject.project, dashboard_json=json.dumps(dashboard(subject))
    )


def dashboard(subject: DashboardSubject) -> Json:
    """Return a dashboard in the JSON form of the API (``monitoring.v1``, ``Dashboard``)."""
    instances = "|".join(sorted(subject.instances))
    names = {
        "clusters": "|".join(sorted(subject.clusters)),
        "queues": subject.team or _ANY,
        "namespaces": subject.team or _ANY,
        "instances": instances,
        "project": subject.project,
    }
    tiles: list[Json] = []
    row = 0
    for part in parts():
        shown = [
            chart
            for chart in part.charts
            if chart.only in (None, subject.kind) and (instances or chart.needs != "filestore")
        ]
        if shown:
            row = _add_tiles(part, shown, names, tiles, row)
    return {"displayName": subject.title, "mosaicLayout": {"columns": COLUMNS, "tiles": tiles}}


def _add_tiles(
    part: DashboardPart, shown: list[DashboardChart], names: Mapping[str, str], tiles: list[Json], row: int
) -> int:
    """Add the tiles of a section, starting at a row of the grid, and return the first row below them."""
    heading: Json = {"title": part.title, "sectionHeader": {"subtitle": "", "dividerBelow": False}}
    wide: list[tuple[Json, int]] = [(heading, 1)]
    if part.text:
        wide.append(({"text": {"content": part.text, "format": "MARKDOWN"}}, 2))
    for widget, height in wide:
        tiles.append({"yPos": row, "width": COLUMNS, "height": height, "widget": widget})
        row += height
    beside = COLUMNS // WIDTH
    for index, chart in enumerate(shown):
        tiles.append(
            {
                "xPos": index % beside * WIDTH,
                "yPos": row + index // beside * HEIGHT,
                "width": WIDTH,
                "height": HEIGHT,
                "widget": _widget(chart, names),
            }
        )
    return row + -(-len(shown) // beside) * HEIGHT


def _widget(chart: DashboardChart, names: Mapping[str, str]) -> Json:
    lines: list[Json] = []
    for legend, expr in chart.lines.items():
        line: Json = {
            "plotType": chart.plot,
            "targetAxis": "Y1",
            "timeSeriesQuery": {"prometheusQuery": Template(expr).substitute(names), "unitOverride": chart.unit},
        }
        if legend:
            line["legendTemplate"] = legend
        lines.append(line)
    return {"title": chart.title, "xyChart": {"dataSets": lines, "yAxis": {"scale": "LINEAR"}}}


if TYPE_CHECKING:
    from pulumi_gcp.monitoring import AlertPolicyAlertStrategyArgsDict as Strategy
    from pulumi_gcp.monitoring import AlertPolicyConditionArgsDict as Condition

EVALUATION = "60s"  # as often as GKE's system metrics come


def alert_resources(
    name: str, spec: AlertsSpec, clusters: Mapping[str, SoftwareSpec], scope: Scope, into: Component
) -> None:
    """Add alerts and their channels, if alerts are enabled and a cluster exists.

    ``clusters`` maps the clusters' names in GKE to the software installed there.
    """
    if spec.enabled and clusters:
        alerts = into.component("training-platform:monitoring:Alerts", name)
        channels = [alerts.add(channel).output("name") for channel in email_channels(name, spec.emails, scope)]
        for policy in alert_policies(name, scope, clusters, channels, undocumented=spec.undocumented):
            alerts.add(policy)


def email_channels(name: str, emails: Sequence[str], scope: Scope) -> Iterator[Resource]:
    """Yield a notification channel for each address; ``name`` is the component's name."""
    for address in emails:
        yield gcp.notification_channel(
            f"{name}-{slug(address)}",
            type="email",
            display_name=f"{scope.prefix}: {address}",
            project=scope.project,
            labels={"email_address": address},
            user_labels=scope.labels,
        )


def alert_policies(
    name: str, scope: Scope, clusters: Mapping[str, SoftwareSpec], told: Sequence[Any], *, undocumented: bool
) -> Iterator[Resource]:
    """Yield an alert policy for each rule whose time series exist in some cluster.

    Rules on undocumented series are included only if ``undocumented`` is set. ``clusters`` maps the clusters' names in
    GKE to the software installed there. ``told`` are the names of notification channels.
    """
    for rule_name, rule in alert_rules().items():
        names = sorted(cluster for cluster, software in clusters.items() if _measured(rule, software))
        if not names or (rule.undocumented and not undocumented):
            continue
        condition = _condition(rule_name, rule, rule.query(names, scope.project))
        yield _policy(f"{name}-{rule_name}", scope, rule, told, condition)
    for rule_name, log in log_rules().items():
        matched: Condition = {
            "display_name": log.title,
            "condition_matched_log": {"filter": log.filter, "label_extractors": dict(log.labels)},
        }
        # A policy on logs needs a period; each combination of labels is notified by itself.
        limit: Strategy = {"notification_rate_limit": {"period": f"{LOG_PERIOD_SECONDS}s"}}
        yield _policy(f"{name}-{rule_name}", scope, log, told, matched, strategy=limit)


def _policy(
    name: str,
    scope: Scope,
    rule: AlertRule | LogRule,
    told: Sequence[Any],
    condition: Condition,
    *,
    strategy: Strategy | None = None,
) -> Resource:
    """Return the alert policy for a rule. It notifies the channels in ``told``."""
    return gcp.alert_policy(
        name,
        display_name=f"{scope.environment}: {rule.title}",
        conditions=[condition],
        alert_strategy=strategy,
        severity=rule.severity,
        documentation={"content": rule.documentation, "mime_type": "text/markdown"},
        project=scope.project,
        combiner="OR",
        notification_channels=list(told),
        user_labels=scope.labels,
    )


def _measured(rule: AlertRule, software: SoftwareSpec) -> bool:
    """Return True if a cluster has the time series that a rule needs.

    Only controllers that we install export metrics.
    """
    if rule.needs == "jobset":
        return software.jobset != "none"
    scraped = {"kueue": software.kueue, "jobset-controller": software.jobset}
    return rule.needs not in scraped or (software.metrics and scraped[rule.needs] == "installed")


def _condition(name: str, rule: AlertRule, query: str) -> Condition:
    """Return the condition of a rule's policy, which has only this one."""
    return {
        "display_name": rule.title,
        "condition_prometheus_query_language": {
            "query": query,
            "alert_rule": name,
            "duration": f"{rule.for_seconds}s",
            "evaluation_interval": EVALUATION,
            # A metric exists from its first value on: most do not exist when the policy is created.
            "disable_metric_validation": True,
        },
    }


MetricSource = Literal["system", "kueue", "jobset", "jobset-controller", "pod", "dcgm", "filestore", "quota"]
"""A source of time series; ``data/metrics.yaml`` lists the metrics of each source."""
UNTRIED = "The threshold is a first guess that no live data has confirmed."


@cache
def _rules() -> Mapping[str, Any]:
    return read_file(Path(__file__).parent / "data" / "alerts.yaml")


class AlertRule(Section):
    """A PromQL expression that is true if somebody has to act.

    - ``expr`` contains clusters as ``${clusters}``, or as ``${cluster}`` if ``each_cluster`` is set, their
      project as ``${project}``, and the replicas of Kueue as ``${replicas}``.
    - ``for_seconds`` says how long the expression must be true.
    - ``needs`` is the source of its time series, and ``source`` the document that defines them.
    - ``undocumented`` is the reason why its policy is off by default: no document says that the series exists.
    """

    title: str = Field(min_length=1, max_length=100)
    severity: Literal["CRITICAL", "ERROR", "WARNING"]
    needs: MetricSource
    each_cluster: bool = False
    for_seconds: int = Field(ge=0, multiple_of=30)
    expr: str = Field(min_length=1)
    undocumented: str | None = Field(default=None, min_length=1)
    meaning: str = Field(min_length=1)
    action: str = Field(min_length=1)
    source: str = Field(min_length=1)

    def query(self, clusters: Sequence[str], project: str) -> str:
        """Return the expression for clusters, given by their names in GKE; at least one is required."""
        template = Template(self.expr)
        if not self.each_cluster:
            return template.substitute(clusters="|".join(clusters), project=project, replicas=REPLICAS)
        return " or ".join(template.substitute(cluster=cluster) for cluster in clusters)

    @property
    def documentation(self) -> str:
        """The text of a notification, as Markdown."""
        paragraphs = [self.meaning, f"**What to do:** {self.action}", self.undocumented, UNTRIED]
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


@cache
def alert_rules() -> Mapping[str, AlertRule]:
    """Return all rules keyed by name; they are read only once. Raises pydantic.ValidationError for an invalid rule."""
    return TypeAdapter(dict[str, AlertRule]).validate_python(_rules()["rules"])


UNSEEN = "The filter follows Google's documentation; no real entry has been seen yet."
LOG_PERIOD_SECONDS = 3600  # between two messages about the same labels


class LogRule(Section):
    """Entries of Cloud Logging that need attention and for which no metric exists.

    ``filter`` is in the query language of Cloud Logging. It matches entries of the whole project, so other environments
    in the project have the alert too. ``labels`` are extracted from an entry; each combination of their values is an
    incident.
    """

    title: str = Field(min_length=1, max_length=100)
    severity: Literal["CRITICAL", "ERROR", "WARNING"]
    filter: str = Field(min_length=1)
    labels: dict[str, str]
    meaning: str = Field(min_length=1)
    action: str = Field(min_length=1)
    source: str = Field(min_length=1)

    @property
    def documentation(self) -> str:
        """The text of a notification, as Markdown."""
        return "\n\n".join((self.meaning, f"**What to do:** {self.action}", UNSEEN))


@cache
def log_rules() -> Mapping[str, LogRule]:
    """Return all rules about log entries, keyed by name. Raises pydantic.ValidationError."""
    return TypeAdapter(dict[str, LogRule]).validate_python(_rules()["logs"])


BUDGET_NAME = "budget"


def stack_budget(spec: BudgetSpec | None, environment: Environment) -> tuple[BudgetSpec, str] | None:
    """Return a stack's budget and the environment's billing account; None if either is missing."""
    account = environment.billing_account
    return (spec, account) if spec and account else None


def budget_resources(spec: BudgetSpec, account: str, scope: Scope, into: Component) -> None:
    """Add a stack's budget with its channels; ``account`` is the billing account."""
    channels = [into.add(channel).output("name") for channel in email_channels(BUDGET_NAME, spec.emails, scope)]
    into.add(month_budget(spec, account, scope, channels))


def month_budget(spec: BudgetSpec, account: str, scope: Scope, told: Sequence[Any]) -> Resource:
    """Return a monthly budget for resources with the stack's label; ``told`` are the names of notification channels.

    Cloud Billing filters by one label with one value. This is the team's label, which shared clusters do not have, or
    the environment's label, which all resources have.
    """
    label = "team" if scope.team else "environment"
    return gcp.budget(
        f"{BUDGET_NAME}-month",
        billing_account=account,
        display_name=scope.prefix,
        budget_filter={"calendar_period": "MONTH", "labels": {label: scope.labels[label]}},
        amount={"specified_amount": {"currency_code": spec.currency, "units": str(spec.a_month)}},
        threshold_rules=[{"threshold_percent": percent / 100} for percent in spec.alert_at_percent],
        all_updates_rule={"monitoring_notification_channels": list(told)} if told else None,
    )
