from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from training_platform.parts.sandbox.cloud.http.server import serve
from training_platform.parts.sandbox.cloud.local_cloud import LocalCloud
from training_platform.parts.sandbox.cloud.state.authorization import Caller
from training_platform.parts.sandbox.cloud.state.operations import Clock
from training_platform.parts.sandbox.cloud.state.quota import Projects
from training_platform.parts.sandbox.cloud.state.store import Store
from training_platform.quota.snapshot import read_snapshots

PROJECT = "example-lab"
OTHER = "example-other"
LOCATION = f"projects/{PROJECT}/locations/us-central1"
ZONE = f"projects/{PROJECT}/locations/us-central1-a"
APIS = (
    "aiplatform",
    "artifactregistry",
    "compute",
    "container",
    "file",
    "iam",
    "monitoring",
    "secretmanager",
    "storage",
)
LIMITS = """
project: example-lab
taken: "2026-11-01"
limits:
  compute.googleapis.com:
    CPUS-per-project-region:
      - {limit: 64, region: us-central1}
    INSTANCES-per-project-region:
      - {limit: 10, region: us-central1}
    NETWORKS-per-project: [{limit: 15}]
    SUBNETWORKS-per-project: [{limit: 2}]
    SSD-TOTAL-GB-per-project-region:
      - {limit: 2000, region: us-central1}
  file.googleapis.com:
    HighScaleSSDStorageGibPerRegion:
      - {limit: 20480, region: us-central1}
    PremiumStorageGbPerRegion:
      - {limit: 4096, region: us-central1}
"""

Json = dict[str, Any]


@dataclass
class Asked:
    """An answer: its code, and its body."""

    code: int
    body: Json

    @property
    def message(self) -> str:
        return str(self.body["error"]["message"])


@dataclass
class Client:
    """Asks a cloud without HTTP; an answer of 500 is a fault of ours and fails the test."""

    cloud: LocalCloud
    caller: Caller | None = None

    def __call__(self, verb: str, path: str, body: Any = None, **query: str) -> Asked:
        service, _, rest = path.partition("/")
        code, answer = self.cloud.handle(service, verb, rest, list(query.items()), body, caller=self.caller)
        assert code != 500, answer
        return Asked(code, answer)

    def as_member(self, member: str, quota_project: str = "") -> Client:
        """Return a client of somebody other than the projects' owner."""
        return Client(self.cloud, Caller(member, quota_project))

    def done(self, verb: str, path: str, body: Any = None, **query: str) -> Json:
        asked = self(verb, path, body, **query)
        assert asked.code == 200, asked.body
        return asked.body

    def enable(self, project: str, *apis: str) -> None:
        ids = [f"{api}.googleapis.com" for api in apis]
        self.done("POST", f"serviceusage/v1/projects/{project}/services:batchEnable", {"serviceIds": ids})

    def network(self, project: str = PROJECT) -> None:
        """Make a network ``net`` with a subnet ``nodes`` in us-central1, with ranges ``pods`` and ``services``."""
        base = f"compute/v1/projects/{project}"
        ranges = [
            {"rangeName": "pods", "ipCidrRange": "10.64.0.0/16"},
            {"rangeName": "services", "ipCidrRange": "10.65.0.0/20"},
        ]
        subnet = {"name": "nodes", "network": f"projects/{project}/global/networks/net", "ipCidrRange": "10.0.0.0/20"}
        self.done("POST", f"{base}/global/networks", {"name": "net", "autoCreateSubnetworks": False})
        self.done("POST", f"{base}/regions/us-central1/subnetworks", {**subnet, "secondaryIpRanges": ranges})

    def private_services(self, project: str = PROJECT) -> None:
        """Let Google's services join network ``net``; enables Managed Lustre, which needs it."""
        self.enable(project, "lustre", "servicenetworking")
        network = f"projects/{project}/global/networks/net"
        addresses = {"name": "private", "purpose": "VPC_PEERING", "address": "10.200.0.0", "prefixLength": 16}
        self.done("POST", f"compute/v1/projects/{project}/global/addresses", {**addresses, "network": network})
        path = "servicenetworking/v1/services/servicenetworking.googleapis.com/connections"
        self.done("POST", path, {"network": network, "reservedPeeringRanges": ["private"]})

    def cluster(self, name: str = "one", project: str = PROJECT, location: str = "us-central1", **fields: Any) -> Json:
        body = {"name": name, "initialNodeCount": 1, "network": "net", "subnetwork": "nodes", **fields}
        parent = f"container/v1/projects/{project}/locations/{location}"
        return self.done("POST", f"{parent}/clusters", {"cluster": body})


@pytest.fixture
def snapshots(tmp_path: Path) -> Any:
    folder = tmp_path / "stacks" / "quotas"
    folder.mkdir(parents=True)
    (folder / "example-lab.yaml").write_text(LIMITS, encoding="utf-8")
    found = read_snapshots(tmp_path, date(2026, 11, 2))
    assert found.findings == ()
    return found.by_project


@pytest.fixture
def time() -> list[float]:
    """The time that the clock reads: a list of one number, to be changed."""
    return [1_800_000_000.0]


@pytest.fixture
def make(snapshots: Any, time: list[float]) -> Callable[..., LocalCloud]:
    """Return a maker of clouds; two of one file are one cloud before and after a restart."""

    def made(path: Path | None = None) -> LocalCloud:
        return LocalCloud(Projects(snapshots, [OTHER]), store=Store(path), clock=Clock(lambda: time[0]))

    return made


@pytest.fixture
def cloud(make: Callable[..., LocalCloud]) -> LocalCloud:
    return make()


@pytest.fixture
def ask(cloud: LocalCloud) -> Client:
    """Return a client of a cloud in which the project has its APIs."""
    client = Client(cloud)
    client.enable(PROJECT, *APIS)
    return client


@pytest.fixture
def port(cloud: LocalCloud, ask: Client) -> Iterator[int]:  # the project of ``ask`` has its APIs
    """Return the port on which a cloud is served in which the project has its APIs."""
    with serve(cloud) as bound:
        yield bound
