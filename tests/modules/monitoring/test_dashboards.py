from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from tests.modules.monitoring.promql import matchers, metrics, problems, selectors
from tests.places import ORGANISATION
from training_platform.checks.planning.recorder import plan_stacks
from training_platform.config.workspace import read_workspace
from training_platform.resources.monitoring import (
    COLUMNS,
    Chart,
    Subject,
    alert_rules,
    dashboard,
    parts,
    platform_dashboard,
    team_dashboard,
)
from training_platform.resources.planned import Planned
from training_platform.resources.register import DASHBOARD
from training_platform.resources.scope import environment_scope, team_scope
from training_platform.sandbox.cloud.requests.discovery import load
from training_platform.sandbox.cloud.requests.validation import read_body

PLATFORM = Subject(
    kind="platform",
    title="prod: platform",
    project="example-train-prod",
    clusters=["prod-us-central1", "prod-us-west4"],
    instances=["prod-homes", "prod-scratch"],
)
TEAM = Subject(
    kind="team",
    title="prod-vision: queues and jobs",
    project="example-train-prod",
    clusters=["prod-us-central1"],
    team="vision",
    instances=["prod-scratch"],
)
SUBJECTS = {"platform": PLATFORM, "team": TEAM}
CHARTS = {chart.title: chart for part in parts() for chart in part.charts}
ROW: dict[str, Any] = {"title": "Something", "needs": "kueue", "expr": "kueue_pending_workloads"}


def tiles(subject: Subject) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = dashboard(subject)["mosaicLayout"]["tiles"]
    return found


def queries(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield every query of a dashboard, with the source that its chart names."""
    for tile in tiles(subject):
        widget = tile["widget"]
        for line in widget.get("xyChart", {}).get("dataSets", ()):
            yield line["timeSeriesQuery"]["prometheusQuery"], CHARTS[widget["title"]].needs


@pytest.mark.parametrize("kind", SUBJECTS)
def test_every_metric_and_label_of_a_dashboard_has_a_source(kind: str) -> None:
    asked = list(queries(SUBJECTS[kind]))

    assert len(asked) > 10
    assert [problem for query, needs in asked for problem in problems(query, needs)] == []


@pytest.mark.parametrize("name", metrics())
def test_every_source_says_where_it_was_read_and_all_of_its_metrics_are_used(name: str) -> None:
    asked = [pair for subject in SUBJECTS.values() for pair in queries(subject)]
    asked += [(rule.query(("a",), "p"), rule.needs) for rule in alert_rules().values()]
    used = {str(each.name) for query, needs in asked if needs == name for each in selectors(query)}

    assert re.search(r"https://|/", metrics()[name]["source"])
    assert {re.sub("_bucket$", "", each) for each in used} == set(metrics()[name]["metrics"])


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("kueue_pending_workload", "metric kueue_pending_workload is not among those of kueue"),
        ('kueue_pending_workloads{queue="a"}', "kueue_pending_workloads has no label queue"),
        ("sum by (queue) (kueue_pending_workloads)", "no metric has the label queue"),
        ("up > on (queue) up", "no metric has the label queue"),
        ("kube_jobset_restarts", "metric kube_jobset_restarts is not among those of kueue"),
        ("sum by (le) (kueue_pending_workloads)", "no metric has the label le"),
    ],
)
def test_a_metric_or_label_without_a_source_is_a_problem(query: str, problem: str) -> None:
    assert problems(query, "kueue") == [problem]


@pytest.mark.parametrize("kind", SUBJECTS)
def test_the_api_takes_it(kind: str) -> None:
    api = load("monitoring", "v1")
    body = dashboard(SUBJECTS[kind])

    assert read_body(api, api.methods["monitoring.projects.dashboards.create"], body) == body


def test_a_field_that_the_api_does_not_know_is_noticed() -> None:
    api = load("monitoring", "v1")
    body = {**dashboard(TEAM), "mosaicLayout": {"columns": COLUMNS, "tiles": [{"hight": 1}]}}

    with pytest.raises(Exception, match="hight"):
        read_body(api, api.methods["monitoring.projects.dashboards.create"], body)


@pytest.mark.parametrize("kind", SUBJECTS)
def test_tiles_fill_the_grid_without_lying_on_each_other(kind: str) -> None:
    taken: set[tuple[int, int]] = set()
    for tile in tiles(SUBJECTS[kind]):
        left = tile.get("xPos", 0)
        cells = {
            (x, y)
            for x in range(left, left + tile["width"])
            for y in range(tile["yPos"], tile["yPos"] + tile["height"])
        }
        assert left + tile["width"] <= COLUMNS
        assert not cells & taken
        taken |= cells

    assert len(tiles(SUBJECTS[kind])) < 100  # widgets that a dashboard may have


def test_a_team_sees_its_own_queues_pods_and_instances_alone() -> None:
    for query, needs in queries(TEAM):
        for selector in selectors(query):
            asked = matchers(selector)
            if needs == "kueue":
                assert asked["cluster_queue"] == "vision"
            elif needs == "filestore":
                assert asked["instance_name"] == "prod-scratch"
            else:
                own = asked.get("namespace") or asked.get("namespace_name") or asked.get("entity_namespace")
                assert own == "vision"
            if needs != "filestore":
                assert asked.get("cluster", asked.get("cluster_name")) == "prod-us-central1"


def test_the_platform_sees_all_clusters_of_its_environment_and_no_other() -> None:
    for query, needs in queries(PLATFORM):
        for selector in selectors(query):
            asked = matchers(selector)
            if needs in ("quota", "filestore"):
                assert asked["project_id"] == "example-train-prod"
            else:
                assert asked.get("cluster", asked.get("cluster_name")) == "prod-us-central1|prod-us-west4"


def test_without_filestore_no_chart_looks_for_it() -> None:
    without = Subject(kind="platform", title="a", project="example-train-prod", clusters=["a"])

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
    [("title", ""), ("needs", "loki"), ("only", "nobody"), ("plot", "PIE"), ("expr", 1), ("on", "platform")],
)
def test_a_spoiled_chart_is_refused(field: str, value: Any) -> None:
    assert Chart(**ROW).unit == "1"
    with pytest.raises(ValidationError, match=field):
        Chart(**{**ROW, field: value})


def planned(*stacks: str) -> Iterator[list[Planned]]:
    """Yield what is registered of each stack's dashboards."""
    workspace = read_workspace(ORGANISATION)
    for _, plan in plan_stacks(workspace, [workspace.stacks[stack] for stack in stacks]):
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
    environment, team = stacks["prod"].environment, stacks["prod-vision"].team
    assert environment
    assert team
    without = environment.model_copy(update={field: {} if field == "clusters" else False})
    alone = team.model_copy(update={"shares": {}} if field == "clusters" else {})

    assert list(platform_dashboard(without, environment_scope("prod", without))) == []
    assert list(team_dashboard(alone, without, team_scope(alone, without))) == []
    assert len(list(platform_dashboard(environment, environment_scope("prod", environment)))) == 1
    assert len(list(team_dashboard(team, environment, team_scope(team, environment)))) == 1
