"""A persistent resource of Vertex AI, planned."""

from __future__ import annotations

from typing import Any

from tests.support.plans import PlannedStack, composed
from training_platform.config.model import team
from training_platform.resources.scope import Scope
from training_platform.resources.vertex import persistent_resource

RESOURCE = "gcp:vertex/aiPersistentResource:AiPersistentResource"


LABELS = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}


def scope(environment: str = "prod", name: str = "vision") -> Scope:
    return Scope(environment=environment, team=name, project="example-vision", labels=LABELS, deletion_protection=True)


def deploy(**fields: Any) -> PlannedStack:
    spec = team.PersistentResourceSpec(**{"region": "us-central1", "machine_type": "a2-highgpu-1g", **fields})

    return composed(lambda into: into.add(persistent_resource("tuning", spec, scope())), "vertex-tuning")
