"""Dashboards, alert policies and budgets: rows of the YAML in ``data``, filled in for an environment or a team.

``alerts.yaml`` has the conditions, ``dashboards.yaml`` the charts, ``metrics.yaml`` what each source of series has.
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
COLUMNS, WIDTH, HEIGHT = 12, 6, 4  # of the grid, and of a chart on it
_FILE = Path(__file__).parent / "data" / "dashboards.yaml"
_ANY = ".+"


class DashboardChart(Section):
    """A chart of one expression, or of several by what its legend calls them; ``only`` says which dashboards have it.

    ``unit`` is one of UCUM, as metric descriptors have it: ``10^2.%`` is a ratio that is shown as percent.
    """

    title: str = Field(min_length=1)
    only: Literal["platform", "team"] | None = None
    needs: Source
    unit: str = "1"
    plot: Literal["LINE", "STACKED_AREA"] = "LINE"
    expr: str | dict[str, str]

    @property
    def lines(self) -> Mapping[str, str]:
        """Its expressions by what the legend calls them, which is nothing where there is one."""
        return {"": self.expr} if isinstance(self.expr, str) else self.expr


class Part(Section):
    """Charts about one thing, below a heading, and what is to be said of them."""

    title: str = Field(min_length=1)
    text: str | None = None
    charts: list[DashboardChart] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class DashboardSubject:
    """What a dashboard is of: the names that its expressions look for, of which none stands for all."""

    kind: Literal["platform", "team"]
    title: str
    project: str
    clusters: Iterable[str]
    team: str | None = None
    instances: Iterable[str] = ()


@cache
def parts() -> list[Part]:
    """Return every part, read once. Raises pydantic.ValidationError where a row is not as it should be."""
    return TypeAdapter(list[Part]).validate_python(read_file(_FILE)["sections"])


def platform_dashboard(environment: Environment, scope: Scope) -> Iterator[Resource]:
    """Yield the dashboard of an environment that has clusters and wants dashboards."""
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
    """Yield the dashboard of a team with shares, in the environment's project: what clusters measure is seen there."""
    if environment.dashboards and team.shares:
        clusters = [cluster_name(scope, key, environment.clusters[key]) for key in team.shares]
        instances = {instance_name(scope.environment, each.filestore) for each in team.directories.values()}
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
    """Return a dashboard as the API takes it (``monitoring.v1``, ``Dashboard``)."""
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
            row = _place(part, shown, names, tiles, row)
    return {"displayName": subject.title, "mosaicLayout": {"columns": COLUMNS, "tiles": tiles}}


def _place(part: Part, shown: list[DashboardChart], names: Mapping[str, str], tiles: list[Json], row: int) -> int:
    """Add the tiles of a part from a row of the grid on, and return the row below it."""
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
    lines = [
        {
            "plotType": chart.plot,
            "targetAxis": "Y1",
            "timeSeriesQuery": {"prometheusQuery": Template(expr).substitute(names), "unitOverride": chart.unit},
            **({"legendTemplate": legend} if legend else {}),
        }
        for legend, expr in chart.lines.items()
    ]
    return {"title": chart.title, "xyChart": {"dataSets": lines, "yAxis": {"scale": "LINEAR"}}}


if TYPE_CHECKING:
    from pulumi_gcp.monitoring import AlertPolicyAlertStrategyArgsDict as Strategy
    from pulumi_gcp.monitoring import AlertPolicyConditionArgsDict as Condition

EVALUATION = "60s"  # as often as GKE's system metrics come


def alert_resources(
    name: str, spec: AlertsSpec, clusters: Mapping[str, SoftwareSpec], scope: Scope, into: Component
) -> None:
    """Add alerts and their channels, where they are enabled and there is a cluster to watch.

    ``clusters`` are names in GKE with what is installed there.
    """
    if spec.enabled and clusters:
        channels = [into.add(channel).output("name") for channel in email_channels(name, spec.emails, scope)]
        for policy in alert_policies(name, scope, clusters, channels, undocumented=spec.undocumented):
            into.add(policy)


