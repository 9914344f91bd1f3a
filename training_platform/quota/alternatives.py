"""What else one could do where a pool does not fit: a smaller slice, other capacity, another zone, a larger limit.

All of it is read from the same snapshot and the same demand as the shortage; that machines are to be had there too is
nobody's promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import region_of
from training_platform.catalog.shapes import chips_in
from training_platform.catalog.topologies import legal_topologies
from training_platform.catalog.types import MachineType, QuotaId
from training_platform.config.pools import ExpandedPool, cluster_pools
from training_platform.config.workspace import Workspace
from training_platform.quota.headroom import Limits, named
from training_platform.quota.keys import Holder, quota_key, shown
from training_platform.quota.ledger import Held, Line, ProjectLedger


class Alternatives:
    """The ways out where pools of a project's stacks do not fit."""

    def __init__(self, ledger: ProjectLedger, workspace: Workspace) -> None:
        self.project = ledger.project
        self.limits = Limits(ledger)
        self._workspace = workspace
        self._pools: dict[tuple[str, str], dict[str, ExpandedPool]] = {}  # by stack and cluster

    def of(self, line: Line, held: Held) -> Iterator[str]:
        """Yield what else would do for a holder, what is most like its wish first; at last, the limit to ask for."""
        yield from self.today(line, held)
        yield f"request {shown(line.used)} {line.unit} (training-platform quota plan)"

    def today(self, line: Line, held: Held) -> Iterator[str]:
        """Yield what would fit today's limits for a holder, what is most like its wish first."""
        pool = self.pool(held.holder)
        quotas = pool.accelerator.quotas if pool else {}
        if pool is None or not any(_is(line, quota) for quota in quotas.values()):
            return
        room = (line.limit or 0) - (line.used - held.amount)
        if room < (chips_in(pool.spec.topology or "") or 0) and (smaller := largest_slice(pool, room)):
            yield f"topology {smaller} for {held.holder.label}"
        short = {capacity for capacity, quota in quotas.items() if _is(line, quota)}
        yield from (text for capacity, text in self.capacities(pool) if capacity not in short)
        yield from self._other_regions(pool, line, held)

    def pool(self, holder: Holder) -> ExpandedPool | None:
        """Return the pool of a stack file that a holder is, None for all else."""
        stack = self._workspace.stacks.get(holder.stack)
        parts = holder.path
        if stack is None or stack.environment is None or len(parts) != 4 or parts[2] != "node_pools":
            return None
        where = (stack.name, str(parts[1]))
        if where not in self._pools:
            cluster = stack.environment.clusters.get(where[1])
            self._pools[where] = {pool.name: pool for pool in cluster_pools(where[1], cluster)} if cluster else {}
        return self._pools[where].get(str(parts[3]))

    def capacities(self, pool: ExpandedPool) -> Iterator[tuple[str, str]]:
        """Yield each other way to get a pool's VMs whose quota holds them, and what people call it.

        A reservation has to be there, so it is none of them.
        """
        for capacity in pool.machine.capacities:
            quota = pool.accelerator.quotas.get(capacity)
            if quota is None or capacity in (pool.spec.charged, "reservation"):
                continue
            left = self.limits.left(quota_key(self.project, quota, pool.zone or pool.region))
            if left is not None and left >= pool.max_chips:
                queued = " or queued-provisioning" if capacity == "flex-start" and pool.machine.kind == "gpu" else ""
                yield capacity, f"capacity {capacity}{queued}, with {shown(left)} of {quota.quota_id} left"

    def _other_regions(self, pool: ExpandedPool, line: Line, held: Held) -> Iterator[str]:
        """Yield zones elsewhere whose limits hold the pool; where all regions are short together, there are none."""
        rooms = self.limits.elsewhere(held.holder.stack, pool)
        fitting = [room for room in rooms if room.fits and region_of(room.zone) != line.key.location]
        if fitting:
            yield f"zone {named(fitting, line.unit)}"


def largest_slice(pool: ExpandedPool, room: float) -> str | None:
    """Return the largest slice of which ``room`` chips hold as many as a pool has; None for GPUs, and if none fits."""
    if pool.machine.kind != "tpu" or math.isinf(room):
        return None
    fitting = [shape for size, shape in _shapes(pool.machine.name) if size * pool.spec.slices <= room]
    return fitting[-1] if fitting else None


@lru_cache(maxsize=64)
def _shapes(machine_type: str) -> tuple[tuple[int, str], ...]:
    machine: MachineType = MACHINE_TYPES[machine_type]
    return tuple((chips_in(shape) or 0, shape) for shape in legal_topologies(machine))


def _is(line: Line, quota: QuotaId) -> bool:
    key = line.key
    return (key.service, key.quota_id, key.dimensions) == (quota.service, quota.quota_id, quota.dimensions)
