"""Storage under the real engine: a backup is restored, a disk is filled and read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local_google_cloud.api import LocalCloud, Store
from tests.parts.sandbox.run.repositories import without_stacks
from training_platform.parts.sandbox.google_rules import judged_cloud

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

CLOUD_PROJECT = "example-train-storage"
BACKUP = f"projects/{CLOUD_PROJECT}/locations/us-central1/backups/before"
FILES = {"location": "us-central1-a", "tier": "ZONAL", "capacity_gib": 1024}


ENVIRONMENT: dict[str, Any] = {
    "project": CLOUD_PROJECT,
    "production": False,
    "deletion_protection": False,
    "private_services_range": "10.201.0.0/16",
    "filestore": {
        "files": FILES | {"snapshots": ["one"], "backups": {"keep_days": 3}, "connection": "private-service-access"},
    },
    "data_sets": {
        "disk": {"hyperdisk_ml": {"zone": "us-central1-a", "size_gib": 100}, "writer": "vision"},
        "files": {"filestore": {"instance": "files", "path": "images"}},
        "bucket": {"bucket": {"name": "example-images", "location": "us-central1", "path": "food101"}},
    },
    "clusters": {
        "main": {
            "location": "us-central1",
            "subnet": {"nodes": "10.12.0.0/20", "pods": "10.66.0.0/16", "services": "10.12.16.0/20"},
            "system_pool": {"machine_type": "e2-standard-8", "min_nodes": 1, "max_nodes": 2},
            "node_pools": {"l4": {"machine_type": "g2-standard-12", "zone": "us-central1-a", "max_nodes": 1}},
        }
    },
}
TEAM: dict[str, Any] = {
    "environment": "files",
    "name": "vision",
    "members": ["group:vision@example.com"],
    "shares": {"main": {"l4": {"nominal_quota": 1}}},
    "buckets": {"own": {"location": "us-central1", "hierarchical_namespace": True}},
}


class Repository:
    """A repository of two stacks, and the local cloud between runs."""

    def __init__(self, root: Path) -> None:
        self.sandbox = without_stacks(root)
        self.run = self.sandbox.steps

    def write(self, environment: dict[str, Any], team: dict[str, Any] = TEAM) -> None:
        self.sandbox.write("files", environment)
        self.sandbox.write("files-vision", team)

    def cloud(self) -> LocalCloud:
        """The local cloud as the last run left it, with its settings for tests."""
        return judged_cloud([CLOUD_PROJECT], store=Store(self.sandbox.folder.cloud))

    def ask(self, service: str, path: str, body: dict[str, Any], **query: str) -> None:
        """Create something as somebody would by hand, between two runs."""
        cloud = self.cloud()
        code, answer = cloud.handle(service, "POST", path, list(query.items()), body)
        assert code == 200, answer
        cloud.store.flush()

    def back_up(self) -> None:
        """Back the instance up."""
        instance = f"projects/{CLOUD_PROJECT}/locations/us-central1-a/instances/files-files"
        body = {"sourceInstance": instance, "sourceFileShare": "share"}
        self.ask("file", "v1/" + BACKUP.rpartition("/")[0], body, backupId="before")


def test_a_backup_is_restored_and_a_disk_filled(tmp_path: Path) -> None:
    place = Repository(tmp_path / "repository")
    place.write(ENVIRONMENT)
    created = place.run("up", "files")
    assert (
        created["filestore-files-instance"]
        == created["data-disk-disk"]
        == created["filestore-files-plan"]
        == {"create"}
    )
    team = place.run("up", "files-vision")
    assert team["data-disk-main-volume"] == team["data-files-main-claim"] == {"create"}
    assert team["data-bucket-access"] == {"create"}
    place.back_up()

    changed = json.loads(json.dumps(ENVIRONMENT))
    changed["filestore"]["restored"] = FILES | {"restore_from": BACKUP}
    changed["data_sets"]["disk"]["hyperdisk_ml"]["filled"] = True
    place.write(changed)
    restored = place.run("up", "files")

    assert restored["filestore-restored-instance"] == {"create"}
    assert restored.get("filestore-files-instance", {"same"}) == {"same"}
    assert restored["data-disk-disk"] == {"update"}
    again = place.run("up", "files")
    assert {name for name, ops in again.items() if ops != {"same"}} == set()
    readers = place.run("up", "files-vision")
    assert any("replace" in op for op in readers["data-disk-main-volume"])
