"""Dashboards of Cloud Monitoring, of the platform and of each team: rows of ``data/dashboards.yaml``, filled in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Literal

from pydantic import Field, TypeAdapter

from training_platform.catalog.reading import read_file
from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.reading.section import Section
from training_platform.resources import gcp
from training_platform.resources.declared import Declared
from training_platform.resources.filestore.instance import instance_name
from training_platform.resources.gke.cluster import cluster_name
from training_platform.resources.monitoring.alert_rules import Source
from training_platform.resources.register import DASHBOARD
from training_platform.resources.scope import Scope

Json = dict[str, Any]
NAME = "dashboard"
COLUMNS, WIDTH, HEIGHT = 12, 6, 4  # of the grid, and of a chart on it
_FILE = Path(__file__).parent / "data" / "dashboards.yaml"
_ANY = ".+"


class Chart(Section):
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
    charts: list[Chart] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class Subject:
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


def platform_dashboard(environment: Environment, scope: Scope) -> Iterator[Declared]:
    """Yield the dashboard of an environment that has clusters and wants dashboards."""
    if environment.dashboards and environment.clusters:
        clusters = [cluster_name(scope, key, spec) for key, spec in environment.clusters.items()]
        instances = [instance_name(scope.environment, key) for key in environment.filestore]
        yield _declared(
            Subject(
                kind="platform",
                title=f"{scope.environment}: platform",
                project=environment.project,
                clusters=clusters,
                instances=instances,
            )
        )


def team_dashboard(team: Team, environment: Environment, scope: Scope) -> Iterator[Declared]:
    """Yield the dashboard of a team with shares, in the environment's project: what clusters measure is seen there."""
    if environment.dashboards and team.shares:
        clusters = [cluster_name(scope, key, environment.clusters[key]) for key in team.shares]
        instances = {instance_name(scope.environment, each.filestore) for each in team.directories.values()}
        yield _declared(
            Subject(
                kind="team",
                title=f"{scope.prefix}: queues and jobs",
                project=environment.project,
                clusters=clusters,
                team=team.name,
                instances=instances,
            )
        )


def _declared(subject: Subject) -> Declared:
    inputs = gcp.dashboard(project=subject.project, dashboard_json=json.dumps(dashboard(subject)))
    return Declared(type=DASHBOARD, name=f"{NAME}-{subject.kind}", inputs=inputs)


def dashboard(subject: Subject) -> Json:
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


def _place(part: Part, shown: list[Chart], names: Mapping[str, str], tiles: list[Json], row: int) -> int:
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


def _widget(chart: Chart, names: Mapping[str, str]) -> Json:
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
