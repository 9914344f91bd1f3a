"""Clusters and what is installed in them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from pydantic import Field, model_validator

from training_platform.config.reading.conflicts import refuse_conflicts
from training_platform.config.reading.section import Cidr, Location, Name, Section, Version
from training_platform.config.spec.auto_provisioning import AutoProvisioningSpec
from training_platform.config.spec.compute_class import ComputeClassSpec, check_classes
from training_platform.config.spec.maintenance import Maintenance
from training_platform.config.spec.networks import GpuNetworksSpec
from training_platform.config.spec.node_pool import NodePoolSpec, SystemPoolSpec
from training_platform.config.spec.storage import FileClassSpec
from training_platform.config.spec.workloads.notebooks import Notebooks


class SubnetSpec(Section):
    """The address ranges of one cluster. Changing any of them recreates the cluster."""

    nodes: Cidr = Field(description="Primary range of the subnet: one address per VM.", examples=["10.10.0.0/20"])
    pods: Cidr = Field(description="Secondary range for pods: each VM gets a block of it.", examples=["10.64.0.0/16"])
    services: Cidr = Field(description="Secondary range for Kubernetes Services.", examples=["10.10.16.0/20"])


class ClusterSpec(Section):
    """A GKE cluster in one region or zone, private, reached through its DNS-based control-plane endpoint."""

    location: Location = Field(description="A region, or a zone for machines that are in one zone only.")
    subnet: SubnetSpec = Field(description="Address ranges of the cluster.")
    release_channel: Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"] = Field(
        default="REGULAR", description="GKE release channel."
    )
    version: Version | None = Field(default=None, description="Lowest version of the control plane, in quotes.")
    maintenance: Maintenance = Field(default=Maintenance(), description="When GKE may upgrade the cluster.")
    gpu_networks: GpuNetworksSpec = Field(default=GpuNetworksSpec(), description="Networks for GPUDirect.")
    system_pool: SystemPoolSpec = Field(default=SystemPoolSpec(), description="Node pool for everything but training.")
    node_pools: dict[Name, NodePoolSpec] = Field(default={}, description="Node pools with TPUs or GPUs, by name.")
    auto_provisioning: AutoProvisioningSpec | None = Field(
        default=None, description="Limits for node pools that GKE creates by itself; default: it creates none."
    )
    autoscaling_profile: Literal["BALANCED", "OPTIMIZE_UTILIZATION"] = Field(
        default="OPTIMIZE_UTILIZATION", description="BALANCED keeps idle nodes of all pools for longer."
    )
    binary_authorization: bool = Field(
        default=False, description="Pods start only from images that the project's Binary Authorization policy allows."
    )
    intranode_visibility: bool | None = Field(
        default=None,
        description="Log flows between pods of one node too; a change restarts parts of each node. Default: as it is.",
    )
    fqdn_policies: bool = Field(
        default=False,
        description="Lets egress name hosts, for which docs/tenancy.md; turning it off recreates the cluster.",
    )
    compute_classes: dict[Name, ComputeClassSpec] = Field(
        default={}, description="Custom compute classes, by name; each is the flavor class-NAME."
    )
    storage_classes: dict[Name, FileClassSpec] = Field(
        default={},
        description="StorageClasses, files-NAME, by which claims of teams make Filestore instances, by name.",
    )
    notebooks: Notebooks | None = Field(default=None, description="JupyterHub; default: none.")
    serving: bool = Field(
        default=False,
        description="Teams may have model servers here: Kueue queues their pods, and autoscalers see their metrics.",
    )
    deletion_protection: bool = Field(
        default=True,
        description="false allows a change to delete or replace it with what is in it, where the environment protects.",
    )

    @cached_property
    def expanded(self) -> dict[str, tuple[Any, ...]]:
        """Its expanded pools by its name, filled by ``expansion.pools``: they live as long as the cluster does."""
        return {}

    @property
    def queues_pods(self) -> bool:
        """Whether Kueue counts pods that are no job's."""
        return self.serving or bool(self.notebooks and self.notebooks.teams)

    @cached_property
    def fabrics(self) -> dict[str, dict[str, Any]]:
        """The networks of its GPUs by its name, filled by ``expansion.gpu_fabric``."""
        return {}

    @model_validator(mode="after")
    def _classes_are_of_its_pools(self) -> ClusterSpec:
        check_classes(self.compute_classes, self.node_pools)
        return self

    @model_validator(mode="after")
    def _notebooks_are_on_its_pools(self) -> ClusterSpec:
        if self.notebooks:
            refuse_conflicts(self.notebooks.conflicts(dict(self.node_pools)))
        return self
