"""A stack with every machine that has TPUs or GPUs, in every way that it can be had.

T4 is attached to one CPU machine of each number of GPUs.
"""

from __future__ import annotations

from typing import Any

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import region_of
from training_platform.catalog.topologies import hosts, legal_topologies
from training_platform.catalog.types import MachineType

NODE_POOL = "gcp:container/nodePool:NodePool"
ATTACHED = [("t4", 1, 8), ("t4", 2, 16), ("t4", 4, 96)]
MACHINES = {name: machine for name, machine in MACHINE_TYPES.items() if machine.accelerator is not None}
FIRST = "us-central1"  # where most machines are: one cluster for all of them


def zone_of(machine: MachineType) -> str:
    """Return a zone with the machine; one of a known region where no source says which zone."""
    zones = sorted(machine.zones or (f"{region}-a" for region in machine.regions or (FIRST,)))
    return next((zone for zone in zones if region_of(zone) == FIRST), zones[0])


def pools_of(machine: MachineType) -> dict[str, dict[str, Any]]:
    """Return a pool for every capacity, with the smallest slice, and one with the smallest over several hosts."""
    pools: dict[str, dict[str, Any]] = {}
    for capacity in machine.capacities:
        pool: dict[str, Any] = {"machine_type": machine.name, "zone": zone_of(machine), "capacity": capacity}
        if capacity == "reservation":
            pool["reservation"] = "reserved"
        if machine.kind == "tpu":
            pool["topology"] = machine.single_host
        name = f"{machine.name}-{capacity[:4].strip('-')}"  # names have 30 characters at most
        pools[name] = pool
        if machine.multi_host:
            larger = next(shape for shape in legal_topologies(machine) if (hosts(machine, shape) or 0) > 1)
            pools[f"{name}-hosts"] = {**pool, "topology": larger}
    return pools


def attached_pools() -> dict[str, dict[str, Any]]:
    """Return a pool of each number of T4, on a machine that takes so many."""
    return {
        f"{gpu}-{count}": {
            "machine_type": f"n1-standard-{vcpus}",
            "accelerator": gpu,
            "accelerator_count": count,
            "zone": f"{FIRST}-a",
        }
        for gpu, count, vcpus in ATTACHED
    }


def environment(networks: str = "multi-network") -> dict[str, Any]:
    """Return an environment with a cluster in every region that is needed, with one kind of ``networks``."""
    regions = sorted({region_of(zone_of(machine)) for machine in MACHINES.values()})
    clusters: dict[str, Any] = {}
    for number, region in enumerate(regions):
        of_region: dict[str, Any] = attached_pools() if region == FIRST else {}
        for machine in MACHINES.values():
            if region_of(zone_of(machine)) == region:
                of_region |= pools_of(machine)
        clusters[region] = {
            "location": region,
            "version": "1.35",
            "accelerator_networks": networks,
            "subnet": {
                "nodes": f"10.{number}.0.0/18",
                "services": f"10.{number}.64.0/20",
                "pods": f"10.{128 + 4 * number}.0.0/14",
            },
            "node_pools": of_region,
        }
    return {"project": "example-every", "clusters": clusters}
