"""Stack files whose sections tests write as data: only the fields that matter to the test, builders give the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from training_platform.config.model.stack import PROJECT, parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check

Json = dict[str, Any]
RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/14", "services": "10.10.16.0/20"}


def cluster(location: str = "us-central1-a", **fields: Any) -> Json:
    """Return a cluster with a subnet of its own."""
    return {"location": location, "subnet": RANGES, **fields}


def environment(clusters: Json | None = None, **fields: Any) -> Json:
    """Return an environment that is not for production, with one cluster ``main`` if no clusters are given."""
    if clusters is None:
        clusters = {"main": cluster()}
    return {"project": "example-train", "production": False, "clusters": clusters, **fields}


def team(home: str, name: str = "vision", **fields: Any) -> Json:
    """Return a team of the environment ``home``, with one group of members."""
    return {"environment": home, "name": name, "members": [f"group:{name}@example.com"], **fields}


def shares(**quotas: int) -> Json:
    """Return shares of flavors in the cluster ``main``; ``h100_spot`` is the flavor ``h100-spot``."""
    return {"main": {name.replace("_", "-"): {"nominal_quota": quota} for name, quota in quotas.items()}}


def text_of(sections: Mapping[str, Any]) -> str:
    """Return a stack file's text; its sections by their kind, ``environment`` or ``team``."""
    config = {f"{PROJECT}:{kind}": section for kind, section in sections.items()}
    return str(yaml.dump({"config": config}, Dumper=yaml.CSafeDumper))  # in an eighth of the time of Python's own


def workspace_of(files: Mapping[str, Mapping[str, Any]], root: Path = Path()) -> Workspace:
    """Return the stacks of a repository, whose files are given by name and then as ``text_of`` takes them."""
    sources = {name: parse_source(text_of(file), f"stacks/Pulumi.{name}.yaml") for name, file in files.items()}
    return cross_check(Workspace(root, {name: parse_stack(name, source) for name, source in sources.items()}))


def sound_workspace(files: Mapping[str, Mapping[str, Any]], root: Path = Path()) -> Workspace:
    """Return the stacks of a repository; the test fails if they have findings."""
    workspace = workspace_of(files, root)
    assert not [str(finding) for stack in workspace.stacks.values() for finding in stack.findings]
    return workspace
