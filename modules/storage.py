"""What holds data: Filestore and Lustre instances, buckets, images and secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import filestore, secretmanager

from modules.register import children_of, register
from training_platform.config.model import environment, team
from training_platform.config.model.storage import FilestoreSpec, LustreSpec
from training_platform.resources.filestore import filestore_resources, instance_name
from training_platform.resources.scope import Scope, bucket_id, repository_id, repository_url
from training_platform.resources.storage import (
    ACCESSOR,
    image_repositories,
    instance_id,
    lustre_address,
    lustre_instance,
    team_bucket,
    team_secret,
)


@dataclass(frozen=True, kw_only=True)
class FilestoreInstanceArgs:
    """``network`` is the VPC's name or id; the provider takes both for the same.

    ``services`` is the VPC's private service access, and ``services_range`` the name of its addresses.
    """

    scope: Scope
    key: str
    spec: FilestoreSpec
    network: pulumi.Input[str]
    services: pulumi.Resource | None = None
    services_range: pulumi.Input[str] | None = None


class FilestoreInstance(pulumi.ComponentResource):
    """A Filestore instance with its one share, its snapshots, and its backups on a schedule.

    All of its data is lost when tier, network, protocol, location or the share's name change, or the key, which is in
    its name. The name, ``{environment}-{key}``, and everything else but the address is known before it exists.
    """

    ip: pulumi.Output[str]
    instance: str
    location: str
    share: str
    path: str  # what NFS clients mount: /share

    def __init__(self, name: str, args: FilestoreInstanceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:filestore:FilestoreInstance", name, {}, opts)
        self.instance = instance_name(args.scope.environment, args.key)
        self.location = args.spec.location
        self.share = args.spec.share
        self.path = f"/{args.spec.share}"
        instance = filestore_resources(
            args.key, args.spec, args.scope, network=args.network, services=args.services,
            services_range=args.services_range, register=children_of(self),
        )  # fmt: skip
        self.ip = address(instance)
        self.register_outputs({"ip": self.ip, "instance": self.instance, "location": self.location, "path": self.path})


def address(instance: filestore.Instance) -> pulumi.Output[str]:
    """Return an instance's address, unknown until it has an id: its networks may be known before, without any."""

    def existing(_id: str) -> pulumi.Output[str]:
        return instance.networks.apply(first_address)

    return instance.id.apply(existing)


def first_address(networks: Sequence[filestore.outputs.InstanceNetwork]) -> str:
    """Return the address of an instance. Raises LookupError where it has none, which no existing instance does."""
    addresses = [address for network in networks for address in network.ip_addresses or ()]
    if not addresses:
        raise LookupError("the Filestore instance has no address")
    return addresses[0]


@dataclass(frozen=True, kw_only=True)
class LustreInstanceArgs:
    """``key`` and ``spec`` are the stack file's; ``services`` is what gives it addresses in the VPC."""

    scope: Scope
    key: str
    spec: LustreSpec
    network: pulumi.Input[str]
    services: Sequence[pulumi.Resource]


class LustreInstance(pulumi.ComponentResource):
    """A Managed Lustre instance; all of its data is lost when location, throughput, file system or key change."""

    ip: pulumi.Output[str]
    instance: str

    def __init__(self, name: str, args: LustreInstanceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:storage:LustreInstance", name, {}, opts)
        self.instance = instance_id(args.key, args.scope)
        declared = lustre_instance(args.key, args.spec, args.scope, args.network)
        self.ip = register(declared, self, args.services).mount_point.apply(lustre_address)
        self.register_outputs({"ip": self.ip, "instance": self.instance})


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
        bucket = register(team_bucket(args.key, args.spec, args.scope), self)
        self.bucket_name = bucket.name
        self.url = f"gs://{bucket_id(args.scope, args.key)}"
        self.register_outputs({"bucket_name": self.bucket_name, "url": self.url})


@dataclass(frozen=True, kw_only=True)
class ImageRepositoryArgs:
    """``spec`` is the stack file's."""

    scope: Scope
    spec: environment.ImageRepositorySpec


class ImageRepository(pulumi.ComponentResource):
    """An Artifact Registry repository for container images, with its caches and those of foreign registries.

    Clean-up deletes what has had no tag for 30 days, but never the newest versions of an image. Everything about it is
    known before it exists, so that a team stack can name it without asking.
    """

    location: str
    repository_id: str
    url: str

    def __init__(self, name: str, args: ImageRepositoryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:storage:ImageRepository", name, {}, opts)
        self.location = args.spec.location
        self.repository_id = repository_id(args.scope.environment)
        self.url = repository_url(args.scope.environment, args.scope.project, args.spec.location)
        image_repositories(name, args.spec, args.scope, children_of(self))
        self.register_outputs({"repository_id": self.repository_id, "url": self.url})


@dataclass(frozen=True, kw_only=True)
class SecretArgs:
    """``key`` is its name in the stack file, ``reader`` the IAM member that jobs run as."""

    scope: Scope
    key: str
    reader: pulumi.Input[str]


class Secret(pulumi.ComponentResource):
    """A secret without a version; the team's jobs may read those that people add."""

    def __init__(self, name: str, args: SecretArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:storage:Secret", name, {}, opts)
        secret = register(team_secret(args.key, args.scope), self)
        secretmanager.SecretIamMember(
            f"{name}-jobs",
            project=args.scope.project,
            secret_id=secret.secret_id,
            role=ACCESSOR,
            member=args.reader,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
