"""What keeps capacity from being replaced or removed in silence, under the real engine and the real gcp plugin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local_google_cloud.api import Store
from tests.parts.sandbox.run.repositories import STACK, Sandbox, small

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

OTHER = """\
          other:
            machine_type: a2-highgpu-1g
            zone: us-central1-a
            capacity: flex-start
            max_run_hours: 24
            max_nodes: 1
"""
CHANGED = STACK.replace("a3-highgpu-8g", "a2-highgpu-8g")
LIFT = "            deletion_protection: false\n"


def pools(sandbox: Sandbox) -> dict[str, str]:
    """Return the machine type of each node pool that the local cloud holds, by name."""
    held = [entity for entity in Store(sandbox.folder.cloud).all() if entity.name.count("/nodePools/")]
    return {entity.id: entity.body["config"]["machineType"] for entity in held}


def steps(sandbox: Sandbox) -> set[tuple[str, str]]:
    """Return what the last run did with which resource."""
    summary = json.loads(sandbox.folder.summary("small").read_text())
    return {(step["op"], step["name"]) for step in summary["steps"]}


def test_a_protected_pool_is_replaced_or_removed_only_where_the_stack_file_lifts_that(tmp_path: Path) -> None:
    sandbox = small(tmp_path / "repository", STACK + OTHER)
    file = sandbox.folder.root / "stacks" / "Pulumi.small.yaml"
    ran = sandbox("up", "small")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    before = {"system": "e2-standard-8", "h100": "a3-highgpu-8g", "other": "a2-highgpu-1g"}
    assert pools(sandbox) == before

    for text, name in ((CHANGED + OTHER, "main-h100-pool"), (STACK, "main-other-pool")):
        file.write_text(text)
        refused = sandbox("up", "small")
        assert refused.returncode == 1
        assert f"{name}: " in refused.stderr
        assert "deletion_protection: false, in the section to be deleted" in refused.stderr
        assert pools(sandbox) == before

    file.write_text(CHANGED + LIFT + OTHER + LIFT)
    replaced = sandbox("up", "small")
    assert replaced.returncode == 0, replaced.stdout + replaced.stderr
    assert {("delete-replaced", "main-h100-pool"), ("create-replacement", "main-h100-pool")} <= steps(sandbox)
    assert pools(sandbox) == before | {"h100": "a2-highgpu-8g"}

    file.write_text(CHANGED)
    removed = sandbox("up", "small")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    assert pools(sandbox) == {"system": "e2-standard-8", "h100": "a2-highgpu-8g"}
