"""A training job as researchers write it: what to run, and on what; one file serves GKE and Vertex AI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from training_platform.config.reading.conflicts import Conflict, Consistent
from training_platform.config.reading.section import Name
from training_platform.config.reading.texts import Image, SecretVersion, Variable
from training_platform.jobs.spec.gke import GkeTarget
from training_platform.jobs.spec.mount import Mount
from training_platform.jobs.spec.source import PythonSource
from training_platform.jobs.spec.sweep import Sweep
from training_platform.jobs.spec.values import ExperimentName, Topic
from training_platform.jobs.spec.vertex import INT32, VertexTarget

Target = Literal["gke", "vertex"]


class Job(Consistent):
    """A training job. Its name is its file's; its team is its folder's. {run} in texts is the run's name."""

    environment: Name = Field(description="Environment of the team: stacks/Pulumi.ENVIRONMENT.yaml.")
    image: Image | None = Field(default=None, description="Container image with its tag or digest; or source.")
    source: PythonSource | None = Field(default=None, description="Python source instead of an image.")
    command: tuple[str, ...] = Field(default=(), description="Program of the container; default: the image's.")
    args: tuple[str, ...] = Field(default=(), description="Arguments of the program.")
    env: dict[Variable, str] = Field(
        default={}, description="Variables of the container; OUTPUT_URI is set to the output's folder."
    )
    secrets: dict[Variable, SecretVersion] = Field(
        default={}, description="Variables whose values are secrets of the team, by name; never the values themselves."
    )
    cpu: int | None = Field(default=None, ge=1, description="vCPUs that it needs of each VM; default: what is free.")
    memory_gib: int | None = Field(
        default=None, ge=1, description="GiB of memory that it has of each VM at most; default: what is free."
    )
    shared_memory_gib: int | None = Field(
        default=None,
        ge=0,
        description="GKE: size of /dev/shm in GiB, a part of the memory, and requested as such; default: no limit of "
        "its own where a VM has several accelerators or data_loaders, else none.",
    )
    data_loaders: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="Processes on each VM that load data and hand it over in /dev/shm; DATA_LOADERS holds the number.",
    )
    mounts: tuple[Mount, ...] = Field(default=(), description="Directories and buckets of the team.")
    retries: int = Field(
        default=3,
        ge=0,
        le=INT32,
        description="Times that the whole job starts again after a failure; interruptions do not count. Vertex AI "
        "counts itself: 0 is none, any other number is its own.",
    )
    output: Name | None = Field(
        default=None, description="One of the team's buckets, for checkpoints and results; each run has its folder."
    )
    tensorboard: bool = Field(default=False, description="Show the logs below output in the team's TensorBoard.")
    experiment: ExperimentName | None = Field(
        default=None, description="Experiment of Vertex AI in which the run and what it logs are kept."
    )
    profiler: bool = Field(default=False, description="Set PROFILE_URI, and open the profiler's port on Vertex AI.")
    notify: Topic | None = Field(
        default=None,
        description="Pub/Sub topic that is told when the program starts and ends.",
    )
    sweep: Sweep | None = Field(default=None, description="Run it with several values of its parameters.")
    gke: GkeTarget | None = Field(default=None, description="Run it on GKE.")
    vertex: VertexTarget | None = Field(default=None, description="Run it on Vertex AI.")

    def conflicts(self) -> Iterator[Conflict]:
        """Yield the fields that do not go together."""
        if self.gke is None and self.vertex is None:
            yield Conflict((), "the job does not say where it can run", "gke, vertex or both")
        if (self.image is None) == (self.source is None):
            given = "neither image nor source is" if self.image is None else "image and source are both"
            yield Conflict(() if self.image is None else ("source",), f"{given} given", "image or source")
        if self.source and self.command:
            yield Conflict(("command",), "stands beside source, which says what runs", "args alone")
        for name in self.secrets.keys() & self.env.keys():
            yield Conflict(("secrets", name), "is a variable of env too", "one of the two")
        names = [mount.name for mount in self.mounts]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Conflict(("mounts", index, "name"), f"{name!r} is the name of another mount", "each once")
