"""What a component is told beside its spec, where no stack file has a section of that form."""

from __future__ import annotations

from pydantic import Field

from training_platform.config.model.cluster import GpuNetworksSpec
from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.config.reading.section import Cidr, Labels, Location, Name, ProjectId, Region, Section


class Place(Section):
    """Where components stand, and what their resources share: one for all components that belong together."""

    project: ProjectId = Field(description="Id of the Google Cloud project.")
    environment: Name = Field(description="Start of names in Google Cloud, such as dev.")
    team: Name | None = Field(default=None, description="Whose buckets and Vertex AI they are; default: nobody's.")
    labels: Labels = Field(default={}, description="Labels of every resource, beside environment and managed-by.")
    deletion_protection: bool = Field(default=True, description="Protects what holds data from deletion.")
    keys: dict[Region, str] = Field(default={}, description="Keys of Cloud KMS, by region; default: Google's keys.")


class NetworkSpec(Section):
    """A VPC without subnets of its own, with a way out of each region."""

    regions: tuple[Region, ...] = Field(default=(), description="Regions that get a NAT gateway.")
    nat_addresses: int = Field(default=0, ge=0, description="Addresses to reserve for the gateway of each region.")
    services_range: Cidr | None = Field(default=None, description="Addresses for private service access.")


class NodePoolsSpec(Section):
    """Node pools with TPUs or GPUs of a cluster that is there already."""

    location: Location = Field(description="Region or zone of the cluster.")
    node_pools: dict[Name, NodePoolSpec] = Field(description="The pools, by name.")
    gpu_networks: GpuNetworksSpec = Field(default=GpuNetworksSpec(), description="Networks for GPUDirect.")


class TensorboardSpec(Section):
    """A TensorBoard of Vertex AI."""

    region: Region = Field(description="Region of the TensorBoard, and of every job that writes to it.")
