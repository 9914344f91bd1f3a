"""Logical names of resources, and the reverse lookup from a name to its section of the stack file.

A resource is named ``{cluster}-{pool}-{role}``, after keys in the stack file, never after positions in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Final

from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import ROOT_COHORT
from training_platform.config.model.team import Team
from training_platform.config.reading.finding import Path


def vpc_name(environment: str) -> str:
    """Return the name of the VPC that an environment creates. Several environments may share a project."""
    return f"{environment}-network"


def pool_name(cluster: str, pool: str) -> str:
    """Return the name of a node pool. GKE node pools for multi-host slices add their number to it, starting at 0."""
    return f"{cluster}-{pool}"


def cpu_pool_name(cluster: str, path: Path, machine_type: str) -> str:
    """Return the name of a pool without TPUs or GPUs, from its path in the cluster's section.

    The name of a fallback also contains its machine type.
    """
    if path[0] != "system_pool":
        return f"{cluster}-{path[-1]}"
    return f"{cluster}-system" if path == ("system_pool",) else f"{cluster}-system-{machine_type}"


# Beginnings of names, by section of the stack file; the section's keys follow.
_BEGINNINGS: Mapping[str, str] = {
    "filestore": "filestore",
    "lustre": "lustre",
    "network_attachments": "vertex-network",
    "data_sets": "data",
    "quota_requests": "quota",
    "cohorts": "cohort",
    "shares": "share",
    "directories": "directory",
    "buckets": "bucket",
    "secrets": "secret",
    "serving": "serving",
    "wandb_launch": "wandb",
    "vertex.persistent_resources": "vertex",
}
_IN_CLUSTERS: Mapping[str, str] = {
    "gpu_networks": "gpu-networks",
    "notebooks": "notebooks",
    "compute_classes": "class",
    "storage_classes": "files",
}


def declared_name(section: str, *keys: str) -> str:
    """Return the name of an object in a section, built from its keys: ``data-images``, ``data-images-main``."""
    return "-".join((_BEGINNINGS[section], *keys))


def name_in_cluster(cluster: str, section: str, *keys: str) -> str:
    """Return the name of a thing that a cluster's section declares: ``main-notebooks``, ``main-class-research``."""
    return "-".join((cluster, _IN_CLUSTERS[section], *keys))


def data_claim(data_set: str) -> str:
    """Return the name of the claim for a data set in a team's namespace. No directory has the same name."""
    return f"data-set.{data_set}"


def data_variable(data_set: str) -> str:
    """Return the name of the variable that contains a data set's path in jobs and notebooks."""
    return f"DATA_SET_{data_set.upper().replace('-', '_')}"


def sections(section: Environment | Team) -> Iterator[tuple[str, Path]]:
    """Yield the name and path of everything that a stack file declares by key. Paths are relative to the section."""
    if isinstance(section, Environment):
        yield from _environment_sections(section)
    else:
        yield from (
            ("dashboard", ("shares",)),
            ("budget", ("budget",)),
            ("logs", ("shares",)),
            ("vertex-logs", ("vertex", "members_submit")),
            ("submitters", ("environment",)),
            ("admins", ("vertex", "persistent_resources")),
            ("members", ("members",)),
        )
        yield from _keyed(section, "shares", "directories", "data_sets", "buckets", "secrets")
        for cluster, servers in section.serving.items():
            for server in servers:
                yield declared_name("serving", cluster, server), ("serving", cluster, server)
        yield from _keyed(section, "wandb_launch", "vertex.persistent_resources")


def _environment_sections(environment: Environment) -> Iterator[tuple[str, Path]]:
    for name, cluster in environment.clusters.items():
        path: Path = ("clusters", name)
        yield name, path
        for below, pool_spec in cluster.pools_without_chips.items():
            yield cpu_pool_name(name, below, pool_spec.machine_type), (*path, *below)
        yield name_in_cluster(name, "gpu_networks"), (*path, "gpu_networks")
        if cluster.notebooks:
            yield name_in_cluster(name, "notebooks"), (*path, "notebooks")
        for pool in cluster.node_pools:
            yield pool_name(name, pool), (*path, "node_pools", pool)
        for section in ("compute_classes", "storage_classes"):
            for key in getattr(cluster, section):
                yield name_in_cluster(name, section, key), (*path, section, key)
    yield from _keyed(environment, "filestore", "lustre", "network_attachments", "data_sets")
    for cohort in dict.fromkeys(
        (*environment.cohorts, ROOT_COHORT)
    ):  # the root cohort has quota if the environment lends
        in_file = cohort in environment.cohorts
        yield declared_name("cohorts", cohort), ("cohorts", cohort) if in_file else ("lend_unpromised",)
    yield from _keyed(environment, "quota_requests")
    yield from (("images", ("images",)), ("python", ("python_repository",)))
    yield from (("alerts", ("alerts",)), ("budget", ("budget",)), ("vertex-logs", ("vertex_submitters",)))
    yield "dashboard", ("dashboards",)


def _keyed(file: Environment | Team, *names: str) -> Iterator[tuple[str, Path]]:
    """Yield the name and path of everything in the given sections. In a list, the path ends in the item's index."""
    for section in names:
        declared = attrgetter(section)(file)
        for number, key in enumerate(declared):
            yield declared_name(section, key), (*section.split("."), key if isinstance(declared, Mapping) else number)


class Locator:
    """Finds the section that declares a resource, by the longest declared name that the resource's name begins with."""

    def __init__(self, section: Environment | Team) -> None:
        self._paths: Mapping[str, Path] = dict(sections(section))

    def path(self, logical_name: str) -> Path:
        """Return the path of the section that declares a resource, or ``()`` if the resource is the whole stack's."""
        name = logical_name
        while name:
            if name in self._paths:
                return self._paths[name]
            name = name.rpartition("-")[0]
        return ()


def clashes(section: Environment | Team) -> dict[str, list[Path]]:
    """Return every name that several sections of a stack file would use, with the paths of these sections."""
    paths = defaultdict(list)
    for name, path in sections(section):
        paths[name].append(path)
    return {name: same_name for name, same_name in paths.items() if len(same_name) > 1}


# Cache folders, by the variable that libraries read.
CACHES: Final[Mapping[str, str]] = {
    "HF_HOME": "huggingface",
    "TORCH_HOME": "torch",
    "JAX_COMPILATION_CACHE_DIR": "jax",
    "TFDS_DATA_DIR": "tensorflow-datasets",
    "TFHUB_CACHE_DIR": "tensorflow-hub",
    "TRITON_CACHE_DIR": "triton",
    "PIP_CACHE_DIR": "pip",
}


def cache_variables(folder: str) -> dict[str, str]:
    """Return the variables that make libraries store models and compiled programs in a folder."""
    return {name: f"{folder}/{below}" for name, below in CACHES.items()}
