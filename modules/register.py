"""How a component registers what resources declare of Google Cloud; the provider of Kubernetes is not imported here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pulumi

from training_platform.resources.declared import Declared, Register, without_none


def register(declared: Declared, parent: pulumi.Resource, depends_on: Sequence[pulumi.Resource] = ()) -> Any:
    """Register a resource of Google Cloud and return it, of the provider's class for its type."""
    _, module, name = declared.type.split(":")  # gcp:compute/network:Network is pulumi_gcp.compute.Network
    create = getattr(import_module(f"pulumi_gcp.{module.partition('/')[0]}"), name)
    inputs = without_none(declared.inputs)
    return create(declared.name, **inputs, opts=resource_options(declared, parent, depends_on))


def children_of(parent: pulumi.Resource) -> Register:
    """Return what registers resources of Google Cloud as children of a component."""
    return lambda declared, depends_on=(): register(declared, parent, depends_on)


def resource_options(
    declared: Declared, parent: pulumi.Resource, depends_on: Sequence[pulumi.Resource]
) -> pulumi.ResourceOptions:
    """Return the options that a resource is declared with."""
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
