"""Makes a sandbox program register its objects in the user's cluster, each with the sandbox's mark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pulumi

from training_platform.resources.resource_types import KUBERNETES, RELEASE
from training_platform.resources.scope import MANAGED_BY
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER

MARK: Final = f"{MANAGED_BY}/sandbox"
"""The label of every object of a sandbox, and of the ConfigMap that marks the cluster. Its value names the sandbox."""


def is_object(token: str) -> bool:
    """Return True if a type is a Kubernetes object. A release is not one, since Helm creates its objects."""
    return token.startswith(KUBERNETES) and token != RELEASE


def redirect(config_file: Path, mark: str) -> None:
    """Make this program register its Kubernetes objects in the cluster of a kubeconfig, each with the mark."""
    config = config_file.read_text(encoding="utf-8")

    def into_cluster(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if args.type_ == KUBERNETES_PROVIDER:
            return pulumi.ResourceTransformationResult({**args.props, "kubeconfig": config}, args.opts)
        if not is_object(args.type_):
            return None
        metadata: Any = args.props.get("metadata") or {}  # a plan's is a dictionary
        metadata = {**metadata, "labels": {**(metadata.get("labels") or {}), MARK: mark}}
        return pulumi.ResourceTransformationResult({**args.props, "metadata": metadata}, args.opts)

    pulumi.runtime.register_stack_transformation(into_cluster)
