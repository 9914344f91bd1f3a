"""Machines that Vertex AI keeps for a team's training jobs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import vertex

from modules.register import register
from training_platform.config.model import team
from training_platform.resources.cloud_names import persistent_resource_id
from training_platform.resources.scope import Scope
from training_platform.resources.vertex.persistent_resource import persistent_resource


@dataclass(frozen=True, kw_only=True)
class PersistentResourceArgs:
    """``key`` and ``spec`` are the stack file's."""

    scope: Scope
    key: str
    spec: team.PersistentResourceSpec


class PersistentResource(pulumi.ComponentResource):
    """A Vertex AI persistent resource; jobs name it by ``resource_id``, and their own account.

    Any change of its pools, name or labels replaces it, which cancels the jobs that run on it. Google advises to make
    it anew every 30 days (Vertex AI documentation, read 2026-08).
    """

    resource_id: str
    resource_name: pulumi.Output[str]  # projects/*/locations/*/persistentResources/*

    def __init__(self, name: str, args: PersistentResourceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:vertex:PersistentResource", name, {}, opts)
        self.resource_id = persistent_resource_id(args.scope, args.key)
        declared = persistent_resource(args.key, args.spec, args.scope)
        resource = register(vertex.AiPersistentResource, declared, self)
        self.resource_name = resource.id
        self.register_outputs({"resource_id": self.resource_id, "resource_name": self.resource_name})
