"""A team stack: one team's slice of one environment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from training_platform.config.reading.section import (
    DiskTypeName,
    FormerName,
    Labels,
    MachineTypeName,
    Members,
    Name,
    ProjectId,
    Region,
    Section,
    unique,
)
from training_platform.config.spec.capacity import Capacity
from training_platform.config.spec.fallback import Fallback, check_order
from training_platform.config.spec.node_pool import BootDiskSpec


class Share(Section):
    """A team's share of one ResourceFlavor in one cluster, in chips or GPUs."""

    nominal_quota: int = Field(ge=0, description="Chips or GPUs that are the team's whenever it wants them.")
    borrowing_limit: int | None = Field(default=None, ge=0, description="Most it may borrow; default: no limit.")
    lending_limit: int | None = Field(default=None, ge=0, description="Most that others may borrow; default: all.")


class DirectorySpec(Section):
    """A part of one of the environment's Filestore instances, mounted by the team's pods."""

    filestore: Name
    size_gib: int = Field(ge=1, description="Size that the claim asks for; Filestore does not enforce it.")


class BucketSpec(Section):
    """A Cloud Storage bucket of the team."""

    location: Region
    storage_class: Literal["STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"] = "STANDARD"
    delete_after_days: int | None = Field(default=None, ge=1, description="Age at which objects are deleted.")
    versioning: bool = False


class VertexBootDisk(BootDiskSpec):
    """The boot disk of machines that Vertex AI starts; both fields reach the API, whose sources disagree on defaults.

    The default is Vertex AI's own, not the machine type's on GKE, which Vertex AI may not take.
    """

    type: DiskTypeName = "pd-ssd"


class PersistentResourceSpec(Section):
    """Vertex AI machines that stay up between training jobs; billed all the time that they are up."""

    region: Region
    machine_type: MachineTypeName
    replicas: int = Field(default=1, ge=1, description="VMs at the start, and always where max_replicas is not given.")
    max_replicas: int | None = Field(default=None, ge=1, description="VMs at most; switches autoscaling on.")
    boot_disk: VertexBootDisk = VertexBootDisk()
    deletion_protection: bool = Field(
        default=True, description="false lets a change replace or remove it, where the environment protects."
    )

    @model_validator(mode="after")
    def _ordered(self) -> PersistentResourceSpec:
        if self.max_replicas is not None and self.max_replicas < self.replicas:
            raise ValueError(f"replicas ({self.replicas}) is more than max_replicas ({self.max_replicas})")
        return self


class Vertex(Section):
    """What a team uses of Vertex AI."""

    persistent_resources: dict[Name, PersistentResourceSpec] = {}
    tensorboards: Annotated[tuple[Region, ...], AfterValidator(unique)] = Field(
        default=(), description="Regions with a TensorBoard of the team."
    )


class Team(Section):
    """One team in one environment: members, share of each cluster, directories, buckets, Vertex AI."""

    environment: Name = Field(description="The environment's stack: stacks/Pulumi.<environment>.yaml.")
    name: Name = Field(description="The team; also its namespace in every cluster that it has a share of.")
    project: ProjectId | None = Field(
        default=None, description="Where buckets and Vertex live; default: environment's."
    )
    renamed_from: FormerName = None
    labels: Labels = Field(default={}, description="On every resource, beside team, environment and managed-by.")
    members: Members = Field(min_length=1)
    shares: dict[Name, dict[str, Share]] = Field(default={}, description="Cluster, then flavor, then share.")
    fallback: Fallback = Fallback()
    host_network: bool = Field(
        default=False,
        description="Let its pods use their VM's network, where they act as the node's service account.",
    )
    directories: dict[Name, DirectorySpec] = {}
    buckets: dict[Name, BucketSpec] = {}
    vertex: Vertex = Vertex()

    @model_validator(mode="after")
    def _order_is_of_shares(self) -> Team:
        check_order(self.fallback, self.shares)
        return self


__all__ = [
    "BucketSpec",
    "Capacity",
    "DirectorySpec",
    "PersistentResourceSpec",
    "Share",
    "Team",
    "Vertex",
    "VertexBootDisk",
]