def email_channels(name: str, emails: Sequence[str], scope: Scope) -> Iterator[Resource]:
    """Yield a channel for each address; ``name`` is the component's."""
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
    name: str, scope: Scope, clusters: Mapping[str, SoftwareSpec], told: Sequence[Any], *, undocumented: bool = False
) -> Iterator[Resource]:
    """Yield a policy for each rule that some cluster has series for; those without a documented series if asked for.

    ``clusters`` are names in GKE with what is installed there, ``told`` the names of channels.
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
        # A policy of logs has to name a period; each combination of labels is told by itself.
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
    """Return the policy of a rule, which tells the channels ``told``."""
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
    """Whether a cluster has the series that a rule needs: those of a controller are scraped where we installed it."""
    if rule.needs == "jobset":
        return software.jobset != "none"
    scraped = {"kueue": software.kueue, "jobset-controller": software.jobset}
    return rule.needs not in scraped or (software.metrics and scraped[rule.needs] == "installed")


def _condition(name: str, rule: AlertRule, query: str) -> Condition:
    """Return a rule as the one condition of its policy."""
    return {
        "display_name": rule.title,
        "condition_prometheus_query_language": {
            "query": query,
            "alert_rule": name,
            "duration": f"{rule.for_seconds}s",
            "evaluation_interval": EVALUATION,
            # A metric comes into being with its first value: most do not exist when the policy is made.
            "disable_metric_validation": True,
        },
    }


Source = Literal["system", "kueue", "jobset", "jobset-controller", "pod", "dcgm", "filestore", "quota"]
"""A source of series, which ``data/metrics.yaml`` says the metrics of."""
UNTRIED = "The threshold is a first guess that no live data has confirmed."


@cache
def _rules() -> Mapping[str, Any]:
    return read_file(Path(__file__).parent / "data" / "alerts.yaml")


class AlertRule(Section):
    """A PromQL expression that is true of what somebody has to look at.

    ``expr`` names clusters as ``${clusters}``, or as ``${cluster}`` where ``each_cluster`` is set, their project as
    ``${project}``, and the replicas that Kueue has as ``${replicas}``. ``for_seconds`` says how long it has to be true.
    ``needs`` is the source of its series, ``source`` ours for what they mean, ``undocumented`` the reason why its
    policy is off by default: no document says that the series exists.
    """

    title: str = Field(min_length=1, max_length=100)
    severity: Literal["CRITICAL", "ERROR", "WARNING"]
    needs: Source
    each_cluster: bool = False
    for_seconds: int = Field(ge=0, multiple_of=30)
    expr: str = Field(min_length=1)
    undocumented: str | None = Field(default=None, min_length=1)
    meaning: str = Field(min_length=1)
    action: str = Field(min_length=1)
    source: str = Field(min_length=1)

    def query(self, clusters: Sequence[str], project: str) -> str:
        """Return the expression for clusters by their names in GKE, of which there is at least one."""
        template = Template(self.expr)
        if not self.each_cluster:
            return template.substitute(clusters="|".join(clusters), project=project, replicas=REPLICAS)
        return " or ".join(template.substitute(cluster=cluster) for cluster in clusters)

    @property
    def documentation(self) -> str:
        """What the person who is told reads, as Markdown."""
        paragraphs = [self.meaning, f"**What to do:** {self.action}", self.undocumented, UNTRIED]
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


@cache
def alert_rules() -> Mapping[str, AlertRule]:
    """Return every rule by its name, read once. Raises pydantic.ValidationError where a rule is not as it should be."""
    return TypeAdapter(dict[str, AlertRule]).validate_python(_rules()["rules"])


UNSEEN = "The filter follows Google's documentation; no real entry has been seen yet."
LOG_PERIOD_SECONDS = 3600  # between two messages about the same labels


class LogRule(Section):
    """Entries of Cloud Logging that somebody has to be told of, where no metric tells it.

    ``filter`` is in the query language of Cloud Logging and takes entries of the project, so other environments there
    have the alert too. ``labels`` are extracted from an entry; each combination is an incident.
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
        """What the person who is told reads, as Markdown."""
        return "\n\n".join((self.meaning, f"**What to do:** {self.action}", UNSEEN))


@cache
def log_rules() -> Mapping[str, LogRule]:
    """Return every rule on entries of logs by its name. Raises pydantic.ValidationError."""
    return TypeAdapter(dict[str, LogRule]).validate_python(_rules()["logs"])


BUDGET_NAME = "budget"


def stack_budget(spec: BudgetSpec | None, environment: Environment) -> tuple[BudgetSpec, str] | None:
    """Return a stack's budget with the billing account that it is in; None without one of them."""
    account = environment.billing_account
    return (spec, account) if spec and account else None


def budget_resources(spec: BudgetSpec, account: str, scope: Scope, into: Component) -> None:
    """Add a stack's budget with its channels; ``account`` is the billing account."""
    channels = [into.add(channel).output("name") for channel in email_channels(BUDGET_NAME, spec.emails, scope)]
    into.add(month_budget(spec, account, scope, channels))


def month_budget(spec: BudgetSpec, account: str, scope: Scope, told: Sequence[Any]) -> Resource:
    """Return a budget of what carries the label of the stack in the account; ``told`` are the names of channels.

    Cloud Billing filters by one label with one value: that of the team, which clusters do not carry since teams share
    them, or of the environment, which all has.
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
