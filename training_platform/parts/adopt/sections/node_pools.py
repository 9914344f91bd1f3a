"""``node_pools`` of a cluster from its pools in GKE; several slices become one pool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.attachments import with_gpus
from training_platform.catalog.locations import is_zone
from training_platform.catalog.types import Json, MachineType
from training_platform.config.expansion import (
    ARCHITECTURE_LABEL,
    CLASS_LABEL,
    FLAVOR_LABEL,
    GPU_DIRECT_LABEL,
    GPU_DIRECT_OFF,
    QUEUED_LABEL,
    RESERVED_LABELS,
    ZONES_OF_A_REGIONAL_CLUSTER,
)
from training_platform.config.model.capacity import ANY
from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.parts.adopt.sections.values import Inexpressible, at, shortest, whole
from training_platform.resources.node_pools import MAX_PODS, MAX_PODS_OF_A_SLICE_HOST

_OUR_LABELS = (FLAVOR_LABEL, QUEUED_LABEL, CLASS_LABEL, GPU_DIRECT_LABEL, *RESERVED_LABELS)
_GKE_TAINTS = {"nvidia.com/gpu", "google.com/tpu", "cloud.google.com/gke-queued", CLASS_LABEL, ARCHITECTURE_LABEL}
_SLICE = re.compile(r"(?P<pool>.+)-(?P<index>0|[1-9][0-9]*)")
_RESERVATION = re.compile(
    r"(projects/(?P<project>[^/]+)/reservations/)?(?P<name>[^/]+)"
    r"(/reservationBlocks/(?P<block>[^/]+))?(/reservationSubBlocks/(?P<sub_block>[^/]+))?"
)
_GPU = "config.accelerators"


def pool_sections(pools: Mapping[str, Json], location: str) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the sections of pools, and the reasons why others have none, both by GKE's names."""
    sections: dict[str, dict[str, Any]] = {}
    reasons: dict[str, str] = {}
    slices: dict[str, dict[int, dict[str, Any]]] = {}
    for name, body in pools.items():
        try:
            section = _section(body, location)
        except Inexpressible as error:
            reasons[name] = str(error)
            continue
        match = _SLICE.fullmatch(name)
        if not section.pop("several_hosts"):
            sections[name] = section
        elif match:
            slices.setdefault(match["pool"], {})[int(match["index"])] = section
        else:
            reasons[name] = f"a slice over several VMs has a number at the end of its name, such as {name}-0"
    for name, by_index in slices.items():
        first = by_index.get(0)
        numbers = sorted(by_index)
        if first is None or numbers != list(range(len(numbers))):
            reasons |= {f"{name}-{index}": "slices of a pool are counted from 0" for index in numbers}
            continue
        sections[name] = {
            **first,
            "slices": len(numbers),
            "min_slices": sum(part["min_slices"] > 0 for part in by_index.values()),
        }
    valid = {}
    for name, section in sections.items():
        try:
            valid[name] = shortest(NodePoolSpec, section)
        except Inexpressible as error:
            reasons[name] = str(error)
    return valid, reasons


