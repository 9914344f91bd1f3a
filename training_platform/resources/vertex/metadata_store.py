"""The metadata store of a project and region, in which Vertex AI keeps experiments, artifacts and lineage."""

from __future__ import annotations

from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import METADATA_STORE
from training_platform.resources.scope import Scope

DEFAULT = "default"  # the only one that experiments, pipelines and the console use


def metadata_store(region: str, scope: Scope) -> Declared:
    """Return the store of a region.

    Vertex AI makes it by itself at the first experiment, without a key of one's own, which no change adds later.
    """
    key = scope.key(region)
    inputs = gcp.metadata_store(
        name=DEFAULT,
        description=f"Experiments and lineage of {scope.prefix}",
        project=scope.project,
        region=region,
        encryption_spec={"kms_key_name": key} if key else None,
    )
    # Deletion takes every experiment of every team of the project; there is one name.
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)
    return Declared(
        type=METADATA_STORE, name=f"{declared_name('metadata_stores', region)}-store", inputs=inputs, options=options
    )
