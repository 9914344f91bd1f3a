"""What every Kubernetes object of the platform has beside its own fields."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from training_platform.resources.manifest import labels
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
    every = {**labels(scope), **(more or {})}
    return ObjectMetaArgs(name=name, namespace=namespace, labels=every, annotations=annotations)
