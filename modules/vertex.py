"""Vertex AI: persistent resources, Workbench, TensorBoards, metadata stores, and the attachment to the VPC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from modules.register import children_of, register
from training_platform.config.model import team
from training_platform.config.model.team import WorkbenchSpec
from training_platform.resources.environment_outputs import SubnetOutputs
from training_platform.resources.network import attachment_resources
from training_platform.resources.scope import Scope, persistent_resource_id
from training_platform.resources.vertex import metadata_store, persistent_resource, tensorboard, workbench


@dataclass(frozen=True, kw_only=True)
class PersistentResourceArgs:
    """``key`` and ``spec`` are the stack file's."""

    scope: Scope
    key: str
    spec: team.PersistentResourceSpec


class PersistentResource(pulumi.ComponentResource):
    """A Vertex AI persistent resource; jobs name it by ``resource_id``, and their own account.

    Any change of its pools, name or labels replaces it, which cancels the jobs that run on it. Google advises to make
    it anew every 30 days (Vertex AI documentation, read 2026-08).
    """

    resource_id: str
    resource_name: pulumi.Output[str]  # projects/*/locations/*/persistentResources/*

    def __init__(self, name: str, args: PersistentResourceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:vertex:PersistentResource", name, {}, opts)
        self.resource_id = persistent_resource_id(args.scope, args.key)
        declared = persistent_resource(args.key, args.spec, args.scope)
        resource = register(declared, self)
        self.resource_name = resource.id
        self.register_outputs({"resource_id": self.resource_id, "resource_name": self.resource_name})


@dataclass(frozen=True, kw_only=True)
class WorkbenchArgs:
    """``key`` and ``spec`` are the stack file's; ``account`` is whom it acts as."""

    scope: Scope
    key: str
    spec: WorkbenchSpec
    near: pulumi.Output[SubnetOutputs] | None  # the environment's subnet, where ``spec`` names none
    account: Sequence[pulumi.Resource]


class Workbench(pulumi.ComponentResource):
    """A VM with JupyterLab; the data on its disks is lost when its zone, owner, type of disk or key changes."""

    def __init__(self, name: str, args: WorkbenchArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:vertex:Workbench", name, {}, opts)
        network, subnet = (args.near.network, args.near.subnet) if args.near is not None else (None, None)
        declared = workbench(args.key, args.spec, args.scope, network, subnet)
        register(declared, self, args.account)
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class TensorboardArgs:
    """``region`` is also the region of every job that writes to it."""

    scope: Scope
    region: str


class Tensorboard(pulumi.ComponentResource):
    """A Vertex AI TensorBoard; jobs name it by ``resource_name``, which only a deployment can tell."""

    resource_name: pulumi.Output[str]  # projects/*/locations/*/tensorboards/*

    def __init__(self, name: str, args: TensorboardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:vertex:Tensorboard", name, {}, opts)
        created = register(tensorboard(args.region, args.scope), self)
        self.resource_name = created.name
        self.register_outputs({"resource_name": self.resource_name})


class MetadataStore(pulumi.ComponentResource):
    """The metadata store in which Vertex AI keeps experiments and lineage of all teams of a project in a region."""

    def __init__(self, name: str, region: str, scope: Scope, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:vertex:MetadataStore", name, {}, opts)
        register(metadata_store(region, scope), self)
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class VertexAttachmentArgs:
    """``addresses`` are those of the subnet."""

    scope: Scope
    region: str
    addresses: str
    network: pulumi.Input[str]


class VertexAttachment(pulumi.ComponentResource):
    """A network attachment in a region, on a subnet of its own; teams name it by ``environment``."""

    def __init__(
        self,
        name: str,
        args: VertexAttachmentArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("training-platform:network:VertexAttachment", name, {}, opts)
        attachment_resources(args.region, args.addresses, args.scope, args.network, children_of(self))
        self.register_outputs({})
