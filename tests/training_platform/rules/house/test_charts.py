"""A chart of the catalogue in a version that was never tested is a warning at its line."""

from __future__ import annotations

from typing import Any

import pytest

from training_platform.catalog import CHARTS
from training_platform.config.model.stack import parse_stack
from training_platform.config.names import Locator
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.resources.planned import Planned
from training_platform.resources.register import RELEASE
from training_platform.rules import RULES, evaluate, program
from training_platform.views.adapters import views_of_plan

RULE = "chart-version-untested"
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


def found(chart: str, version: str | None, *, clusters: tuple[str, ...] = ("a",), ours: bool = True) -> list[Finding]:
    stack = parse_stack("env", parse_source(TEXT, "stacks/Pulumi.env.yaml"))
    inputs: dict[str, Any] = {"name": "kueue", "chart": chart, "version": version}
    planned = [
        Planned(stack="env", type=RELEASE, name=f"{cluster}-kueue-release", inputs=inputs, options={})
        for cluster in clusters
    ]
    locator = Locator(stack.section) if ours and stack.section else None
    views = views_of_plan(planned, locator)
    whole = program(views, stack="env", environment="env", team=None, production=False)
    return evaluate(whole, [RULES[RULE]], stack if ours else None)


@pytest.mark.parametrize("version", ["0.20.0", "0.18.6", "1.19.2", "0.190.0"])
def test_a_version_of_another_minor_is_found_at_its_line(version: str) -> None:
    (each,) = found("oci://mirror.example.com/charts/kueue", version)

    assert (each.severity, each.path, each.nearest) == ("warning", "charts.kueue.version", CHARTS["kueue"].version)
    assert each.position is not None
    assert each.position.line == 6
    assert each.allowed == "0.19.x"


@pytest.mark.parametrize("version", ["0.19.0", "0.19.2", "0.19.9", "0.19", None])
def test_patches_of_a_tested_version_and_folders_are_not_found(version: str | None) -> None:
    assert found("oci://registry.k8s.io/kueue/charts/kueue", version) == []


def test_two_clusters_with_one_version_are_one_finding() -> None:
    assert len(found("kueue", "0.20.0", clusters=("a", "a-b"))) == 1


def test_a_chart_of_somebody_else_is_not_judged() -> None:
    assert found("oci://registry.example.com/charts/queues", "0.20.0") == []


def test_in_a_program_without_a_stack_file_it_is_the_input() -> None:
    (each,) = found("kueue", "0.20.0", ours=False)

    assert each.path == "version"


@pytest.mark.parametrize("name", ["kueue", "jobset", "jupyterhub"])
def test_what_the_catalogue_installs_is_tested_and_says_what_an_upgrade_touches(name: str) -> None:
    chart = CHARTS[name]

    assert any(chart.version.startswith(f"{minor}.") for minor in chart.tested)
    assert chart.tested_with
    assert chart.upgrade
