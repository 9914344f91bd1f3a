"""A training job as researchers write it: what to run, and on what; one file serves GKE and Vertex AI."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from training_platform.config.reading.section import MachineTypeName, Name, Region, Section
from training_platform.config.spec.team import VertexBootDisk

Target = Literal["gke", "vertex"]

_IMAGE = re.compile(r"[^\s@]+(:\w[\w.-]{0,127}|@sha256:[0-9a-f]{64})", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INT32 = 2**31 - 1
_MOST_HOURS = 10_000 * 365 * 24  # a protobuf Duration ends at 10,000 years


def _image(value: str) -> str:
    if not _IMAGE.fullmatch(value):
        raise _malformed(value, "a container image with its tag or digest", "REGISTRY/IMAGE:TAG")
    return value


def _variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise _malformed(value, "a name of a variable", "letters, digits and _, no digit first")
    return value


def _malformed(value: str, what: str, allowed: str) -> PydanticCustomError:
    message = f"{value!r} is not {what}".replace("{", "{{")
    return PydanticCustomError("malformed", message, {"allowed": allowed, "nearest": None})


class GkeTarget(Section):
    """A JobSet in the team's queue of one cluster; ``slices`` for TPUs, ``nodes`` for GPUs."""

    cluster: Name
    flavor: str = Field(description="A flavor of which the team has a share in that cluster.")
    slices: int | None = Field(default=None, ge=1, description="TPU: slices that train together (multislice over 1).")
    nodes: int | None = Field(default=None, ge=1, description="GPU: VMs that train together, each with all its GPUs.")
    priority: Name | None = Field(default=None, description="One of the environment's priorities; default: 0.")
    max_restarts: int = Field(
        default=3, ge=0, le=_INT32, description="Restarts of the whole job after a failure; interruptions do not count."
    )
    max_run_hours: int | None = Field(
        default=None, ge=1, description="queued-provisioning: how long it needs its VMs; default: as long as the pools."
    )
    host_network: bool = Field(
        default=False,
        description="Use the VM's network: faster between slices, but pods then act as the node's service account.",
    )

    @model_validator(mode="after")
    def _one_count(self) -> GkeTarget:
        if (self.slices is None) == (self.nodes is None):
            given = "neither slices nor nodes is" if self.slices is None else "slices and nodes are both"
            context = {"allowed": "slices for a flavor of TPUs, nodes for one of GPUs", "nearest": None}
            raise PydanticCustomError("one_count", f"{given} given", context)
        return self


class VertexTarget(Section):
    """A CustomJob of Vertex AI. ``replicas`` counts VMs; a TPU takes a topology instead, and one replica."""

    region: Region
    machine_type: MachineTypeName
    topology: str | None = Field(default=None, description="TPU: shape of the slice, such as 4x8.")
    replicas: int = Field(default=1, ge=1, le=_INT32, description="GPU and CPU: VMs that train together.")
    capacity: Literal["on-demand", "spot", "flex-start"] = Field(
        default="on-demand",
        description="Provisioning model of the VMs; spot and flex-start charge the preemptible quota.",
    )
    timeout_hours: int = Field(default=24, ge=1, le=_MOST_HOURS, description="Longest run, in hours.")
    max_wait_hours: int | None = Field(
        default=None, ge=0, le=_MOST_HOURS, description="flex-start: longest wait; 0: for ever; default: 24 hours."
    )
    boot_disk: VertexBootDisk = VertexBootDisk()
    persistent_resource: Name | None = Field(default=None, description="The team's, to run on instead of new VMs.")


class Job(Section):
    """A training job. Its name is its file's; its team is its folder's."""

    environment: Name
    image: Annotated[str, AfterValidator(_image)] = Field(description="Container image with its tag or digest.")
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: dict[Annotated[str, AfterValidator(_variable)], str] = Field(
        default={}, description="Variables of the container; OUTPUT_URI is set to the output's folder."
    )
    output: Name | None = Field(default=None, description="One of the team's buckets, for checkpoints and results.")
    gke: GkeTarget | None = None
    vertex: VertexTarget | None = None

    @model_validator(mode="after")
    def _has_a_target(self) -> Job:
        if self.gke is None and self.vertex is None:
            context = {"allowed": "gke, vertex or both", "nearest": None}
            raise PydanticCustomError("no_target", "the job does not say where it can run", context)
        return self
