"""An environment in a Shared VPC with an existing cluster, under the real engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.fleet import Fleet, served
from tests.parts.sandbox.run.repositories import without_stacks

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


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
    with served(place) as fleet:
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
