"""How the VMs of a pool are had, as ``gcp.container.NodePool`` takes it: flex-start, queued, reserved, by class."""

from __future__ import annotations

from pulumi_gcp import container

from training_platform.config.expansion.pools import CLASS_LABEL, ExpandedPool
from training_platform.config.spec.node_pool import NodePoolSpec

RESERVATION_KEY = "compute.googleapis.com/reservation-name"


def reservation_affinity(spec: NodePoolSpec) -> container.NodePoolNodeConfigReservationAffinityArgs:
    """Return which reservation VMs come from: the one that is named, any where the file says so, else none.

    Left out, GKE would take any that fits: refused for spot and flex-start, and on demand it would eat what somebody
    else reserved.
    """
    if spec.reservation is None:
        return container.NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="NO_RESERVATION")
    path = spec.reservation.path
    return container.NodePoolNodeConfigReservationAffinityArgs(
        consume_reservation_type=spec.reservation.affinity,
        key=RESERVATION_KEY if path else None,
        values=[path] if path else None,
    )


def queued_provisioning(spec: NodePoolSpec) -> container.NodePoolQueuedProvisioningArgs | None:
    """Return whether VMs come for a whole job at once, by a ProvisioningRequest alone; Kueue makes the requests."""
    if spec.capacity != "queued-provisioning":
        return None
    return container.NodePoolQueuedProvisioningArgs(enabled=True)


def class_taints(pool: ExpandedPool) -> list[container.NodePoolNodeConfigTaintArgs]:
    """Return the taint by which a pool is kept for the jobs of its compute class; GKE asks for it beside the label."""
    if pool.compute_class is None:
        return []
    return [container.NodePoolNodeConfigTaintArgs(key=CLASS_LABEL, value=pool.compute_class, effect="NO_SCHEDULE")]
