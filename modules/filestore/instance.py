"""A Filestore instance: NFS that homes and data sets of many pods live on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import filestore

from training_platform.catalog.locations import region_of
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.config.spec.environment import FilestoreSpec
from training_platform.resources.cloud_names import short_name
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
        scope, spec = args.scope, args.spec
        self.instance = instance_name(scope.environment, args.key)
        self.location = spec.location
        self.share = spec.share
        self.path = f"/{spec.share}"
        protected = scope.deletion_protection and spec.deletion_protection
        instance = filestore.Instance(
            f"{name}-instance",
            name=self.instance,
            project=scope.project,
            location=spec.location,
            tier=spec.tier,
            protocol=spec.protocol,
            # The field counts GiB, whatever it is called.
            file_shares=filestore.InstanceFileSharesArgs(name=spec.share, capacity_gb=spec.capacity_gib),
            networks=[network(spec, args.network)],
            labels=scope.labels,
            deletion_protection_enabled=protected,
            deletion_protection_reason=f"deletion_protection of stack {scope.environment}" if protected else None,
            opts=pulumi.ResourceOptions(
                parent=self,
                # Deletion, and so any replacement, loses all data.
                protect=protected,
                # The name is fixed, and taken until the old instance is gone.
                delete_before_replace=True,
                # The provider takes another name for a change in place, sends none of it, and looks for an instance of
                # that name from then on: the old one, with its data, would be lost from sight.
                replace_on_changes=["name"],
                # Short of quota, the provider would otherwise retry in silence for up to ten days.
                custom_timeouts=pulumi.CustomTimeouts(create="30m"),
            ),
        )
        self.ip = address(instance)
        self.register_outputs({"ip": self.ip, "instance": self.instance, "location": self.location, "path": self.path})


def instance_name(environment: str, key: str) -> str:
    """Return an instance's name in the API, ``{environment}-{key}``, which takes 63 characters."""
    return short_name(f"{environment}-{key}", 63)


def reaches(spec: FilestoreSpec, cluster: ClusterSpec) -> bool:
    """Whether a cluster's pods mount an instance: it is in the cluster's region, where traffic is short and cheap."""
    return region_of(spec.location) == region_of(cluster.location)


def network(spec: FilestoreSpec, vpc: pulumi.Input[str]) -> filestore.InstanceNetworkArgs:
    """Return how an instance joins the VPC: peered directly, its address range picked by Google Cloud unless given."""
    return filestore.InstanceNetworkArgs(
        network=vpc,
        modes=["MODE_IPV4"],
        connect_mode="DIRECT_PEERING",
        reserved_ip_range=spec.reserved_range,
    )


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
