"""A served cloud with a cluster, faults to add to it, and time that passes as told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.training_platform.sandbox.cloud.conftest import LOCATION, PROJECT, Client, Json
from training_platform.sandbox.cloud.http.server import serve
from training_platform.sandbox.cloud.local_cloud import LocalCloud

CLUSTER = f"container/v1/{LOCATION}/clusters/one"
POOLS = f"{CLUSTER}/nodePools"
NETWORKS = f"compute/v1/projects/{PROJECT}/global/networks"
VERTEX = f"aiplatform/v1/{LOCATION}/persistentResources"
TRAINING = {
    "resourcePools": [
        {
            "machineSpec": {"machineType": "n1-standard-8"},
            "replicaCount": "2",
            "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
        }
    ]
}


@pytest.fixture
def http(cloud: LocalCloud, ask: Client) -> Iterator[httpx.Client]:
    ask.network()
    ask.cluster()
    with serve(cloud) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client


@pytest.fixture
def add(http: httpx.Client) -> Callable[..., None]:
    def added(section: str, **fault: Any) -> None:
        answer = http.post("/_sandbox/faults", json={section: {"planned": fault}})
        assert (answer.status_code, answer.json()) == (200, {"added": ["planned"]})

    return added


@pytest.fixture
def pass_time(http: httpx.Client) -> Callable[[float], None]:
    def passed(seconds: float) -> None:
        http.post("/_sandbox/clock", json={"advance": seconds}).raise_for_status()

    return passed


def pool(name: str = "cpu", nodes: int = 1, zones: tuple[str, ...] = ("us-central1-a",), **config: Any) -> Json:
    config = {"machineType": "e2-standard-4", **config}
    return {"nodePool": {"name": name, "initialNodeCount": nodes, "locations": list(zones), "config": config}}


def hits(http: httpx.Client) -> list[str]:
    return [event["what"] for fault in http.get("/_sandbox/faults").json() for event in fault["events"]]
