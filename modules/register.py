"""How a component registers what a resource of Google Cloud is said to be: without the provider of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pulumi

from training_platform.resources.declared import Declared, without_none

R = TypeVar("R", bound=pulumi.CustomResource)


def register(
    kind: Callable[..., R], declared: Declared, parent: pulumi.Resource, depends_on: Sequence[pulumi.Resource] = ()
) -> R:
    """Register a resource of Google Cloud; ``kind`` is the provider's class of its type."""
    return kind(
        declared.name,
        **without_none({**declared.alike.inputs, **declared.inputs}),
        opts=resource_options(declared, parent, depends_on),
    )


def resource_options(
    declared: Declared, parent: pulumi.Resource, depends_on: Sequence[pulumi.Resource]
) -> pulumi.ResourceOptions:
    """Return the options that a resource is said to have."""
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
