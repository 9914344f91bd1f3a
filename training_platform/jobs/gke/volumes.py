"""Volumes of a job's pods: directories on Filestore, buckets by Cloud Storage FUSE, and memory as /dev/shm.

Source: kubernetes-sigs/gcp-filestore-csi-driver and GoogleCloudPlatform/gcs-fuse-csi-driver 5fcdc04, docs of their
annotations and volume attributes, read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from training_platform.config.names import data_claim
from training_platform.jobs.mounts import mount_path, share_folder
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.mount import Mount
from training_platform.resources.cloud_names import bucket_id

FUSE_DRIVER: Final = "gcsfuse.csi.storage.gke.io"
SHARED_MEMORY: Final = "shared-memory"
SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 # the pod's own
# The sidecar's defaults, 250m and 256Mi, hold back a job that reads much; 0 is no limit.
_FUSE_ANNOTATIONS = {
    "gke-gcsfuse/volumes": "true",
    "gke-gcsfuse/cpu-limit": "0",
    "gke-gcsfuse/memory-limit": "0",
    "gke-gcsfuse/ephemeral-storage-limit": "0",
}
_FUSE_OPTIONS = "implicit-dirs"  # folders that are only names of objects are folders too


@dataclass(frozen=True, kw_only=True)
class Volumes:
    """The parts of a pod that hold its storage; ``mounts`` are those of the container that trains."""

    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)


def volumes(job: ResolvedJob, chips: int) -> Volumes:
    """Return the volumes of a job's pods, each of which has ``chips`` accelerators."""
    every = list(_storage(job))
    if (memory := shared_memory(job, chips)) is not None:
        every.append((memory, {"name": SHARED_MEMORY, "mountPath": SHARED_MEMORY_PATH}))
    fuse = any(_is_fuse(job, mount) for mount in job.spec.mounts)
    return Volumes(
        volumes=[volume for volume, _ in every],
        mounts=[mount for _, mount in every],
        annotations=dict(_FUSE_ANNOTATIONS) if fuse else {},
    )


def shared_memory(job: ResolvedJob, chips: int) -> dict[str, Any] | None:
    """Return the volume for /dev/shm, None where the container's own 64 MiB do: one accelerator, and no data loaders.

    What stands in it counts as the container's memory. Without a size it holds as much as the pod's memory.
    """
    size = job.spec.shared_memory_gib
    if size == 0 or (size is None and chips < 2 and not job.spec.data_loaders):
        return None
    limit = {"sizeLimit": f"{size}Gi"} if size else {}
    return {"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory", **limit}}


def _storage(job: ResolvedJob) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
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


def _is_fuse(job: ResolvedJob, mount: Mount) -> bool:
    data_set = mount.source.data_set
    return bool(mount.source.bucket or (data_set and job.environment.data_sets[data_set].bucket))


def _fuse(job: ResolvedJob, bucket: str, mount: Mount) -> dict[str, Any]:
    """Return the driver's part of a volume; on the VM's network it has to be told to act as the pod's account."""
    host = {"hostNetworkPodKSA": "true"} if job.spec.gke and job.spec.gke.host_network else {}
    cache = {"fileCacheCapacity": f"{mount.file_cache_gib}Gi", "fileCacheForRangeRead": "true"}
    return {
        "driver": FUSE_DRIVER,
        **({"readOnly": True} if mount.read_only else {}),
        "volumeAttributes": {
            "bucketName": bucket,
            "mountOptions": _FUSE_OPTIONS,
            **(cache if mount.file_cache_gib else {}),
            **host,
        },
    }
