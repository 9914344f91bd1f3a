"""Pools of every nature as stack files have them, with their stacks and plans."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.plans import PlannedStack, planned_stack
from tests.support.stack_files import cluster, environment, workspace_of
from training_platform.config.model.stack import Stack
from training_platform.config.workspace import Workspace

NODE_POOL = "gcp:container/nodePool:NodePool"
PARAMETERS = "kubernetes:networking.gke.io/v1:GKENetworkParamSet"
ALERTS = {"emails": ["ml-platform@example.com"]}
T4 = {"machine_type": "n1-standard-16", "accelerator": "t4", "accelerator_count": 2, "zone": "us-central1-a"}
A100 = {"machine_type": "a2-highgpu-8g", "zone": "us-central1-a", "max_nodes": 3}
RDMA = {"machine_type": "a3-ultragpu-8g", "zone": "us-central1-b", "capacity": "spot", "max_nodes": 4}
H100 = {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 3}


def stack_of(pool: dict[str, Any], **fields: Any) -> Stack:
    return stack_of_pools({"train": pool}, **fields)


def stack_of_pools(pools: dict[str, Any], **fields: Any) -> Stack:
    west = cluster("us-central1", **{"version": "1.35", "node_pools": pools, **fields})
    return _stack(json.dumps(environment({"west": west}, alerts=ALERTS)))


@cache
def _stack(section: str) -> Stack:
    return workspace_of({"dev": {"environment": json.loads(section)}}).stacks["dev"]


def plan_of(stack: Stack) -> PlannedStack:
    """Return the plan of a stack. Tests share it, so it must not be changed."""
    if id(stack) not in _PLANS:
        _PLANS[id(stack)] = (stack, planned_stack(stack, Workspace(Path(), {"dev": stack})))
    return _PLANS[id(stack)][1]


_PLANS: dict[int, tuple[Stack, PlannedStack]] = {}  # by the ids of the stacks, which stay theirs: stacks are kept here


def kernel(sysctls: dict[str, str], **settings: Any) -> dict[str, Any]:
    """Return settings of the nodes' kernel, which a pool has no fields for."""
    return {"provider_inputs": {"node_config": {"linux_node_config": {"sysctls": sysctls, **settings}}}}


CONFIDENTIAL = {
    "provider_inputs": {"node_config": {"confidential_nodes": {"enabled": True, "confidential_instance_type": "TDX"}}}
}
EVERY_WAY = """\
config:
  training-platform:environment:
    project: example-ways
    alerts: {emails: [ml-platform@example.com]}
    nat_addresses: 2
    production: false
    clusters:
      c:
        location: us-central1
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        system_pool: {machine_type: e2-standard-8, min_nodes: 3, max_nodes: 3}
        node_pools:
          queued: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: queued-provisioning, max_run_hours: 24}
          spot: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: spot}
          any: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: reservation, reservation: any}
          block:
            machine_type: a3-highgpu-8g
            zone: us-central1-a
            capacity: reservation
            reservation: {name: h100, project: example-shared, block: block-1, sub_block: sub-1}
          future:
            machine_type: ct5lp-hightpu-4t
            zone: us-central1-a
            topology: 4x4
            capacity: reservation
            reservation: {name: v5e, starts: "2027-03-01", ends: "2027-03-28"}
        auto_provisioning:
          cpu: 4000
          memory_gb: 40000
          accelerators: {nvidia-h100-80gb: 64, tpu-v5-lite-podslice: 32}
          zones: [us-central1-a]
        compute_classes:
          best:
            priorities:
              - node_pools: [spot]
              - {machine_type: a3-highgpu-8g, capacity: flex-start, max_wait_minutes: 30}
          slices:
            priorities:
              - {machine_type: ct5lp-hightpu-4t, topology: 4x4, capacity: reservation, reservation: v5e}
              - machine_type: ct5lp-hightpu-4t
                topology: 4x4
                capacity: spot
                zones: [us-central1-a]
                max_run_hours: 24
"""
"""An environment with pools of every provisioning model, compute classes and auto-provisioning."""
