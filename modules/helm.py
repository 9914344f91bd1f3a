"""Helm charts of the catalogue: where one comes from, and how the platform installs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pulumi_kubernetes.helm import v3 as helm

from training_platform.catalog.types import Chart
from training_platform.config.spec.environment import ChartOverride

_PATHS = ("/", "./", "../")
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


def release_args(
    ref: ChartRef,
    *,
    name: str,
    namespace: str,
    values: Mapping[str, Any],
    timeout_seconds: int,
    create_namespace: bool = True,
    await_ready: bool = True,
) -> helm.ReleaseArgs:
    """Return the arguments of a release called ``name``, after which charts name their objects.

    With ``await_ready`` it is deployed once its pods are ready, and a failed upgrade goes back to what ran before.
    """
    return helm.ReleaseArgs(
        chart=ref.chart,
        version=ref.version,
        repository_opts=helm.RepositoryOptsArgs(repo=ref.repository) if ref.repository else None,
        name=name,
        namespace=namespace,
        create_namespace=create_namespace,
        values=values,
        atomic=await_ready,
        skip_await=not await_ready,
        timeout=timeout_seconds,
        max_history=_REVISIONS,
    )
