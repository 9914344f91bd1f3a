"""Rules about system pools that are too small for the controllers that the plan and its charts install."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any, Final

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.node_pool import CpuPoolSpec
from training_platform.config.model.stack import Stack
from training_platform.config.reading.declaration import Draft, declare, finding
from training_platform.config.reading.finding import Path
from training_platform.config.workspace import Workspace
from training_platform.resources.controllers import jobset_values
from training_platform.resources.kueue import kueue_values
from training_platform.resources.metrics_adapter import adapter_deployment
from training_platform.resources.operators import charted
from training_platform.rules.kubernetes.pods import quantity

# What charts request if no value says otherwise. Source: kuberay v1.7.0 and lws v0.10.0, values.yaml of their charts,
# read 2026-11-28; Trainer's chart and JupyterHub's request nothing.
_OPERATORS: Final = {"ray": 0.1, "leader-worker-set": 1.0}
# vCPUs of GKE's own pods: DNS, metrics and the like in a cluster, agents on each VM. Estimates (unverified).
_GKE_CLUSTER: Final = 0.5
_GKE_NODE: Final = 0.2

SYSTEM_POOL_ROOM = declare(
    "system-pool-room",
    "Find pools for controllers with less capacity than the cluster's controllers request.",
    ruleset="capacity",
    refused_by="`check` only. The pods stay pending, and `up` fails when its Helm releases time out",
    excuse="exemption",
    source="requests in the plan and in charts; GKE docs, plan node sizes (unverified); requests of GKE's own pods "
    "are an estimate",
)


def system_pool_findings(workspace: Workspace) -> Iterator[Draft]:
    """Find clusters whose pools without accelerators have too few vCPUs for their controllers.

    A fallback machine type of the system pool must have enough vCPUs on its own, because the other machine types may be
    unavailable. Memory is not checked: machine types in the catalogue with enough vCPUs also have enough memory.
    Existing clusters, whose pools are not in the file, and clusters in which GKE creates pools are left out.
    """
    for stack, environment in workspace.environments():
        for name, cluster in environment.clusters.items():
            if cluster.existing is None and cluster.auto_provisioning is None:
                path: Path = ("clusters", name, "system_pool")
                yield from _too_small(stack, path, name, cluster)
                for number, fallback in enumerate(cluster.system_pool.fallbacks):
                    place = (*path, "fallback_machine_types", number)
                    yield from _fallback_too_small(stack, place, name, cluster, fallback)


def _too_small(stack: Stack, path: Path, name: str, cluster: ClusterSpec) -> Iterator[Draft]:
    system = cluster.system_pool
    pools = [system, *cluster.cpu_pools.values()]
    needed = _requested(name, cluster)
    at_most = _room_at_most(system, cluster)
    always = sum(usable_vcpus(pool) * pool.min_nodes for pool in pools) - _GKE_CLUSTER
    subject = f"controllers of {name} request {needed:.2f} vCPUs, but in addition to GKE's own pods"
    if at_most < needed:
        field = "max_nodes"
        enough = system.max_nodes + ceil((needed - at_most) / usable_vcpus(system))
        message = f"{subject} its pools without accelerators have room for {max(0, at_most):.2f} at most"
    elif always < needed:
        field = "min_nodes"
        enough = system.min_nodes + ceil((needed - always) / usable_vcpus(system))
        message = f"{subject} the VMs that always run have {max(0, always):.2f}: `up` waits for further VMs"
    else:
        return
    yield finding(
        stack,
        (*path, field),
        message,
        rule=SYSTEM_POOL_ROOM,
        severity="warning" if field == "min_nodes" else None,
        allowed=f"at least {enough}, or a larger machine_type",
        nearest=enough,
    )


def _fallback_too_small(
    stack: Stack, path: Path, name: str, cluster: ClusterSpec, fallback: CpuPoolSpec
) -> Iterator[Draft]:
    needed = _requested(name, cluster)
    at_most = _room_at_most(fallback, cluster)
    if at_most >= needed:
        return
    enough = fallback.max_nodes + ceil((needed - at_most) / usable_vcpus(fallback))
    yield finding(
        stack,
        path,
        f"controllers of {name} request {needed:.2f} vCPUs, but while the system pool has only "
        f"{fallback.machine_type}, pools without accelerators have {max(0, at_most):.2f} at most beside GKE's own pods",
        rule=SYSTEM_POOL_ROOM,
        allowed=f"a larger machine type, or max_nodes of at least {enough}",
        nearest=f"max_nodes {enough}",
    )


def _room_at_most(system: CpuPoolSpec, cluster: ClusterSpec) -> float:
    """Return the vCPUs for controllers if ``system`` is the cluster's system pool and all pools have their maximum."""
    pools = [system, *cluster.cpu_pools.values()]
    return sum(usable_vcpus(pool) * pool.max_nodes for pool in pools) - _GKE_CLUSTER


def usable_vcpus(pool: CpuPoolSpec) -> float:
    """Return a VM's vCPUs for controllers, without the vCPUs that GKE reserves or that its agents on each VM use."""
    vcpus = remaining_vcpus = float(MACHINE_TYPES[pool.machine_type].vcpus)
    for step, share in ((1, 0.06), (1, 0.01), (2, 0.005), (vcpus, 0.0025)):
        vcpus -= min(remaining_vcpus, step) * share
        remaining_vcpus = max(0.0, remaining_vcpus - step)
    return vcpus - _GKE_NODE


def _requested(name: str, cluster: ClusterSpec) -> float:
    """Return the sum of the vCPUs that all replicas of the controllers request."""
    vcpus = sum(_OPERATORS.get(key, 0) for key in charted(cluster))
    if cluster.software.kueue == "installed":
        manager = kueue_values(name, cluster)["controllerManager"]
        vcpus += manager["replicas"] * _cpu(manager["manager"]["resources"])
    if cluster.software.jobset == "installed":
        controller = jobset_values()["controller"]
        vcpus += controller["replicas"] * _cpu(controller["resources"])
    if cluster.serving:
        adapter = adapter_deployment()
        containers = adapter["template"]["spec"]["containers"]
        vcpus += adapter["replicas"] * sum(_cpu(container["resources"]) for container in containers)
    return vcpus


def _cpu(resources: Mapping[str, Any]) -> float:
    return float(quantity(resources["requests"]["cpu"]) or 0)
