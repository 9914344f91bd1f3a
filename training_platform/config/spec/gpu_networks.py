"""The networks between GPUs of different VMs: what a stack file says of them."""

from __future__ import annotations

from training_platform.config.reading.section import Cidr, Section


class GpuNetworksSpec(Section):
    """VPCs of a cluster for its pools with GPUDirect, made where a pool has further network cards.

    Each card has a subnet, one of the 128 equal parts of ``range``: of a /16 a /23, for 508 VMs. No VPC of them is
    joined to another, so clusters may have the same range; none may overlap the cluster's own. A change recreates the
    pools.
    """

    range: Cidr = "192.168.0.0/16"
