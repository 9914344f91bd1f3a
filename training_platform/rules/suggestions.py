"""What rules that know no limits leave open: of what would pass, what do the project's quotas hold.

A rule reads one pool, and names what Google Cloud would take. Whether a zone, a way to get VMs, or a slice fits the
limits is in the ledgers, so it is added to the finding afterwards, by the same reckoning as that of a quota that is
short. A program without stack files has no ledger of its own, and keeps what the rule says.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping

from training_platform.catalog.locations import region_of
from training_platform.catalog.topologies import legal_for, legal_topologies
from training_platform.catalog.types import chips_in
from training_platform.config.pools import ExpandedPool, flavor_name
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.quota.alternatives import Alternatives, Room, largest_slice, named
from training_platform.quota.charges import Holder, quota_key, shown
from training_platform.quota.ledger import ProjectLedger

_POOL = 4  # parts of a path down to a pool: clusters.NAME.node_pools.NAME
_MOST_REGIONS = 6  # that a finding lists as allowed


class Suggestions:
    """Adds to findings what the limits of their stacks' projects say."""

    def __init__(self, workspace: Workspace, ledgers: Mapping[str, ProjectLedger]) -> None:
        self._workspace = workspace
        self._alternatives = {project: Alternatives(ledger, workspace) for project, ledger in ledgers.items()}

    def to(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings, with more to choose from where a pool does not fit."""
        return [self._to(finding) for finding in findings]

    def _to(self, finding: Finding) -> Finding:
        suggest = _BY_RULE.get(finding.rule)
        stack = self._workspace.stacks.get(finding.stack or "") if suggest else None
        others = self._alternatives.get(self._workspace.project_of(stack) or "") if stack else None
        if suggest is None or stack is None or others is None:
            return finding
        pool = others.pool(Holder(stack.name, tuple(finding.path.split(".")[:_POOL]), ""))
        if pool is None or suggest is not _topology:
            return suggest(finding, pool, others) if pool else finding
        named = self._flavors_of_teams(stack.name, pool.cluster)
        known = self._workspace.flavors(stack.name, pool.cluster)
        shapes = {_flavor_with(pool, shape): shape for shape in legal_topologies(pool.machine)}
        missing = (shape for flavor, shape in shapes.items() if flavor in named and flavor not in known)
        legal, *other_machine = (finding.nearest or "").split("; ")
        nearest = next(missing, legal)
        suggested = suggest(dataclasses.replace(finding, nearest="; ".join((nearest, *other_machine))), pool, others)
        if nearest in shapes.values() and (places := named.get(flavor_name(pool))):
            also = f"its flavor is then {_flavor_with(pool, nearest)}, to write at {enumeration(places)}"
            return dataclasses.replace(suggested, nearest=f"{suggested.nearest}; {also}")
        return suggested

    def _flavors_of_teams(self, environment: str, cluster: str) -> dict[str, list[str]]:
        """Return the places in teams' files of each flavor's name that they have for a cluster."""
        places: dict[str, list[str]] = {}
        for stack, team, _ in self._workspace.teams():
            for flavor in team.shares.get(cluster, {}) if team.environment == environment else ():
                places.setdefault(flavor, []).append(stack.place(("shares", cluster, flavor)))
        return places


def _zones(finding: Finding, pool: ExpandedPool, others: Alternatives) -> Finding:
    """Say of every zone with the machine whether the limits hold the pool there, and name the nearest that does.

    Zones of another region than the cluster's are for a pool of another cluster, and are listed where its own has none.
    """
    rooms = others.elsewhere(finding.stack or "", pool)
    if not rooms:
        return finding
    here = [room for room in rooms if region_of(room.zone) == pool.region]
    unit = "chips" if pool.machine.kind == "tpu" else "GPUs"
    sorts = {
        f"with quota for {shown(pool.max_chips)} {unit}": [room for room in here or rooms if room.fits],
        "offered, quota short": [room for room in here or rooms if room.short],
        "offered, quota not known": [room for room in here or rooms if not room.fits and not room.short],
    }
    allowed = "; ".join(f"{sort}: {named(some, unit, _MOST_REGIONS)}" for sort, some in sorts.items() if some)
    best = next((room for room in here or rooms if room.fits), (here or rooms)[0])
    nearest = _nearest(best, unit, others.project)
    if not here:
        allowed = f"a pool in a cluster of another region, {allowed}"
        nearest = f"a cluster in {region_of(best.zone)}, zone {nearest}"
    return dataclasses.replace(finding, allowed=allowed, nearest=nearest)


def _nearest(room: Room, unit: str, project: str) -> str:
    if room.fits:
        return named([room], unit)
    if room.short is None:
        return f"{room.zone}; its limits are not known: training-platform quota pull {project}"
    key, wanted, counted = room.short
    return f"{room.zone}, with a request for {shown(wanted)} {counted} of {key}"


def _capacity(finding: Finding, pool: ExpandedPool, others: Alternatives) -> Finding:
    """Name the ways to get the machine whose quota holds the pool, and the quota of the nearest where none does."""
    fitting = [text for _, text in others.capacities(pool)]
    if fitting:
        return dataclasses.replace(finding, nearest="; or ".join(fitting))
    first = pool.machine.capacities[0]
    quota = pool.accelerator.quotas.get(first)
    if quota is None or first == "reservation":
        return finding
    key = quota_key(others.project, quota, pool.zone or pool.region)
    left = others.left(key)
    said = "whose limit is not known" if left is None else f"of which {shown(max(0, left))} are left"
    return dataclasses.replace(finding, nearest=f"{finding.nearest}, charged to {key}, {said}")


def _topology(finding: Finding, pool: ExpandedPool, others: Alternatives) -> Finding:
    """Name a smaller slice as well, where the limits do not hold the nearest that is legal."""
    quota = pool.accelerator.quotas.get(pool.spec.charged)
    legal = (finding.nearest or "").partition(";")[0]
    if quota is None or not legal_for(pool.machine, legal):
        return finding
    holder = Holder(finding.stack or "", pool.path, pool.name)
    left = others.left(quota_key(others.project, quota, pool.zone or pool.region), holder)
    wanted = (chips_in(legal) or 0) * pool.spec.slices
    if left is None or math.isinf(left) or wanted <= left:
        return finding
    smaller = largest_slice(pool, left)
    room = f"{shown(max(0, left))} chips of quota"
    said = f"{smaller} fits the {room} that are left" if smaller else f"{room} are left"
    return dataclasses.replace(finding, nearest=f"{finding.nearest}; {said}, {legal} takes {shown(wanted)}")


def _flavor_with(pool: ExpandedPool, topology: str) -> str:
    """Return the name of a pool's flavor if it had another topology."""
    return flavor_name(dataclasses.replace(pool, spec=pool.spec.model_copy(update={"topology": topology})))


_BY_RULE: Mapping[str, Callable[[Finding, ExpandedPool, Alternatives], Finding]] = {
    "machine-zone": _zones,
    "capacity-offered": _capacity,
    "tpu-topology": _topology,
    "tpu-flavor-topology": _topology,  # of slices on one VM, whose pools have no placement
}
