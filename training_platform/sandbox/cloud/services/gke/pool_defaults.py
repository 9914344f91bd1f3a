"""What GKE fills in for a node pool. Sources: what the gcp provider reads back as computed; otherwise (inferred)."""

from __future__ import annotations

from typing import Any, Final

from training_platform.sandbox.cloud.requests.errors import ApiError

Json = dict[str, Any]
_SCOPES: Final = (
    "devstorage.read_only", "logging.write", "monitoring", "service.management.readonly", "servicecontrol",
    "trace.append",
)  # fmt: skip


def fill_pool(body: Json, cluster: Json) -> None:
    """Complete a pool of a cluster, new or changed; what is there stays."""
    body.setdefault("locations", list(cluster["locations"]))
    body.setdefault("version", cluster["currentMasterVersion"])
    body.setdefault("autoscaling", {})
    body.setdefault("maxPodsConstraint", dict(cluster.get("defaultMaxPodsConstraint", {"maxPodsPerNode": "110"})))
    body["podIpv4CidrSize"] = 24
    config = body.setdefault("config", {})
    body.setdefault("management", {"autoUpgrade": True, "autoRepair": not config.get("flexStart", False)})
    body.setdefault("upgradeSettings", _upgrade(config))
    network = body.setdefault("networkConfig", {})
    allocation = cluster["ipAllocationPolicy"]
    network.setdefault("podRange", allocation.get("clusterSecondaryRangeName") or f"gke-{cluster['name']}-pods")
    network.setdefault("podIpv4CidrBlock", allocation["clusterIpv4CidrBlock"])
    network.setdefault("enablePrivateNodes", cluster["networkConfig"].get("defaultEnablePrivateNodes", False))
    network.setdefault("subnetwork", cluster["networkConfig"]["subnetwork"])
    network["podIpv4RangeUtilization"] = 0.0
    if body["autoscaling"].get("enabled"):
        _autoscaling(body["autoscaling"])
    fill_config(config, cluster)


def fill_config(config: Json, cluster: Json) -> None:
    """Complete the configuration of a pool's VMs."""
    config.setdefault("machineType", "e2-medium")
    _boot_disk(config)
    config.setdefault("imageType", "COS_CONTAINERD")
    config.setdefault("serviceAccount", "default")
    config.setdefault("oauthScopes", [f"https://www.googleapis.com/auth/{each}" for each in _SCOPES])
    config["metadata"] = {"disable-legacy-endpoints": "true", **config.get("metadata", {})}
    config.setdefault("shieldedInstanceConfig", {"enableIntegrityMonitoring": True})
    config.setdefault("effectiveCgroupMode", "EFFECTIVE_CGROUP_MODE_V2")
    config.setdefault("windowsNodeConfig", {})
    config.setdefault("kubeletConfig", {}).setdefault("insecureKubeletReadonlyPortEnabled", False)
    config.setdefault("loggingConfig", {"variantConfig": {"variant": "DEFAULT"}})
    labels = config.setdefault("resourceLabels", {})
    labels["goog-gke-node-pool-provisioning-model"] = _provisioning(config)
    if cluster.get("workloadIdentityConfig", {}).get("workloadPool"):
        config.setdefault("workloadMetadataConfig", {"mode": "GKE_METADATA"})
    elif config.get("workloadMetadataConfig", {}).get("mode") == "GKE_METADATA":
        raise ApiError(400, "GKE_METADATA requires workload identity to be enabled on the cluster.")
    for each in config.get("accelerators", ()):
        each.setdefault("gpuDriverInstallationConfig", {"gpuDriverVersion": "GPU_DRIVER_VERSION_DEFAULT"})


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


def _upgrade(config: Json) -> Json:
    if config.get("flexStart"):
        return {"strategy": "SHORT_LIVED"}
    return {"maxSurge": 1, "strategy": "SURGE"}


def _provisioning(config: Json) -> str:
    if config.get("flexStart"):
        return "flex-start"
    if config.get("spot") or config.get("preemptible"):
        return "spot"
    affinity = config.get("reservationAffinity", {}).get("consumeReservationType")
    return "reservation" if affinity == "SPECIFIC_RESERVATION" else "on-demand"
