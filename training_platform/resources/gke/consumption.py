"""How the VMs of a pool are provisioned, as ``gcp.container.NodePool`` takes it: reserved, queued, by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.config.pools import CLASS_LABEL, ExpandedPool
from training_platform.resources.declared import shared

if TYPE_CHECKING:
    from pulumi_gcp.container import NodePoolNodeConfigReservationAffinityArgsDict as Affinity
    from pulumi_gcp.container import NodePoolNodeConfigTaintArgsDict as Taint
    from pulumi_gcp.container import NodePoolQueuedProvisioningArgsDict as Queued

RESERVATION_KEY = "compute.googleapis.com/reservation-name"


def reservation_affinity(spec: NodePoolSpec) -> Affinity:
    """Return which reservation VMs come from: the one that is named, any where the file says so, else none.

    Left out, GKE would take any that fits: refused for spot and flex-start, and on demand it would eat what somebody
    else reserved.
    """
    if spec.reservation is None:
        return _no_reservation()
    path = spec.reservation.path
    return {
        "consume_reservation_type": spec.reservation.affinity,
        "key": RESERVATION_KEY if path else None,
        "values": [path] if path else None,
    }


def queued_provisioning(spec: NodePoolSpec) -> Queued | None:
    """Return whether VMs come for a whole job at once, by a ProvisioningRequest alone; Kueue makes the requests."""
    return _queued() if spec.capacity == "queued-provisioning" else None


@shared
def _no_reservation() -> Affinity:
    return {"consume_reservation_type": "NO_RESERVATION"}


@shared
def _queued() -> Queued:
    return {"enabled": True}


def class_taints(pool: ExpandedPool) -> list[Taint]:
    """Return the taint by which a pool is kept for the jobs of its compute class; GKE asks for it beside the label."""
    if pool.compute_class is None:
        return []
    return [{"key": CLASS_LABEL, "value": pool.compute_class, "effect": "NO_SCHEDULE"}]
