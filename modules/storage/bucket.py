"""A Cloud Storage bucket of a team."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pulumi
from pulumi_gcp import storage

from training_platform.config.spec import team
from training_platform.resources.cloud_names import bucket_id
from training_platform.resources.scope import Scope

UPLOAD_DAYS = 7  # a multipart upload that has not ended by then was given up, and its parts are paid for


@dataclass(frozen=True, kw_only=True)
class BucketArgs:
    """``key`` and ``spec`` are the stack file's."""

    scope: Scope
    key: str
    spec: team.BucketSpec


class Bucket(pulumi.ComponentResource):
    """A bucket that only IAM opens, and never to the public.

    Deleted objects can be had back for the time that Cloud Storage gives by default. Its place is part of what it is:
    a change of location replaces it, with all objects, where deletion is not protected. There is no hierarchical
    namespace, which could not be taken back.
    """

    bucket_name: pulumi.Output[str]
    url: str  # gs://name

    def __init__(self, name: str, args: BucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:storage:Bucket", name, {}, opts)
        scope, spec = args.scope, args.spec
        bucket = storage.Bucket(
            f"{name}-bucket",
            name=bucket_id(scope, args.key),
            project=scope.project,
            location=spec.location,
            storage_class=spec.storage_class,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            versioning=storage.BucketVersioningArgs(enabled=spec.versioning),
            lifecycle_rules=list(lifecycle_rules(spec)),
            labels=scope.labels,
            force_destroy=not scope.deletion_protection,
            opts=pulumi.ResourceOptions(
                parent=self,
                # Checkpoints and data sets are nowhere else.
                protect=scope.deletion_protection,
                # The name is fixed, and taken until the old bucket is gone.
                delete_before_replace=True,
            ),
        )
        self.bucket_name = bucket.name
        self.url = f"gs://{bucket_id(scope, args.key)}"
        self.register_outputs({"bucket_name": self.bucket_name, "url": self.url})


def lifecycle_rules(spec: team.BucketSpec) -> Iterator[storage.BucketLifecycleRuleArgs]:
    """Yield what Cloud Storage does by itself: old objects, with all of their versions, and uploads that were left."""
    if spec.delete_after_days is not None:
        yield _rule("Delete", spec.delete_after_days)
    yield _rule("AbortIncompleteMultipartUpload", UPLOAD_DAYS)


def _rule(action: str, age_days: int) -> storage.BucketLifecycleRuleArgs:
    return storage.BucketLifecycleRuleArgs(
        action=storage.BucketLifecycleRuleActionArgs(type=action),
        condition=storage.BucketLifecycleRuleConditionArgs(age=age_days),
    )
