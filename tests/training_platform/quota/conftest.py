"""Builders of the quota tests: stack files and snapshots from YAML text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent

import pytest

from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace
from training_platform.quota.charges import QuotaKey
from training_platform.quota.snapshot import Snapshot, Snapshots, parse_snapshot

Build = Callable[..., Workspace]
Limits = Callable[[str], Snapshots]
Key = Callable[..., QuotaKey]


@pytest.fixture
def build() -> Build:
    """Return a function that makes a workspace: ``build(dev=pools, dev_vision=team)``.

    An environment's text is the node pools of its one cluster, ``main`` in us-central1; a team's is its section, to
    which name and environment are added.
    """

    def workspace(**texts: str) -> Workspace:
        stacks = {}
        for key, text in texts.items():
            name = key.replace("_", "-")
            body = _team(name, text) if "_" in key else _environment(text)
            stacks[name] = parse_stack(name, parse_source(body, f"stacks/Pulumi.{name}.yaml"))
            assert not stacks[name].findings, [str(finding) for finding in stacks[name].findings]
        return Workspace(Path(), stacks)

    return workspace


@pytest.fixture
def limits() -> Limits:
    """Return a function that makes the snapshot of project ``example-train`` from the text below ``limits:``."""

    def snapshots(text: str) -> Snapshots:
        body = f'project: example-train\ntaken: "2026-11-01"\nlimits:\n{indent(dedent(text), "  ")}'
        snapshot, findings = parse_snapshot("example-train", parse_source(body, "stacks/quotas/example-train.yaml"))
        assert isinstance(snapshot, Snapshot), findings
        return Snapshots({"example-train": snapshot})

    return snapshots


@pytest.fixture
def key() -> Key:
    """Return a function that makes a key of Compute Engine in project ``example-train``."""

    def quota(quota_id: str, location: str = "us-central1", **dimensions: str) -> QuotaKey:
        named = tuple(dimensions.items())
        return QuotaKey("example-train", "compute.googleapis.com", quota_id, location, named)

    return quota


def _environment(pools: str) -> str:
    head = """\
        config:
          training-platform:environment:
            project: example-train
            clusters:
              main:
                location: us-central1
                subnet: {nodes: 10.10.0.0/20, pods: 10.64.0.0/16, services: 10.10.16.0/20}
                system_pool: {machine_type: e2-standard-4, min_nodes: 1, max_nodes: 3, boot_disk: {size_gb: 50}}
        """
    return dedent(head) + indent(dedent(pools), " " * 8) + "\n    production: false\n"


def _team(name: str, section: str) -> str:
    environment, _, team = name.partition("-")
    head = f"""\
        config:
          training-platform:team:
            environment: {environment}
            name: {team}
            members: ["group:{team}@example.com"]
        """
    return dedent(head) + indent(dedent(section), " " * 4)
