"""A section of ``clusters`` from a cluster's body in GKE, and its subnet's in Compute Engine."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Any

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import Json
from training_platform.config.expansion import HEADS_NAME, SYSTEM_NAME
from training_platform.config.gpu_fabric import PARTS_BITS
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.node_pool import CpuPoolSpec, PathwaysPoolSpec, SystemPoolSpec
from training_platform.parts.adopt.sections.node_pools import pool_sections
from training_platform.parts.adopt.sections.values import Inexpressible, at, shortest, whole
from training_platform.resources.gke import BINARY_POLICY, FREEZE

_SCOPE = "maintenanceExclusionOptions.scope"
_CPU_POOLS: Mapping[str, tuple[str, type[CpuPoolSpec]]] = {
    SYSTEM_NAME: ("system_pool", SystemPoolSpec),
    HEADS_NAME: ("pathways", PathwaysPoolSpec),
}


def cluster_section(
    body: Json, pools: Mapping[str, Json], subnets: Mapping[str, Json]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a cluster's section, and the reasons of missing pools by name.

    ``pools`` and ``subnets`` are by name and by path. Raises Inexpressible where there can be no section.
    """
    location = body["location"]
    channel = at(body, "releaseChannel.channel")
    if at(body, "autopilot.enabled"):
        raise Inexpressible("it is an Autopilot cluster: a stack file has clusters with node pools of their own")
    subnet = _subnet(body, subnets)
    if channel in (None, "UNSPECIFIED"):
        raise Inexpressible("it is in no release channel")
    others = {name for name, pool in pools.items() if name not in _CPU_POOLS and _takes_any_pod(pool)}
    training = {name: pool for name, pool in pools.items() if name not in {*_CPU_POOLS, *others}}
    node_pools, reasons = pool_sections(training, location)
    cpu_pools: dict[str, Any] = {"cpu_pools": {name: _cpu_pool(pools[name], CpuPoolSpec) for name in others}}
    for name, (field, spec) in _CPU_POOLS.items():
        try:
            cpu_pools[field] = _cpu_pool(pools[name], spec) if name in pools else None
        except Inexpressible as error:
            reasons[name] = str(error)
    section = {
        "location": location,
        "subnet": subnet,
        "release_channel": channel,
        "maintenance": _maintenance(body, bool(node_pools)),
        "gpu_networks": _gpu_networks(pools, subnets),
        **cpu_pools,
        "node_pools": node_pools,
        "auto_provisioning": _auto_provisioning(body),
        "autoscaling_profile": at(body, "autoscaling.autoscalingProfile") or "BALANCED",
        "binary_authorization": at(body, "binaryAuthorization.evaluationMode") == BINARY_POLICY,
        "intranode_visibility": at(body, "networkConfig.enableIntraNodeVisibility"),
        "fqdn_policies": bool(at(body, "networkConfig.enableFqdnNetworkPolicy")),
    }
    return shortest(ClusterSpec, section), reasons


def _subnet(body: Json, subnets: Mapping[str, Json]) -> dict[str, str]:
    path = str(at(body, "networkConfig.subnetwork") or "")
    subnet = subnets.get(path)
    if subnet is None:
        raise Inexpressible(f"its subnet {path or body.get('subnetwork')} is not one that this project shows")
    ranges = {row["rangeName"]: row["ipCidrRange"] for row in subnet.get("secondaryIpRanges") or ()}
    allocation = at(body, "ipAllocationPolicy") or {}
    section = {"nodes": subnet["ipCidrRange"]}
    for field, name in (("pods", "cluster"), ("services", "services")):
        cidr = ranges.get(allocation.get(f"{name}SecondaryRangeName")) or allocation.get(f"{name}Ipv4CidrBlock")
        if cidr is None:
            raise Inexpressible(f"its {field} have no range of their own: it is not VPC-native")
        section[field] = cidr
    return section


def _maintenance(body: Json, has_pools: bool) -> dict[str, Any] | None:
    window = at(body, "maintenancePolicy.window") or {}
    recurring = window.get("recurringWindow") or {}
    exclusions = dict(window.get("maintenanceExclusions") or {})
    frozen = exclusions.pop(FREEZE, None) is not None
    section = {
        "recurrence": recurring.get("recurrence"),
        "start": at(recurring, "window.startTime"),
        "end": at(recurring, "window.endTime"),
        "upgrade_freeze": None if frozen is has_pools else frozen,
        "exclusions": {
            name: {
                "start": exclusion.get("startTime"),
                "end": exclusion.get("endTime"),
                "scope": (at(exclusion, _SCOPE) or "NO_UPGRADES").lower().replace("_", "-"),
            }
            for name, exclusion in exclusions.items()
        }
        or None,
    }
    return {key: value for key, value in section.items() if value is not None} or None


def _gpu_networks(pools: Mapping[str, Json], subnets: Mapping[str, Json]) -> dict[str, str] | None:
    """Return the range that the subnets of further network cards divide into equal parts."""
    for pool in pools.values():
        for nic in at(pool, "networkConfig.additionalNodeNetworkConfigs") or ():
            name = f"/{nic.get('subnetwork', '').rpartition('/')[2]}"
            cidr = next((subnet["ipCidrRange"] for path, subnet in subnets.items() if path.endswith(name)), None)
            if cidr is not None:
                part = IPv4Network(cidr)
                return {"range": str(part.supernet(new_prefix=max(0, part.prefixlen - PARTS_BITS)))}
    return None


def _takes_any_pod(body: Json) -> bool:
    machine = MACHINE_TYPES.get(str(at(body, "config.machineType")))
    barred = at(body, "config.accelerators") or at(body, "config.taints")
    return machine is not None and machine.kind == "cpu" and not barred


def _cpu_pool(body: Json, spec: type[CpuPoolSpec]) -> dict[str, Any]:
    scaling = at(body, "autoscaling") or {}
    machine = str(at(body, "config.machineType"))
    zones = len(at(body, "locations") or [""])
    if machine not in MACHINE_TYPES:
        raise Inexpressible(f"the catalogue has no machine type {machine}")
    kind = at(body, "config.bootDisk.diskType")
    count = whole(body, "initialNodeCount") * zones
    section = {
        "machine_type": machine,
        "min_nodes": whole(scaling, "totalMinNodeCount") or whole(scaling, "minNodeCount") * zones or count,
        "max_nodes": whole(scaling, "totalMaxNodeCount") or whole(scaling, "maxNodeCount") * zones or count,
        "boot_disk": {
            "size_gb": whole(body, "config.bootDisk.sizeGb", 100),
            "type": None if kind == MACHINE_TYPES[machine].boot_disk_types[0] else kind,
        },
    }
    shortest(spec, section)
    return section


def _auto_provisioning(body: Json) -> dict[str, Any] | None:
    scaling = at(body, "autoscaling") or {}
    if not scaling.get("enableNodeAutoprovisioning"):
        return None
    limits = {limit["resourceType"]: whole(limit, "maximum") for limit in scaling.get("resourceLimits") or ()}
    defaults = scaling.get("autoprovisioningNodePoolDefaults") or {}
    return {
        "cpu": limits.pop("cpu", None),
        "memory_gb": limits.pop("memory", None),
        "accelerators": limits,
        "zones": scaling.get("autoprovisioningLocations") or [],
        "boot_disk": {"size_gb": whole(defaults, "diskSizeGb", 100), "type": defaults.get("diskType")},
        "image_type": defaults.get("imageType"),
        "max_surge": whole(defaults, "upgradeSettings.maxSurge"),
        "max_unavailable": whole(defaults, "upgradeSettings.maxUnavailable"),
    }
