"""How GKE keeps a pool's VMs whole and up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.resources.declared import shared

if TYPE_CHECKING:
    from pulumi_gcp.container import NodePoolManagementArgsDict as Management
    from pulumi_gcp.container import NodePoolUpgradeSettingsArgsDict as UpgradeSettings
    from pulumi_gcp.container import NodePoolUpgradeSettingsBlueGreenSettingsArgsDict as BlueGreen


def management(spec: NodePoolSpec) -> Management:
    """Return whether GKE repairs and upgrades VMs by itself; by flex-start it refuses to repair."""
    repair = spec.upgrades.auto_repair
    return _management(spec.charged != "flex-start" if repair is None else repair, spec.upgrades.auto_upgrade)


@shared
def _management(auto_repair: bool, auto_upgrade: bool) -> Management:
    return {"auto_repair": auto_repair, "auto_upgrade": auto_upgrade}


def upgrades_unsaid(spec: NodePoolSpec) -> bool:
    """Whether GKE upgrades a pool's VMs in its own way, which the provider does not take, and the file says nothing."""
    return spec.charged == "flex-start" and not spec.upgrades.says_how


def upgrade_settings(spec: NodePoolSpec) -> UpgradeSettings | None:
    """Return how VMs are upgraded: by default one goes before its successor comes, where nothing has room for both.

    Those of flex-start are left out unless the stack file says something, which a rule then finds. A slice is recreated
    as a whole whatever this says.
    """
    upgrades = spec.upgrades
    if upgrades_unsaid(spec):
        return None
    if upgrades.strategy == "blue-green":
        return {"strategy": "BLUE_GREEN", "blue_green_settings": _blue_green(upgrades.soak_minutes)}
    return _surge(upgrades.max_surge, upgrades.max_unavailable)


@shared
def _surge(max_surge: int, max_unavailable: int) -> UpgradeSettings:
    return {"strategy": "SURGE", "max_surge": max_surge, "max_unavailable": max_unavailable}


def _blue_green(soak_minutes: int) -> BlueGreen:
    return {
        "standard_rollout_policy": {"batch_node_count": 1, "batch_soak_duration": "0s"},
        "node_pool_soak_duration": f"{soak_minutes * 60}s",
    }
