"""Helm charts of the catalogue: where one comes from, and how the platform installs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pulumi
from pulumi_kubernetes.helm import v3 as helm

from training_platform.catalog.types import Chart
from training_platform.config.model.environment import ChartOverride

_PATHS = ("/", "./", "../")
_SECONDS = 600
_REVISIONS = 10  # each is a Secret that holds all of the chart's objects


class ChartRef(NamedTuple):
    """A chart as Helm is told of it; ``repository`` is None for an OCI reference or a path, which hold the whole place.

    ``version`` is None for a path: a folder has the version that it has.
    """

    chart: str
    version: str | None
    repository: str | None


def chart_ref(chart: Chart, override: ChartOverride | None = None) -> ChartRef:
    """Return where a chart comes from; a repository without a chart holds it under its own name."""
    override = override or ChartOverride()
    repository = override.repository or chart.repository
    place = override.chart or (chart.chart.rpartition("/")[2] if override.repository else chart.chart)
    if place.startswith(_PATHS):
        return ChartRef(place, None, None)
    version = override.version or chart.version
    return ChartRef(place, version, None if place.startswith("oci://") else repository)


def install(
    name: str,
    chart: Chart,
    override: ChartOverride | None,
    values: Mapping[str, Any],
    opts: pulumi.ResourceOptions,
    *,
    called: str | None = None,
    prepared: str | None = None,
) -> None:
    """Register a release called as its chart is, or ``called``, after which charts name their objects.

    It is deployed once its pods are ready, and a failed upgrade goes back to what ran before. ``prepared`` is a
    namespace that is there already, where pods wait for what people put into it: nothing waits for them then.
    """
    ref = chart_ref(chart, override)
    release = helm.ReleaseArgs(
        chart=ref.chart,
        version=ref.version,
        repository_opts=helm.RepositoryOptsArgs(repo=ref.repository) if ref.repository else None,
        name=called or chart.name,
        namespace=prepared or chart.namespace,
        create_namespace=prepared is None,
        values=values,
        atomic=prepared is None,
        skip_await=prepared is not None,
        timeout=_SECONDS,
        max_history=_REVISIONS,
    )
    helm.Release(name, release, opts=opts)