def _section(body: Json, location: str) -> dict[str, Any]:
    """Return one GKE node pool as a section. Raises Inexpressible."""
    machine = _machine(body)
    hosts = machine.hosts_of(at(body, "placementPolicy.tpuTopology")) if machine.kind == "tpu" else 1
    zones = at(body, "locations") or []  # None in the section means all zones of a regional cluster
    zone = location if is_zone(location) else None
    if zone is None and len(zones) == 1:
        zone = str(zones[0])
    labels = at(body, "config.labels") or {}
    attached = machine.accelerator if MACHINE_TYPES[machine.name].kind == "cpu" else None
    disk_type = at(body, "config.bootDisk.diskType") or at(body, "config.diskType")
    max_pods = whole(body, "maxPodsConstraint.maxPodsPerNode")
    default_pods = MAX_PODS_OF_A_SLICE_HOST if hosts > 1 else MAX_PODS
    # Whether a pool lacks the networks that its machine type can have.
    no_direct = machine.gpudirect is not None and (
        labels.get(GPU_DIRECT_LABEL) == GPU_DIRECT_OFF or not at(body, "networkConfig.additionalNodeNetworkConfigs")
    )
    section = {
        "machine_type": machine.name,
        "accelerator": attached.name if attached else None,
        "accelerator_count": whole(body, f"{_GPU}.acceleratorCount") if attached else None,
        "zone": None if zone is None or is_zone(location) else zone,
        **_capacity(body),
        **_counts(body, machine, hosts, 1 if zone else ZONES_OF_A_REGIONAL_CLUSTER),
        "several_hosts": hosts > 1,
        "boot_disk": {
            "size_gb": whole(body, "config.bootDisk.sizeGb") or whole(body, "config.diskSizeGb", 100),
            "type": None if disk_type == machine.boot_disk_types[0] else disk_type,
        },
        "labels": {key: value for key, value in labels.items() if key not in _OUR_LABELS} or None,
        "gpu_direct": False if no_direct else None,
        "local_ssd": _local_ssd(body, machine),
        "preload_images": [disk["diskImage"] for disk in at(body, "config.secondaryBootDisks") or ()] or None,
        "max_pods": None if max_pods in (0, default_pods) else max_pods,
        "taints": {
            taint["key"]: {"value": taint.get("value", ""), "effect": taint.get("effect")}
            for taint in at(body, "config.taints") or ()
            if taint["key"] not in _GKE_TAINTS
        }
        or None,
        "upgrades": _upgrades(body),
        "provider_inputs": _provider_inputs(body),
    }
    return section | _gpu(body) if machine.kind == "gpu" else section


_PAGES = "config.linuxNodeConfig.hugepages"


def _provider_inputs(body: Json) -> dict[str, Any] | None:
    """Return the inputs for which a pool's section has no field."""
    config: dict[str, Any] = {}
    if kind := at(body, "config.confidentialNodes.confidentialInstanceType"):
        config["confidential_nodes"] = {"enabled": True, "confidential_instance_type": kind}
    pages = {f"hugepage_size{size}": whole(body, f"{_PAGES}.hugepageSize{size}") for size in ("2m", "1g")}
    linux = {
        "sysctls": at(body, "config.linuxNodeConfig.sysctls"),
        "hugepages_config": {name: count for name, count in pages.items() if count},
    }
    if written := {name: value for name, value in linux.items() if value}:
        config["linux_node_config"] = written
    return {"node_config": config} if config else None


def _machine(body: Json) -> MachineType:
    name = str(at(body, "config.machineType"))
    if name not in MACHINE_TYPES:
        raise Inexpressible(f"the catalogue has no machine type {name}")
    machine = with_gpus(name, at(body, f"{_GPU}.acceleratorType"), whole(body, f"{_GPU}.acceleratorCount") or None)
    if machine.accelerator is None:
        raise Inexpressible(f"{name} has no TPUs or GPUs: beside the system pool, every pool of a stack file has them")
    return machine


