from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local_google_cloud.api import LocalCloud
from tests.support.stack_files import workspace_of
from training_platform.config.workspace import Workspace
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.parts.sandbox.run.existing import create_existing

POOL = {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 2, "gpu_direct": False}
ENVIRONMENT: dict[str, Any] = {
    "project": "example-guest",
    "network": {"name": "shared-vpc", "project": "example-host"},
    "clusters": {
        "own": {
            "location": "us-central1",
            "subnet": {"name": "own", "nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"},
            "node_pools": {"kept": {**POOL, "capacity": "reservation", "reservation": {"name": "h100-training"}}},
        },
        "theirs": {"location": "us-central1", "existing": "shared-training"},
    },
    "data_sets": {"food": {"size_gib": 5, "bucket": {"name": "example-images", "location": "us-central1"}}},
}
TEAM = {
    "environment": "guest",
    "name": "vision",
    "members": ["group:vision@example.com"],
    "vertex": {"tensorboards": ["us-central1"]},
    "buckets": {
        "checkpoints": {"location": "us-central1", "provider_inputs": {"logging": {"log_bucket": "example-logs"}}}
    },
}


def guest(**changes: Mapping[str, Any]) -> Workspace:
    return workspace_of({"guest": {"environment": {**ENVIRONMENT, **changes}}, "guest-vision": {"team": TEAM}})


def cloud_of(*projects: str) -> LocalCloud:
    return judged_cloud(projects)


def test_resources_that_stack_files_call_existing_are_created_and_listed() -> None:
    cloud = cloud_of("example-guest", "example-host")

    lines = create_existing(cloud, guest())

    assert sorted(lines) == sorted([
        "network shared-vpc",
        "subnet own with ranges pods and services",
        "reservation h100-training in us-central1-a",
        "subnet shared-training",
        "cluster shared-training",
        "bucket example-logs",
        "bucket example-images",
        "custom role training_platform_tensorboard of example-guest",
    ])  # fmt: skip
    assert lines.index("network shared-vpc") < lines.index("subnet own with ranges pods and services")
    records = {record.name for record in cloud.store.all() if "/operations/" not in record.name}
    assert records >= {
        "compute/projects/example-host/global/networks/shared-vpc",
        "compute/projects/example-host/regions/us-central1/subnetworks/own",
        "compute/projects/example-guest/zones/us-central1-a/reservations/h100-training",
        "container/projects/example-guest/locations/us-central1/clusters/shared-training",
        "storage/b/example-images",
        "iam/projects/example-guest/roles/training_platform_tensorboard",
    }


def test_an_existing_resource_stays_unchanged() -> None:
    cloud = cloud_of("example-guest", "example-host")
    first = create_existing(cloud, guest())
    before = {record.name: record.body for record in cloud.store.all()}

    assert create_existing(cloud, guest()) == first
    assert {record.name: record.body for record in cloud.store.all()} == before


def test_a_refusal_of_the_local_cloud_is_reported() -> None:
    lines = create_existing(cloud_of("example-guest"), guest())  # without the host project

    assert lines[0].startswith("network shared-vpc (not created: ")
    assert "bucket example-images" in lines


def test_a_bucket_that_a_stack_creates_is_not_created_before() -> None:
    bucket = {"name": "example-guest-guest-vision-checkpoints", "location": "us-central1"}
    workspace = guest(data_sets={"mine": {"size_gib": 5, "bucket": bucket}})

    lines = create_existing(cloud_of("example-guest", "example-host"), workspace)

    assert [line for line in lines if line.startswith("bucket ")] == ["bucket example-logs"]
