"""A Filestore instance: NFS that homes and data sets of many pods live on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import filestore

from modules.register import register
from training_platform.config.spec.environment import FilestoreSpec
from training_platform.resources.filestore.instance import filestore_instance, instance_name
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class FilestoreInstanceArgs:
    """``network`` is the VPC's name or id; the provider takes both for the same."""

    scope: Scope
    key: str
    spec: FilestoreSpec
    network: pulumi.Input[str]


class FilestoreInstance(pulumi.ComponentResource):
    """A Filestore instance with its one share, in the VPC by direct peering.

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
        declared = filestore_instance(args.key, args.spec, args.scope, args.network)
        instance = register(filestore.Instance, declared, self)
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
