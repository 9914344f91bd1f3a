"""An environment in a Shared VPC and in a cluster that are somebody else's, and a team of it, under the real engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_sandbox_life import SCHEMAS, Fleet
from tests.training_platform.sandbox.run.conftest import without_stacks
from training_platform.sandbox.run.servers import announced, serving
from training_platform.sandbox.run.session import read_stacks

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

PROJECT, HOST = "example-guest", "example-host"
POOLS = {"h100": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 2, "gpu_direct": False}}
ENVIRONMENT: dict[str, Any] = {
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
TEAM: dict[str, Any] = {
    "environment": "guest",
    "name": "vision",
    "members": ["group:vision@example.com"],
    "shares": {"theirs": {"h100": {"nominal_quota": 16}}},
    "directories": {"scratch": {"filestore": "homes", "size_gib": 100}},
}
SUBNETS = {
    "own": ("10.10.0.0/20", "10.64.0.0/16", "10.10.16.0/20"),
    "theirs": ("10.20.0.0/20", "10.80.0.0/16", "10.20.16.0/20"),
}


def others_parts(fleet: Fleet) -> None:
    """Make what somebody else has: a network with two subnets, and a cluster in one of them."""
    for project, api in ((HOST, "compute"), (PROJECT, "compute"), (PROJECT, "container")):
        fleet.ask("POST", f"serviceusage/v1/projects/{project}/services/{api}.googleapis.com:enable")
    vpc = f"projects/{HOST}/global/networks/shared-vpc"
    fleet.ask(
        "POST", f"compute/v1/projects/{HOST}/global/networks", {"name": "shared-vpc", "autoCreateSubnetworks": False}
    )
    for name, (nodes, pods, services) in SUBNETS.items():
        ranges = [{"rangeName": "pods", "ipCidrRange": pods}, {"rangeName": "services", "ipCidrRange": services}]
        subnet = {"name": name, "network": vpc, "ipCidrRange": nodes, "secondaryIpRanges": ranges}
        fleet.ask("POST", f"compute/v1/projects/{HOST}/regions/us-central1/subnetworks", subnet)
    clusters = f"container/v1/projects/{PROJECT}/locations/us-central1/clusters"
    cluster = {
        "name": "shared-training",
        "initialNodeCount": 1,
        "network": vpc,
        "subnetwork": f"projects/{HOST}/regions/us-central1/subnetworks/theirs",
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"allowExternalTraffic": True}},
        "workloadIdentityConfig": {"workloadPool": f"{PROJECT}.svc.id.goog"},
        "enableKubernetesAlpha": False,
    }
    fleet.ask("POST", clusters, {"cluster": cluster})
    deadline = time.monotonic() + 30
    while fleet.ask("GET", f"{clusters}/shared-training")["status"] != "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.1)


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
    place.write("guest", ENVIRONMENT)
    place.write("guest-vision", TEAM)
    folder = place.folder
    crds = [SCHEMAS] if SCHEMAS.is_dir() else []
    with (
        folder.alone(),
        serving(folder, read_stacks(folder.root, ()), durations={}, crds=crds) as servers,
        announced(folder, servers),
    ):
        fleet = Fleet(place, servers.cloud)
        others_parts(fleet)

        steps = place.steps("up", "guest")
        again = place.steps("up", "guest")
        team = place.steps("up", "guest-vision")

        created = {name for name, done in {**steps, **team}.items() if "create" in done}
        assert {"own-cluster", "theirs-h100-pool", "share-theirs-queues-cluster-queue"} <= created
        assert {name for name, done in again.items() if not done <= {"same", "read", "refresh"}} == set()
        cluster = fleet.ask("GET", f"container/v1/projects/{PROJECT}/locations/us-central1/clusters/shared-training")
        assert [pool["name"] for pool in cluster["nodePools"] if "h100" in pool["name"]]

        assert set(granted(fleet)) == {
            ("roles/compute.networkUser", f"{number(fleet)}@cloudservices.gserviceaccount.com"),
            ("roles/compute.networkUser", f"service-{number(fleet)}@container-engine-robot.iam.gserviceaccount.com"),
            (
                "roles/container.hostServiceAgentUser",
                f"service-{number(fleet)}@container-engine-robot.iam.gserviceaccount.com",
            ),
        }

        place.steps("destroy", "guest-vision")
        place.steps("destroy", "guest")

        left = fleet.ask("GET", f"container/v1/projects/{PROJECT}/locations/us-central1/clusters")["clusters"]
        assert [each["name"] for each in left] == ["shared-training"]
        assert not [pool["name"] for pool in left[0]["nodePools"] if "h100" in pool["name"]]
        assert fleet.ask("GET", f"compute/v1/projects/{HOST}/global/networks/shared-vpc")["name"] == "shared-vpc"
