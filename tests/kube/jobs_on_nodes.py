"""A pool, a team and a job on it, as they are rendered."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.kube.queues import Json, Queues, stacks
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import MachineType
from training_platform.config.expansion import QUEUED_LABEL, Flavor
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace
from training_platform.parts.jobs.resolve import ResolvedJob, parse_job

TEAM: Final = "vision"
SUBNET = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/14", "services": "10.1.0.0/20"}


def left(queues: Queues, namespace: str) -> list[Json]:
    """Delete a namespace's pods at once, as no kubelet does here; return the pods and Jobs that remain."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    queues.delete(pods, gracePeriodSeconds=0)
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    return [*queues.get(pods)["items"], *queues.get(jobs)["items"]]


def case(machine: MachineType | str, job: Json, **pool: Any) -> tuple[Json, Json]:
    """Return a pool for a job, and the job's target, with what follows from the machine filled in."""
    machine = MACHINE_TYPES[machine] if isinstance(machine, str) else machine
    capacity = pool.get("capacity") or ("on-demand" if "on-demand" in machine.capacities else machine.capacities[0])
    reserved = {"reservation": "own"} if capacity == "reservation" else {}
    return {
        "machine_type": machine.name,
        "zone": next(iter(machine.zones), "us-central1-a"),
        "capacity": capacity,
        **reserved,
        **pool,
    }, job


def lab(
    pool: Json, target: Json, *other_pools: Json, cpu_pools: Json | None = None, **spec: Any
) -> tuple[Workspace, ResolvedJob]:
    """Return stacks with the pools, of whose flavors the team has all, and a job on the first."""
    pools = {"pool": pool, **{f"other-{index}": other for index, other in enumerate(other_pools)}}
    main = {"location": pool["zone"], "subnet": SUBNET, "node_pools": pools, "cpu_pools": cpu_pools or {}}
    clusters = {"main": {**main, "accelerator_networks": "dranet"}}
    flavors = stacks({"clusters": clusters}, {}).flavors("lab", "main")
    (flavor,) = (name for name, candidate in flavors.items() if candidate.pools[0].name == "pool")
    share = {"main": {name: {"nominal_quota": candidate.capacity_chips} for name, candidate in flavors.items()}}
    workspace = stacks({"clusters": clusters}, {TEAM: {"shares": share, "host_network": True}})
    gke = {"cluster": "main", "flavor": flavor, **target}
    text = json.dumps({"environment": "lab", "image": "registry.example.com/train:1", "cpu": 1, **spec, "gke": gke})
    job, findings = parse_job(parse_source(text, f"jobs/{TEAM}/train.yaml"), workspace)
    assert job is not None, [str(finding) for finding in findings]
    return workspace, job


def node(queues: Queues, flavor: Flavor, index: int, node_pool: str) -> None:
    """Add a VM of a flavor as GKE labels and taints it; all are in one block and one subblock."""
    machine = flavor.pools[0].machine
    labels = {**flavor.node_labels, "cloud.google.com/gke-nodepool": node_pool}
    labels["node.kubernetes.io/instance-type"] = machine.name
    labels |= {level: level.rpartition("-")[2] for level in flavor.topology_levels[:-1] if level not in labels}
    if "cloud.google.com/gce-topology-host" in labels:
        labels["cloud.google.com/gce-topology-host"] = f"host-{index}"
    if flavor.by_request:
        labels |= {"autoscaling.gke.io/provisioning-request": "resize-1", QUEUED_LABEL: "true"}
    taints = [{"key": key, "value": value, "effect": "NoSchedule"} for key, value in flavor.tolerated.items()]
    queues.node(f"vm-{index}", labels, flavor.accelerator.resource, machine.chips, taints=taints)
    if devices := flavor.pools[0].network_devices:
        queues.devices(f"vm-{index}", devices.device_class, devices.count)
