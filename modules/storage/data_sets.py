"""Data sets: disks of the environment, and a team's volumes of all that it reads."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute
from pulumi_kubernetes import core, meta

from modules.manifest import metadata
from modules.register import register
from training_platform.config.names import data_claim
from training_platform.config.spec.environment import Environment
from training_platform.config.spec.storage import DataSetSpec, HyperdiskData
from training_platform.resources.manifest import labels
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
    """``mode`` is how the team mounts it; ``address`` that of the Filestore instance that it is on, if any.

    ``home`` is the scope of the environment, whose disks and instances these are.
    """

    scope: Scope
    home: Scope
    environment: Environment
    key: str
    spec: DataSetSpec
    mode: str
    namespace: pulumi.Input[str]
    address: pulumi.Input[str] | None


class DataVolume(pulumi.ComponentResource):
    """A PersistentVolume of a data set for one namespace, and the claim that it is reserved for."""

    def __init__(self, name: str, args: DataVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:storage:DataVolume", name, {}, opts)
        claim, of_class = data_claim(args.key), data_sets.volume_class(args.spec)
        volume_name = pulumi.Output.concat(args.namespace, ".", claim)
        size = data_sets.volume_size(args.spec)
        source = data_sets.volume_source(args.key, args.spec, args.environment, args.home, args.address)
        volume = core.v1.PersistentVolume(
            f"{name}-volume",
            metadata=meta.v1.ObjectMetaArgs(name=volume_name, labels=labels(args.scope)),
            spec=core.v1.PersistentVolumeSpecArgs(
                access_modes=[args.mode],
                capacity={"storage": size},
                persistent_volume_reclaim_policy="Retain",
                storage_class_name=of_class,
                volume_mode="Filesystem",
                claim_ref=core.v1.ObjectReferenceArgs(namespace=args.namespace, name=claim),
                mount_options=data_sets.mount_options(args.spec),
                csi=core.v1.CSIPersistentVolumeSourceArgs(**source["csi"]) if "csi" in source else None,
                nfs=core.v1.NFSVolumeSourceArgs(**source["nfs"]) if "nfs" in source else None,
            ),
            opts=_remade(self, "spec"),
        )
        core.v1.PersistentVolumeClaim(
            f"{name}-claim",
            metadata=metadata(args.scope, claim, args.namespace),
            spec=core.v1.PersistentVolumeClaimSpecArgs(
                access_modes=[args.mode],
                resources=core.v1.VolumeResourceRequirementsArgs(requests={"storage": size}),
                storage_class_name=of_class,
                volume_mode="Filesystem",
                volume_name=volume.metadata.apply(lambda made: made.name or ""),
            ),
            opts=_remade(self, "spec"),
        )
        self.register_outputs({})


def _remade(parent: pulumi.Resource, path: str) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(
        parent=parent,
        # Kubernetes refuses most changes of a volume; no data is touched, but pods in use hold it up.
        replace_on_changes=[path],
        # The names are fixed, and taken until the old objects are gone.
        delete_before_replace=True,
    )
