"""The metadata store of a project and region."""

from __future__ import annotations

import pulumi
from pulumi_gcp import vertex

from modules.register import register
from training_platform.resources.scope import Scope
from training_platform.resources.vertex.metadata_store import metadata_store


class MetadataStore(pulumi.ComponentResource):
    """The metadata store in which Vertex AI keeps experiments and lineage of all teams of a project in a region."""

    def __init__(self, name: str, region: str, scope: Scope, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:vertex:MetadataStore", name, {}, opts)
        register(vertex.AiMetadataStore, metadata_store(region, scope), self)
        self.register_outputs({})
