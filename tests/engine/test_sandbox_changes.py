"""Every change that an environment's file can ask for, under the real engine: applied, or replaced as announced.

Each field stands on a resource of its own, so that one ``up`` changes all of them and each step shows its field. A
second ``up`` of the same file, and a refresh, then find nothing to do: what the local cloud took, it kept.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.engine.fleet import done_to
from tests.parts.sandbox.run.repositories import without_stacks

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

UNPROTECTED = {"deletion_protection": False}
POOL: dict[str, Any] = {"machine_type": "g2-standard-12", "zone": "us-central1-a", "max_nodes": 2, **UNPROTECTED}
GPU: dict[str, Any] = POOL | {"machine_type": "n1-standard-16", "accelerator": "t4"}
FILES: dict[str, Any] = {"location": "us-central1-a", "tier": "ZONAL", "capacity_gib": 1024, **UNPROTECTED}
# By the name of the resource: what it is before, the change, and what the engine then does to it.
POOLS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "most": (POOL, {"max_nodes": 1}, "update"),
    "least": (POOL, {"min_nodes": 1}, "update"),
    "labels": (POOL, {"labels": {"tier": "b"}}, "update"),
    "taints": (POOL, {"taints": {"team": {"value": "one", "effect": "NO_SCHEDULE"}}}, "update"),
    "disk": (POOL, {"boot_disk": {"size_gb": 200}}, "update"),
    "disktype": (POOL, {"boot_disk": {"type": "pd-ssd"}}, "update"),
    "surge": (POOL, {"upgrades": {"max_surge": 2}}, "update"),
    "unavailable": (POOL, {"upgrades": {"max_surge": 1, "max_unavailable": 1}}, "update"),
    "soak": (POOL, {"upgrades": {"strategy": "blue-green"}}, "update"),
    "repair": (POOL, {"upgrades": {"auto_repair": False}}, "update"),
    "protected": (POOL, {"deletion_protection": True}, "same"),
    "machine": (POOL, {"machine_type": "g2-standard-24"}, "replace"),
    "spot": (POOL, {"capacity": "spot"}, "replace"),
    "maxpods": (POOL, {"max_pods": 64}, "replace"),
    "zone": (GPU, {"zone": "us-central1-b"}, "update"),
    "count": (GPU, {"accelerator_count": 2}, "replace"),
    "driver": (GPU, {"driver": "latest"}, "replace"),
    "sharing": (GPU, {"sharing": {"strategy": "time-sharing", "max_clients": 2}}, "replace"),
}
FILESTORES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "larger": (FILES, {"capacity_gib": 2048}, "update"),
    "other": (FILES, {"tier": "REGIONAL", "location": "us-central1"}, "replace"),
    # The range that an instance has is written down later; the provider alone would replace the instance for it.
    "ranged": (FILES, {"reserved_range": "10.200.0.0/24"}, "same"),
    "moved": (FILES | {"reserved_range": "10.200.1.0/24"}, {"reserved_range": "10.200.2.0/24"}, "same"),
    "exported": (FILES, {"exports": [{"ranges": ["10.12.0.0/20"], "squash": "root"}]}, "update"),
    "faster": (FILES | {"iops_per_tib": 4000}, {"iops_per_tib": 5000}, "update"),
    "alone": (FILES, {"team": "vision"}, "update"),
    "private": (FILES, {"connection": "private-service-access"}, "replace"),
    "kept": (FILES | {"backups": {"keep_days": 7}, "snapshots": ["one"]}, {"backups": {"keep_days": 8}}, "same"),
}
CLUSTER: dict[str, Any] = {
    "location": "us-central1",
    "subnet": {"nodes": "10.12.0.0/20", "pods": "10.66.0.0/16", "services": "10.12.16.0/20"},
    "system_pool": {"machine_type": "e2-standard-8", "min_nodes": 1, "max_nodes": 2},
    "deletion_protection": False,
}
CHANGED_CLUSTER: dict[str, Any] = {
    "release_channel": "STABLE",
    "maintenance": {
        "start": "2026-01-03T07:00:00Z",
        "exclusions": {"one": {"start": "2026-12-01T00:00:00Z", "end": "2026-12-20T00:00:00Z", "scope": "no-upgrades"}},
    },
    "auto_provisioning": {"cpu": 1000, "memory_gb": 4000},
    "system_pool": {"machine_type": "e2-standard-8", "min_nodes": 2, "max_nodes": 4},
    "cpu_pools": {"general": {"machine_type": "e2-standard-8", "max_nodes": 2}},
}
BEFORE: dict[str, Any] = {
    "project": "example-train-fields",
    "production": False,
    "deletion_protection": False,
    "images": {"location": "us-central1", "keep_versions": 5},
    "alerts": {"emails": ["a@example.com"]},
    "private_services_range": "10.201.0.0/16",
    "admins": ["group:a@example.com"],
    "clusters": {"main": CLUSTER},
}
CHANGES: dict[str, Any] = {
    "images": {"location": "us-central1", "keep_versions": 6},
    "alerts": {"emails": ["b@example.com"]},
    "admins": ["group:b@example.com"],
    "priorities": {"low": 2, "normal": 500, "high": 1000},
}


def environment(*, changed: bool) -> dict[str, Any]:
    """The environment before the changes, or with all of them."""
    section = copy.deepcopy({**BEFORE, **CHANGES} if changed else BEFORE)
    cluster = {**CLUSTER, **CHANGED_CLUSTER} if changed else dict(CLUSTER)
    cluster["node_pools"] = {name: before | (new if changed else {}) for name, (before, new, _) in POOLS.items()}
    section["clusters"] = {"main": cluster}
    section["filestore"] = {name: before | (new if changed else {}) for name, (before, new, _) in FILESTORES.items()}
    return section


class Changed:
    """A sandbox in which the stack ``fields`` was brought up, changed, and brought up again."""

    def __init__(self, root: Path) -> None:
        self.sandbox = without_stacks(root)

    def up(self, *, changed: bool) -> dict[str, set[str]]:
        """Write the file, bring the stack up, and return the operations by resource name."""
        self.sandbox.write("fields", environment(changed=changed))
        return self.run("up")

    def run(self, command: str) -> dict[str, set[str]]:
        """Run a command on the stack, and return its operations by resource name."""
        return self.sandbox.steps(command, "fields")


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, set[str]]]:
    """What four runs did: one of the file before, one of the changed file, one more of it, and a refresh."""
    place = Changed(tmp_path_factory.mktemp("changes") / "repository")
    return [place.up(changed=False), place.up(changed=True), place.up(changed=True), place.run("refresh")]


@pytest.mark.parametrize("pool", POOLS)
def test_a_changed_pool_is_updated_or_replaced(pool: str, stages: list[dict[str, set[str]]]) -> None:
    assert done_to(stages[1], f"main-{pool}-pool") == POOLS[pool][2]


@pytest.mark.parametrize("instance", FILESTORES)
def test_a_changed_instance_is_updated_or_replaced(instance: str, stages: list[dict[str, set[str]]]) -> None:
    assert done_to(stages[1], f"filestore-{instance}-instance") == FILESTORES[instance][2]


def test_a_changed_schedule_changes_the_plan_of_backups_and_nothing_else(stages: list[dict[str, set[str]]]) -> None:
    assert done_to(stages[1], "filestore-kept-plan") == "update"
    assert done_to(stages[1], "filestore-kept-vault") == done_to(stages[1], "filestore-kept-association") == "same"


def test_a_changed_cluster_is_updated(stages: list[dict[str, set[str]]]) -> None:
    assert done_to(stages[1], "main-cluster") == "update"
    assert done_to(stages[1], "main-general-pool") == "create"
    assert done_to(stages[1], "main-system-pool") == "update"  # its taint as well


@pytest.mark.parametrize("again", [2, 3], ids=["up", "refresh"])
def test_what_was_taken_was_kept(again: int, stages: list[dict[str, set[str]]]) -> None:
    assert {name for name, ops in stages[again].items() if ops - {"same", "refresh"}} == set()
