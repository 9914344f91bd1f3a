"""StorageClasses for claims that make a Filestore instance of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
from pulumi_kubernetes import storage

from modules.manifest import metadata
from training_platform.catalog import FILESTORE_TIERS
from training_platform.resources.filestore.classes import tier_class
from training_platform.resources.scope import Scope

PROVISIONER = "filestore.csi.storage.gke.io"


@dataclass(frozen=True, kw_only=True)
class FilestoreClassArgs:
    """``network`` is the VPC's name, without project or path, or its id where it is another project's.

    ``name`` is the class's, default: after its tier.
    """

    scope: Scope
    tier: str
    network: pulumi.Input[str]
    key: str | None = None  # of Cloud KMS, for instances that claims make
    name: str | None = None
    shares: Mapping[str, str] = field(default_factory=dict)  # parameters of shares of an instance
    annotations: Mapping[str, str] | None = None
    private: bool = False  # joins by private service access, as a Shared VPC wants it


class FilestoreClass(pulumi.ComponentResource):
    """A StorageClass of one Filestore tier, called ``filestore-{tier}`` unless it has a name of its own.

    GKE's own classes (``zonal-rwx`` and so on) make instances in the VPC called default, which nodes here cannot reach.
    """

    class_name: str

    def __init__(self, name: str, args: FilestoreClassArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:filestore:FilestoreClass", name, {}, opts)
        self.class_name = args.name or tier_class(args.tier)
        storage.v1.StorageClass(
            f"{name}-class",
            metadata=metadata(args.scope, self.class_name, annotations=args.annotations),
            provisioner=PROVISIONER,
            parameters={
                "tier": FILESTORE_TIERS[args.tier].csi_tier,
                "network": args.network,
                "labels": instance_labels(args.scope),
                **({"connect-mode": "PRIVATE_SERVICE_ACCESS"} if args.private else {}),
                **({"instance-encryption-kms-key": args.key} if args.key else {}),
                **args.shares,
            },
            # The instance of a zonal tier belongs into the zone of the first pod that mounts it.
            volume_binding_mode="WaitForFirstConsumer",
            allow_volume_expansion=True,
            reclaim_policy="Retain" if args.scope.deletion_protection else "Delete",
            opts=pulumi.ResourceOptions(
                parent=self,
                # Kubernetes refuses the change, and the provider knows only of parameters and provisioner.
                replace_on_changes=["reclaimPolicy"],
                # The name is fixed, and taken until the old class is gone; volumes outlive their class.
                delete_before_replace=True,
            ),
        )
        self.register_outputs({"class_name": self.class_name})


def instance_labels(scope: Scope) -> str:
    """Return the labels of instances that claims make, as the driver takes them: ``a=1,b=2``.

    Source: Filestore CSI driver 2edb466 (2026-06-24), ``ConvertLabelsStringToMap``.
    """
    return ",".join(f"{key}={value}" for key, value in sorted(scope.labels.items()))
