"""An environment without a cluster, and a team of it that trains on Vertex AI alone, under the real engine."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_sandbox_changes import done_to
from tests.training_platform.sandbox.run.conftest import Sandbox, without_stacks
from training_platform.sandbox.cloud.local_cloud import LocalCloud
from training_platform.sandbox.cloud.state.quota import Projects
from training_platform.sandbox.cloud.state.store import Store

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

ENVIRONMENT: dict[str, Any] = {
    "project": "example-vertex",
    "production": False,
    "deletion_protection": False,
    "billing_account": "01ABCD-23EF45-67AB89",
    "budget": {"a_month": 90000, "emails": ["platform@example.com"]},
    "images": {"location": "us-central1", "keep_versions": 5},
    "network_attachments": {"us-central1": "10.30.0.0/24"},
    "metadata_stores": ["us-central1"],
}
RESOURCES = "projects/example-vertex/locations/us-central1/persistentResources"
SUBNET = "projects/example-vertex/regions/us-central1/subnetworks/lab-vertex-us-central1"
BENCH: dict[str, Any] = {
    "zone": "us-central1-a", "machine_type": "n1-standard-8", "accelerator": "t4", "owner": "ada@example.com",
    "subnet": SUBNET,
}  # fmt: skip
TEAM: dict[str, Any] = {
    "environment": "lab",
    "name": "vision",
    "members": ["group:vision@example.com"],
    "budget": {"a_month": 5000, "alert_at_percent": [50, 100], "emails": ["leads@example.com"]},
    "buckets": {"staging": {"location": "us-central1", "delete_after_days": 30}},
    "vertex": {
        "tensorboards": ["us-central1"],
        "workbench": {"ada": BENCH, "bob": {**BENCH, "owner": "bob@example.com"}},
        "persistent_resources": {
            "fixed": {
                "region": "us-central1",
                "machine_type": "n2-standard-8",
                "replicas": 1,
                "network_attachment": "environment",
                "more_pools": {"small": {"machine_type": "n1-standard-4", "max_replicas": 3}},
            },
            "scaled": {
                "region": "us-central1",
                "machine_type": "n1-standard-4",
                "accelerator": "t4",
                "max_replicas": 2,
            },
        },
    },
}


def brought_up(folder: Path) -> Sandbox:
    place = without_stacks(folder / "repository")
    for name, section in (("lab", ENVIRONMENT), ("lab-vision", TEAM)):
        place.write(name, section)
    for name in ("lab", "lab-vision"):
        place.steps("up", name)
    return place


def test_it_comes_up_changes_as_announced_and_goes_down(tmp_path: Path) -> None:
    place = brought_up(tmp_path)

    changed = copy.deepcopy(TEAM)
    changed["budget"] |= {"a_month": 6000}
    changed["buckets"]["staging"] |= {"delete_after_days": 10}
    changed["vertex"]["persistent_resources"]["fixed"] |= {"replicas": 2}
    changed["vertex"]["workbench"]["ada"] |= {
        "accelerator_count": 2,
        "machine_type": "n1-standard-16",
        "idle_minutes": 60,
        "data_disk_gb": 200,
    }
    changed["vertex"]["workbench"]["bob"] |= {"owner": "carol@example.com"}
    place.write("lab-vision", changed)
    steps = place.steps("up", "lab-vision")
    again = place.steps("up", "lab-vision")

    assert {name: done_to(steps, name) for name in (
        "budget-month", "bucket-staging-bucket", "vertex-fixed-persistent-resource",
        "vertex-scaled-persistent-resource", "tensorboard-us-central1-tensorboard",
        "workbench-ada-instance", "workbench-bob-instance",
    )} == {
        "budget-month": "update",
        "bucket-staging-bucket": "update",
        "vertex-fixed-persistent-resource": "replace",
        "vertex-scaled-persistent-resource": "same",
        "tensorboard-us-central1-tensorboard": "same",
        "workbench-ada-instance": "update",
        "workbench-bob-instance": "replace",
    }  # fmt: skip
    assert {name for name in again if done_to(again, name) != "same"} == set()
    place.steps("destroy", "lab-vision")
    place.steps("destroy", "lab")


def autoscaled(place: Sandbox, key: str, pool: int, count: str) -> None:
    """Let Vertex AI's autoscaler set how many machines a pool of a persistent resource has."""
    cloud = LocalCloud(Projects({}, [ENVIRONMENT["project"]]), store=Store(place.folder.cloud))
    code, found = cloud.handle("aiplatform", "GET", f"v1/{RESOURCES}/lab-vision-{key}", [], {})
    assert code == 200, found
    found["resourcePools"][pool]["replicaCount"] = count
    mask = [("updateMask", "resourcePools.replicaCount")]
    body = {"resourcePools": found["resourcePools"]}
    code, answer = cloud.handle("aiplatform", "PATCH", f"v1/{RESOURCES}/lab-vision-{key}", mask, body)
    assert code == 200, answer
    cloud.settle()
    cloud.store.flush()


def counts(place: Sandbox, key: str) -> list[str]:
    cloud = LocalCloud(Projects({}, [ENVIRONMENT["project"]]), store=Store(place.folder.cloud))
    _, found = cloud.handle("aiplatform", "GET", f"v1/{RESOURCES}/lab-vision-{key}", [], {})
    return [pool["replicaCount"] for pool in found["resourcePools"]]


def test_what_the_autoscaler_did_is_kept_also_after_a_refresh(tmp_path: Path) -> None:
    place = brought_up(tmp_path)
    autoscaled(place, "scaled", 0, "2")
    autoscaled(place, "fixed", 1, "3")

    place.steps("refresh", "lab-vision")
    steps = place.steps("up", "lab-vision")

    assert {name for name in steps if done_to(steps, name) != "same"} == set()
    assert (counts(place, "scaled"), counts(place, "fixed")) == (["2"], ["1", "3"])
