"""A job's target on GKE."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from training_platform.config.reading.conflicts import Conflict, Consistent
from training_platform.config.reading.section import Name, Section


class Placement(Section):
    """How near each other Kueue puts the VMs of a job."""

    level: str = Field(
        description="Level of the flavor's topology in one domain of which the VMs are: block, subblock or host.",
        examples=["block"],
    )
    required: bool = Field(
        default=False, description="Wait until one domain has room for all; else VMs of several are taken, if need be."
    )


class GkeTarget(Consistent):
    """A JobSet in the team's queue of one cluster; ``slices`` for TPUs, ``nodes`` for GPUs."""

    cluster: Name = Field(description="Cluster of the environment in which the team has a share.")
    flavor: str = Field(description="A flavor of which the team has a share in that cluster.", examples=["h100-spot"])
    slices: int | None = Field(default=None, ge=1, description="TPU: slices that train together (multislice over 1).")
    nodes: int | None = Field(default=None, ge=1, description="GPU: VMs that train together, each with all its GPUs.")
    priority: Name | None = Field(default=None, description="One of the environment's priorities; default: 0.")
    max_run_hours: int | None = Field(
        default=None, ge=1, description="queued-provisioning: how long it needs its VMs; default: as long as the pools."
    )
    placement: Placement | None = Field(
        default=None,
        description="Flavor with a topology: how near the VMs are; default: as near as there is room, none required.",
    )
    grace_seconds: int = Field(
        default=120,
        ge=0,
        le=3600,
        description="Time between SIGTERM and the end, for a checkpoint; GKE gives spot VMs 25 seconds at most.",
    )
    pathways: bool = Field(
        default=False,
        description="TPU: one program controls all slices through Pathways, from a VM of the cluster's pathways pool.",
    )
    host_network: bool = Field(
        default=False,
        description="Use the VM's network: faster between slices, but pods then act as the node's service account.",
    )

    def conflicts(self) -> Iterator[Conflict]:
        """Yield that none or both of the counts are given."""
        if (self.slices is None) == (self.nodes is None):
            given = "neither slices nor nodes is" if self.slices is None else "slices and nodes are both"
            yield Conflict((), f"{given} given", "slices for a flavor of TPUs, nodes for one of GPUs")
