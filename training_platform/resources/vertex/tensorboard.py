"""A TensorBoard for the experiments of a team's jobs."""

from __future__ import annotations

from training_platform.resources import gcp
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import TENSORBOARD
from training_platform.resources.scope import Scope


def tensorboard_name(region: str, scope: Scope) -> str:
    """Return the name by which people, and a job's submission, find a team's TensorBoard of a region."""
    return f"{scope.prefix}-{region}"


def tensorboard(region: str, scope: Scope) -> Declared:
    """Return a team's TensorBoard of a region, which is also the region of every job that writes to it."""
    key = scope.key(region)
    inputs = gcp.tensorboard(
        display_name=tensorboard_name(region, scope),
        description=f"Experiments of {scope.prefix}",
        project=scope.project,
        region=region,
        encryption_spec={"kms_key_name": key} if key else None,
        labels=scope.labels,
    )
    # Deletion takes every experiment with it.
    options = Options(protect=scope.deletion_protection)
    return Declared(type=TENSORBOARD, name=f"tensorboard-{region}-tensorboard", inputs=inputs, options=options)
