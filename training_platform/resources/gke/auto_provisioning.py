"""Node auto-provisioning of a cluster: limits, and what the pools are that GKE makes by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from training_platform.config.model.cluster import AutoProvisioningSpec, ClusterSpec
from training_platform.resources.declared import shared
from training_platform.resources.gke.node_config import OAUTH_SCOPES

if TYPE_CHECKING:
    from pulumi_gcp.container import ClusterClusterAutoscalingArgsDict as Autoscaling
    from pulumi_gcp.container import ClusterClusterAutoscalingAutoProvisioningDefaultsArgsDict as Defaults


def cluster_autoscaling(cluster: ClusterSpec, service_account: Any, key: str | None = None) -> Autoscaling:
    """Return how long idle nodes stay, and a cluster's auto-provisioning: without limits in the file, it has none.

    ``key`` encrypts the disks of new pools; None where Google's own do.
    """
    spec = cluster.auto_provisioning
    if spec is None:
        return _none(cluster.autoscaling_profile)
    limits = {"cpu": spec.cpu, "memory": spec.memory_gb, **spec.accelerators}
    return {
        "enabled": True,
        "autoscaling_profile": cluster.autoscaling_profile,
        "auto_provisioning_locations": list(spec.zones) or None,
        "auto_provisioning_defaults": _defaults(spec, service_account, key),
        "resource_limits": [{"resource_type": resource, "maximum": most} for resource, most in limits.items()],
    }


@shared
def _none(profile: str) -> Autoscaling:
    return {"enabled": False, "autoscaling_profile": profile}


def _defaults(spec: AutoProvisioningSpec, service_account: Any, key: str | None) -> Defaults:
    """Return what new pools have in common with ours, as far as their defaults can say it.

    The disk type is always written: the provider's own default is one that most accelerators do not take.
    """
    return {
        "service_account": service_account,
        "oauth_scopes": list(OAUTH_SCOPES),
        "image_type": spec.image_type,
        "disk_type": spec.boot_disk_type,
        "disk_size": spec.boot_disk.size_gb,
        "boot_disk_kms_key": key,
        "management": {"auto_repair": True, "auto_upgrade": True},
        "upgrade_settings": {
            "strategy": "SURGE",
            "max_surge": spec.max_surge,
            "max_unavailable": spec.max_unavailable,
        },
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
    }
