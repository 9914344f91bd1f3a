"""Versions of the charts that the platform installs."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import CHARTS
from training_platform.config.reading.section import enumeration
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.access import ReleaseView


@rule(
    "chart-version-untested",
    ruleset="charts",
    severity="warning",
    owner="catalogue",
    source="training_platform/catalog/data/software.yaml, which says what was tested with which release",
)
def chart_version_untested(release: ReleaseView) -> Iterator[Draft]:
    """Find a chart of the catalogue in a version whose values and objects nobody has tested here.

    A chart from a folder, or one that names no version, has a version that nobody knows.
    """
    chart = CHARTS.get(release.chart or "")
    if chart is None or not chart.tested or release.version is None:
        return
    if not any(f"{release.version}.".startswith(f"{minor}.") for minor in chart.tested):
        tested = enumeration([f"{minor}.x" for minor in chart.tested])
        message = f"{release.version} of {chart.name} is outside of what is tested, which was {chart.tested_with}"
        yield finding(release, "version", message, allowed=tested, nearest=chart.version)
