"""Suggestions that fit the project's quotas, added to findings of rules that know no limits.

A rule reads one pool, and suggests what Google Cloud would accept. Only the ledgers know whether a zone, a provisioning
model or a slice fits the limits, so this is added to the finding afterwards, computed as for a quota that is short.
Findings of a program without stack files, which has no ledger, stay as they are.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping

from training_platform.catalog.locations import region_of
from training_platform.catalog.topologies import legal_for, legal_topologies
from training_platform.catalog.types import chips_in
from training_platform.config.expansion import ExpandedPool, flavor_name
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.quota.alternatives import Alternatives, Room, largest_slice, named
from training_platform.quota.charges import Holder, quota_key, shown
from training_platform.quota.ledger import ProjectLedger

_POOL = 4  # parts of a path down to a pool: clusters.NAME.node_pools.NAME
_MOST_REGIONS = 6  # regions that a finding lists as allowed


class Suggestions:
    """Adds suggestions to findings by the limits of their stacks' projects."""

    def __init__(self, workspace: Workspace, ledgers: Mapping[str, ProjectLedger]) -> None:
        self._workspace = workspace
        self._alternatives = {project: Alternatives(ledger, workspace) for project, ledger in ledgers.items()}

    def to(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings, with alternatives for pools that do not fit."""
        return [self._with_suggestion(finding) for finding in findings]

    def _with_suggestion(self, finding: Finding) -> Finding:
        suggest = _BY_RULE.get(finding.rule)
        stack = self._workspace.stacks.get(finding.stack or "") if suggest else None
        others = self._alternatives.get(self._workspace.project_of(stack) or "") if stack else None
        if suggest is None or stack is None or others is None:
            return finding
        pool = others.pool(Holder(stack.name, tuple(finding.path.split(".")[:_POOL]), ""))
        if pool is None or suggest is not _topology:
            return suggest(finding, pool, others) if pool else finding
        team_flavors = self._flavors_of_teams(stack.name, pool.cluster)
        existing = self._workspace.flavors(stack.name, pool.cluster)
        shapes = {_flavor_with(pool, shape): shape for shape in legal_topologies(pool.machine)}
        missing = (shape for flavor, shape in shapes.items() if flavor in team_flavors and flavor not in existing)
        legal, *other_machine = (finding.nearest or "").split("; ")
        nearest = next(missing, legal)
        suggested = suggest(dataclasses.replace(finding, nearest="; ".join((nearest, *other_machine))), pool, others)
        if nearest in shapes.values() and (positions := team_flavors.get(flavor_name(pool))):
            rename = f"its flavor then becomes {_flavor_with(pool, nearest)}: change it at {enumeration(positions)}"
            return dataclasses.replace(suggested, nearest=f"{suggested.nearest}; {rename}")
        return suggested

    def _flavors_of_teams(self, environment: str, cluster: str) -> dict[str, list[str]]:
        """Return the flavors that teams' files name for a cluster, each with its positions in the files."""
        positions: dict[str, list[str]] = {}
        for stack, team, _ in self._workspace.teams():
            if team.environment != environment:
                continue
            for flavor in team.shares.get(cluster, {}):
                positions.setdefault(flavor, []).append(stack.place(("shares", cluster, flavor)))
        return positions


def _zones(finding: Finding, pool: ExpandedPool, others: Alternatives) -> Finding:
    """List the zones with the machine by whether the pool fits the limits there, and suggest the nearest that fits.

    Zones of other regions, which need another cluster, are listed only if the cluster's region has none.
    """
    rooms = others.elsewhere(finding.stack or "", pool)
    if not rooms:
        return finding
    here = [room for room in rooms if region_of(room.zone) == pool.region]
    unit = "chips" if pool.machine.kind == "tpu" else "GPUs"
    groups = {
        f"with quota for {shown(pool.max_chips)} {unit}": [room for room in here or rooms if room.fits],
        "offered, quota short": [room for room in here or rooms if room.short],
        "offered, quota not known": [room for room in here or rooms if not room.fits and not room.short],
    }
    allowed = "; ".join(f"{title}: {named(group, unit, _MOST_REGIONS)}" for title, group in groups.items() if group)
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
    key, needed, counted = room.short
    return f"{room.zone}, with a request for {shown(needed)} {counted} of {key}"


def _capacity(finding: Finding, pool: ExpandedPool, others: Alternatives) -> Finding:
    """Suggest the provisioning models whose quota holds the pool; if none does, add the first model's quota."""
    fitting = [text for _, text in others.capacities(pool)]
    if fitting:
        return dataclasses.replace(finding, nearest="; or ".join(fitting))
    first = pool.machine.capacities[0]
    quota = pool.accelerator.quotas.get(first)
    if quota is None or first == "reservation":
        return finding
    key = quota_key(others.project, quota, pool.zone or pool.region)
    left = others.left(key)
    room = "whose limit is not known" if left is None else f"which has {shown(max(0, left))} left"
    return dataclasses.replace(finding, nearest=f"{finding.nearest}, charged to {key}, {room}")


def _topology(finding: Finding, pool: ExpandedPool, others: Alternatives) -> Finding:
    """Suggest a smaller slice as well if the nearest valid topology does not fit the limits."""
    quota = pool.accelerator.quotas.get(pool.spec.charged)
    legal = (finding.nearest or "").partition(";")[0]
    if quota is None or not legal_for(pool.machine, legal):
        return finding
    holder = Holder(finding.stack or "", pool.path, pool.name)
    left = others.left(quota_key(others.project, quota, pool.zone or pool.region), holder)
    needed = (chips_in(legal) or 0) * pool.spec.slices
    if left is None or math.isinf(left) or needed <= left:
        return finding
    smaller = largest_slice(pool, left)
    quota_left = f"{shown(max(0, left))} chips of quota"
    room = f"{smaller} fits the {quota_left} that are left" if smaller else f"{quota_left} are left"
    return dataclasses.replace(finding, nearest=f"{finding.nearest}; {room}, {legal} takes {shown(needed)}")


def _flavor_with(pool: ExpandedPool, topology: str) -> str:
    """Return the name of a pool's flavor if it had another topology."""
    return flavor_name(dataclasses.replace(pool, spec=pool.spec.model_copy(update={"topology": topology})))


_BY_RULE: Mapping[str, Callable[[Finding, ExpandedPool, Alternatives], Finding]] = {
    "machine-zone": _zones,
    "capacity-offered": _capacity,
    "tpu-topology": _topology,
    "tpu-flavor-topology": _topology,  # for single-host slices, whose pools have no placement
}
