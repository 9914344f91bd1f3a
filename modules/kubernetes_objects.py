"""How Kubernetes objects and Helm charts are registered, and by which provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes import core
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.helm import v3 as helm
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from modules.register import resource_options
from training_platform.catalog.types import Chart
from training_platform.config.model.environment import ChartOverride
from training_platform.resources.declared import Declared, Register, without_none
from training_platform.resources.gke import cluster_identifier, kubeconfig
from training_platform.resources.scope import Scope


def metadata(
    scope: Scope,
    name: str,
    namespace: pulumi.Input[str] | None = None,
    annotations: Mapping[str, pulumi.Input[str]] | None = None,
    more: Mapping[str, str] | None = None,
) -> ObjectMetaArgs:
    """Return an object's metadata; the name is explicit, since people, jobs or other objects refer to it.

    ``more`` are labels beside those of the scope.
    """
    every = {**scope.kubernetes_labels, **(more or {})}
    return ObjectMetaArgs(name=name, namespace=namespace, labels=every, annotations=annotations)


def register_object(
    declared: Declared, parent: pulumi.Resource, depends_on: Sequence[pulumi.Resource] = ()
) -> CustomResource:
    """Register a Kubernetes object of a kind that a CRD brings."""
    inputs = without_none(declared.inputs)
    return CustomResource(
        declared.name,
        api_version=inputs["apiVersion"],
        kind=inputs["kind"],
        metadata=inputs["metadata"],
        spec=inputs["spec"],
        opts=resource_options(declared, parent, depends_on),
    )


def objects_of(parent: pulumi.Resource) -> Register:
    """Return the function that registers such objects as children of a component."""
    return lambda declared, depends_on=(): register_object(declared, parent, depends_on)


def plain_object(
    name: str, gvk: tuple[str, str], about: ObjectMetaArgs, spec: Any, opts: pulumi.ResourceOptions
) -> None:
    """Register an object with a spec, of an API version and kind; a kind without a group has a type of its own."""
    api_version, kind = gvk
    if gvk == ("v1", "Service"):
        core.v1.Service(name, metadata=about, spec=spec, opts=opts)
    else:
        CustomResource(name, api_version=api_version, kind=kind, metadata=about, spec=spec, opts=opts)


def cluster_provider(
    name: str,
    *,
    endpoint: pulumi.Input[str],
    project: str,
    location: str,
    cluster_name: str,
    opts: pulumi.ResourceOptions | None = None,
) -> kubernetes.Provider:
    """Return the provider of a cluster's Kubernetes objects, which is created only here."""
    return kubernetes.Provider(
        name,
        # The cluster of the objects. While it stays the same, a changed kubeconfig replaces nothing.
        cluster_identifier=cluster_identifier(project, location, cluster_name),
        enable_server_side_apply=True,
        kubeconfig=pulumi.Output.from_input(endpoint).apply(kubeconfig),
        opts=opts,
    )


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
    if not place.startswith("oci://"):
        return ChartRef(place, version, repository)
    # Helm 3.18 and later compare both. Source: helm/helm #12690 and #13588, read 2026-11-23; that the provider's own
    # Helm is as new is (unverified).
    return ChartRef(f"{place}@{override.digest}" if override.digest else place, version, None)


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
