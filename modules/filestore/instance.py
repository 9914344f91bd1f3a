"""A Filestore instance: NFS that homes and data sets of many pods live on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import backupdisasterrecovery, filestore

from modules.register import register
from training_platform.config.model.storage import FilestoreSpec
from training_platform.resources.filestore.backups import backup_association, backup_plan, backup_vault
from training_platform.resources.filestore.instance import filestore_instance, filestore_snapshots, instance_name
from training_platform.resources.scope import Scope


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
        declared = filestore_instance(args.key, args.spec, args.scope, args.network, args.services_range)
        # An instance that joins by private service access wants that to be there; its name alone says nothing of it.
        private = args.spec.connection == "private-service-access"
        instance = register(filestore.Instance, declared, self, [args.services] if args.services and private else [])
        for snapshot in filestore_snapshots(args.key, args.spec, args.scope, instance.name):
            register(filestore.Snapshot, snapshot, self)
        self._backups(args, instance)
        self.ip = address(instance)
        self.register_outputs({"ip": self.ip, "instance": self.instance, "location": self.location, "path": self.path})

    def _backups(self, args: FilestoreInstanceArgs, instance: filestore.Instance) -> None:
        backups = args.spec.backups
        if backups is None:
            return
        place = (args.key, args.spec)
        vault = register(backupdisasterrecovery.BackupVault, backup_vault(*place, backups, args.scope), self)
        plan = register(backupdisasterrecovery.BackupPlan, backup_plan(*place, backups, args.scope, vault.id), self)
        tie = backup_association(*place, args.scope, instance.id, plan.id)
        register(backupdisasterrecovery.BackupPlanAssociation, tie, self)


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
