"""How a component registers what a resource is said to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from training_platform.resources.declared import Declared, without_none

R = TypeVar("R", bound=pulumi.CustomResource)


def register(
    kind: Callable[..., R], declared: Declared, parent: pulumi.Resource, depends_on: Sequence[pulumi.Resource] = ()
) -> R:
    """Register a resource of Google Cloud; ``kind`` is the provider's class of its type."""
    return kind(
        declared.name,
        **without_none({**declared.alike.inputs, **declared.inputs}),
        opts=_options(declared, parent, depends_on),
    )


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
        opts=_options(declared, parent, depends_on),
    )


def _options(
    declared: Declared, parent: pulumi.Resource, depends_on: Sequence[pulumi.Resource]
) -> pulumi.ResourceOptions:
    options = declared.options
    return pulumi.ResourceOptions(
        parent=parent,
        protect=options.protect,
        retain_on_delete=options.retain_on_delete,
        delete_before_replace=options.delete_before_replace,
        ignore_changes=list(options.ignore_changes),
        replace_on_changes=list(options.replace_on_changes),
        replacement_trigger=options.replacement_trigger,
        custom_timeouts=pulumi.CustomTimeouts(**options.timeouts) if options.timeouts else None,
        depends_on=list(depends_on),
    )
