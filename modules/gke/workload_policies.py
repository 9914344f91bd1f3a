"""Policies that join VMs into slices of TPU 7x or NVLink domains of GB200, which placement alone does not.

One per region and topology, which pools of the same topology share. Sources: GKE docs, TPU Ironwood; Cluster Toolkit
v1.95.0, resource-policy and examples gke-tpu-7x and gke-a4x (2026-06-25).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute

from training_platform.config.expansion.pools import ExpandedPool
from training_platform.resources.cloud_names import NAME_LIMIT, short_name
from training_platform.resources.scope import Scope

HIGH_THROUGHPUT = "HIGH_THROUGHPUT"


@dataclass(frozen=True, kw_only=True)
class WorkloadPoliciesArgs:
    """Which topologies, of which cluster in which region."""

    scope: Scope
    cluster: str  # its key in the stack file
    region: str
    topologies: tuple[str, ...]


class WorkloadPolicies(pulumi.ComponentResource):
    """A cluster's workload policies; ``names`` are those in Google Cloud, by topology."""

    names: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, args: WorkloadPoliciesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:WorkloadPolicies", name, {}, opts)
        self.names = {}
        for topology in args.topologies:
            policy = compute.ResourcePolicy(
                f"{name}-{topology}-policy",
                project=args.scope.project,
                region=args.region,
                name=short_name(f"{args.scope.environment}-{args.cluster}-{topology}", NAME_LIMIT),
                workload_policy=compute.ResourcePolicyWorkloadPolicyArgs(
                    type=HIGH_THROUGHPUT, accelerator_topology=topology
                ),
                # A pool that uses it keeps it from going, and the name is taken meanwhile.
                opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
            )
            self.names[topology] = policy.name
        self.register_outputs({})


def policy_topologies(pools: Iterable[ExpandedPool]) -> tuple[str, ...]:
    """Return every topology that the pools of a cluster need a workload policy of, each once."""
    return tuple(dict.fromkeys(topology for topology in (pool.policy_topology for pool in pools) if topology))
