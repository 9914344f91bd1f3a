"""Where a job's mounts are in its containers: under one path and one variable on GKE and on Vertex AI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from training_platform.config.names import data_variable
from training_platform.config.spec.storage import DataSetSpec
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.mount import Mount
from training_platform.resources.cloud_names import bucket_id

LUSTRE: Final = "/mnt/lustre"
DISKS: Final = "/mnt/disks"
NFS: Final = "/mnt/nfs"  # where Vertex AI mounts file shares; buckets it mounts at /gcs
# Folders below a mount with caches, by the variable that libraries read.
CACHES: Final[Mapping[str, str]] = {
    "HF_HOME": "huggingface",
    "TORCH_HOME": "torch",
    "JAX_COMPILATION_CACHE_DIR": "jax",
    "TFDS_DATA_DIR": "tensorflow-datasets",
    "TFHUB_CACHE_DIR": "tensorflow-hub",
    "TRITON_CACHE_DIR": "triton",
    "PIP_CACHE_DIR": "pip",
}


def fixed_path(job: ResolvedJob, mount: Mount) -> str:
    """Return where Vertex AI has the mount, which cannot be changed; GKE puts it there unless ``path`` says otherwise.

    Source: Vertex AI docs, NFS mounts and Cloud Storage as a mounted file system, read 2026-08-22.
    """
    source = mount.source
    if source.data_set:
        return _data_path(mount.name, job.environment.data_sets[source.data_set])
    return f"/gcs/{bucket_id(job.scope, source.bucket)}" if source.bucket else f"{NFS}/{mount.name}"


def _data_path(name: str, data: DataSetSpec) -> str:
    """Return where a data set is; Vertex AI has no place for Hyperdisk ML, which GKE puts below /mnt."""
    if data.bucket:
        return f"/gcs/{data.bucket.name}" + (f"/{data.bucket.path}" if data.bucket.path else "")
    return f"{NFS if data.filestore else LUSTRE if data.lustre else DISKS}/{name}"


def mount_path(job: ResolvedJob, mount: Mount) -> str:
    """Return the mount's path in the containers."""
    return mount.path or fixed_path(job, mount)


def share_folder(job: ResolvedJob, directory: str) -> str:
    """Return the folder of a team's directory on its file share; empty for a share that is the team's alone."""
    spec = job.team.directories[directory]
    alone = spec.whole_share or job.environment.filestore[spec.filestore].team is not None
    return "" if alone else f"{job.team.name}/{directory}"


def mount_variables(job: ResolvedJob) -> dict[str, str]:
    """Return ``MOUNT_<NAME>`` for every mount, ``DATA_SET_<NAME>`` as notebooks have it, and variables of caches."""
    paths = {mount.name: mount_path(job, mount) for mount in job.spec.mounts}
    named = {f"MOUNT_{name.upper().replace('-', '_')}": path for name, path in paths.items()}
    for mount in job.spec.mounts:
        if data_set := mount.source.data_set:
            named[data_variable(data_set)] = paths[mount.name]
        if mount.caches:
            named |= {name: f"{paths[mount.name]}/{folder}" for name, folder in CACHES.items()}
    return named
