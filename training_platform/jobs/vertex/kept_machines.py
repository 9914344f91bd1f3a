"""What a persistent resource is doing, from Vertex AI's answer: VMs in use, age, and what it costs meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from training_platform.catalog.attachments import of_vertex
from training_platform.catalog.prices import Cost, machines_cost
from training_platform.config.spec.team import PersistentResourceSpec

ADVISED = timedelta(days=30)  # after which to make one anew; Vertex AI docs, create a persistent resource, read 2026-08


@dataclass(frozen=True, kw_only=True)
class KeptMachines:
    """The VMs of a persistent resource; ``cost`` is per hour, of the VMs that there are.

    What ``used`` counts of a Ray cluster is not documented: none is said to be idle.
    """

    state: str
    vms: int
    used: int
    age: timedelta
    cost: Cost
    ray: bool

    @property
    def idle(self) -> bool:
        """Whether it has VMs and no job uses any."""
        return self.vms > 0 and self.used == 0 and not self.ray

    @property
    def old(self) -> bool:
        """Whether it is older than Google advises."""
        return self.age > ADVISED

    def __str__(self) -> str:
        """Return one line."""
        # Disks and Vertex AI's own fee are in no price.
        price = f"at least {self.cost.least:.2f} USD an hour"
        idle = ", idle" if self.idle else ""
        old = f", made {self.age.days} days ago: make it anew after {ADVISED.days}" if self.old else ""
        vms = f"{self.vms} VMs of Ray" if self.ray else f"{self.used} of {self.vms} VMs in use"
        return f"{self.state}, {vms}, {price}{idle}{old}"


def kept_machines(spec: PersistentResourceSpec, body: dict[str, Any], now: datetime) -> KeptMachines:
    """Return what a persistent resource is doing; ``body`` is Vertex AI's answer, whose counts are texts."""
    pools = body.get("resourcePools", ())
    counts = [(int(pool.get("replicaCount", 0)), int(pool.get("usedReplicaCount", 0))) for pool in pools]
    costs = [_cost(pool["machineSpec"], spec.region, vms) for pool, (vms, _) in zip(pools, counts, strict=True)]
    made = datetime.fromisoformat(body["createTime"])
    return KeptMachines(
        state=body.get("state", "STATE_UNSPECIFIED"),
        vms=sum(vms for vms, _ in counts),
        used=sum(used for _, used in counts),
        age=now - made,
        cost=sum(costs, Cost()),
        ray=spec.ray is not None,
    )


def _cost(machine: dict[str, Any], region: str, vms: int) -> Cost:
    name = machine["machineType"]
    row = of_vertex(name, machine.get("acceleratorType"), machine.get("acceleratorCount"))
    return machines_cost(row, "on-demand", region, vms, vms) if row else Cost(unpriced=(name,))
