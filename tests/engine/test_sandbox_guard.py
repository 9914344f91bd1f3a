"""What keeps capacity from being replaced or removed in silence, under the real engine and the real gcp plugin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandbox.cloud.store import Store
from tests.sandbox_run.conftest import STACK, Sandbox, small

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
    held = [each for each in Store(sandbox.folder.cloud).all() if each.name.count("/nodePools/")]
    return {each.id: each.body["config"]["machineType"] for each in held}


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
        assert "deletion_protection: false, in the section that may go" in refused.stderr
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


SLICES = """\
          v5e:
            machine_type: ct5lp-hightpu-4t
            zone: us-central1-a
            topology: 2x2
            capacity: spot
            slices: 2
"""
LARGER = SLICES.replace("4t", "8t").replace("2x2", "2x4")


def test_another_machine_type_of_one_host_slices_replaces_their_pool_where_the_stack_file_lifts_that(
    tmp_path: Path,
) -> None:
    sandbox = small(tmp_path / "repository", STACK + SLICES)
    file = sandbox.folder.root / "stacks" / "Pulumi.small.yaml"
    ran = sandbox("up", "small")
    assert ran.returncode == 0, ran.stdout + ran.stderr

    file.write_text(STACK + LARGER)
    refused = sandbox("up", "small")
    assert refused.returncode == 1
    assert "main-v5e-pool: " in refused.stderr
    assert pools(sandbox)["v5e"] == "ct5lp-hightpu-4t"

    file.write_text(STACK + LARGER + LIFT)
    replaced = sandbox("up", "small")
    assert replaced.returncode == 0, replaced.stdout + replaced.stderr
    assert {("delete-replaced", "main-v5e-pool"), ("create-replacement", "main-v5e-pool")} <= steps(sandbox)
    assert pools(sandbox)["v5e"] == "ct5lp-hightpu-8t"
