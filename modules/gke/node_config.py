"""What all nodes have in common, whatever their pool is for."""

from __future__ import annotations

from typing import TypedDict

import pulumi
from pulumi_gcp import container

from training_platform.catalog.types import MachineType
from training_platform.config.spec.node_pool import BootDiskSpec
from training_platform.resources.scope import Scope

# The default scopes hold read-only storage: every checkpoint would fail to be written, whatever IAM says.
OAUTH_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class CommonNodeConfig(TypedDict):
    """The part of ``NodePoolNodeConfigArgs`` that is the same in every pool."""

    machine_type: str
    image_type: str
    boot_disk: container.NodePoolNodeConfigBootDiskArgs
    service_account: pulumi.Input[str]
    oauth_scopes: list[str]
    resource_labels: dict[str, str]
    gcfs_config: container.NodePoolNodeConfigGcfsConfigArgs
    gvnic: container.NodePoolNodeConfigGvnicArgs
    shielded_instance_config: container.NodePoolNodeConfigShieldedInstanceConfigArgs
    workload_metadata_config: container.NodePoolNodeConfigWorkloadMetadataConfigArgs


def common_node_config(
    machine: MachineType, disk: BootDiskSpec, service_account: pulumi.Input[str], scope: Scope
) -> CommonNodeConfig:
    """Return what a pool's ``node_config`` starts from."""
    return CommonNodeConfig(
        machine_type=machine.name,
        image_type="COS_CONTAINERD",  # image streaming and driver installation want it
        # Both written always, and in this form alone: GKE has two, and a default type that differs by machine.
        boot_disk=container.NodePoolNodeConfigBootDiskArgs(size_gb=disk.size_gb, disk_type=disk.type_on(machine)),
        service_account=service_account,
        oauth_scopes=list(OAUTH_SCOPES),
        resource_labels=scope.labels,
        gcfs_config=container.NodePoolNodeConfigGcfsConfigArgs(enabled=True),  # images of 10 to 20 GB start at once
        gvnic=container.NodePoolNodeConfigGvnicArgs(enabled=True),
        shielded_instance_config=container.NodePoolNodeConfigShieldedInstanceConfigArgs(
            enable_secure_boot=True, enable_integrity_monitoring=True
        ),
        # Pods see their own account, not the node's.
        workload_metadata_config=container.NodePoolNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
    )
