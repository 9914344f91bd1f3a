"""Which runs ``job why`` names beside one that waits: those that hold its flavor, and those that were there before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from training_platform.clients.google_services import node_pools
from training_platform.clients.kubernetes_api import JOBSETS, LOCAL_QUEUES, WORKLOADS, ClusterApi, Kind
from training_platform.jobs.gke.jobset import jobset
from training_platform.jobs.naming import as_run
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.runs.on_gke import gke_run
from training_platform.jobs.runs.places import place_of
from training_platform.jobs.runs.watching import why_gke
from training_platform.sandbox.cloud.http.server import serve
from training_platform.sandbox.cloud.local_cloud import LocalCloud
from training_platform.sandbox.cloud.state.projects import Projects
from training_platform.sandbox.cloud.state.store import Store

Json = dict[str, Any]
Take = Callable[..., ResolvedJob]
PROJECT = "example-lab"
H100 = "gke: {cluster: gpus, flavor: h100, nodes: 2}"


class Cluster:
    """A cluster that has runs, each with the flavor that it holds, or none while it waits."""

    name = "gpus"

    def __init__(self, job: ResolvedJob, runs: dict[str, str | None]) -> None:
        self.sets = [jobset(as_run(job, name)) for name in runs]
        self.workloads: list[Json] = []
        for index, (body, flavor) in enumerate(zip(self.sets, runs.values(), strict=True)):
            body["metadata"] |= {"uid": str(index), "creationTimestamp": f"2026-11-22T1{index}:00:00Z"}
            held = [{"flavors": {"nvidia.com/gpu": flavor}}] if flavor else []
            kinds = ("QuotaReserved", "Admitted", "PodsReady")
            row = {"status": str(flavor is not None), "lastTransitionTime": f"2026-11-22T1{index}:05:00Z"}
            status: Json = {"conditions": [{"type": kind, **row} for kind in kinds]}
            status |= {"admission": {"podSetAssignments": held}} if flavor else {}
            about = {"name": f"w-{index}", "uid": f"w-{index}", "ownerReferences": [{"uid": str(index)}]}
            self.workloads.append({"metadata": about, "spec": {}, "status": status})

    def get(self, kind: Kind, _: str, name: str) -> Json | None:
        if kind == LOCAL_QUEUES:
            return {"status": {"conditions": [{"type": "Active", "status": "True"}]}}
        return next(each for each in self.sets if each["metadata"]["name"] == name)

    def objects(self, kind: Kind, *_: str) -> Iterator[Json]:
        yield from {JOBSETS: self.sets, WORKLOADS: self.workloads}.get(kind, [])

    def pending(self, *_: str) -> None:
        return None


def why(job: ResolvedJob, run: str, cluster: Cluster) -> list[str]:
    index = next(number for number, each in enumerate(cluster.sets) if each["metadata"]["name"] == run)
    found = gke_run(cluster.sets[index], cluster.workloads[index], "gpus")
    return why_gke(cast("ClusterApi", cluster), place_of(job, "gke"), found, job, lambda _: ["The pools are full."])


def test_a_run_of_another_flavor_is_not_said_to_hold_what_is_waited_for(take: Take) -> None:
    job = take(H100)
    runs = {"train-holds": "h100", "other-holds": "a100-40", "train-first": None, "train-waits": None}

    lines = why(job, "train-waits", Cluster(job, runs))

    assert "Runs of the team that hold some: train-holds since 2026-11-22T10:05:00Z." in lines
    assert "Runs of the team that wait and were submitted earlier: train-first." in lines
    assert "The pools are full." not in lines


@pytest.mark.parametrize("ready", [True, False])
def test_pools_are_asked_about_while_an_admitted_run_waits_for_its_vms(take: Take, ready: bool) -> None:
    job = take(H100)
    cluster = Cluster(job, {"train-bcdfg": "h100"})
    cluster.workloads[0]["status"]["conditions"][2]["status"] = str(ready)

    assert ("The pools are full." in why(job, "train-bcdfg", cluster)) is not ready


def test_node_pools_are_read_by_the_client_that_asks_gke() -> None:
    cloud = LocalCloud(Projects({}, [PROJECT]), store=Store(None))
    services, place = f"v1/projects/{PROJECT}/services", f"v1/projects/{PROJECT}/locations/us-central1"
    subnets = f"v1/projects/{PROJECT}/regions/us-central1/subnetworks"
    network = f"projects/{PROJECT}/global/networks/net"
    pool = {"name": "h100", "initialNodeCount": 1, "config": {"machineType": "e2-standard-4"}}
    cluster = {"name": "lab-gpus", "network": "net", "subnetwork": "nodes", "nodePools": [pool]}
    for service, path, body in (
        ("serviceusage", f"{services}/container.googleapis.com:enable", {}),
        ("serviceusage", f"{services}/compute.googleapis.com:enable", {}),
        ("compute", f"v1/projects/{PROJECT}/global/networks", {"name": "net", "autoCreateSubnetworks": False}),
        ("compute", subnets, {"name": "nodes", "network": network, "ipCidrRange": "10.0.0.0/20"}),
        ("container", f"{place}/clusters", {"cluster": cluster}),
    ):
        code, answer = cloud.handle(service, "POST", path, [], body)
        assert code == 200, answer

    with serve(cloud) as port:
        found = node_pools(PROJECT, "us-central1", "lab-gpus", f"http://127.0.0.1:{port}/container/")

    assert {name: each["status"] for name, each in found.items()} == {"h100": "RUNNING"}
