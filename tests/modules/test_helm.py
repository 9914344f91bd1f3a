from __future__ import annotations

from dataclasses import replace
from datetime import date

import pulumi
import pytest

from modules.kubernetes_objects import ChartRef, chart_ref, install
from training_platform.catalog.types import Chart
from training_platform.checks.planning.recorder import record
from training_platform.config.model.environment import ChartOverride

READ = f"made up for tests, {date(2026, 11, 21)}"
OCI = Chart(name="kueue", chart="oci://r.io/kueue", version="1.2.3", repository=None, namespace="k", source=READ)
REPO = replace(OCI, name="hub", chart="hub", repository="https://charts.example.com")


def test_an_oci_chart_has_no_repository() -> None:
    assert chart_ref(OCI) == ChartRef("oci://r.io/kueue", "1.2.3", None)


def test_a_named_chart_is_looked_for_in_its_repository() -> None:
    assert chart_ref(REPO) == ChartRef("hub", "1.2.3", "https://charts.example.com")


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ({"version": "1.2.4"}, ChartRef("hub", "1.2.4", "https://charts.example.com")),
        ({"repository": "https://mirror.example.com"}, ChartRef("hub", "1.2.3", "https://mirror.example.com")),
        ({"chart": "our-hub"}, ChartRef("our-hub", "1.2.3", "https://charts.example.com")),
        ({"chart": "oci://mirror.example.com/hub"}, ChartRef("oci://mirror.example.com/hub", "1.2.3", None)),
        ({"chart": "./charts/hub", "version": "9.9.9"}, ChartRef("./charts/hub", None, None)),
        ({"chart": "/srv/charts/hub"}, ChartRef("/srv/charts/hub", None, None)),
    ],
)
def test_a_stack_file_says_otherwise(override: dict[str, str], expected: ChartRef) -> None:
    assert chart_ref(REPO, ChartOverride(**override)) == expected


def test_a_repository_for_an_oci_chart_holds_it_under_its_own_name() -> None:
    moved = ChartOverride(repository="https://mirror.example.com")

    assert chart_ref(OCI, moved) == ChartRef("kueue", "1.2.3", "https://mirror.example.com")
    called = replace(REPO, name="ours")  # the catalogue's row, which people override it by
    assert chart_ref(called, moved) == ChartRef("hub", "1.2.3", "https://mirror.example.com")


@pytest.mark.parametrize("awaited", [True, False])
def test_only_a_release_that_is_waited_for_can_go_back(*, awaited: bool) -> None:
    def program() -> None:
        install("hub", REPO, None, {"a": {"b": [1]}}, pulumi.ResourceOptions(), prepared=None if awaited else "there")

    release = record(program, project="training-platform", stack_name="prod").one("kubernetes:helm.sh/v3:Release")

    assert (release.inputs["atomic"], release.inputs["skipAwait"]) == (awaited, not awaited)
    assert release.inputs["repositoryOpts"] == {"repo": "https://charts.example.com"}
    assert (release.inputs["createNamespace"], release.inputs["namespace"]) == (awaited, "k" if awaited else "there")
    assert release.inputs["values"] == {"a": {"b": [1]}}
    assert release.inputs["maxHistory"] == 10
