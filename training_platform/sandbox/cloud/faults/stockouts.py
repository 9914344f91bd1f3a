"""What VMs an operation asks for, and what Google says where there are none.

Messages: akka/akka-core no. 32992 (GKE), read 2026-11-21; that of Vertex AI is inferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from training_platform.catalog.locations import region_of
from training_platform.sandbox.cloud.faults.spec import Stockout
from training_platform.sandbox.cloud.state.store import Record
from training_platform.sandbox.cloud.state.work import Started

_VERTEX: Final = "aiplatform.persistentResources"


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """VMs of one machine type: how many, and where, each place getting as many as the others."""

    machine_type: str
    topology: str | None
    nodes: int
    places: list[str]  # zones, or the region where Vertex AI chooses one

    def without(self, fault: Stockout) -> list[str]:
        """Return the places that have none left."""
        if self.machine_type != fault.machine_type or fault.topology not in (None, self.topology):
            return []
        return [each for each in self.places if fault.location in (each, region_of(each))]


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """What is missing: Google's words, and whether an operation gets no VM at all."""

    message: str
    everywhere: bool


def insufficient(region: str) -> str:
    """Return what Vertex AI says where a region has no VMs left."""
    return f"Resources are insufficient in region: {region}. Please try a different region or try again later."


def is_short(fault: Stockout, started: Started) -> bool:
    """Whether an operation asks for VMs that a fault says are not there."""
    return any(each.without(fault) for each in _wanted(started))


def shortage(fault: Stockout, started: Started) -> Shortage:
    """Return what an operation does not get."""
    wanted = list(_wanted(started))
    missing = [(each, place) for each in wanted for place in each.without(fault)]
    everywhere = len(missing) == sum(len(each.places) for each in wanted)
    if started.kind == _VERTEX:
        where = missing[0][1]
        return Shortage(message=insufficient(where), everywhere=everywhere)
    expected = sum(each.nodes for each in wanted)
    absent = sum(each.nodes // len(each.places) for each, _ in missing)
    errors = " ".join(
        f"[GCE_STOCKOUT]: Instance 'gke-{started.work.target.rpartition('/')[2]}' creation failed: The zone "
        f"'projects/{started.work.project}/zones/{place}' does not have enough resources available to fulfill the "
        "request. '(resource type:compute)'."
        for _, place in missing
    )
    message = (
        f"Google Compute Engine: Not all instances running in IGM after {fault.after_seconds:g}s. Expected {expected}, "
        f"running {expected - absent}, transitioning {absent}. Current errors: {errors}"
    )
    return Shortage(message=message, everywhere=everywhere)


def _wanted(started: Started) -> Iterator[_Wanted]:
    """Yield what VMs an operation asks for; those of a reservation are there whatever else is sold out."""
    if started.record is None or not (started.work.grows or started.work.action == "create"):
        return
    if started.kind == _VERTEX:
        yield from _persistent(started.record)
    for pool in {"container.nodePools": [started.record], "container.clusters": started.children}.get(started.kind, ()):
        config = pool.body["config"]
        affinity = config.get("reservationAffinity", {}).get("consumeReservationType")
        if pool.meta.get("nodes") and affinity != "SPECIFIC_RESERVATION":
            yield _Wanted(
                machine_type=config["machineType"],
                topology=pool.body.get("placementPolicy", {}).get("tpuTopology"),
                nodes=pool.meta["nodes"],
                places=list(pool.body["locations"]),
            )


def _persistent(record: Record) -> Iterator[_Wanted]:
    region = record.name.split("/")[4]
    for pool in record.body["resourcePools"]:
        machine = pool.get("machineSpec", {})
        yield _Wanted(
            machine_type=machine.get("machineType", ""),
            topology=machine.get("tpuTopology"),
            nodes=int(pool.get("replicaCount", 1)),
            places=[region],
        )
