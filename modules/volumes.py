"""Volumes in a cluster: a PersistentVolume of storage that is there already with its one claim, and StorageClasses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import core, meta, storage

from modules.kubernetes_objects import metadata
from modules.register import register, resource_options
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import FilestoreSpec, HyperdiskData
from training_platform.config.names import data_claim
from training_platform.resources import data_sets
from training_platform.resources.declared import Declared
from training_platform.resources.filestore import PROVISIONER, instance_name
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class ClaimedVolume:
    """The fields of a volume and its claim: where the storage is, by one of ``csi`` and ``nfs``, and who claims it.

    ``size`` is a Kubernetes quantity. An empty ``storage_class`` keeps the cluster's default class from making another
    volume. A change of ``volume_fields`` and ``claim_fields`` replaces the objects, since Kubernetes refuses it.
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
            volume_name=volume.metadata.apply(lambda created: created.name or ""),
        ),
        opts=_replaced(parent, args.claim_fields),
    )


def _in_zone(zone: str) -> core.v1.VolumeNodeAffinityArgs:
    """Return the affinity to a zone; the label is the Persistent Disk driver's own, which GKE's nodes have."""
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


@dataclass(frozen=True, kw_only=True)
class FilestoreVolumeArgs:
    """``key`` and ``spec`` are the environment's; ``ip`` is all that only a deployment can tell of the instance.

    ``namespace`` is the name of an existing namespace, best as that resource's output, so that it is created first.
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
    """Return the handle by which the driver knows an existing instance.

    Source: GKE page on the Filestore CSI driver, and driver 2edb466 (2026-06-24), ``getFileInstanceFromID``.
    """
    return f"modeInstance/{spec.location}/{instance_name(environment, key)}/{spec.share}"


class DataDisk(pulumi.ComponentResource):
    """The Hyperdisk ML volume of a data set."""

    def __init__(
        self, name: str, key: str, spec: HyperdiskData, scope: Scope, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("training-platform:storage:DataDisk", name, {}, opts)
        register(data_sets.data_disk(key, spec, scope), self)
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


class FilestoreClass(pulumi.ComponentResource):
    """A StorageClass of one Filestore tier, as ``resources.filestore.classes`` declares it.

    GKE's own classes (``zonal-rwx`` and so on) make instances in the VPC called default, which nodes here cannot reach.
    """

    class_name: str

    def __init__(self, name: str, declared: Declared, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:filestore:FilestoreClass", name, {}, opts)
        inputs = declared.inputs
        self.class_name = inputs["metadata"]["name"]
        storage.v1.StorageClass(
            declared.name,
            metadata=inputs["metadata"],
            provisioner=inputs["provisioner"],
            parameters=inputs["parameters"],
            volume_binding_mode=inputs["volumeBindingMode"],
            allow_volume_expansion=inputs["allowVolumeExpansion"],
            reclaim_policy=inputs["reclaimPolicy"],
            opts=resource_options(declared, self, ()),
        )
        self.register_outputs({"class_name": self.class_name})
