"""Filestore instances and buckets, for programs in any language."""

from typing import TypedDict

import pulumi

from components.given import read
from components.models import Place
from components.specs import of_models
from modules import storage
from modules.storage import FilestoreInstance, FilestoreInstanceArgs
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.team import BucketSpec


@of_models
class FilestoreArgs(TypedDict):
    """What an instance is, and the VPC that it joins."""

    place: Place
    """Where it stands."""

    spec: FilestoreSpec
    """What a stack file says of an instance."""

    network: pulumi.Input[str]
    """Id or name of the VPC."""


class Filestore(pulumi.ComponentResource):
    """A Filestore instance with its one share, its snapshots and its backups; its name ends with the resource's."""

    ip: pulumi.Output[str]
    """Its address."""

    path: pulumi.Output[str]
    """What NFS clients mount: a slash and the share's name."""

    def __init__(self, name: str, args: FilestoreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:index:Filestore", name, {}, opts)
        scope, spec = read(name, args, FilestoreSpec)
        instance = FilestoreInstance(
            name,
            FilestoreInstanceArgs(scope=scope, key=name, spec=spec, network=args["network"]),
            pulumi.ResourceOptions(parent=self),
        )
        self.ip, self.path = instance.ip, pulumi.Output.from_input(instance.path)
        self.register_outputs({"ip": self.ip, "path": self.path})


@of_models
class BucketArgs(TypedDict):
    """What a bucket is."""

    place: Place
    """Whose it is."""

    spec: BucketSpec
    """What a stack file says of a bucket."""


class Bucket(pulumi.ComponentResource):
    """A bucket that only IAM opens, and never to the public; its name ends with the resource's."""

    bucket_name: pulumi.Output[str]
    """Its name, which begins with the project's."""

    def __init__(self, name: str, args: BucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:index:Bucket", name, {}, opts)
        scope, spec = read(name, args, BucketSpec)
        bucket = storage.Bucket(
            name, storage.BucketArgs(scope=scope, key=name, spec=spec), pulumi.ResourceOptions(parent=self)
        )
        self.bucket_name = bucket.bucket_name
        self.register_outputs({"bucketName": self.bucket_name})
