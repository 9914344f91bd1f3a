"""A Cloud Storage bucket of a team."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import storage

from modules.register import register
from training_platform.config.model import team
from training_platform.resources.cloud_names import bucket_id
from training_platform.resources.scope import Scope
from training_platform.resources.storage.bucket import team_bucket


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
        bucket = register(storage.Bucket, team_bucket(args.key, args.spec, args.scope), self)
        self.bucket_name = bucket.name
        self.url = f"gs://{bucket_id(args.scope, args.key)}"
        self.register_outputs({"bucket_name": self.bucket_name, "url": self.url})