def _capacity(body: Json) -> dict[str, Any]:
    affinity = at(body, "config.reservationAffinity.consumeReservationType")
    seconds = str(at(body, "config.maxRunDuration") or "").removesuffix("s")
    hours = {"max_run_hours": max(1, int(float(seconds)) // 3600)} if seconds else {}
    if at(body, "queuedProvisioning.enabled"):
        return {"capacity": "queued-provisioning", **hours}
    if at(body, "config.flexStart"):
        return {"capacity": "flex-start", **hours}
    if at(body, "config.spot") or at(body, "config.preemptible"):
        return {"capacity": "spot", **hours}
    if affinity == "SPECIFIC_RESERVATION":
        return {"capacity": "reservation", "reservation": _reservation(body), **hours}
    return {"capacity": "reservation", "reservation": "any"} if affinity == "ANY_RESERVATION" else hours


def _reservation(body: Json) -> Any:
    path = (at(body, "config.reservationAffinity.values") or [""])[0]
    match = _RESERVATION.fullmatch(path)
    if match is None:
        raise Inexpressible(f"{path!r} is not the name of a reservation")
    fields = {key: value for key, value in match.groupdict().items() if value}
    labels = at(body, "config.labels") or {}
    days = zip(("starts", "ends"), RESERVED_LABELS, strict=True)
    fields |= {field: labels[label] for field, label in days if label in labels}
    return fields["name"] if fields.keys() == {"name"} and fields["name"] != ANY else fields


def _counts(body: Json, machine: MachineType, hosts: int, zones: int) -> dict[str, Any]:
    """Return the fewest and most VMs per zone, or slices, as the section counts them."""
    scaling = at(body, "autoscaling") or {}
    if scaling.get("enabled"):
        least = whole(scaling, "minNodeCount") or whole(scaling, "totalMinNodeCount") // zones
        most = whole(scaling, "maxNodeCount") or whole(scaling, "totalMaxNodeCount") // zones
    else:
        least = most = whole(body, "initialNodeCount")
    most = max(1, most)
    if machine.kind == "gpu":
        return {"min_nodes": least, "max_nodes": most}
    topology = at(body, "placementPolicy.tpuTopology") or machine.single_host
    return {
        "topology": topology,
        "min_slices": least if hosts == 1 else int(least > 0),
        "slices": most if hosts == 1 else 1,
    }


def _local_ssd(body: Json, machine: MachineType) -> dict[str, Any] | None:
    block = whole(body, "config.localNvmeSsdBlockConfig.localSsdCount")
    count = block or whole(body, "config.ephemeralStorageLocalSsdConfig.localSsdCount")
    further = None if count == machine.local_ssd.bundled else count
    return {"count": further, "use": "block" if block else None} if count else None


def _upgrades(body: Json) -> dict[str, Any] | None:
    """Return the upgrade settings of a pool; for flex-start, their absence means GKE's default."""
    settings = at(body, "upgradeSettings") or {}
    management = at(body, "management") or {}
    flex = bool(at(body, "config.flexStart"))
    repair = bool(management.get("autoRepair"))
    upgrades: dict[str, Any] = {"auto_upgrade": bool(management.get("autoUpgrade"))}
    if repair is flex:
        upgrades["auto_repair"] = repair
    if settings.get("strategy") == "BLUE_GREEN":
        soak = str(at(settings, "blueGreenSettings.nodePoolSoakDuration") or "3600s").removesuffix("s")
        upgrades |= {"strategy": "blue-green", "soak_minutes": int(float(soak)) // 60}
    elif not flex:
        upgrades |= {"max_surge": whole(settings, "maxSurge"), "max_unavailable": whole(settings, "maxUnavailable")}
    return upgrades


def _gpu(body: Json) -> dict[str, Any]:
    drivers = {"LATEST": "latest", "INSTALLATION_DISABLED": "disabled"}
    strategies = {"TIME_SHARING": "time-sharing", "MPS": "mps"}
    sharing = at(body, f"{_GPU}.gpuSharingConfig") or {}
    strategy = strategies.get(sharing.get("gpuSharingStrategy", ""))
    clients = whole(sharing, "maxSharedClientsPerGpu")
    # A workload policy places the VMs if the machine type requires it.
    compact = at(body, "placementPolicy.type") == "COMPACT" and not at(body, "placementPolicy.policyName")
    return {
        "driver": drivers.get(at(body, f"{_GPU}.gpuDriverInstallationConfig.gpuDriverVersion")),
        "partition": at(body, f"{_GPU}.gpuPartitionSize"),
        "sharing": {"strategy": strategy, "max_clients": clients} if strategy else None,
        "compact": True if compact else None,
    }
