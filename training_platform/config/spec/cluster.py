"""Clusters and what is installed in them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from pydantic import Field, model_validator

from training_platform.config.reading.section import Cidr, HostName, Location, Name, Section, Version
from training_platform.config.spec.auto_provisioning import AutoProvisioningSpec
from training_platform.config.spec.compute_class import ComputeClassSpec, check_classes
from training_platform.config.spec.gpu_networks import GpuNetworksSpec
from training_platform.config.spec.maintenance import Maintenance
from training_platform.config.spec.node_pool import NodePoolSpec, SystemPoolSpec


class SubnetSpec(Section):
    """The address ranges of one cluster. A change of any of them recreates the cluster."""

    nodes: Cidr = Field(description="Primary range: one address per VM.")
    pods: Cidr = Field(description="Range that every VM takes a block of for its pods.")
    services: Cidr = Field(description="Range of Kubernetes Services.")


class OauthSecret(Section):
    """A Kubernetes Secret, made by hand in the hub's namespace, so that no secret enters a stack file or a state."""

    name: Name = "jupyterhub-oauth"
    key: str = "client-secret"


class Notebooks(Section):
    """JupyterHub in a cluster, with one profile per single-host pool and homes on Filestore."""

    filestore: Name = Field(description="The environment's Filestore instance that holds the homes.")
    host: HostName = Field(description="Host name at which browsers reach the hub.")
    oauth_client_id: str = Field(min_length=1, description="OAuth client of the organisation's Google sign-in.")
    oauth_secret: OauthSecret = OauthSecret()
    allowed_domain: HostName = Field(description="Only accounts of this domain sign in.")
    image: str | None = Field(default=None, description="Notebook image with its tag; default: the catalogue's.")
    home_gib: int = Field(default=512, ge=1, description="Size of the claim for all homes, in GiB.")


class ClusterSpec(Section):
    """A GKE cluster in one region or zone, private, reached through its DNS-based control-plane endpoint."""

    location: Location = Field(description="A region, or a zone where the machines are in one zone only.")
    subnet: SubnetSpec
    release_channel: Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"] = "REGULAR"
    version: Version | None = Field(default=None, description='Lowest control-plane version, quoted: "1.33".')
    maintenance: Maintenance = Maintenance()
    gpu_networks: GpuNetworksSpec = GpuNetworksSpec()
    system_pool: SystemPoolSpec = SystemPoolSpec()
    node_pools: dict[Name, NodePoolSpec] = {}
    auto_provisioning: AutoProvisioningSpec | None = Field(default=None, description="Pools that GKE makes by itself.")
    compute_classes: dict[Name, ComputeClassSpec] = Field(
        default={}, description="Orders of pools and machines in which GKE looks for nodes; flavors class-NAME."
    )
    notebooks: Notebooks | None = None
    deletion_protection: bool = Field(
        default=True, description="false lets a change replace or remove it, where the environment protects."
    )

    @cached_property
    def expanded(self) -> dict[str, tuple[Any, ...]]:
        """Its expanded pools by its name, filled by ``expansion.pools``: they live as long as the cluster does."""
        return {}

    @model_validator(mode="after")
    def _classes_are_of_its_pools(self) -> ClusterSpec:
        check_classes(self.compute_classes, self.node_pools)
        return self
