"""The use of limits and capacity by all stacks of a repository, as ledgers that can be filtered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path as FilePath

from training_platform.catalog.locations import region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.config.model.queues import Share
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.quota.charges import short_quota_id
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import (
    CapacityLine,
    FileLine,
    Held,
    Line,
    ProjectLedger,
    capacity_ledger,
    file_ledger,
    project_ledgers,
)
from training_platform.quota.requests import requested
from training_platform.quota.snapshot import FRESH_DAYS, not_known, read_snapshots
from training_platform.resources.serving import most_chips

PLATFORM = "platform"
"""The name that is shown instead of a team for amounts that an environment's stack uses."""


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The ledgers on one day. ``not_counted`` has a sentence for each file whose demand or limits are missing."""

    today: date
    workspace: Workspace
    ledgers: tuple[ProjectLedger, ...]
    capacity: tuple[CapacityLine, ...]
    files: tuple[FileLine, ...] = ()
    not_counted: tuple[str, ...] = ()

    def team(self, held: Held) -> str:
        """Return the team that uses an amount, or ``platform`` if an environment's stack uses it."""
        stack = self.workspace.stacks[held.holder.stack]
        return stack.team.name if stack.team else PLATFORM

    def unknown(self) -> Iterator[str]:
        """Yield a sentence for each limit that the snapshots do not contain."""
        for ledger in self.ledgers:
            if ledger.snapshot is None:
                yield f"{ledger.project}: there is no snapshot of its limits"
                continue
            if ledger.snapshot.placeholder:
                yield not_known(ledger.project)
                continue
            days = ledger.snapshot.age(self.today)
            if days > FRESH_DAYS:
                yield f"{ledger.project}: its limits were read {days} days ago and may have changed since then"
            missing = sorted({line.key.quota_id for line in ledger.lines if line.limit is None})
            if missing:
                yield f"{ledger.project}: its snapshot does not list {enumeration(missing)}"
        if self.ledgers:
            yield "a snapshot contains only limits, not the current use or the availability of machines"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A filter. An empty field selects everything. A selected line is shown with everything that uses it."""

    projects: Collection[str] = field(default=())
    regions: Collection[str] = field(default=())
    quotas: Collection[str] = field(default=())
    stacks: Collection[str] = field(default=())
    teams: Collection[str] = field(default=())


def read_overview(root: FilePath, today: date) -> Overview:
    """Read all stacks and snapshots below ``root``."""
    workspace = read_workspace(root)
    snapshots = read_snapshots(root, today)
    not_counted = [*workspace.unreadable.values(), *snapshots.unreadable.values()]
    ledgers = project_ledgers(workspace_demand(workspace, failures=not_counted), snapshots, requested(workspace))
    for stack in workspace.stacks.values():
        if stack.section is None:
            errors = [finding.one_line for finding in stack.findings if finding.severity == "error"]
            not_counted += errors or [f"{stack.source.file} has neither an environment nor a team section"]
    not_counted += [finding.one_line for finding in snapshots.findings if finding.severity == "error"]
    return Overview(
        today=today,
        workspace=workspace,
        ledgers=tuple(ledgers.values()),
        capacity=tuple(capacity_ledger(workspace)),
        files=tuple(file_ledger(workspace)),
        not_counted=tuple(not_counted),
    )


def select(overview: Overview, selection: Selection) -> Overview:
    """Return the selected part of an overview. Raises UserError."""
    _check(overview, selection)
    ledgers = []
    for ledger in overview.ledgers:
        lines = tuple(line for line in ledger.lines if _wanted(line, overview, selection))
        if lines:
            ledgers.append(ProjectLedger(project=ledger.project, snapshot=ledger.snapshot, lines=lines))
    return replace(
        overview,
        ledgers=tuple(ledgers),
        capacity=tuple(line for line in overview.capacity if _wanted_part(line, overview, selection)),
        files=tuple(line for line in overview.files if _wanted_part(line, overview, selection)),
    )


def may_borrow(line: CapacityLine, share: Held, workspace: Workspace) -> float:
    """Return the amount of a flavor that a team can borrow: what others may lend, up to the team's own limit."""
    lendable = sum(may_lend(line, other, workspace) for other in line.shares if other is not share)
    limit = _share(line, share, workspace).borrowing_limit
    return lendable + line.lent if limit is None else min(lendable + line.lent, limit)


