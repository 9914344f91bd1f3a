"""What all nodes have in common, whatever their pool is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from training_platform.catalog.types import MachineType
from training_platform.config.model.node_pool import BootDiskSpec
from training_platform.resources.declared import shared
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp.container import NodePoolNodeConfigArgsDict as NodeConfig
    from pulumi_gcp.container import NodePoolNodeConfigBootDiskArgsDict as Disk

# The default scopes hold read-only storage: every checkpoint would fail to be written, whatever IAM says.
OAUTH_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
IMAGE_TYPE = "COS_CONTAINERD"  # image streaming and driver installation want it


def common_node_config(
    machine: MachineType, disk: BootDiskSpec, service_account: Any, scope: Scope, location: str
) -> NodeConfig:
    """Return what a pool's ``node_config`` starts from; ``location`` is the cluster's."""
    return {
        "machine_type": machine.name,
        "image_type": IMAGE_TYPE,
        "boot_disk": _boot_disk(disk.size_gb, disk.type_on(machine)),
        "boot_disk_kms_key": scope.key(location),
        "service_account": service_account,
        "oauth_scopes": list(OAUTH_SCOPES),
        "resource_labels": scope.labels,
        **_always(),
    }


@shared
def _always() -> NodeConfig:
    return {
        "gcfs_config": {"enabled": True},  # images of 10 to 20 GB start at once
        "gvnic": {"enabled": True},
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
        # Pods see their own account, not the node's.
        "workload_metadata_config": {"mode": "GKE_METADATA"},
    }


@shared
def _boot_disk(size_gb: int, disk_type: str) -> Disk:
    """Both written always, and in this form alone: GKE has two, and a default type that differs by machine."""
    return {"size_gb": size_gb, "disk_type": disk_type}
