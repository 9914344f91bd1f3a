"""Volumes in a cluster: a PersistentVolume for existing storage, and the only PersistentVolumeClaim that may use it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training_platform.config.expansion import SYSTEM_TAINT
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.names import data_claim
from training_platform.resources import data_sets
from training_platform.resources.kubernetes_objects import PERSISTENT_VOLUME, kubernetes_object, object_type
from training_platform.resources.plan import Component, Options, Resource, text
from training_platform.resources.resource_types import PERSISTENT_VOLUME_CLAIM
from training_platform.resources.scope import TEAM_GROUP, Scope

FILESTORE_VOLUME = "training-platform:filestore:FilestoreVolume"
DATA_VOLUME = "training-platform:storage:DataVolume"


@dataclass(frozen=True, kw_only=True)
class ClaimedVolume:
    """The fields of a volume and its claim; ``source`` is the storage, as ``csi`` or ``nfs``.

    ``size`` is a Kubernetes quantity. An empty ``storage_class`` prevents the cluster's default class from creating
    another volume. A change of the spec replaces the objects, because Kubernetes refuses to change it.
    """

    scope: Scope
    namespace: Any
    claim: str
    access_mode: str
    size: str
    source: Mapping[str, Any]
    storage_class: str = ""
    mount_options: Sequence[str] | None = None
    zone: str | None = None  # of the only VMs that mount it


def claimed_volume(into: Component, args: ClaimedVolume) -> None:
    """Add a volume and its claim. The volume survives its claim, and no other claim may use it."""
    shared = {
        "accessModes": [args.access_mode],
        "storageClassName": args.storage_class,
        "volumeMode": "Filesystem",
    }
    volume_spec = {
        **shared,
        "capacity": {"storage": args.size},
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": args.namespace, "name": args.claim},
        "mountOptions": args.mount_options,
        "nodeAffinity": _in_zone(args.zone) if args.zone else None,
        **args.source,
    }
    # A dot, which neither part can have: vision and x-data are not vision-x and data.
    volume_name = text("{}.{}", args.namespace, args.claim)
    volume = into.add(
        kubernetes_object(
            PERSISTENT_VOLUME,
            f"{into.name}-volume",
            args.scope,
            volume_name,
            {"spec": volume_spec},
            options=_replaced("spec"),
        )
    )
    claim_spec = {
        **shared,
        "resources": {"requests": {"storage": args.size}},
        # The name as an output: a new volume makes a new claim, since it would wait for the old one's uid.
        "volumeName": volume.output("metadata", "name"),
    }
    into.add(
        kubernetes_object(
            PERSISTENT_VOLUME_CLAIM,
            f"{into.name}-claim",
            args.scope,
            args.claim,
            {"spec": claim_spec},
            namespace=args.namespace,
            options=_replaced("spec"),
        )
    )


def _in_zone(zone: str) -> dict[str, Any]:
    """Return a volume's node affinity to a zone, with the label that the Persistent Disk driver uses on GKE nodes."""
    in_zone = {"key": "topology.gke.io/zone", "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [in_zone]}]}}


def _replaced(fields: str) -> Options:
    return Options(
        # No data is touched, but pods in use hold it up.
        replace_on_changes=(fields,),
        # The names are fixed, and taken until the old objects are gone.
        delete_before_replace=True,
    )


def filestore_volume(
    into: Component,
    scope: Scope,
    spec: FilestoreSpec,
    *,
    address: Any,
    namespace: Any,
    claim: str,
    size_gib: int,
    folder: str = "",
) -> None:
    """Add a PersistentVolume, ``{namespace}.{claim}``, on an instance of the environment, and its claim.

    ``spec`` describes the instance. Pass an output of the namespace, so that it is created first. The size is nominal:
    Filestore does not enforce it.

    The volume is plain NFS of a folder of the share, or of the whole share. A pod cannot reach files outside the
    folder, not even through a link, because the kubelet allows no path to leave the volume. The Filestore driver can
    only mount whole shares, and only once per node for all volumes of a share. Nodes and all clients that reach the
    instance's address can access the whole share, and root is not squashed.

    Source: kubernetes v1.36.3, pkg/volume/util/subpath, and gcp-filestore-csi-driver 2edb466, NodeStageVolume.
    """
    volume = ClaimedVolume(
        scope=scope,
        namespace=namespace,
        claim=claim,
        access_mode="ReadWriteMany",
        size=f"{size_gib}Gi",
        source={"nfs": {"server": address, "path": f"/{spec.share}/{folder}".removesuffix("/")}},
        mount_options=["nfsvers=4.1" if spec.protocol == "NFS_V4_1" else "nfsvers=3"],
    )
    claimed_volume(into, volume)


JOB = object_type("batch/v1", "Job")
FOLDER_NAMESPACE = "default"  # where no team has rights, and no policy of theirs holds
_SHARE = {"name": "share", "mountPath": "/share"}


def team_folder(
    name: str,
    scope: Scope,
    spec: FilestoreSpec,
    *,
    address: Any,
    team: str,
    directories: Collection[str],
    instance: str,
    image: str,
) -> Resource:
    """Return the Job that creates a team's folder on a shared instance. A missing folder cannot be mounted.

    It also creates the folders of the team's ``directories``, writable by the team's group. If the kubelet created
    them, only root could write to them, and NFS does not support fsGroup. The Job mounts the whole share as root, and
    NFS must allow root to create folders. ``image`` contains ``install`` of coreutils or busybox.

    Source: kubernetes v1.36.3, pkg/volume/util/subpath, SafeMakeDir, under the kubelet's umask; pkg/volume/nfs.
    """
    folders = [f"{_SHARE['mountPath']}/{folder}" for folder in (team, *(f"{team}/{name}" for name in directories))]
    container = {
        "name": "folder",
        "image": image,
        "command": ["install", "-d", "-m", "2775", "-g", str(TEAM_GROUP), *folders],
        "volumeMounts": [_SHARE],
    }
    pod = {
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": False,
        "tolerations": [{"key": SYSTEM_TAINT[0], "operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": _SHARE["name"], "nfs": {"server": address, "path": f"/{spec.share}"}}],
    }
    spec_of_job = {"spec": {"template": {"spec": pod}}}
    options = _replaced("spec")
    job = f"{team}.{instance}.folder"
    return kubernetes_object(JOB, name, scope, job, spec_of_job, namespace=FOLDER_NAMESPACE, options=options)


def data_volume(
    into: Component,
    scope: Scope,
    home: Scope,
    environment: Environment,
    key: str,
    *,
    mode: str,
    namespace: Any,
    address: Any,
) -> None:
    """Add a PersistentVolume of a data set for one namespace, and the claim for which it is reserved.

    ``mode`` is the access mode for the team. ``address`` is the address of the environment's instance that contains the
    data set, if any. ``home`` is the scope of the environment, which owns these disks and instances.
    """
    spec = environment.data_sets[key]
    volume = ClaimedVolume(
        scope=scope,
        namespace=namespace,
        claim=data_claim(key),
        access_mode=mode,
        size=data_sets.volume_size(spec),
        source=data_sets.volume_source(key, environment, home, address),
        storage_class=data_sets.volume_class(spec),
        mount_options=data_sets.mount_options(spec),
        zone=spec.hyperdisk_ml.zone if spec.hyperdisk_ml else None,
    )
    claimed_volume(into, volume)
