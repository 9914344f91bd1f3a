"""A Filestore instance as a volume that pods of one namespace mount."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import core, meta

from modules.filestore.storage_class import PROVISIONER
from modules.manifest import metadata
from training_platform.config.spec.storage import FilestoreSpec
from training_platform.resources.filestore.instance import instance_name
from training_platform.resources.manifest import labels
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class FilestoreVolumeArgs:
    """``key`` and ``spec`` are the environment's; ``ip`` is all that only a deployment can tell of the instance.

    ``namespace`` is the name of an existing namespace, best as that resource's output, so that it comes first.
    """

    scope: Scope
    key: str
    spec: FilestoreSpec
    ip: pulumi.Input[str]
    namespace: pulumi.Input[str]
    claim: str
    size_gib: int


class FilestoreVolume(pulumi.ComponentResource):
    """A PersistentVolume, ``{namespace}.{claim}``, and the claim that it is reserved for.

    All claims on an instance mount the root of its one share. Unless it is one team's alone, admission holds the
    pods of each to a folder of the team's name (``subPath: {team}/...``, which the kubelet makes as root); the
    nodes and whoever reaches the instance's address see it all, and root is not squashed, since it makes the folders.
    The size is nominal: Filestore enforces none. A pod mounts one claim of an instance only, since the node knows a
    volume by its handle and would wait for the second for ever (general knowledge, not tried).
    """

    claim: str

    def __init__(self, name: str, args: FilestoreVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:filestore:FilestoreVolume", name, {}, opts)
        self.claim = args.claim
        # A dot, which neither part can have: vision and x-data are not vision-x and data.
        volume_name = pulumi.Output.concat(args.namespace, ".", args.claim)
        volume = core.v1.PersistentVolume(
            f"{name}-volume",
            metadata=meta.v1.ObjectMetaArgs(name=volume_name, labels=labels(args.scope)),
            spec=volume_spec(args),
            opts=_remade(self, "spec.capacity"),
        )
        core.v1.PersistentVolumeClaim(
            f"{name}-claim",
            metadata=metadata(args.scope, args.claim, args.namespace),
            # The name as an output: a new volume makes a new claim, since it would wait for the old one's uid.
            spec=claim_spec(args.size_gib, volume.metadata.apply(lambda made: made.name or "")),
            opts=_remade(self, "spec.resources"),
        )
        self.register_outputs({"claim": self.claim})


def _remade(parent: pulumi.Resource, size: str) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(
        parent=parent,
        # Kubernetes refuses to resize a volume that it did not make. No data is touched, but pods in use hold it up.
        replace_on_changes=[size],
        # The names are fixed, and taken until the old objects are gone.
        delete_before_replace=True,
    )


def volume_handle(environment: str, key: str, spec: FilestoreSpec) -> str:
    """Return what the driver knows an existing instance by.

    Source: GKE page on the Filestore CSI driver, and driver 2edb466 (2026-06-24), ``getFileInstanceFromID``.
    """
    return f"modeInstance/{spec.location}/{instance_name(environment, key)}/{spec.share}"


def volume_spec(args: FilestoreVolumeArgs) -> core.v1.PersistentVolumeSpecArgs:
    """Return a volume that many nodes write to, that survives its claim, and that only this claim may take."""
    return core.v1.PersistentVolumeSpecArgs(
        access_modes=["ReadWriteMany"],
        capacity={"storage": f"{args.size_gib}Gi"},
        persistent_volume_reclaim_policy="Retain",
        storage_class_name="",
        volume_mode="Filesystem",
        claim_ref=core.v1.ObjectReferenceArgs(namespace=args.namespace, name=args.claim),
        csi=core.v1.CSIPersistentVolumeSourceArgs(
            driver=PROVISIONER,
            volume_handle=volume_handle(args.scope.environment, args.key, args.spec),
            volume_attributes={"ip": args.ip, "volume": args.spec.share, "fileProtocol": args.spec.protocol},
        ),
    )


def claim_spec(size_gib: int, volume: pulumi.Input[str]) -> core.v1.PersistentVolumeClaimSpecArgs:
    """Return a claim on that very volume; the empty class keeps the cluster's default class from making another."""
    return core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=core.v1.VolumeResourceRequirementsArgs(requests={"storage": f"{size_gib}Gi"}),
        storage_class_name="",
        volume_mode="Filesystem",
        volume_name=volume,
    )
