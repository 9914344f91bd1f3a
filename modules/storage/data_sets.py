"""Data sets: disks of the environment, and a team's volumes of all that it reads."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute
from pulumi_kubernetes import core

from modules.register import register
from modules.storage.claimed_volume import ClaimedVolume, register_claimed_volume
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import HyperdiskData
from training_platform.config.names import data_claim
from training_platform.resources.scope import Scope
from training_platform.resources.storage import data_sets


class DataDisk(pulumi.ComponentResource):
    """The Hyperdisk ML volume of a data set."""

    def __init__(
        self, name: str, key: str, spec: HyperdiskData, scope: Scope, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("training-platform:storage:DataDisk", name, {}, opts)
        register(compute.Disk, data_sets.data_disk(key, spec, scope), self)
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class DataVolumeArgs:
    """``mode`` is how the team mounts it; ``address`` that of the environment's instance that it is on, if any.

    ``home`` is the scope of the environment, whose disks and instances these are.
    """

    scope: Scope
    home: Scope
    environment: Environment
    key: str
    mode: str
    namespace: pulumi.Input[str]
    address: pulumi.Input[str] | None


class DataVolume(pulumi.ComponentResource):
    """A PersistentVolume of a data set for one namespace, and the claim that it is reserved for."""

    def __init__(self, name: str, args: DataVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:storage:DataVolume", name, {}, opts)
        spec = args.environment.data_sets[args.key]
        source = data_sets.volume_source(args.key, args.environment, args.home, args.address)
        volume = ClaimedVolume(
            scope=args.scope,
            namespace=args.namespace,
            claim=data_claim(args.key),
            access_mode=args.mode,
            size=data_sets.volume_size(spec),
            storage_class=data_sets.volume_class(spec),
            mount_options=data_sets.mount_options(spec),
            zone=spec.hyperdisk_ml.zone if spec.hyperdisk_ml else None,
            csi=core.v1.CSIPersistentVolumeSourceArgs(**source["csi"]) if "csi" in source else None,
            nfs=core.v1.NFSVolumeSourceArgs(**source["nfs"]) if "nfs" in source else None,
        )
        register_claimed_volume(name, volume, self)
        self.register_outputs({})
