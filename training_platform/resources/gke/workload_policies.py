"""Policies that join VMs into slices of TPU 7x or NVLink domains of GB200, which placement alone does not.

One per region and topology, which pools of the same topology share. Sources: GKE docs, TPU Ironwood; Cluster Toolkit
v1.95.0, resource-policy and examples gke-tpu-7x and gke-a4x (2026-06-25).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from training_platform.catalog.locations import region_of
from training_platform.config.pools import ExpandedPool
from training_platform.resources import gcp
from training_platform.resources.cloud_names import NAME_LIMIT, short_name
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import RESOURCE_POLICY
from training_platform.resources.scope import Scope

HIGH_THROUGHPUT = "HIGH_THROUGHPUT"
# A pool that uses it keeps it from going, and the name is taken meanwhile.
_OPTIONS = Options(delete_before_replace=True)


def workload_policies(
    scope: Scope, cluster: str, location: str, pools: Iterable[ExpandedPool]
) -> Iterator[tuple[str, Declared]]:
    """Yield the policies that the pools of a cluster need, each by its topology; ``cluster`` is its key."""
    topologies = dict.fromkeys(pool.policy_topology for pool in pools if pool.policy_topology)
    for topology in topologies:
        inputs = gcp.resource_policy(
            project=scope.project,
            region=region_of(location),
            name=short_name(f"{scope.environment}-{cluster}-{topology}", NAME_LIMIT),
            workload_policy={"type": HIGH_THROUGHPUT, "accelerator_topology": topology},
        )
        name = f"{cluster}-slices-{topology}-policy"
        yield topology, Declared(type=RESOURCE_POLICY, name=name, inputs=inputs, options=_OPTIONS)
