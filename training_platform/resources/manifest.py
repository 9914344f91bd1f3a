"""What every Kubernetes object of the platform has beside its own fields."""

from __future__ import annotations

from typing import Any

from training_platform.resources.declared import Declared
from training_platform.resources.scope import Scope


def kubernetes_object(type_: str, logical_name: str, scope: Scope, name: str, spec: dict[str, Any]) -> Declared:
    """Return an object; its name is explicit, since people, jobs or other objects refer to it."""
    _, api_version, kind = type_.split(":")
    metadata = {"name": name, "labels": scope.kubernetes_labels}
    inputs = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    return Declared(type=type_, name=logical_name, inputs=inputs)
