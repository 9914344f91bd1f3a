"""A scope with deletion protection, a plan of a program, and pools of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from modules.gke import AcceleratorPool, AcceleratorPoolArgs, NodeServiceAccount, NodeServiceAccountArgs
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.pools import cluster_pools
from training_platform.resources.planned import Planned
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
NODE_POOL = "gcp:container/nodePool:NodePool"
RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"}
KINDS: dict[str, dict[str, Any]] = {
    "v4 slices": {"machine_type": "ct4p-hightpu-4t", "topology": "2x2x4", "slices": 2, "min_slices": 1},
    "v5e hosts": {
        "machine_type": "ct5lp-hightpu-8t",
        "zone": "us-west4-a",
        "topology": "2x4",
        "slices": 8,
        "min_slices": 1,
        "capacity": "spot",
    },
    "H100 flex-start": {
        "machine_type": "a3-highgpu-8g",
        "zone": "us-west4-a",
        "capacity": "flex-start",
        "max_run_hours": 24,
        "max_nodes": 5,
    },
    "H100 reserved": {
        "machine_type": "a3-megagpu-8g",
        "zone": "us-west4-a",
        "capacity": "reservation",
        "reservation": "h100-training",
        "min_nodes": 4,
        "max_nodes": 6,
    },
    "A100": {"machine_type": "a2-highgpu-8g", "zone": "us-west4-a", "max_nodes": 3},
    "A100 80 GB": {"machine_type": "a2-ultragpu-8g", "zone": "us-west4-a", "max_nodes": 3},
}


@pytest.fixture
def deploy() -> Deploy:
    return lambda program: record(program, project="training-platform", stack_name="prod")


@pytest.fixture
def pool_plan(scope: Scope, deploy: Deploy) -> Callable[..., Plan]:
    """Plan the pool ``train`` of cluster ``west``, of a kind and with some of its fields changed; v4 is in its zone."""

    def plan(kind: str, location: str | None = None, **changes: Any) -> Plan:
        at = location or ("us-central2-b" if kind == "v4 slices" else "us-west4")
        spec = {"location": at, "subnet": RANGES, "node_pools": {"train": {**KINDS[kind], **changes}}}
        (pool,) = cluster_pools("west", ClusterSpec.model_validate(spec))

        def program() -> None:
            nodes = NodeServiceAccount("nodes", NodeServiceAccountArgs(scope=scope))
            for gke_pool in pool.gke_pools:
                args = AcceleratorPoolArgs(
                    scope=scope, pool=pool, gke_pool=gke_pool, cluster="prod-west", location=at, service_account=nodes
                )
                AcceleratorPool(gke_pool.name, args)

        return deploy(program)

    return plan


@pytest.fixture
def planned(pool_plan: Callable[..., Plan]) -> Callable[..., Planned]:
    """Return what the first GKE node pool of such a pool is planned as."""
    return lambda kind, **changes: pool_plan(kind, **changes).of(NODE_POOL)[0]
