"""Data sets: their disks in an environment, and the volumes with which teams mount them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from training_platform.catalog.locations import region_of
from training_platform.config.data_sets import READ, WRITE, access_mode, data_location
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import BucketData, DataSetSpec, HyperdiskData, LustreData
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.plan import Options, Resource
from training_platform.resources.scope import NAME_LIMIT, Scope, short_name
from training_platform.resources.storage import instance_id

FUSE = "gcsfuse.csi.storage.gke.io"
DISKS = "pd.csi.storage.gke.io"
LUSTRE = "lustre.csi.storage.gke.io"
# Folders may exist only in names of objects. Metadata is cached without expiry, since data does not change under its
# readers. Source: Cloud Storage FUSE docs, profile for training, read 2026-11-22.
FUSE_OPTIONS = ("implicit-dirs", "metadata-cache:ttl-secs:-1")
NOMINAL_GIB = 1  # the size of volumes without a known size; no driver here enforces it


def data_disk(key: str, spec: HyperdiskData, scope: Scope) -> Resource:
    """Return the Hyperdisk ML disk of a data set. One VM writes to it until it is filled; then many read from it."""
    encryption = scope.key(spec.zone)
    # Filling it again takes hours. The name is fixed, and taken until the old disk is gone.
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)
    return gcp.disk(
        f"{declared_name('data_sets', key)}-disk",
        options,
        name=disk_name(key, scope),
        project=scope.project,
        zone=spec.zone,
        type="hyperdisk-ml",
        size=spec.size_gib,
        provisioned_throughput=spec.throughput_mibps,
        access_mode="READ_ONLY_MANY" if spec.filled else "READ_WRITE_SINGLE",
        labels=scope.labels,
        disk_encryption_key={"kms_key_self_link": encryption} if encryption else None,
    )


def disk_name(key: str, scope: Scope) -> str:
    """Return the name of a data set's disk, ``{environment}-data-{key}``."""
    return short_name(f"{scope.environment}-data-{key}", NAME_LIMIT)


def mounted_in(spec: DataSetSpec, environment: Environment, cluster: str) -> bool:
    """Return True if a cluster mounts a data set: buckets from any region, other data sets only in its region."""
    here = region_of(environment.clusters[cluster].location)
    return spec.bucket is not None or region_of(data_location(spec, environment)) == here


def reads_lustre(environment: Environment, cluster: str) -> bool:
    """Return True if a cluster mounts data sets on Managed Lustre and therefore needs its driver."""
    return any(data.lustre and mounted_in(data, environment, cluster) for data in environment.data_sets.values())


def team_mode(spec: DataSetSpec, environment: Environment, cluster: str, team: str) -> str | None:
    """Return the access mode of a data set for a team's pods in a cluster, or None if they do not mount it."""
    mounted = spec.readable_by(team) and mounted_in(spec, environment, cluster)
    return access_mode(spec, team) if mounted else None


class NotebookData(NamedTuple):
    """A data set that notebooks mount, with its bucket or the zone of its disk."""

    bucket: str | None = None
    zone: str | None = None


NotebookDataSets = Mapping[str, NotebookData]  # by name


def team_data_sets(environment: Environment, cluster: str, team: str) -> dict[str, NotebookData]:
    """Return the data sets that a team's notebooks mount read-only in a cluster, except those not filled yet."""
    return {
        key: _notebook_data(data)
        for key, data in environment.data_sets.items()
        if team_mode(data, environment, cluster, team) in (READ, WRITE)
    }


def notebook_data_sets(environment: Environment, cluster: str) -> dict[str, NotebookData]:
    """Return the data sets that all notebooks in a cluster mount: those open to all teams, except disks.

    A disk would bind every notebook to its zone. Buckets are included if the notebooks have a service account.
    """
    notebooks = environment.clusters[cluster].notebooks
    return {
        key: _notebook_data(data)
        for key, data in environment.data_sets.items()
        if not (data.teams or data.hyperdisk_ml)
        and mounted_in(data, environment, cluster)
        and (data.bucket is None or (notebooks is not None and notebooks.buckets))
    }


def _notebook_data(data: DataSetSpec) -> NotebookData:
    return NotebookData(
        bucket=data.bucket.name if data.bucket else None,
        zone=data.hyperdisk_ml.zone if data.hyperdisk_ml else None,
    )


def volume_source(key: str, environment: Environment, scope: Scope, address: Any) -> dict[str, Any]:
    """Return the source of a data set's volume for the volume's spec; ``address`` is the instance's IP address.

    Source: docs of the CSI drivers of Cloud Storage FUSE, Persistent Disk and Managed Lustre for existing volumes, read
    2026-11-22. A folder of Filestore is mounted as plain NFS, and a pod then sees only that folder.
    """
    spec = environment.data_sets[key]
    if spec.bucket:
        attributes = _fuse_attributes(spec.bucket)
        return {"csi": {"driver": FUSE, "volumeHandle": spec.bucket.name, "volumeAttributes": attributes}}
    if spec.hyperdisk_ml:
        handle = f"projects/{environment.project}/zones/{spec.hyperdisk_ml.zone}/disks/{disk_name(key, scope)}"
        return {"csi": {"driver": DISKS, "volumeHandle": handle, "fsType": "ext4"}}
    if spec.lustre:
        handle, filesystem = lustre_place(spec.lustre, environment, scope)
        attributes = {"ip": spec.lustre.address or address, "filesystem": filesystem}
        return {"csi": {"driver": LUSTRE, "volumeHandle": handle, "volumeAttributes": attributes}}
    assert spec.filestore is not None
    share = environment.filestore[spec.filestore.instance].share
    return {"nfs": {"server": address, "path": f"/{share}/{spec.filestore.path}"}}


def lustre_place(spec: LustreData, environment: Environment, scope: Scope) -> tuple[str, str]:
    """Return an instance's handle for the driver, ``{project}/{zone}/{id}``, and the name of its file system.

    Source: GoogleCloudPlatform/lustre-csi-driver 012c2dc, examples/pre-prov, read 2026-11-23.
    """
    if spec.elsewhere:
        return f"{environment.project}/{spec.location}/{spec.instance}", str(spec.filesystem)
    instance = environment.lustre[spec.instance]
    return f"{environment.project}/{instance.location}/{instance_id(spec.instance, scope)}", instance.filesystem


def volume_class(spec: DataSetSpec) -> str:
    """Return the StorageClass of a volume: GKE's class for a bucket's Cloud Storage FUSE profile, or empty for none.

    Source: GKE docs, Cloud Storage FUSE profiles: gcsfusecsi-training and so on, GKE 1.35.1-gke.1616000 and later; the
    driver does not accept a profile as a mount option. Read 2026-11-22.
    """
    return f"gcsfusecsi-{spec.bucket.profile}" if spec.bucket and spec.bucket.profile else ""


def mount_options(spec: DataSetSpec) -> list[str]:
    """Return the mount options of a data set's volume."""
    if spec.bucket is None:
        return []
    options = list(FUSE_OPTIONS)
    if spec.bucket.path:
        options.append(f"only-dir:{spec.bucket.path}")
    return options


def volume_size(spec: DataSetSpec) -> str:
    """Return the size that a volume declares."""
    gib = spec.hyperdisk_ml.size_gib if spec.hyperdisk_ml else spec.size_gib
    return f"{gib or NOMINAL_GIB}Gi"


def _fuse_attributes(bucket: BucketData) -> dict[str, str]:
    if not bucket.file_cache_gib:
        return {}
    return {"fileCacheCapacity": f"{bucket.file_cache_gib}Gi", "fileCacheForRangeRead": "true"}
