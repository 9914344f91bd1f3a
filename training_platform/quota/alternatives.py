"""Alternatives for a pool that does not fit: a smaller slice, another capacity, another zone, or a larger limit.

All of them are calculated from the snapshot and the demand that show the shortage. They do not say whether the machines
are available.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from training_platform.catalog.locations import nearest_first, region_of
from training_platform.catalog.topologies import legal_topologies
from training_platform.catalog.types import QuotaId, chips_in
from training_platform.config.expansion import ZONES_OF_A_REGIONAL_CLUSTER, ExpandedPool, cluster_pools
from training_platform.config.workspace import Workspace
from training_platform.quota.charges import Holder, QuotaKey, VmUsage, quota_key, shown, vm_usage
from training_platform.quota.ledger import Held, Line, ProjectLedger

MOST_REGIONS = 3  # that a finding names


class Short(NamedTuple):
    """A limit that is too low, and the lowest limit that would be enough for all stacks, in ``unit``."""

    key: QuotaKey
    needed: float
    unit: str


class Room(NamedTuple):
    """How much of a pool the limits allow in a zone.

    ``headroom`` is the unused part of the limit on its chips or GPUs. It is ``inf`` without a limit or if no quota
    counts them, and None if it is unknown. ``short`` is the first limit that is too low for the pool.
    """

    zone: str
    headroom: float | None
    short: Short | None

    @property
    def fits(self) -> bool:
        """Return True if the limit on the pool's chips or GPUs is known and no known limit is too low."""
        return self.headroom is not None and self.short is None


