"""Logical names of resources, and the way back from a name to the section of the stack file that asked for it.

A resource is called ``{cluster}-{pool}-{role}``, after the keys of the stack file and never after positions in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from training_platform.config.reading.finding import Path
from training_platform.config.spec.environment import Environment
from training_platform.config.spec.queues import ROOT_COHORT
from training_platform.config.spec.team import Team


def pool_name(cluster: str, pool: str, slice_index: int | None = None) -> str:
    """Name a pool; each slice over several VMs is a GKE node pool of its own, counted from 0."""
    return f"{cluster}-{pool}" if slice_index is None else f"{cluster}-{pool}-{slice_index}"


def cpu_pool_name(cluster: str, field: str) -> str:
    """Name a cluster's pool without TPUs or GPUs by the field that says it, ``system_pool`` or ``pathways``."""
    return f"{cluster}-{field.removesuffix('_pool')}"


def gpu_networks_name(cluster: str) -> str:
    """Name the networks between the GPUs of a cluster."""
    return f"{cluster}-gpu-networks"


def compute_class_name(cluster: str, compute_class: str) -> str:
    """Name a cluster's compute class."""
    return f"{cluster}-class-{compute_class}"


def file_class_name(cluster: str, storage_class: str) -> str:
    """Name a cluster's StorageClass of Filestore."""
    return f"{cluster}-files-{storage_class}"


def notebooks_name(cluster: str) -> str:
    """Name a cluster's JupyterHub."""
    return f"{cluster}-notebooks"


def filestore_name(instance: str) -> str:
    """Name a Filestore instance."""
    return f"filestore-{instance}"


def lustre_name(instance: str) -> str:
    """Name a Managed Lustre instance."""
    return f"lustre-{instance}"


def attachment_name(region: str) -> str:
    """Name what Vertex AI reaches the VPC by in a region."""
    return f"vertex-network-{region}"


def metadata_name(region: str) -> str:
    """Name the metadata store of a region."""
    return f"vertex-metadata-{region}"


def share_name(cluster: str) -> str:
    """Name a team's share of a cluster: namespace, queues and access there."""
    return f"share-{cluster}"


def data_set_name(data_set: str, cluster: str | None = None) -> str:
    """Name a data set, or a team's volume of it in one cluster."""
    return f"data-{data_set}" if cluster is None else f"data-{data_set}-{cluster}"


def data_claim(data_set: str) -> str:
    """Name the claim on a data set in a team's namespace; no directory's name can be its own."""
    return f"data-set.{data_set}"


def data_variable(data_set: str) -> str:
    """Name the variable that says where a data set is, in jobs and in notebooks."""
    return f"DATA_SET_{data_set.upper().replace('-', '_')}"


def directory_name(directory: str, cluster: str | None = None) -> str:
    """Name a team's directory on Filestore, or its volume in one cluster."""
    return f"directory-{directory}" if cluster is None else f"directory-{directory}-{cluster}"


def bucket_name(bucket: str) -> str:
    """Name a team's bucket."""
    return f"bucket-{bucket}"


def secret_name(secret: str) -> str:
    """Name a team's secret."""
    return f"secret-{secret}"


def server_name(cluster: str, server: str) -> str:
    """Name a team's model server in a cluster."""
    return f"serving-{cluster}-{server}"


def agent_name(cluster: str) -> str:
    """Name a team's agent of W&B Launch in a cluster."""
    return f"wandb-{cluster}"


def persistent_resource_name(resource: str) -> str:
    """Name a team's Vertex AI persistent resource."""
    return f"vertex-{resource}"


def workbench_name(instance: str) -> str:
    """Name a team's Workbench instance."""
    return f"workbench-{instance}"


def cohort_name(cohort: str, cluster: str | None = None) -> str:
    """Name a cohort, or its object in one cluster."""
    return f"cohort-{cohort}" if cluster is None else f"cohort-{cohort}-{cluster}"


def quota_request_name(request: str) -> str:
    """Name an environment's request for a larger limit."""
    return f"quota-{request}"


