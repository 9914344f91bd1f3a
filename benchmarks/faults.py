"""Faults that can be planted in a fleet, by the rule that finds each."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.fleet import Fault, Json


def _oversized_disk(pool: Json) -> bool:
    if "max_nodes" not in pool:
        return False  # a pool of several slices would have it several times
    pool["boot_disk"] = {"size_gb": 700_000}
    return True


def _illegal_topology(pool: Json) -> bool:
    if "x" not in str(pool.get("topology", "")) or pool["topology"].count("x") != 1:
        return False
    pool["topology"] = "3x5"
    return True


def _too_many(pool: Json) -> bool:
    if "max_nodes" not in pool or pool["capacity"] == "reservation":
        return False  # reserved VMs are charged to no quota of accelerators everywhere
    pool["max_nodes"] = 64
    return True


FAULTS: Mapping[str, Fault] = {
    "boot-disk-size": _oversized_disk,
    "tpu-topology": _illegal_topology,
    "quota-exceeded": _too_many,
}
