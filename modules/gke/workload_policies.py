"""Policies that join VMs into slices of TPU 7x or NVLink domains of GB200, which placement alone does not."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi_gcp import compute

from modules.register import register
from training_platform.resources.declared import Declared


class WorkloadPolicies(pulumi.ComponentResource):
    """A cluster's workload policies; ``names`` are those in Google Cloud, by topology."""

    names: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, policies: Mapping[str, Declared], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:WorkloadPolicies", name, {}, opts)
        self.names = {
            topology: register(compute.ResourcePolicy, policy, self).name for topology, policy in policies.items()
        }
        self.register_outputs({})
