"""Clusters from short sections of stack files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kueue_model import Cluster
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
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
    files = {"lab": {"training-platform:environment": {**yaml.safe_load(ENVIRONMENT), **environment}}}
    for name, fields in teams.items():
        team_section = {"environment": "lab", "name": name, "members": ["group:a@example.com"], **fields}
        files[f"lab-{name}"] = {"training-platform:team": team_section}
    return {name: yaml.safe_dump({"config": section}) for name, section in files.items()}


def cluster(teams: dict[str, Any], **environment: Any) -> Cluster:
    """Return the cluster that stack files describe; the test fails if they have findings."""
    parsed = {
        name: parse_stack(name, parse_source(text, f"stacks/Pulumi.{name}.yaml"))
        for name, text in sections(teams, **environment).items()
    }
    workspace = cross_check(Workspace(Path(), parsed))
    assert not [str(finding) for stack in workspace.stacks.values() for finding in stack.findings]
    (lab_cluster,) = clusters(workspace, "lab")
    return lab_cluster


def shares(**quotas: int) -> dict[str, Any]:
    """Return shares of flavors in the cluster; ``h100_spot`` is the flavor ``h100-spot``."""
    return {"shares": {"main": {name.replace("_", "-"): {"nominal_quota": quota} for name, quota in quotas.items()}}}
