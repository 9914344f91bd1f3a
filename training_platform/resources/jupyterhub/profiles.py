"""What a user of JupyterHub can start: a notebook without accelerators, or one on a host of a single-host pool."""

from __future__ import annotations

from typing import Any

from training_platform.catalog import IMAGES
from training_platform.config.expansion.flavors import flavors
from training_platform.config.expansion.pools import ExpandedPool, cluster_pools, flavor_name
from training_platform.config.spec.cluster import ClusterSpec, Notebooks

Profile = dict[str, Any]  # an entry of KubeSpawner's profile_list


def profiles(cluster_name: str, cluster: ClusterSpec, notebooks: Notebooks) -> list[Profile]:
    """Return the profiles of a cluster, the one without accelerators first and chosen by default.

    Of the pools that ``notebooks`` names, those whose slices span several hosts have none: a notebook is one pod.
    Notebooks ask no queue for quota, so that no team is promised what these pools hold; culling idle ones is what gives
    their accelerators back.
    """
    labels = {name: flavor.node_labels for name, flavor in flavors(cluster_name, cluster).items()}
    named = [pool for pool in cluster_pools(cluster_name, cluster) if pool.name in notebooks.pools]
    single_host = [pool for pool in named if not pool.multi_host and _starts(pool)]
    return [_cpu(), *(_accelerated(pool, labels[flavor_name(pool)], notebooks) for pool in single_host)]


def _starts(pool: ExpandedPool) -> bool:
    """Whether a pod alone makes a pool grow: queued VMs come by request, and those of a class for its own jobs."""
    return pool.spec.capacity != "queued-provisioning" and pool.compute_class is None


def _cpu() -> Profile:
    return {
        "display_name": "CPU",
        "slug": "cpu",
        "description": "Up to 4 cores and 8 GB of memory, at once.",
        "default": True,
        "kubespawner_override": {"cpu_guarantee": 0.5, "cpu_limit": 4, "mem_guarantee": "2G", "mem_limit": "8G"},
    }


def _accelerated(pool: ExpandedPool, node_labels: dict[str, str], notebooks: Notebooks) -> Profile:
    """Return a pool's profile; its VM may have to be started first, which takes minutes, or capacity."""
    resource = pool.accelerator.resource
    tolerations = [
        {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
        for key, value in pool.tolerated.items()
    ]
    override: Profile = {
        # The flavor's labels are those of all machine types with this accelerator; GKE sets the last on every node.
        "node_selector": {**node_labels, "node.kubernetes.io/instance-type": pool.machine.name},
        "tolerations": tolerations,
    }
    if pool.machine.kind == "gpu" and notebooks.image is None:
        override["image"] = IMAGES["notebook-gpu"]
    profile = {
        "display_name": f"{pool.accelerator.title} ({pool.name})",
        "slug": f"pool-{pool.name}",  # apart from `cpu`, which may be a pool's name too
        "description": f"Machine type {pool.machine.name}, {pool.spec.capacity}.",
        "kubespawner_override": override,
    }
    if pool.machine.kind == "gpu":
        return {**profile, "profile_options": {"gpus": _gpu_choices(resource, pool.machine.chips)}}
    # A TPU host belongs to one pod, which must ask for all of its chips.
    override["extra_resource_limits"] = {resource: str(pool.machine.chips)}
    return profile


def _gpu_choices(resource: str, gpus: int) -> dict[str, Any]:
    """Return the choice between one GPU, the default, so that users share a VM, and all of them."""
    choices = {
        f"gpus-{count}": {
            "display_name": f"{count} of {gpus}",
            "default": count == 1,
            "kubespawner_override": {"extra_resource_limits": {resource: str(count)}},
        }
        for count in sorted({1, gpus})
    }
    return {"display_name": "GPUs", "choices": choices}
