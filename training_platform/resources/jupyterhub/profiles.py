"""What a user of JupyterHub can start: a notebook without accelerators, or one on a host of a single-host pool.

A profile of a team runs in the team's namespace and queue, as the account of its jobs, with its data sets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from training_platform.catalog import CHARTS, IMAGES
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.workloads import NOTEBOOK_PRIORITY, Notebooks
from training_platform.config.names import data_claim, data_variable
from training_platform.config.pools import ExpandedPool, cluster_pools, flavor_name, flavors
from training_platform.resources.cloud_names import SERVICE_ACCOUNT
from training_platform.resources.kueue.objects import ANY_PLACE, PRIORITY_LABEL, QUEUE_LABEL, local_queue_names
from training_platform.resources.storage.data_sets import NotebookDataSets

Profile = dict[str, Any]  # an entry of KubeSpawner's profile_list
HUB_NAMESPACE: Final = CHARTS["jupyterhub"].namespace
TEAM_HOMES: Final = "notebooks.homes"  # the claim in a team's namespace; no directory's name can be its own
HOME: Final = "/home/jovyan"
FUSE_ANNOTATION: Final = {"gke-gcsfuse/volumes": "true"}  # GKE adds the container that mounts buckets
_USER_ID, _GROUP_ID = 1000, 100  # of the user in Jupyter's images, and the chart's own defaults


def profiles(cluster_name: str, cluster: ClusterSpec, notebooks: Notebooks) -> list[Profile]:
    """Return the profiles of a cluster, the one without accelerators first and chosen by default.

    Of the pools that ``notebooks`` names, those whose slices span several hosts have none: a notebook is one pod.
    These notebooks ask no queue for quota, so that no team is promised what their pools hold; culling idle ones is what
    gives their accelerators back.
    """
    return [_cpu(), *_of_pools(cluster_name, cluster, notebooks, notebooks.pools)]


def team_profiles(
    cluster_name: str, cluster: ClusterSpec, notebooks: Notebooks, team: str, data_sets: NotebookDataSets
) -> list[Profile]:
    """Return the profiles of a team; ``data_sets`` are what it reads, disks in a zone for VMs of that zone alone."""
    found = _of_pools(cluster_name, cluster, notebooks, notebooks.teams[team].pools)
    pools = {f"pool-{pool.name}": pool for pool in cluster_pools(cluster_name, cluster)}
    for profile in found:
        pool = pools[profile["slug"]]
        profile["display_name"] += f", {team}"
        profile["slug"] = f"team-{team}-{profile['slug']}"
        profile["description"] += (
            f" On the share of {team}: it waits for quota, ends when jobs of the team need its accelerators, and after "
            f"{notebooks.idle_minutes} idle minutes."
        )
        profile["kubespawner_override"] |= in_namespace(
            notebooks, team, {key: each for key, each in data_sets.items() if each.zone in (None, pool.zone)}
        )
        if pool.spec.topology_aware:
            profile["kubespawner_override"].setdefault("extra_annotations", {}).update(ANY_PLACE)
    return found


def in_namespace(notebooks: Notebooks, team: str, data_sets: NotebookDataSets) -> Profile:
    """Return what makes a notebook one of a team: its namespace, queue, account, home and data."""
    queue, *_ = local_queue_names(team)
    home = {"name": "home", "mountPath": HOME, "subPath": f"{team}/{{username}}"}  # a folder that admission allows
    volumes, mounts = data_volumes(data_sets)
    buckets = dict(FUSE_ANNOTATION) if any(each.bucket for each in data_sets.values()) else {}
    return {
        "namespace": team,
        "service_account": SERVICE_ACCOUNT,
        "extra_labels": {QUEUE_LABEL: queue, PRIORITY_LABEL: NOTEBOOK_PRIORITY},
        **({"extra_annotations": buckets} if buckets else {}),
        "environment": data_variables(data_sets),
        "volumes": [{"name": home["name"], "persistentVolumeClaim": {"claimName": TEAM_HOMES}}, *volumes],
        "volume_mounts": [home, *mounts],
        "init_containers": [home_owner(notebooks.image or IMAGES["notebook"], home)],
    }


def data_volumes(data_sets: Collection[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a notebook's volumes of data sets, and their mounts; ``programs/hub.py`` calls a team's own the same."""
    claims = {f"data-set-{name}": {"claimName": data_claim(name), "readOnly": True} for name in data_sets}
    volumes = [{"name": name, "persistentVolumeClaim": claim} for name, claim in claims.items()]
    mounts = [{"name": f"data-set-{name}", "mountPath": _data_path(name), "readOnly": True} for name in data_sets]
    return volumes, mounts


def data_variables(data_sets: Collection[str]) -> dict[str, str]:
    """Return the variables that say where data sets are, as a job's do."""
    return {data_variable(name): _data_path(name) for name in data_sets}


def _data_path(name: str) -> str:
    return f"/data/{name}"


def home_owner(image: str, home: Mapping[str, str]) -> dict[str, Any]:
    """Return the container that gives a user the home: the kubelet makes the folder as root, and NFS ignores fsGroup.

    (Inferred from the Filestore CSI driver's fsGroupPolicy; not tried on a cluster.)
    """
    return {
        "name": "home-owner",
        "image": image,
        "command": ["chown", f"{_USER_ID}:{_GROUP_ID}", home["mountPath"]],
        "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
        "volumeMounts": [dict(home)],
    }


def _of_pools(cluster_name: str, cluster: ClusterSpec, notebooks: Notebooks, names: Collection[str]) -> list[Profile]:
    labels = {name: flavor.node_labels for name, flavor in flavors(cluster_name, cluster).items()}
    named = [pool for pool in cluster_pools(cluster_name, cluster) if pool.name in names]
    return [_accelerated(pool, labels[flavor_name(pool)], notebooks) for pool in named if holds_notebooks(pool)]


def holds_notebooks(pool: ExpandedPool) -> bool:
    """Whether a pool has notebooks: a pod of one host, and one that alone makes the pool grow.

    Queued VMs come by request, and those of a class for its own jobs.
    """
    return not pool.multi_host and pool.spec.capacity != "queued-provisioning" and pool.compute_class is None


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
