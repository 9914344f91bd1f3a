"""A TensorBoard for the experiments of a team's jobs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import vertex

from modules.register import register
from training_platform.resources.scope import Scope
from training_platform.resources.vertex.tensorboard import tensorboard


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
        created = register(vertex.AiTensorboard, tensorboard(args.region, args.scope), self)
        self.resource_name = created.name
        self.register_outputs({"resource_name": self.resource_name})
