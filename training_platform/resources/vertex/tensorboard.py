"""A TensorBoard for the experiments of a team's jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import TENSORBOARD
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp import vertex


class TensorboardInputs(TypedDict):
    """What ``gcp.vertex.AiTensorboard`` takes, of which ours say these."""

    display_name: str
    description: str
    project: str
    region: str
    encryption_spec: vertex.AiTensorboardEncryptionSpecArgsDict | None
    labels: dict[str, str]


def tensorboard_name(region: str, scope: Scope) -> str:
    """Return the name by which people, and a job's submission, find a team's TensorBoard of a region."""
    return f"{scope.prefix}-{region}"


def tensorboard(region: str, scope: Scope) -> Declared:
    """Return a team's TensorBoard of a region, which is also the region of every job that writes to it."""
    key = scope.key(region)
    inputs: TensorboardInputs = {
        "display_name": tensorboard_name(region, scope),
        "description": f"Experiments of {scope.prefix}",
        "project": scope.project,
        "region": region,
        "encryption_spec": {"kms_key_name": key} if key else None,
        "labels": scope.labels,
    }
    # Deletion takes every experiment with it.
    options = Options(protect=scope.deletion_protection)
    return Declared(type=TENSORBOARD, name=f"tensorboard-{region}-tensorboard", inputs=inputs, options=options)