class Alternatives:
    """The alternatives for pools in a project's stacks that do not fit, and the headroom of the project's limits."""

    def __init__(self, ledger: ProjectLedger, workspace: Workspace) -> None:
        self.project = ledger.project
        self._ledger = ledger
        self._workspace = workspace
        self._pools: dict[tuple[str, str], dict[str, ExpandedPool]] = {}  # by stack and cluster
        self._rooms: dict[tuple[object, ...], list[Room]] = {}

    def of(self, line: Line, held: Held, *, more: int = 0) -> Iterator[str]:
        """Yield the alternatives for a holder, the most similar first, and finally the limits to request."""
        yield from self.today(line, held)
        more_limits = f" and {more} more limit{'s' if more > 1 else ''}" if more else ""
        yield f"request {shown(line.used)} {line.unit}{more_limits} (training-platform quota plan)"

    def counts_chips(self, line: Line, held: Held) -> bool:
        """Return True if the quota's holder is a pool, and the limit counts the pool's TPU chips or GPUs."""
        pool = self.pool(held.holder)
        quota = pool.accelerator.quotas.get(pool.spec.charged) if pool else None
        return quota is not None and line.key.quota_id == quota.quota_id

    def today(self, line: Line, held: Held) -> Iterator[str]:
        """Yield the alternatives that fit today's limits, the most similar first."""
        pool = self.pool(held.holder)
        quotas = pool.accelerator.quotas if pool else {}
        key = line.key[1:3] + line.key[4:]  # service, quota id and dimensions
        short = {
            capacity for capacity, quota in quotas.items() if key == (quota.service, quota.quota_id, quota.dimensions)
        }
        if pool is None or not short:
            return
        room = (line.limit or 0) - (line.used - held.amount)
        if room < (chips_in(pool.spec.topology or "") or 0) and (smaller := largest_slice(pool, room)):
            yield f"topology {smaller} for {held.holder.label}"
        yield from (text for capacity, text in self.capacities(pool) if capacity not in short)
        rooms = self.elsewhere(held.holder.stack, pool)  # none fits where all regions are short together
        fitting = [room for room in rooms if room.fits and region_of(room.zone) != line.key.location]
        if fitting:
            yield f"a cluster in another region, zone {named(fitting, line.unit)}"

    def pool(self, holder: Holder) -> ExpandedPool | None:
        """Return the pool in a stack file that causes a charge, or None if something else causes it."""
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
        """Yield each other provisioning model with enough quota for a pool's VMs, with its wording for a finding.

        Reservations are left out, because a reservation has to exist already.
        """
        for capacity in pool.machine.capacities:
            quota = pool.accelerator.quotas.get(capacity)
            if quota is None or capacity in (pool.spec.charged, "reservation"):
                continue
            headroom = self.headroom(quota_key(self.project, quota, pool.zone or pool.region))
            if headroom is not None and headroom >= pool.max_chips:
                queued = " or queued-provisioning" if capacity == "flex-start" and pool.machine.kind == "gpu" else ""
                yield capacity, f"capacity {capacity}{queued}, with {shown(headroom)} of {quota.quota_id} left"

    def headroom(self, key: QuotaKey, but: Holder | None = None) -> float | None:
        """Return the unused part of a limit plus the part that ``but`` uses, or None if the limit is unknown."""
        return self._left(key, self._held.get(but[:3], {}) if but else {})

    def elsewhere(self, stack: str, pool: ExpandedPool) -> list[Room]:
        """Return how much of a stack's pool fits into each other zone with its machine type, the nearest zone first."""
        vms = pool_vms(self.project, pool)
        if not pool.zone:
            vms = vms._replace(nodes=vms.nodes // ZONES_OF_A_REGIONAL_CLUSTER)
        held_now = self._held.get((stack, pool.path, pool.name), {})
        same = (vms, *held_now.items())  # like the thousands of pools of a fleet
        if same not in self._rooms:
            quota = pool.accelerator.quotas.get(pool.spec.charged)
            zones = nearest_first(vms.location, set(pool.machine.zones) - {pool.zone})
            self._rooms[same] = [self._room(vms._replace(location=zone), quota, held_now) for zone in zones]
        return self._rooms[same]

    def _room(self, vms: VmUsage, quota: QuotaId | None, held_now: Mapping[QuotaKey, float]) -> Room:
        headroom: float | None = math.inf
        short: Short | None = None
        for usage in vm_usage(vms):
            key = next((key for key in usage.keys if self._limit(key)), usage.keys[0])  # like the ledger
            room = self._left(key, held_now)
            if quota and usage.keys[0].quota_id == quota.quota_id:
                headroom = room
            if room is not None and room < usage.amount:
                short = short or Short(key, (self._limit(key) or 0) - room + usage.amount, unit=usage.unit)
        return Room(vms.location, headroom, short=short)

    def _left(self, key: QuotaKey, held_now: Mapping[QuotaKey, float]) -> float | None:
        limit = self._limit(key)
        return None if limit is None else limit - self._used.get(key, 0) + held_now.get(key, 0)

    def _limit(self, key: QuotaKey) -> float | None:
        return self._ledger.snapshot.limit(key) if self._ledger.snapshot else None

    @cached_property
    def _used(self) -> dict[QuotaKey, float]:
        return {line.key: line.used for line in self._ledger.lines}

    @cached_property
    def _held(self) -> dict[tuple[object, ...], dict[QuotaKey, float]]:
        """How much of each limit each holder uses, keyed by the holder's stack, section and label."""
        amounts: dict[tuple[object, ...], dict[QuotaKey, float]] = defaultdict(dict)
        for line in self._ledger.lines:
            for held in line.holders:
                amounts[held.holder[:3]][line.key] = held.amount
        return amounts


def largest_slice(pool: ExpandedPool, room: float) -> str | None:
    """Return the largest topology with which all of the pool's slices fit into ``room`` chips.

    Return None for GPUs, or if none fits.
    """
    if pool.machine.kind != "tpu" or math.isinf(room):
        return None
    shapes = legal_topologies(pool.machine)  # in order of chips
    fitting = [shape for shape in shapes if (chips_in(shape) or 0) * pool.spec.slices <= room]
    return fitting[-1] if fitting else None


def pool_vms(project: str, pool: ExpandedPool) -> VmUsage:
    """Return the VMs of a pool at its maximum size, without VMs that exist only during an upgrade."""
    spec = pool.spec
    return VmUsage(
        project=project,
        machine_type=spec.machine_type,
        nodes=pool.max_nodes,
        capacity=spec.charged,
        location=pool.zone or pool.region,
        disk_type=spec.boot_disk.type_on(pool.machine),
        disk_gb=spec.boot_disk.size_gb,
        local_ssd_count=spec.local_ssd.count,
        accelerator_type=pool.accelerator.gke_label,
        accelerator_count=pool.machine.chips,
    )


def named(rooms: Iterable[Room], unit: str, max_regions: int = MOST_REGIONS) -> str:
    """Return the zones of the first few regions with their headroom, as ``us-east4-a, us-east4-b (32 GPUs left)``."""
    regions = [list(of_region) for _, of_region in groupby(rooms, key=lambda room: region_of(room.zone))]
    parts = []
    for region in regions[:max_regions]:
        headroom = region[0].headroom
        zones = ", ".join(room.zone for room in region)
        if headroom is None:
            parts.append(zones)
        elif math.isinf(headroom):
            parts.append(f"{zones} (no limit)")
        else:
            parts.append(f"{zones} ({shown(max(0, headroom))} {unit} left)")
    omitted_count = len(regions) - max_regions
    return ", ".join(parts) + (
        f" and {omitted_count} more region{'s' if omitted_count > 1 else ''}" if omitted_count > 0 else ""
    )
