"""How GKE keeps a pool's VMs whole and up to date."""

from __future__ import annotations

from pulumi_gcp import container

from training_platform.config.spec.node_pool import NodePoolSpec


def management(spec: NodePoolSpec) -> container.NodePoolManagementArgs:
    """Return whether GKE repairs and upgrades VMs by itself; by flex-start it refuses to repair."""
    repair = spec.upgrades.auto_repair
    return container.NodePoolManagementArgs(
        auto_repair=spec.charged != "flex-start" if repair is None else repair,
        auto_upgrade=spec.upgrades.auto_upgrade,
    )


def upgrade_settings(spec: NodePoolSpec) -> container.NodePoolUpgradeSettingsArgs | None:
    """Return how VMs are upgraded: by default one goes before its successor comes, where nothing has room for both.

    GKE upgrades VMs by flex-start in its own way, under a name that the provider does not take, so theirs are left out
    unless the stack file says something, which a rule then finds. A slice is recreated as a whole whatever this says.
    """
    upgrades = spec.upgrades
    if spec.charged == "flex-start" and not upgrades.says_how:
        return None
    if upgrades.strategy == "blue-green":
        batch = container.NodePoolUpgradeSettingsBlueGreenSettingsStandardRolloutPolicyArgs(
            batch_node_count=1, batch_soak_duration="0s"
        )
        return container.NodePoolUpgradeSettingsArgs(
            strategy="BLUE_GREEN",
            blue_green_settings=container.NodePoolUpgradeSettingsBlueGreenSettingsArgs(
                standard_rollout_policy=batch, node_pool_soak_duration=f"{upgrades.soak_minutes * 60}s"
            ),
        )
    return container.NodePoolUpgradeSettingsArgs(
        strategy="SURGE", max_surge=upgrades.max_surge, max_unavailable=upgrades.max_unavailable
    )
