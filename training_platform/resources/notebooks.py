"""The notebooks that a user of JupyterHub can start, and their objects in a team's namespace.

A user starts a notebook without accelerators, or one on a host of a single-host pool. A notebook with a team's profile
runs in the team's namespace and queue, with the service account of its jobs and with its data sets. The namespace gives
permissions to the hub and allows traffic between hub and notebooks. Its quotas leave room for pods that wait.

Source: jupyterhub/kubespawner 7.1.0 (it watches each namespace in which it has pods) and z2jh 4.4.0 (ports, labels,
permissions of the hub's account in its own namespace), read 2026-11-22.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Final

from training_platform.catalog import CHARTS, IMAGES
from training_platform.config.expansion import ExpandedPool, Flavor, cluster_pools, flavor_name, flavors
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.workloads import NOTEBOOK_PRIORITY, Notebooks
from training_platform.config.names import cache_variables, data_claim, data_variable
from training_platform.resources.data_sets import NotebookDataSets
from training_platform.resources.kueue import ANY_PLACE, PRIORITY_LABEL, QUEUE_LABEL, local_queue_names
from training_platform.resources.pod_admission import CONFINED
from training_platform.resources.scope import SERVICE_ACCOUNT, TEAM_GROUP

Profile = dict[str, Any]  # an entry of KubeSpawner's profile_list
HUB_NAMESPACE: Final = CHARTS["jupyterhub"].namespace
TEAM_HOMES: Final = "notebooks.homes"  # the claim in a team's namespace; no directory's name can be its own
HOME: Final = "/home/jovyan"
FUSE_ANNOTATION: Final = {"gke-gcsfuse/volumes": "true"}  # GKE adds the container that mounts buckets
_TEAM_CACHE: Final = "/cache"
_CACHE_FOLDER: Final = ".cache"  # in the claim with the homes; names of users begin with a letter or digit
# Models and data sets, once for the team. HF_HOME stays in the home: it holds the user's token.
_TEAM_VARIABLES: Final = {
    "HF_HUB_CACHE": f"{_TEAM_CACHE}/huggingface/hub",
    "HF_DATASETS_CACHE": f"{_TEAM_CACHE}/huggingface/datasets",
}
_SHARED_MEMORY: Final = "shared-memory"
_USER_ID = 1000  # in Jupyter's images, and the chart's default


def profiles(cluster_name: str, cluster: ClusterSpec, notebooks: Notebooks) -> list[Profile]:
    """Return the notebook profiles of a cluster. The profile without accelerators is first and is the default.

    Pools with multi-host slices have no profiles, because a notebook is one pod. These notebooks are in no queue, so
    the machines of their pools are not promised to any team. Stopping idle notebooks frees their accelerators.
    """
    return [_cpu_profile(), *_pool_profiles(cluster_name, cluster, notebooks, notebooks.pools)]


def team_profiles(
    cluster_name: str, cluster: ClusterSpec, notebooks: Notebooks, team: str, data_sets: NotebookDataSets
) -> list[Profile]:
    """Return the profiles of a team. ``data_sets`` are the data sets that it reads.

    A data set on a disk is mounted only by notebooks on VMs in the disk's zone.
    """
    offered = _pool_profiles(cluster_name, cluster, notebooks, notebooks.teams[team].pools)
    pools = {f"pool-{pool.name}": pool for pool in cluster_pools(cluster_name, cluster)}
    by_name = flavors(cluster_name, cluster)
    for profile in offered:
        pool = pools[profile["slug"]]
        profile["display_name"] += f", {team}"
        profile["slug"] = f"team-{team}-{profile['slug']}"
        profile["description"] += (
            f" Uses the share of {team}: the notebook waits for quota, and ends when jobs of the team need its "
            f"accelerators or after {notebooks.idle_minutes} idle minutes."
        )
        reachable = {key: data for key, data in data_sets.items() if data.zone in (None, pool.zone)}
        profile["kubespawner_override"] |= in_namespace(notebooks, team, reachable)
        if by_name[flavor_name(pool)].topology_levels:
            profile["kubespawner_override"].setdefault("extra_annotations", {}).update(ANY_PLACE)
    return offered


def in_namespace(notebooks: Notebooks, team: str, data_sets: NotebookDataSets) -> Profile:
    """Return the settings of a team's notebook: its namespace, queue, service account, home directory and data."""
    queue, *_ = local_queue_names(team)
    home = {"name": "home", "mountPath": HOME, "subPath": "{username}"}
    cache = {"name": "home", "mountPath": _TEAM_CACHE, "subPath": _CACHE_FOLDER}
    volumes, mounts = volumes_beside_home(data_sets)
    settings: Profile = {
        "namespace": team,
        "service_account": SERVICE_ACCOUNT,
        "extra_labels": {QUEUE_LABEL: queue, PRIORITY_LABEL: NOTEBOOK_PRIORITY},
        "pod_security_context": {"seccompProfile": CONFINED["seccompProfile"]},  # KubeSpawner adds the rest itself
    }
    if any(data_set.bucket for data_set in data_sets.values()):
        settings["extra_annotations"] = dict(FUSE_ANNOTATION)
    settings["environment"] = {**notebook_variables(data_sets), **_TEAM_VARIABLES}
    settings["volumes"] = [{"name": home["name"], "persistentVolumeClaim": {"claimName": TEAM_HOMES}}, *volumes]
    settings["volume_mounts"] = [home, cache, *mounts]
    settings["init_containers"] = [folder_owner(notebooks.image or IMAGES["notebook"], home, cache)]
    return settings


