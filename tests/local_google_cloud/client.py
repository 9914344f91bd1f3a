"""A client that asks a local cloud without HTTP, and the project that it asks about."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.state.authorization import Caller

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
Json = dict[str, Any]
INSTANCE: Json = {
    "tier": "ZONAL", "fileShares": [{"name": "a", "capacityGb": "1024"}], "networks": [{"network": "net"}],
}  # fmt: skip
TRAINING: Json = {
    "machineSpec": {"machineType": "n1-standard-8"}, "replicaCount": "2",
    "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
}  # fmt: skip


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
        service, _, service_path = path.partition("/")
        sent = copy.deepcopy(body)  # what the cloud keeps is its own
        code, answer = self.cloud.handle(service, verb, service_path, list(query.items()), sent, caller=self.caller)
        assert code != 500, answer
        return Asked(code, answer)

    def as_member(self, member: str, quota_project: str = "") -> Client:
        """Return a client of somebody other than the projects' owner."""
        return Client(self.cloud, Caller(member, quota_project))

    def done(self, verb: str, path: str, body: Any = None, **query: str) -> Json:
        answer = self(verb, path, body, **query)
        assert answer.code == 200, answer.body
        return answer.body

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
