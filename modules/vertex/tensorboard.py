"""A TensorBoard for the experiments of a team's jobs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import vertex

from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class TensorboardArgs:
    """``region`` is also the region of every job that writes to it."""

    scope: Scope
    region: str


class Tensorboard(pulumi.ComponentResource):
    """A Vertex AI TensorBoard; jobs name it by ``resource_name``, which only a deployment can tell."""

    resource_name: pulumi.Output[str]  # projects/*/locations/*/tensorboards/*

    def __init__(self, name: str, args: TensorboardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:vertex:Tensorboard", name, {}, opts)
        tensorboard = vertex.AiTensorboard(
            f"{name}-tensorboard",
            display_name=f"{args.scope.prefix}-{args.region}",
            description=f"Experiments of {args.scope.prefix}",
            project=args.scope.project,
            region=args.region,
            labels=args.scope.labels,
            # Deletion takes every experiment with it.
            opts=pulumi.ResourceOptions(parent=self, protect=args.scope.deletion_protection),
        )
        self.resource_name = tensorboard.name
        self.register_outputs({"resource_name": self.resource_name})
