"""What else one could do where a quota is short: a smaller slice, other capacity, another region, a larger limit.

All of it is read from the same snapshot and the same demand as the shortage; that machines are to be had there too is
nobody's promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, lru_cache

from modules.catalog import MACHINE_TYPES
from modules.catalog.locations import region_of
from modules.catalog.topologies import legal_topologies
from modules.catalog.types import MachineType, QuotaId, chips_in
from modules.config.node_pool import NodePool
from modules.config.workspace import Workspace
from modules.quota.keys import QuotaKey, quota_key
from modules.quota.ledger import Held, Line, ProjectLedger, shown

MOST_REGIONS = 3  # that a finding names


class Alternatives:
    """The ways out of a project's shortages."""

    def __init__(self, ledger: ProjectLedger, workspace: Workspace) -> None:
        self._ledger = ledger
        self._workspace = workspace

    def of(self, line: Line, held: Held) -> Iterator[str]:
        """Yield what else would do for a holder, what is most like its wish first; at last, the limit to ask for."""
        yield from self.today(line, held)
        yield f"request {shown(line.used)} {line.unit} (training-platform quota plan)"

    def today(self, line: Line, held: Held) -> Iterator[str]:
        """Yield what would fit today's limits for a holder, what is most like its wish first."""
        pool = self._pool(held)
        accelerator = pool.machine.accelerator if pool else None
        quotas = accelerator.quotas if accelerator else {}
        mine = next((quota for quota in quotas.values() if _is(line.key, quota)), None)
        if pool is not None and mine is not None:
            yield from _smaller_slice(pool, line, held)
            yield from self._other_capacity(pool, line, held)
            yield from self._other_regions(pool, mine, line, held)

    def _pool(self, held: Held) -> NodePool | None:
        stack = self._workspace.stacks.get(held.holder.stack)
        parts = held.holder.path
        if stack is None or stack.environment is None or len(parts) != 4 or parts[2] != "node_pools":
            return None
        cluster = stack.environment.clusters.get(str(parts[1]))
        return cluster.node_pools.get(str(parts[3])) if cluster else None

    def _other_capacity(self, pool: NodePool, line: Line, held: Held) -> Iterator[str]:
        accelerator = pool.machine.accelerator
        for capacity in pool.machine.capacities:
            quota = accelerator.quotas.get(capacity) if accelerator else None
            if quota is None or capacity in (pool.charged, "reservation") or _is(line.key, quota):
                continue
            left = self._left(quota_key(self._ledger.project, quota, line.key.location))
            if left >= held.amount:
                queued = " or queued-provisioning" if capacity == "flex-start" and pool.machine.kind == "gpu" else ""
                yield f"capacity {capacity}{queued}, with {shown(left)} of {quota.quota_id} left"

    def _other_regions(self, pool: NodePool, quota: QuotaId, line: Line, held: Held) -> Iterator[str]:
        if quota.per != "region":
            return
        regions = sorted({region_of(zone) for zone in pool.machine.zones} - {line.key.location})
        left = {region: self._left(quota_key(self._ledger.project, quota, region)) for region in regions}
        named = [f"{region} ({shown(room)} left)" for region, room in left.items() if room >= held.amount]
        if named:
            yield f"region {', '.join(named[:MOST_REGIONS])}"

    def _left(self, key: QuotaKey) -> float:
        """Return what is left of a limit, 0 where it is not known."""
        snapshot = self._ledger.snapshot
        limit = snapshot.limit(key) if snapshot else None
        return (limit or 0) - self._used.get(key, 0)

    @cached_property
    def _used(self) -> dict[QuotaKey, float]:
        return {line.key: line.used for line in self._ledger.lines}


def _smaller_slice(pool: NodePool, line: Line, held: Held) -> Iterator[str]:
    """Yield the largest slice that fits as often as the pool asks for, where its own does not even once."""
    chips, limit = chips_in(pool.topology or "") or 0, line.limit or 0
    room = limit - (line.used - held.amount)
    if pool.machine.kind != "tpu" or not chips or math.isinf(room) or room >= chips:
        return
    fitting = [shape for size, shape in _shapes(pool.machine_type) if size * pool.slices <= room]
    if fitting:
        yield f"topology {fitting[-1]} for {held.holder.label}"


@lru_cache(maxsize=64)
def _shapes(machine_type: str) -> tuple[tuple[int, str], ...]:
    machine: MachineType = MACHINE_TYPES[machine_type]
    return tuple((chips_in(shape) or 0, shape) for shape in legal_topologies(machine))


def _is(key: QuotaKey, quota: QuotaId) -> bool:
    return (key.service, key.quota_id, key.dimensions) == (quota.service, quota.quota_id, quota.dimensions)
