"""What a project's limits leave for a pool in other zones, beside all that its stacks ask for."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from training_platform.catalog.locations import nearest_first, region_of
from training_platform.catalog.types import QuotaId
from training_platform.config.pools import ZONES_OF_A_REGIONAL_CLUSTER, ExpandedPool
from training_platform.quota.charges import VmUsage, vm_usage
from training_platform.quota.keys import Holder, QuotaKey, shown
from training_platform.quota.ledger import ProjectLedger

MOST_REGIONS = 3  # that a finding names


class Short(NamedTuple):
    """A limit that is too low, and the lowest that would hold all stacks, in ``unit``."""

    key: QuotaKey
    wanted: float
    unit: str


class Room(NamedTuple):
    """What the limits leave for a pool in a zone.

    ``left`` is what is left of the limit on its chips or GPUs: ``inf`` where there is none, or where no quota counts
    them, and None where it is not known. ``short`` is the first limit that does not hold the pool.
    """

    zone: str
    left: float | None
    short: Short | None

    @property
    def fits(self) -> bool:
        """Whether the limit on its chips or GPUs is known, and no known limit is too low."""
        return self.left is not None and self.short is None


class Limits:
    """What is left of a project's limits."""

    def __init__(self, ledger: ProjectLedger) -> None:
        self._project = ledger.project
        self._ledger = ledger
        self._rooms: dict[tuple[object, ...], list[Room]] = {}

    def left(self, key: QuotaKey, but: Holder | None = None) -> float | None:
        """Return what is left of a limit, with what one holder has of it; None where the limit is not known."""
        return self._left(key, self._held.get(but[:3], {}) if but else {})

    def elsewhere(self, stack: str, pool: ExpandedPool) -> list[Room]:
        """Return the room for a stack's pool in every other zone that lists its machine, the nearest first."""
        vms = pool_vms(self._project, pool)
        if not pool.zone:
            vms = vms._replace(nodes=vms.nodes // ZONES_OF_A_REGIONAL_CLUSTER)
        own = self._held.get((stack, pool.path, pool.name), {})
        alike = (vms, *own.items())  # pools of a fleet are, by the thousand
        if alike not in self._rooms:
            quota = pool.accelerator.quotas.get(pool.spec.charged)
            zones = nearest_first(vms.location, set(pool.machine.zones) - {pool.zone})
            self._rooms[alike] = [self._room(vms._replace(location=zone), quota, own) for zone in zones]
        return self._rooms[alike]

    def _room(self, vms: VmUsage, quota: QuotaId | None, own: Mapping[QuotaKey, float]) -> Room:
        left: float | None = math.inf
        short: Short | None = None
        for usage in vm_usage(vms):
            key = next((key for key in usage.keys if self._limit(key)), usage.keys[0])  # as the ledger charges
            room = self._left(key, own)
            if quota and usage.keys[0].quota_id == quota.quota_id:
                left = room
            if room is not None and room < usage.amount:
                short = short or Short(key, (self._limit(key) or 0) - room + usage.amount, usage.unit)
        return Room(vms.location, left, short)

    def _left(self, key: QuotaKey, own: Mapping[QuotaKey, float]) -> float | None:
        limit = self._limit(key)
        return None if limit is None else limit - self._used.get(key, 0) + own.get(key, 0)

    def _limit(self, key: QuotaKey) -> float | None:
        return self._ledger.snapshot.limit(key) if self._ledger.snapshot else None

    @cached_property
    def _used(self) -> dict[QuotaKey, float]:
        return {line.key: line.used for line in self._ledger.lines}

    @cached_property
    def _held(self) -> dict[tuple[object, ...], dict[QuotaKey, float]]:
        """What each holder has of each limit, by its stack, section and label."""
        found: dict[tuple[object, ...], dict[QuotaKey, float]] = defaultdict(dict)
        for line in self._ledger.lines:
            for held in line.holders:
                found[held.holder[:3]][line.key] = held.amount
        return found


def pool_vms(project: str, pool: ExpandedPool) -> VmUsage:
    """Return the VMs of a pool at its maximum, without those that it has only while it is upgraded."""
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


def named(rooms: Iterable[Room], unit: str, most: int = MOST_REGIONS) -> str:
    """Return zones with what their limits leave, ``us-east4-a, us-east4-b (32 GPUs left)``, of the first regions."""
    regions = [list(each) for _, each in groupby(rooms, key=lambda room: region_of(room.zone))]
    parts = [", ".join(room.zone for room in region) + _left(region[0], unit) for region in regions[:most]]
    rest = len(regions) - most
    return ", ".join(parts) + (f" and {rest} more region{'s' if rest > 1 else ''}" if rest > 0 else "")


def _left(room: Room, unit: str) -> str:
    if room.left is None:
        return ""
    return " (no limit)" if math.isinf(room.left) else f" ({shown(max(0, room.left))} {unit} left)"
