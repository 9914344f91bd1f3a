"""A Cloud Storage bucket of a team: only IAM opens it, and never to the public."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from training_platform.config.model import team
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.cloud_names import bucket_id
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import BUCKET
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp.storage import BucketLifecycleRuleArgsDict as LifecycleRule

UPLOAD_DAYS = 7  # a multipart upload that has not ended by then was given up, and its parts are paid for


def team_bucket(key: str, spec: team.BucketSpec, scope: Scope) -> Declared:
    """Return a bucket; ``key`` is its key in the stack file."""
    key_name = scope.key(spec.location)
    inputs = gcp.bucket(
        name=bucket_id(scope, key),
        project=scope.project,
        location=spec.location,
        storage_class=spec.storage_class,
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        encryption={"default_kms_key_name": key_name} if key_name else None,
        logging={"log_bucket": spec.access_logs} if spec.access_logs else None,
        versioning={"enabled": spec.versioning},
        lifecycle_rules=list(_lifecycle_rules(spec)),
        # A change of it would replace the bucket, so that what is not asked for stays unsaid.
        hierarchical_namespace={"enabled": True} if spec.hierarchical_namespace else None,
        labels=scope.labels,
        force_destroy=not scope.deletion_protection,
    )
    # Checkpoints and data sets are nowhere else. The name is fixed, and taken until the old bucket is gone.
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)
    return Declared(type=BUCKET, name=f"{declared_name('buckets', key)}-bucket", inputs=inputs, options=options)


def _lifecycle_rules(spec: team.BucketSpec) -> Iterator[LifecycleRule]:
    """Yield what Cloud Storage does by itself: old objects, with all of their versions, and uploads that were left."""
    if spec.delete_after_days is not None:
        yield _rule("Delete", spec.delete_after_days)
    yield _rule("AbortIncompleteMultipartUpload", UPLOAD_DAYS)


def _rule(action: str, age_days: int) -> LifecycleRule:
    return {"action": {"type": action}, "condition": {"age": age_days}}
