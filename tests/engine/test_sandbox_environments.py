"""Other environments under the real engine: Vertex AI without a cluster, and a Shared VPC with an existing cluster."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_google_cloud.api import Store
from tests.engine.fleet import SCHEMAS, Fleet, done_to
from tests.parts.sandbox.run.repositories import Sandbox, without_stacks
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.parts.sandbox.run.servers import announced, serving
from training_platform.parts.sandbox.run.session import read_stacks

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

ENVIRONMENT: dict[str, Any] = {
    "project": "example-vertex",
    "production": False,
    "deletion_protection": False,
    "billing_account": "01ABCD-23EF45-67AB89",
    "budget": {"a_month": 90000, "emails": ["platform@example.com"]},
    "images": {"location": "us-central1", "keep_versions": 5},
    "network_attachments": {"us-central1": "10.30.0.0/24"},
}
RESOURCES = "projects/example-vertex/locations/us-central1/persistentResources"
TEAM: dict[str, Any] = {
    "environment": "lab",
    "name": "vision",
    "members": ["group:vision@example.com"],
    "budget": {"a_month": 5000, "alert_at_percent": [50, 100], "emails": ["leads@example.com"]},
    "buckets": {"staging": {"location": "us-central1", "delete_after_days": 30}},
    "vertex": {
        "tensorboards": ["us-central1"],
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
    place.write("lab-vision", changed)
    steps = place.steps("up", "lab-vision")
    again = place.steps("up", "lab-vision")

    assert {name: done_to(steps, name) for name in (
        "budget-month", "bucket-staging-bucket", "vertex-fixed-persistent-resource",
        "vertex-scaled-persistent-resource", "tensorboard-us-central1-tensorboard",
    )} == {
        "budget-month": "update",
        "bucket-staging-bucket": "update",
        "vertex-fixed-persistent-resource": "replace",
        "vertex-scaled-persistent-resource": "same",
        "tensorboard-us-central1-tensorboard": "same",
    }  # fmt: skip
    assert {name for name in again if done_to(again, name) != "same"} == set()
    place.steps("destroy", "lab-vision")
    place.steps("destroy", "lab")


def autoscaled(place: Sandbox, key: str, pool: int, count: str) -> None:
    """Let Vertex AI's autoscaler set how many machines a pool of a persistent resource has."""
    cloud = judged_cloud([ENVIRONMENT["project"]], store=Store(place.folder.cloud))
    code, persistent_resource = cloud.handle("aiplatform", "GET", f"v1/{RESOURCES}/lab-vision-{key}", [], {})
    assert code == 200, persistent_resource
    persistent_resource["resourcePools"][pool]["replicaCount"] = count
    mask = [("updateMask", "resourcePools.replicaCount")]
    body = {"resourcePools": persistent_resource["resourcePools"]}
    code, answer = cloud.handle("aiplatform", "PATCH", f"v1/{RESOURCES}/lab-vision-{key}", mask, body)
    assert code == 200, answer
    cloud.settle()
    cloud.store.flush()


def counts(place: Sandbox, key: str) -> list[str]:
    cloud = judged_cloud([ENVIRONMENT["project"]], store=Store(place.folder.cloud))
    _, persistent_resource = cloud.handle("aiplatform", "GET", f"v1/{RESOURCES}/lab-vision-{key}", [], {})
    return [pool["replicaCount"] for pool in persistent_resource["resourcePools"]]


def test_what_the_autoscaler_did_is_kept_also_after_a_refresh(tmp_path: Path) -> None:
    place = brought_up(tmp_path)
    autoscaled(place, "scaled", 0, "2")
    autoscaled(place, "fixed", 1, "3")

    place.steps("refresh", "lab-vision")
    steps = place.steps("up", "lab-vision")

    assert {name for name in steps if done_to(steps, name) != "same"} == set()
    assert (counts(place, "scaled"), counts(place, "fixed")) == (["2"], ["1", "3"])