def sections(section: Environment | Team) -> Iterator[tuple[str, Path]]:
    """Yield the name of everything that a stack file declares by key, with its path below the section."""
    if isinstance(section, Environment):
        yield from _environment_sections(section)
    else:
        yield from _team_sections(section)


def _environment_sections(environment: Environment) -> Iterator[tuple[str, Path]]:
    for name, cluster in environment.clusters.items():
        path: Path = ("clusters", name)
        yield name, path
        for field in cluster.cpu_pools:
            yield cpu_pool_name(name, field), (*path, field)
        yield gpu_networks_name(name), (*path, "gpu_networks")
        if cluster.notebooks:
            yield notebooks_name(name), (*path, "notebooks")
        for pool in cluster.node_pools:
            yield pool_name(name, pool), (*path, "node_pools", pool)
        for compute_class in cluster.compute_classes:
            yield compute_class_name(name, compute_class), (*path, "compute_classes", compute_class)
        for storage_class in cluster.storage_classes:
            yield file_class_name(name, storage_class), (*path, "storage_classes", storage_class)
    yield from _keyed_sections(environment)
    yield "images", ("images",)
    yield "alerts", ("alerts",)
    yield "budget", ("budget",)
    yield "dashboard", ("dashboards",)


def _keyed_sections(environment: Environment) -> Iterator[tuple[str, Path]]:
    for instance in environment.filestore:
        yield filestore_name(instance), ("filestore", instance)
    for instance in environment.lustre:
        yield lustre_name(instance), ("lustre", instance)
    for region in environment.network_attachments:
        yield attachment_name(region), ("network_attachments", region)
    for index, region in enumerate(environment.metadata_stores):
        yield metadata_name(region), ("metadata_stores", index)
    for data_set in environment.data_sets:
        yield data_set_name(data_set), ("data_sets", data_set)
    for cohort in dict.fromkeys((*environment.cohorts, ROOT_COHORT)):  # the last has quota where the environment lends
        yield cohort_name(cohort), ("cohorts", cohort) if cohort in environment.cohorts else ("lend_unpromised",)
    for request in environment.quota_requests:
        yield quota_request_name(request), ("quota_requests", request)


def _team_sections(team: Team) -> Iterator[tuple[str, Path]]:
    yield "dashboard", ("shares",)
    for cluster in team.shares:
        yield share_name(cluster), ("shares", cluster)
    for directory in team.directories:
        yield directory_name(directory), ("directories", directory)
    for data_set in team.data_sets:
        yield data_set_name(data_set), ("data_sets", data_set)
    for bucket in team.buckets:
        yield bucket_name(bucket), ("buckets", bucket)
    yield "budget", ("budget",)
    for index, secret in enumerate(team.secrets):
        yield secret_name(secret), ("secrets", index)
    for cluster, servers in team.serving.items():
        for server in servers:
            yield server_name(cluster, server), ("serving", cluster, server)
    for cluster in team.wandb_launch:
        yield agent_name(cluster), ("wandb_launch", cluster)
    for resource in team.vertex.persistent_resources:
        yield persistent_resource_name(resource), ("vertex", "persistent_resources", resource)
    yield from ((workbench_name(each), ("vertex", "workbench", each)) for each in team.vertex.workbench)


class Locator:
    """Finds the section that a resource came from, by the longest declared name that its own name starts with."""

    def __init__(self, section: Environment | Team) -> None:
        self._paths: Mapping[str, Path] = dict(sections(section))

    def path(self, logical_name: str) -> Path:
        """Return the path of the section that asked for a resource; the whole stack is ``()``."""
        name = logical_name
        while name:
            if name in self._paths:
                return self._paths[name]
            name = name.rpartition("-")[0]
        return ()


def clashes(section: Environment | Team) -> dict[str, list[Path]]:
    """Return every name that two parts of a stack file would give to their resources, with both paths."""
    paths = defaultdict(list)
    for name, path in sections(section):
        paths[name].append(path)
    return {name: found for name, found in paths.items() if len(found) > 1}
