"""Clusters from short sections of stack files."""

from __future__ import annotations

from typing import Any

import yaml

from kueue_model import Cluster
from tests.support import stack_files
from tests.support.stack_files import sound_workspace, team, text_of
from training_platform.parts.simulate.from_stacks import clusters

ENVIRONMENT = """
project: example-lab
production: false
priorities: {low: -100, high: 100}
clusters:
  main:
    location: us-central1-a
    subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
    node_pools:
      reserved: {machine_type: a3-highgpu-8g, capacity: reservation, reservation: h100, min_nodes: 2, max_nodes: 2,
                 topology_aware: false}
      spot: {machine_type: a3-highgpu-8g, capacity: spot, max_nodes: 2}
      slices: {machine_type: ct5lp-hightpu-4t, topology: 4x4, slices: 2}
"""


def sections(teams: dict[str, Any], **environment: Any) -> dict[str, str]:
    """Return the stack files of an environment ``lab`` and its teams, by the names of their stacks."""
    return {name: text_of(file) for name, file in _files(teams, environment).items()}


def _files(teams: dict[str, Any], environment: dict[str, Any]) -> dict[str, dict[str, Any]]:
    files = {"lab": {"environment": {**yaml.safe_load(ENVIRONMENT), **environment}}}
    return files | {f"lab-{name}": {"team": team("lab", name, **fields)} for name, fields in teams.items()}


def cluster(teams: dict[str, Any], **environment: Any) -> Cluster:
    """Return the cluster that stack files describe; the test fails if they have findings."""
    (lab_cluster,) = clusters(sound_workspace(_files(teams, environment)), "lab")
    return lab_cluster


def shares(**quotas: int) -> dict[str, Any]:
    """Return shares of flavors in the cluster; ``h100_spot`` is the flavor ``h100-spot``."""
    return {"shares": stack_files.shares(**quotas)}