def volumes_beside_home(data_sets: Collection[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a notebook's volumes and mounts for /dev/shm and data sets; ``hub_program.py`` uses the same names.

    The container runtime's /dev/shm has 64 MiB, which is too little for PyTorch's data loaders: they end in a bus
    error. This one is as large as the notebook's memory, and its content counts against the memory limit.
    """
    claims = {f"data-set-{name}": {"claimName": data_claim(name), "readOnly": True} for name in data_sets}
    volumes = [{"name": name, "persistentVolumeClaim": claim} for name, claim in claims.items()]
    mounts = [{"name": f"data-set-{name}", "mountPath": _data_path(name), "readOnly": True} for name in data_sets]
    shared = {"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory"}}
    in_memory = {"name": _SHARED_MEMORY, "mountPath": "/dev/shm"}  # noqa: S108 # the pod's own
    return [shared, *volumes], [in_memory, *mounts]


def notebook_variables(data_sets: Collection[str]) -> dict[str, str]:
    """Return the environment variables with the paths of data sets, as in jobs, and of caches in the home directory.

    A server reports the output of its kernels to the hub every minute, not every five minutes: the hub would otherwise
    end used servers if ``idle_minutes`` is 5. Source: jupyterhub 5.5.0, singleuser/extension.py.
    """
    data_paths = {data_variable(name): _data_path(name) for name in data_sets}
    return {**cache_variables(f"{HOME}/.cache"), "JUPYTERHUB_ACTIVITY_INTERVAL": "60", **data_paths}


def _data_path(name: str) -> str:
    return f"/data/{name}"


def folder_owner(image: str, *mounts: Mapping[str, str]) -> dict[str, Any]:
    """Return the container that makes a user the owner of the home directory.

    The kubelet creates the directory as root, and NFS ignores fsGroup. (Inferred from the Filestore CSI driver's
    fsGroupPolicy; not tried on a cluster.)
    """
    return {
        "name": "home-owner",
        "image": image,
        "command": ["chown", f"{_USER_ID}:{TEAM_GROUP}", *(mount["mountPath"] for mount in mounts)],
        "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
        "volumeMounts": [dict(mount) for mount in mounts],
    }


def _pool_profiles(
    cluster_name: str, cluster: ClusterSpec, notebooks: Notebooks, names: Collection[str]
) -> list[Profile]:
    labels = {name: flavor.node_labels for name, flavor in flavors(cluster_name, cluster).items()}
    named = [pool for pool in cluster_pools(cluster_name, cluster) if pool.name in names]
    return [_accelerated(pool, labels[flavor_name(pool)], notebooks) for pool in named if holds_notebooks(pool)]


def holds_notebooks(pool: ExpandedPool) -> bool:
    """Return True if notebooks can run on a pool: its slices have one host, and a single pod can scale it up.

    Queued VMs need a ProvisioningRequest, and VMs of a compute class are reserved for its own jobs.
    """
    return not pool.multi_host and pool.spec.capacity != "queued-provisioning" and pool.compute_class is None


def _cpu_profile() -> Profile:
    return {
        "display_name": "CPU",
        "slug": "cpu",
        "description": "Up to 4 cores and 8 GB of memory; starts at once.",
        "default": True,
        "kubespawner_override": {"cpu_guarantee": 0.5, "cpu_limit": 4, "mem_guarantee": "2G", "mem_limit": "8G"},
    }


def _accelerated(pool: ExpandedPool, node_labels: dict[str, str], notebooks: Notebooks) -> Profile:
    """Return a pool's profile.

    If a VM has to be started first, the user waits for minutes, or longer if there is no capacity.
    """
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
    """Return the profile's option of one GPU or all GPUs of a VM. One is the default, so that users share a VM."""
    choices = {
        f"gpus-{count}": {
            "display_name": f"{count} of {gpus}",
            "default": count == 1,
            "kubespawner_override": {"extra_resource_limits": {resource: str(count)}},
        }
        for count in sorted({1, gpus})
    }
    return {"display_name": "GPUs", "choices": choices}


HUB_ACCOUNT: Final = "hub"  # the chart's name of its service account
NOTEBOOK_PORT = 8888
HUB_PORT = 8081
_WATCH = ("get", "list", "watch")
# Only pods: homes exist, and Secrets of users are for https between hub and notebooks, which is off.
RULES: Final = (
    {"apiGroups": [""], "resources": ["pods"], "verbs": [*_WATCH, "create", "delete"]},
    {"apiGroups": [""], "resources": ["events", "persistentvolumeclaims"], "verbs": list(_WATCH)},
)
_PODS = {"matchLabels": {"component": "singleuser-server"}}
_HUB = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": HUB_NAMESPACE}}}


def notebooks_of(cluster: ClusterSpec, team: str) -> Notebooks | None:
    """Return a cluster's notebooks if they have profiles for the team, otherwise None."""
    return cluster.notebooks if cluster.notebooks and team in cluster.notebooks.teams else None


def network_policy(*, closed: bool) -> dict[str, Any]:
    """Return the spec of a NetworkPolicy that allows traffic between notebooks and the hub with its proxy.

    Traffic to the hub is allowed only if the namespace is ``closed``. In other namespaces, such a rule would block all
    other outgoing traffic.
    """
    types = ["Ingress"]
    spec: dict[str, Any] = {
        "podSelector": _PODS,
        "policyTypes": types,
        "ingress": [{"from": [_HUB], "ports": [{"protocol": "TCP", "port": NOTEBOOK_PORT}]}],
    }
    if closed:
        types.append("Egress")
        spec["egress"] = [{"to": [_HUB], "ports": [{"protocol": "TCP", "port": HUB_PORT}]}]
    return spec


def waiting_chips(cluster_name: str, cluster: ClusterSpec, team: str, flavors: Mapping[str, Flavor]) -> Counter[str]:
    """Return the number of chips of each flavor that a team's waiting notebooks may request.

    Each user may have one notebook, which is counted as if it used the largest VM.
    """
    requested: Counter[str] = Counter()
    notebooks = notebooks_of(cluster, team)
    if notebooks is None:
        return requested
    profile = notebooks.teams[team]
    for pool in cluster_pools(cluster_name, cluster):
        name = flavor_name(pool)
        if pool.name in profile.pools and name in flavors and holds_notebooks(pool):
            requested[name] = max(requested[name], len(profile.users) * pool.machine.chips)
    return requested
