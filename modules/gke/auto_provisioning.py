"""Node auto-provisioning of a cluster: limits, and what the pools are that GKE makes by itself."""

from __future__ import annotations

import pulumi
from pulumi_gcp import container

from modules.gke.node_config import OAUTH_SCOPES
from training_platform.config.spec.auto_provisioning import AutoProvisioningSpec


def cluster_autoscaling(
    spec: AutoProvisioningSpec | None, service_account: pulumi.Input[str]
) -> container.ClusterClusterAutoscalingArgs | None:
    """Return a cluster's auto-provisioning; without limits in the file, GKE makes no pools by itself."""
    if spec is None:
        return None
    limits = {"cpu": spec.cpu, "memory": spec.memory_gb, **spec.accelerators}
    return container.ClusterClusterAutoscalingArgs(
        enabled=True,
        autoscaling_profile=spec.profile,
        auto_provisioning_locations=list(spec.zones) or None,
        auto_provisioning_defaults=_defaults(spec, service_account),
        resource_limits=[
            container.ClusterClusterAutoscalingResourceLimitArgs(resource_type=resource, maximum=most)
            for resource, most in limits.items()
        ],
    )


def _defaults(
    spec: AutoProvisioningSpec, service_account: pulumi.Input[str]
) -> container.ClusterClusterAutoscalingAutoProvisioningDefaultsArgs:
    """Return what new pools have in common with ours, as far as their defaults can say it.

    The disk type is always written: the provider's own default is one that most accelerators do not take.
    """
    return container.ClusterClusterAutoscalingAutoProvisioningDefaultsArgs(
        service_account=service_account,
        oauth_scopes=list(OAUTH_SCOPES),
        image_type=spec.image_type,
        disk_type=spec.boot_disk_type,
        disk_size=spec.boot_disk.size_gb,
        management=container.ClusterClusterAutoscalingAutoProvisioningDefaultsManagementArgs(
            auto_repair=True, auto_upgrade=True
        ),
        upgrade_settings=container.ClusterClusterAutoscalingAutoProvisioningDefaultsUpgradeSettingsArgs(
            strategy="SURGE", max_surge=spec.max_surge, max_unavailable=spec.max_unavailable
        ),
        shielded_instance_config=container.ClusterClusterAutoscalingAutoProvisioningDefaultsShieldedInstanceConfigArgs(
            enable_secure_boot=True, enable_integrity_monitoring=True
        ),
    )
