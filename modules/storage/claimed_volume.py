"""A PersistentVolume of storage that is there already, and the one claim that it is reserved for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import core, meta

from modules.manifest import metadata
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class ClaimedVolume:
    """What volume and claim say: where the storage is, by one of ``csi`` and ``nfs``, and who claims it.

    ``size`` is a Kubernetes quantity. An empty ``storage_class`` keeps the cluster's default class from making another
    volume. ``volume_fields`` and ``claim_fields`` are what a change of makes them anew, since Kubernetes refuses it.
    """

    scope: Scope
    namespace: pulumi.Input[str]
    claim: str
    access_mode: str
    size: str
    csi: core.v1.CSIPersistentVolumeSourceArgs | None = None
    nfs: core.v1.NFSVolumeSourceArgs | None = None
    storage_class: str = ""
    mount_options: Sequence[str] | None = None
    zone: str | None = None  # of the only VMs that mount it
    volume_fields: str = "spec"
    claim_fields: str = "spec"


def register_claimed_volume(name: str, args: ClaimedVolume, parent: pulumi.Resource) -> None:
    """Register ``{name}-volume``, which survives its claim and which no other may take, and ``{name}-claim``."""
    # A dot, which neither part can have: vision and x-data are not vision-x and data.
    volume_name = pulumi.Output.concat(args.namespace, ".", args.claim)
    volume = core.v1.PersistentVolume(
        f"{name}-volume",
        metadata=meta.v1.ObjectMetaArgs(name=volume_name, labels=dict(args.scope.kubernetes_labels)),
        spec=core.v1.PersistentVolumeSpecArgs(
            access_modes=[args.access_mode],
            capacity={"storage": args.size},
            persistent_volume_reclaim_policy="Retain",
            storage_class_name=args.storage_class,
            volume_mode="Filesystem",
            claim_ref=core.v1.ObjectReferenceArgs(namespace=args.namespace, name=args.claim),
            mount_options=args.mount_options,
            node_affinity=_in_zone(args.zone) if args.zone else None,
            csi=args.csi,
            nfs=args.nfs,
        ),
        opts=_replaced(parent, args.volume_fields),
    )
    core.v1.PersistentVolumeClaim(
        f"{name}-claim",
        metadata=metadata(args.scope, args.claim, args.namespace),
        spec=core.v1.PersistentVolumeClaimSpecArgs(
            access_modes=[args.access_mode],
            resources=core.v1.VolumeResourceRequirementsArgs(requests={"storage": args.size}),
            storage_class_name=args.storage_class,
            volume_mode="Filesystem",
            # The name as an output: a new volume makes a new claim, since it would wait for the old one's uid.
            volume_name=volume.metadata.apply(lambda made: made.name or ""),
        ),
        opts=_replaced(parent, args.claim_fields),
    )


def _in_zone(zone: str) -> core.v1.VolumeNodeAffinityArgs:
    """Return what holds pods to a zone; the label is the Persistent Disk driver's own, which GKE's nodes have."""
    wanted = core.v1.NodeSelectorRequirementArgs(key="topology.gke.io/zone", operator="In", values=[zone])
    term = core.v1.NodeSelectorTermArgs(match_expressions=[wanted])
    return core.v1.VolumeNodeAffinityArgs(required=core.v1.NodeSelectorArgs(node_selector_terms=[term]))


def _replaced(parent: pulumi.Resource, fields: str) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(
        parent=parent,
        # No data is touched, but pods in use hold it up.
        replace_on_changes=[fields],
        # The names are fixed, and taken until the old objects are gone.
        delete_before_replace=True,
    )