def may_lend(line: CapacityLine, share: Held, workspace: Workspace) -> float:
    """Return the amount of a team's quota that others can use while the team does not use it."""
    limit = _share(line, share, workspace).lending_limit
    return share.amount if limit is None else min(share.amount, limit)


def of_servers(line: CapacityLine, share: Held, workspace: Workspace) -> int:
    """Return the maximum number of chips of a team's share that its model servers can use."""
    team = workspace.stacks[share.holder.stack].team
    servers = team.serving.get(line.cluster, {}).values() if team else ()
    return sum(most_chips(server, line.flavor) for server in servers if server.flavor == line.flavor.name)


def _share(line: CapacityLine, share: Held, workspace: Workspace) -> Share:
    stack = workspace.stacks[share.holder.stack]
    if stack.environment:
        _, cohort, *_ = share.holder.path
        return stack.environment.cohorts[str(cohort)].shares[line.cluster][line.flavor.name]
    assert stack.team is not None  # only teams and cohorts hold shares
    return stack.team.shares[line.cluster][line.flavor.name]


def _wanted(line: Line, overview: Overview, selection: Selection) -> bool:
    ids = {line.key.quota_id, short_quota_id(line.key.quota_id)}
    place = {region_of(line.key.location)} if line.key.location else set()
    return (
        (not selection.projects or line.key.project in selection.projects)
        and (not selection.regions or not place.isdisjoint(selection.regions))
        and (not selection.quotas or not ids.isdisjoint(selection.quotas))
        and (not selection.stacks or any(held.holder.stack in selection.stacks for held in line.holders))
        and (not selection.teams or any(overview.team(held) in selection.teams for held in line.holders))
    )


def _wanted_part(line: CapacityLine | FileLine, overview: Overview, selection: Selection) -> bool:
    if selection.quotas:  # neither flavors nor instances have a quota of the project
        return False
    environment = overview.workspace.stacks[line.environment].environment
    assert environment is not None  # lines are made of environments
    members = {line.environment, *(share.holder.stack for share in line.shares)}
    if isinstance(line, FileLine):
        location = line.spec.location
        teams = {overview.team(share) for share in line.shares}
    else:
        location = environment.clusters[line.cluster].location
        teams = {share.holder.label for share in line.shares}
    return (
        (not selection.projects or environment.project in selection.projects)
        and (not selection.regions or region_of(location) in selection.regions)
        and (not selection.stacks or not members.isdisjoint(selection.stacks))
        and (not selection.teams or not teams.isdisjoint(selection.teams))
    )


def _check(overview: Overview, selection: Selection) -> None:
    """Raise UserError for a name in the selection that matches nothing."""
    lines = [line for ledger in overview.ledgers for line in ledger.lines]
    ids = {line.key.quota_id for line in lines}
    choices: dict[str, tuple[Iterable[str], Collection[str]]] = {
        "project": (selection.projects, {ledger.project for ledger in overview.ledgers}),
        "region": (selection.regions, {region_of(line.key.location) for line in lines if line.key.location}),
        "quota": (selection.quotas, ids | {short_quota_id(quota_id) for quota_id in ids}),
        "stack": (selection.stacks, set(overview.workspace.stacks)),
        "team": (selection.teams, {team.name for _, team, _ in overview.workspace.teams()} | {PLATFORM}),
    }
    for option, (selected, names) in choices.items():
        for name in selected:
            if name not in names:
                nearest = find_nearest(name, names)
                hint = f"Nearest: {nearest}." if nearest else f"There are: {enumeration(names)}."
                raise UserError(f"No stack needs quota of {option} {name!r}. {hint}")
