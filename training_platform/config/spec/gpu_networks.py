"""The networks between GPUs of different VMs."""

from __future__ import annotations

from pydantic import Field

from training_platform.config.reading.section import Cidr, Section


class GpuNetworksSpec(Section):
    """VPCs for node pools whose VMs have further network interfaces for GPUDirect.

    Each interface has a subnet, one of the 128 equal parts of ``range``: a /16 gives /23, enough for 508 VMs. These
    VPCs are not peered, so clusters may use the same range; it must not overlap the cluster's own ranges. Changing it
    recreates the node pools.
    """

    range: Cidr = Field(default="192.168.0.0/16", description="Address range of all of these subnets.")
