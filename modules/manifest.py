"""How a Kubernetes object is registered, and what every one of the platform has beside its own fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from modules.register import resource_options
from training_platform.resources.declared import Declared, without_none
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


def plain_object(
    name: str, gvk: tuple[str, str], about: ObjectMetaArgs, spec: Any, opts: pulumi.ResourceOptions
) -> None:
    """Register an object with a spec, of an API version and kind; a kind without a group has a type of its own."""
    api_version, kind = gvk
    if gvk == ("v1", "Service"):
        core.v1.Service(name, metadata=about, spec=spec, opts=opts)
    else:
        CustomResource(name, api_version=api_version, kind=kind, metadata=about, spec=spec, opts=opts)