PROJECT = "example-guest"
HOST = "example-host"
POOLS = {"h100": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 2, "gpu_direct": False}}
SHARED_ENVIRONMENT: dict[str, Any] = {
    "project": PROJECT,
    "production": False,
    "deletion_protection": False,
    "network": {"name": "shared-vpc", "project": HOST, "grant_roles": True},
    "clusters": {
        "own": {
            "location": "us-central1",
            "subnet": {"name": "own", "nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"},
            "software": {"kueue": "none", "jobset": "none", "metrics": False},
        },
        "theirs": {"location": "us-central1", "existing": "shared-training", "node_pools": POOLS},
    },
    "filestore": {
        "homes": {"location": "us-central1-a", "capacity_gib": 1024, "connection": "private-service-access"},
    },
}
SHARED_TEAM: dict[str, Any] = {
    "environment": "guest",
    "name": "vision",
    "members": ["group:vision@example.com"],
    "shares": {"theirs": {"h100": {"nominal_quota": 16}}},
    "directories": {"scratch": {"filestore": "homes", "size_gib": 100}},
}


def number(fleet: Fleet) -> str:
    return str(fleet.ask("GET", f"cloudresourcemanager/v1/projects/{PROJECT}")["projectNumber"])


def granted(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield what is granted in the host project, and to which account."""
    policy = fleet.ask("POST", f"cloudresourcemanager/v1/projects/{HOST}:getIamPolicy", {})
    for binding in policy["bindings"]:
        for member in binding["members"]:
            yield binding["role"], member.removeprefix("serviceAccount:")


def test_it_comes_up_beside_what_is_there_and_leaves_that_when_it_goes(tmp_path: Path) -> None:
    place = without_stacks(tmp_path / "repository")
    place.write("guest", SHARED_ENVIRONMENT)
    place.write("guest-vision", SHARED_TEAM)
    folder = place.folder
    crds = [SCHEMAS] if SCHEMAS.is_dir() else []
    with (
        folder.locked(),
        serving(folder, read_stacks(folder.root, ()), durations={}, crds=crds) as servers,
        announced(folder, servers),
    ):
        fleet = Fleet(place, servers.cloud)

        steps = place.steps("up", "guest")
        again = place.steps("up", "guest")
        team = place.steps("up", "guest-vision")

        created = {name for name, done in {**steps, **team}.items() if "create" in done}
        assert {"own-cluster", "theirs-h100-pool", "share-theirs-queues-cluster-queue"} <= created
        assert {name for name, done in again.items() if not done <= {"same", "read", "refresh"}} == set()
        cluster = fleet.ask("GET", f"container/v1/projects/{PROJECT}/locations/us-central1/clusters/shared-training")
        assert [pool["name"] for pool in cluster["nodePools"] if "h100" in pool["name"]]

        gke = f"service-{number(fleet)}@container-engine-robot.iam.gserviceaccount.com"
        vertex = f"service-{number(fleet)}@gcp-sa-aiplatform.iam.gserviceaccount.com"
        assert set(granted(fleet)) == {
            ("roles/compute.networkUser", f"{number(fleet)}@cloudservices.gserviceaccount.com"),
            ("roles/compute.networkUser", gke),
            ("roles/container.hostServiceAgentUser", gke),
            (f"projects/{HOST}/roles/training_platform_vertex_network", vertex),
        }

        place.steps("destroy", "guest-vision")
        place.steps("destroy", "guest")

        clusters = fleet.ask("GET", f"container/v1/projects/{PROJECT}/locations/us-central1/clusters")["clusters"]
        assert [network["name"] for network in clusters] == ["shared-training"]
        assert not [pool["name"] for pool in clusters[0]["nodePools"] if "h100" in pool["name"]]
        fleet.ask("POST", f"serviceusage/v1/projects/{HOST}/services/compute.googleapis.com:enable", {})  # to look
        assert fleet.ask("GET", f"compute/v1/projects/{HOST}/global/networks/shared-vpc")["name"] == "shared-vpc"
