"""The networks between GPUs of different VMs, what pods of teams may connect to, and a VPC that exists already."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from training_platform.config.reading.section import DOMAIN, RESERVATION_NAME, Cidr, ProjectId, Section


class GpuNetworksSpec(Section):
    """VPCs for node pools whose VMs have further network interfaces for GPUDirect.

    Each interface has a subnet, one of the 128 equal parts of ``range``: a /16 gives /23, enough for 508 VMs. These
    VPCs are not peered, so clusters may use the same range; it must not overlap the cluster's own ranges. Changing it
    recreates the node pools.
    """

    range: Cidr = Field(default="192.168.0.0/16", description="Address range of all of these subnets.")


class Destination(Section):
    """What pods of teams may connect to, beside each other and Google's APIs: addresses, or a host name."""

    cidr: Cidr | None = Field(default=None, description="Addresses.", examples=["203.0.113.0/24"])
    host: str | None = Field(
        default=None,
        pattern=DOMAIN,
        description="A host name, or all names below one; only in clusters with fqdn_policies.",
        examples=["api.wandb.ai", "*.huggingface.co"],
    )
    ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = Field(
        default=(443,), min_length=1, description="Ports there."
    )
    protocol: Literal["TCP", "UDP"] = Field(default="TCP", description="Protocol of the ports.")

    @model_validator(mode="after")
    def _one_of_two(self) -> Destination:
        if (self.cidr is None) == (self.host is None):
            said = "gives neither cidr nor host" if self.cidr is None else "cidr and host are both given"
            raise PydanticCustomError("one_place", said, {"allowed": "one of cidr and host"})
        return self


Destinations = tuple[Destination, ...]


class ExistingNetwork(Section):
    """A VPC that exists already, with its subnets, routers and NAT gateways as its owner has them."""

    name: str = Field(pattern=RESERVATION_NAME, description="Name of the VPC.", examples=["shared-vpc"])
    project: ProjectId | None = Field(
        default=None, description="Host project of a Shared VPC; default: the environment's project."
    )
    grant_roles: bool = Field(
        default=False,
        description="Grant GKE's service agents their roles in the host project; false: its owner does.",
    )
