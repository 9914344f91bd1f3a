"""Suggestions that fit the project's quotas, added to findings of rules that do not know the limits.

A rule reads one pool and suggests what Google Cloud would accept. Only the ledgers show whether a zone, a provisioning
model or a slice fits the limits. Such suggestions are therefore added to the finding afterwards, calculated in the same
way as for an exceeded quota. Findings of a program without stack files, which has no ledger, are not changed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping

from training_platform.catalog.locations import region_of
from training_platform.catalog.topologies import legal_for, legal_topologies
from training_platform.catalog.types import chips_in
from training_platform.config.expansion import ExpandedPool, flavor_name
from training_platform.config.reading.declaration import RULES
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.quota.alternatives import Alternatives, Room, largest_slice, named
from training_platform.quota.charges import Holder, quota_key, shown
from training_platform.quota.ledger import ProjectLedger
from training_platform.rules.gke.accelerators import tpu_topology
from training_platform.rules.gke.node_settings import machine_zone
from training_platform.rules.gke.provisioning import capacity_offered
from training_platform.rules.kueue import tpu_flavor_topology
from training_platform.views.view import View

_POOL = 4  # parts of a path down to a pool: clusters.NAME.node_pools.NAME
_MOST_REGIONS = 6  # regions that a finding lists as allowed


class Suggestions:
    """Adds suggestions to findings. They take the quota limits of the stacks' projects into account."""

    def __init__(self, workspace: Workspace, ledgers: Mapping[str, ProjectLedger]) -> None:
        self._workspace = workspace
        self._alternatives = {project: Alternatives(ledger, workspace) for project, ledger in ledgers.items()}

    def to(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings, with alternatives added to findings about pools."""
        return [self._with_suggestion(finding) for finding in findings]

    def _with_suggestion(self, finding: Finding) -> Finding:
        rule = RULES.get(finding.rule)
        suggest = _BY_CHECK.get(rule.check) if rule else None
        view = finding.draft.subject if finding.draft else None
        stack = self._workspace.stacks.get(finding.stack or "")
        if suggest is None or stack is None or not isinstance(view, View):
            return finding
        alternatives = self._alternatives.get(self._workspace.project_of(stack) or "")
        pool = alternatives.pool(Holder(stack.name, view.origin[:_POOL], label="")) if alternatives else None
        if pool is None or alternatives is None:
            return finding
        return suggest(finding, pool, alternatives, self._workspace)


def _zones(finding: Finding, pool: ExpandedPool, alternatives: Alternatives, _: Workspace) -> Finding:
    """List the zones that have the machine, starting with those that fit the limits, and suggest the nearest such zone.

    Zones of other regions, which need another cluster, are listed only if the cluster's region has none.
    """
    rooms = alternatives.elsewhere(finding.stack or "", pool)
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
    nearest = _nearest(best, unit, alternatives.project)
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


def _capacity(finding: Finding, pool: ExpandedPool, alternatives: Alternatives, _: Workspace) -> Finding:
    """Suggest the provisioning models that have enough quota for the pool; if none has, name the first one's quota."""
    fitting = [text for _, text in alternatives.capacities(pool)]
    if fitting:
        return dataclasses.replace(finding, nearest="; or ".join(fitting))
    first = pool.machine.capacities[0]
    quota = pool.accelerator.quotas.get(first)
    if quota is None or first == "reservation":
        return finding
    key = quota_key(alternatives.project, quota, pool.zone or pool.region)
    headroom = alternatives.headroom(key)
    room = "whose limit is not known" if headroom is None else f"which has {shown(max(0, headroom))} left"
    return dataclasses.replace(finding, nearest=f"{finding.nearest}, charged to {key}, {room}")


def _topology(finding: Finding, pool: ExpandedPool, alternatives: Alternatives, workspace: Workspace) -> Finding:
    """Suggest a topology that gives the pool a flavor that teams refer to and no pool has.

    If this topology exceeds the limits, also suggest a smaller one. If the files refer to the pool's current flavor,
    the suggestion says so, because the flavor's name changes.
    """
    nearest = finding.draft.nearest
    topology, *further = map(str, nearest if isinstance(nearest, tuple) else (nearest,))
    environment = finding.stack or ""
    team_flavors = _flavors_of_teams(workspace, environment, pool.cluster)
    existing = workspace.flavors(environment, pool.cluster)
    shapes = {_flavor_with(pool, shape): shape for shape in legal_topologies(pool.machine)}
    missing = (shape for flavor, shape in shapes.items() if flavor in team_flavors and flavor not in existing)
    topology = next(missing, topology)
    if not legal_for(pool.machine, topology):
        return finding
    suggestion = topology + _quota_of_slice(topology, pool, alternatives, environment)
    if positions := team_flavors.get(flavor_name(pool)):
        renamed = _flavor_with(pool, topology)
        suggestion += f"; its flavor then becomes {renamed}: change the flavor's name at {enumeration(positions)}"
    return dataclasses.replace(finding, nearest="; or ".join((suggestion, *further)))


def _quota_of_slice(topology: str, pool: ExpandedPool, alternatives: Alternatives, stack: str) -> str:
    """Return the slice that fits the remaining quota, as the end of a suggestion; empty if ``topology`` fits."""
    quota = pool.accelerator.quotas.get(pool.spec.charged)
    if quota is None:
        return ""
    headroom = alternatives.headroom(
        quota_key(alternatives.project, quota, pool.zone or pool.region), Holder(stack, pool.path, label=pool.name)
    )
    needed = (chips_in(topology) or 0) * pool.spec.slices
    if headroom is None or math.isinf(headroom) or needed <= headroom:
        return ""
    smaller = largest_slice(pool, headroom)
    quota_left = f"{shown(max(0, headroom))} chips of quota"
    room = f"{smaller} fits the remaining {quota_left}" if smaller else f"{quota_left} are left"
    return f"; {room}, {topology} takes {shown(needed)}"


def _flavors_of_teams(workspace: Workspace, environment: str, cluster: str) -> dict[str, list[str]]:
    """Return the flavors that teams' files refer to in a cluster, each with its positions in the files."""
    positions: dict[str, list[str]] = {}
    for stack, team, _ in workspace.teams():
        if team.environment != environment:
            continue
        for flavor in team.shares.get(cluster, {}):
            positions.setdefault(flavor, []).append(stack.place(("shares", cluster, flavor)))
    return positions


def _flavor_with(pool: ExpandedPool, topology: str) -> str:
    """Return the name that a pool's flavor would have with another topology."""
    return flavor_name(dataclasses.replace(pool, spec=pool.spec.model_copy(update={"topology": topology})))


_BY_CHECK: Mapping[object, Callable[[Finding, ExpandedPool, Alternatives, Workspace], Finding]] = {
    machine_zone: _zones,
    capacity_offered: _capacity,
    tpu_topology: _topology,
    tpu_flavor_topology: _topology,  # for single-host slices, whose pools have no placement
}
"""The functions that suggest values within the quota, keyed by the function of the rule whose findings they extend."""
