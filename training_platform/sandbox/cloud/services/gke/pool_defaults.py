"""What GKE works out for a node pool, beside defaults. Sources: as of ``defaults.yaml``."""

from __future__ import annotations

from typing import Any

from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources.defaults import fill_in

Json = dict[str, Any]


def fill_pool(body: Json, cluster: Json) -> None:
    """Complete a pool of a cluster, new or changed; what is there stays."""
    fill_in(body, "container.nodePools")
    body.setdefault("locations", list(cluster["locations"]))
    body.setdefault("version", cluster["currentMasterVersion"])
    body.setdefault("maxPodsConstraint", dict(cluster.get("defaultMaxPodsConstraint", {"maxPodsPerNode": "110"})))
    config = body["config"]
    body.setdefault("management", {"autoUpgrade": True, "autoRepair": not config.get("flexStart", False)})
    surge = {"maxSurge": 1, "strategy": "SURGE"}
    body.setdefault("upgradeSettings", {"strategy": "SHORT_LIVED"} if config.get("flexStart") else surge)
    network = body["networkConfig"]
    allocation = cluster["ipAllocationPolicy"]
    network.setdefault("podRange", allocation.get("clusterSecondaryRangeName") or f"gke-{cluster['name']}-pods")
    network.setdefault("podIpv4CidrBlock", allocation["clusterIpv4CidrBlock"])
    network.setdefault("enablePrivateNodes", cluster["networkConfig"].get("defaultEnablePrivateNodes", False))
    network.setdefault("subnetwork", cluster["networkConfig"]["subnetwork"])
    if body["autoscaling"].get("enabled"):
        _autoscaling(body["autoscaling"])
    _config(config, cluster)


def _config(config: Json, cluster: Json) -> None:
    """Complete the configuration of a pool's VMs."""
    _boot_disk(config)
    labels = config.setdefault("resourceLabels", {})
    labels["goog-gke-node-pool-provisioning-model"] = _provisioning(config)
    if cluster.get("workloadIdentityConfig", {}).get("workloadPool"):
        config.setdefault("workloadMetadataConfig", {"mode": "GKE_METADATA"})
    elif config.get("workloadMetadataConfig", {}).get("mode") == "GKE_METADATA":
        raise ApiError(400, "GKE_METADATA requires workload identity to be enabled on the cluster.")
    for each in config.get("accelerators", ()):
        fill_in(each, "node.accelerator")


def _boot_disk(config: Json) -> None:
    disk = config.setdefault("bootDisk", {})
    size = disk.get("sizeGb") or config.get("diskSizeGb") or 100
    kind = disk.get("diskType") or config.get("diskType") or "pd-balanced"
    config |= {"diskSizeGb": int(size), "diskType": kind}
    disk |= {"sizeGb": str(size), "diskType": kind}


def _autoscaling(scaling: Json) -> None:
    if scaling.get("maxNodeCount", 0) < scaling.get("minNodeCount", 0):
        raise ApiError(400, "Maximum node count must not be less than minimum node count.")
    scaling.setdefault("locationPolicy", "BALANCED")


def _provisioning(config: Json) -> str:
    if config.get("flexStart"):
        return "flex-start"
    if config.get("spot") or config.get("preemptible"):
        return "spot"
    affinity = config.get("reservationAffinity", {}).get("consumeReservationType")
    return "reservation" if affinity == "SPECIFIC_RESERVATION" else "on-demand"
