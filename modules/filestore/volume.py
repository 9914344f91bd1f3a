"""A Filestore instance as a volume that pods of one namespace mount."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import core

from modules.storage.claimed_volume import ClaimedVolume, register_claimed_volume
from training_platform.config.model.storage import FilestoreSpec
from training_platform.resources.filestore.classes import PROVISIONER
from training_platform.resources.filestore.instance import instance_name
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
        volume = ClaimedVolume(
            scope=args.scope,
            namespace=args.namespace,
            claim=args.claim,
            access_mode="ReadWriteMany",
            size=f"{args.size_gib}Gi",
            csi=core.v1.CSIPersistentVolumeSourceArgs(
                driver=PROVISIONER,
                volume_handle=volume_handle(args.scope.environment, args.key, args.spec),
                volume_attributes={"ip": args.ip, "volume": args.spec.share, "fileProtocol": args.spec.protocol},
            ),
            # Kubernetes refuses to resize a volume that it did not make.
            volume_fields="spec.capacity",
            claim_fields="spec.resources",
        )
        register_claimed_volume(name, volume, self)
        self.register_outputs({"claim": self.claim})


def volume_handle(environment: str, key: str, spec: FilestoreSpec) -> str:
    """Return what the driver knows an existing instance by.

    Source: GKE page on the Filestore CSI driver, and driver 2edb466 (2026-06-24), ``getFileInstanceFromID``.
    """
    return f"modeInstance/{spec.location}/{instance_name(environment, key)}/{spec.share}"
