"""What a job mounts: storage of its team, under one name on GKE and on Vertex AI."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from training_platform.config.reading.conflicts import Conflict, Consistent
from training_platform.config.reading.section import Name, Section
from training_platform.jobs.spec.values import Absolute


class MountSource(Consistent):
    """What is mounted; one of these."""

    directory: Name | None = Field(default=None, description="A directory of the team, on Filestore.")
    bucket: Name | None = Field(default=None, description="A bucket of the team, by Cloud Storage FUSE.")
    data_set: Name | None = Field(default=None, description="A data set of the environment, wherever it lies.")

    def conflicts(self) -> Iterator[Conflict]:
        """Yield that nothing, or more than one thing, is given."""
        given = [name for name, value in self if value is not None]
        if len(given) != 1:
            said = f"{' and '.join(given)} are both given" if given else "says nothing to mount"
            yield Conflict((), said, f"one of {' or '.join(type(self).model_fields)}")


class Mount(Section):
    """A directory or bucket that the job's containers see; the variable MOUNT_<NAME> holds its path."""

    name: Name = Field(description="Name of the mount in this job.", examples=["data"])
    source: MountSource = Field(description="What is mounted.")
    path: Absolute | None = Field(
        default=None,
        description="Path in the container; default: /mnt/nfs/NAME or /gcs/BUCKET, where Vertex AI always has it.",
    )
    read_only: bool = Field(default=False, description="The job reads it only.")
    caches: bool = Field(
        default=False, description="Caches of models and compilers live here: HF_HOME and its like are set."
    )
    file_cache_gib: int = Field(
        default=0, ge=0, description="Bucket on GKE: GiB of the boot disk that keep what was read; default: none."
    )
