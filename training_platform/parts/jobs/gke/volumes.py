"""The volumes of a job's pods: mounts of its storage, /dev/shm, and local checkpoints.

Source: kubernetes-sigs/gcp-filestore-csi-driver and GoogleCloudPlatform/gcs-fuse-csi-driver 5fcdc04, docs of their
annotations and volume attributes, read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from training_platform.config.names import data_claim
from training_platform.parts.jobs.container import mount_path, share_folder
from training_platform.parts.jobs.gke.gke_job import GkeJob
from training_platform.parts.jobs.gke.pod_sizes import Parts
from training_platform.parts.jobs.job_model import Mount
from training_platform.resources.scope import bucket_id

FUSE_DRIVER: Final = "gcsfuse.csi.storage.gke.io"
SHARED_MEMORY: Final = "shared-memory"
SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 # the pod's own folder
LOCAL_CHECKPOINTS: Final = "local-checkpoints"
LOCAL_CHECKPOINTS_PATH: Final = "/local-checkpoints"
LOCAL_CHECKPOINTS_VARIABLE: Final = "LOCAL_CHECKPOINT_DIR"
# The sidecar's defaults, 250m and 256Mi, slow a job that reads a lot; 0 is no limit.
_FUSE_ANNOTATIONS = {
    "gke-gcsfuse/volumes": "true",
    "gke-gcsfuse/cpu-limit": "0",
    "gke-gcsfuse/memory-limit": "0",
    "gke-gcsfuse/ephemeral-storage-limit": "0",
}
_FUSE_OPTIONS = "implicit-dirs"  # prefixes of object names count as folders


@dataclass(frozen=True, kw_only=True)
class Volumes:
    """The parts of a pod that define its storage. ``mounts`` are those of the training container."""

    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)


def volumes(job: GkeJob, parts: Parts | None = None, *, chips: int) -> Volumes:
    """Return the volumes of a job's pods. Each pod has ``chips`` accelerators."""
    every = list(_storage(job))
    if (memory := shared_memory(job, parts, chips=chips)) is not None:
        every.append((memory, {"name": SHARED_MEMORY, "mountPath": SHARED_MEMORY_PATH}))
    if local := job.spec.local_checkpoints:
        medium = {"medium": "Memory"} if local.medium == "memory" else {}
        folder = {"name": LOCAL_CHECKPOINTS, "emptyDir": {**medium, "sizeLimit": f"{local.size_gib}Gi"}}
        every.append((folder, {"name": LOCAL_CHECKPOINTS, "mountPath": LOCAL_CHECKPOINTS_PATH}))
    data_sets = job.environment.data_sets
    sources = [mount.source for mount in job.spec.mounts]
    fuse = any(source.bucket or (source.data_set and data_sets[source.data_set].bucket) for source in sources)
    return Volumes(
        volumes=[volume for volume, _ in every],
        mounts=[mount for _, mount in every],
        annotations=dict(_FUSE_ANNOTATIONS) if fuse else {},
    )


def shared_memory(job: GkeJob, parts: Parts | None = None, *, chips: int) -> dict[str, Any] | None:
    """Return the volume for /dev/shm, or None for a job without accelerators and data loaders, where 64 MiB suffice.

    PyTorch's data loaders pass batches through /dev/shm, and fail with a bus error if it is full. Its content counts as
    the container's memory.
    """
    size = job.spec.shared_memory_gib
    if size == 0 or (size is None and not chips and not job.spec.data_loaders):
        return None
    size = size or (parts.shared_memory if parts else None)
    limit = {"sizeLimit": f"{size}Gi"} if size else {}
    return {"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory", **limit}}


def _storage(job: GkeJob) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the volume and the container's mount for each mount of the job."""
    for mount in job.spec.mounts:
        name = f"mount-{mount.name}"
        inside: dict[str, Any] = {"name": name, "mountPath": mount_path(job, mount)}
        if mount.read_only:
            inside["readOnly"] = True
        if directory := mount.source.directory:
            if folder := share_folder(job, directory):
                inside["subPath"] = folder
            yield {"name": name, "persistentVolumeClaim": {"claimName": directory}}, inside
        elif data_set := mount.source.data_set:
            claim: dict[str, Any] = {"claimName": data_claim(data_set)}
            if mount.read_only or job.environment.data_sets[data_set].writer != job.team.name:
                claim["readOnly"] = inside["readOnly"] = True
            yield {"name": name, "persistentVolumeClaim": claim}, inside
        elif bucket := mount.source.bucket:
            yield {"name": name, "csi": _fuse(job, bucket_id(job.scope, bucket), mount)}, inside


def _fuse(job: GkeJob, bucket: str, mount: Mount) -> dict[str, Any]:
    """Return the driver's part of a volume. On the host's network, an option makes the driver use the pod's account."""
    host = {"hostNetworkPodKSA": "true"} if job.gke.host_network else {}
    cache = {"fileCacheCapacity": f"{mount.file_cache_gib}Gi", "fileCacheForRangeRead": "true"}
    attributes = {"bucketName": bucket, "mountOptions": _FUSE_OPTIONS}
    if mount.file_cache_gib:
        attributes |= cache
    volume: dict[str, Any] = {"driver": FUSE_DRIVER}
    if mount.read_only:
        volume["readOnly"] = True
    return {**volume, "volumeAttributes": attributes | host}
