"""Findings about the ledgers, each at the field of the stack file that can be lowered."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from training_platform.catalog import BOOT_DISK_LIMITS, DISK_TYPES
from training_platform.config.data_sets import far_data_sets, unknown_teams
from training_platform.config.model.stack import Stack
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.finding import Anchor, Finding, Path, Place, dotted
from training_platform.config.workspace import Workspace
from training_platform.quota.alternatives import Alternatives
from training_platform.quota.charges import QuotaKey, shown
from training_platform.quota.ledger import CapacityLine, FileLine, Held, Line, ProjectLedger, file_ledger
from training_platform.quota.quota_ids import is_guess
from training_platform.quota.requests import request_findings
from training_platform.quota.reservations import reservation_findings
from training_platform.quota.snapshot import FOLDER, Snapshot

HolderKey = tuple[QuotaKey, str, Path, str]
"""A quota, and the stack, section and label of something that uses it, such as a pool."""
MOST_NAMED = 4  # most holders that a message names; the others are summed up
DISK_QUOTAS = frozenset(row.quota.quota_id for row in DISK_TYPES.values() if row.quota)
_PULL = "training-platform quota pull"
_DISPUTED = "; Google's pages disagree on whether NAT's automatic addresses count"
_GUESS = "; the name of this quota in the catalogue is not verified"


def ledger_findings(
    workspace: Workspace,
    ledgers: Iterable[ProjectLedger],
    capacity: Iterable[CapacityLine],
    before: Workspace | None = None,
    held_before: Mapping[HolderKey, float] | None = None,
) -> list[Finding]:
    """Return the findings about ledgers, requests for larger limits, and data sets of all stacks.

    ``before`` is the workspace before a change. ``held_before`` contains the amount of each quota that each holder,
    such as a pool, used at that time.
    """
    projects = list(ledgers)
    return [
        *quota_findings(projects, workspace, held_before),
        *request_findings(projects, workspace),
        *capacity_findings(capacity, workspace, before),
        *file_findings(file_ledger(workspace), workspace, before),
        *located(reservation_findings(workspace)),
        *located(far_data_sets(workspace)),
        *located(unknown_teams(workspace)),
    ]


def holders_of(ledgers: Iterable[ProjectLedger]) -> dict[HolderKey, float]:
    """Return the amount of each quota that each holder, such as a pool, uses."""
    amounts: dict[HolderKey, float] = {}
    for ledger in ledgers:
        for line in ledger.lines:
            for held in line.holders:
                amounts[_holder_key(line, held)] = held.amount
    return amounts


def _holder_key(line: Line, held: Held) -> HolderKey:
    return line.key, held.holder.stack, held.holder.path, held.holder.label


def quota_findings(
    ledgers: Iterable[ProjectLedger], workspace: Workspace, held_before: Mapping[HolderKey, float] | None = None
) -> list[Finding]:
    """Return findings about projects' quotas: one for each stack that uses part of a limit that is exceeded.

    With ``held_before``, findings are only at holders, such as pools, whose amount has grown, if there are any.
    """
    drafts: list[Draft] = []
    for ledger in ledgers:
        if ledger.snapshot is None:
            drafts.extend(_no_snapshot(ledger, workspace))
            continue
        if ledger.snapshot.placeholder:
            continue
        drafts.extend(_unknown(ledger, workspace, ledger.snapshot.source.file))
        alternatives = Alternatives(ledger, workspace)
        short: dict[tuple[str, Path], list[tuple[Line, Held]]] = defaultdict(list)  # by the field that can be lowered
        # A limit that one pool exceeds identifies the pool, also for limits that many pools share.
        for line in sorted((line for line in ledger.lines if line.over), key=lambda line: len(line.holders)):
            grown = [
                held
                for held in line.holders
                if held_before is not None and held.amount > held_before.get(_holder_key(line, held), 0)
            ]
            at_fault = grown or line.holders
            for stack in dict.fromkeys(held.holder.stack for held in at_fault):
                in_stack = [held for held in at_fault if held.holder.stack == stack]
                enough = [held for held in in_stack if line.used - held.amount <= (line.limit or 0)]
                accused = (held for held in enough if (stack, held.holder.field or held.holder.path) in short)
                held = next(accused, in_stack[0])
                short[stack, held.holder.field or held.holder.path].append((line, held))
        for lines in short.values():
            drafts.extend(_exceeded(lines, workspace, alternatives, ledger.snapshot))
    return located(drafts)


QUOTA_NO_SNAPSHOT = declare(
    "quota-no-snapshot",
    "Find a project without a snapshot of its limits.",
    ruleset="quota",
    refused_by="`check`, which has no limits to compare with",
    excuse="exemption",
)


def _no_snapshot(ledger: ProjectLedger, workspace: Workspace) -> Iterator[Draft]:
    file = f"{FOLDER}/{ledger.project}.yaml"
    if (workspace.root / file).exists():
        state = "rejected"
        nearest = f"fix the findings of {file}"
    else:
        state = "missing"
        nearest = f"{_PULL} {ledger.project}; or, without credentials, training-platform quota init"
    for name in ledger.stacks:
        stack = workspace.stacks.get(name)
        inherited = stack is not None and stack.team is not None and stack.team.project is None
        path = ("environment",) if inherited else ("project",)
        message = f"no quotas of {ledger.project} are known: {file} is {state}"
        yield finding(
            _holder(workspace, name),
            path,
            message,
            rule=QUOTA_NO_SNAPSHOT,
            nearest=nearest,
            spoils=((file,),),
            rests_on=((file,),),
        )


QUOTA_UNKNOWN = declare(
    "quota-unknown",
    "Find a quota that the snapshot of the project's limits does not list.",
    ruleset="quota",
    refused_by="`check`, which has no limit to compare with",
    excuse="exemption",
)


def _unknown(ledger: ProjectLedger, workspace: Workspace, file: str) -> Iterator[Draft]:
    """Yield a finding for each stack and each quota id missing from the snapshot, at the stack's largest user of it."""
    missing: dict[tuple[str, str, str], list[Held]] = defaultdict(list)
    verified: set[tuple[str, str]] = set()
    for line in ledger.lines:
        if line.limit is None:
            if not is_guess(line.key, listed=False):
                verified.add((line.key.service, line.key.quota_id))
            for held in line.holders:
                missing[line.key.service, line.key.quota_id, held.holder.stack].append(held)
    for (service, quota_id, stack), holders in missing.items():
        held = holders[0]
        guess = (service, quota_id) not in verified
        message = f"{quota_id} of {service}, which {held.holder.label} needs, is not in {file}{_GUESS if guess else ''}"
        yield finding(
            _holder(workspace, stack),
            held.holder.field or held.holder.path,
            message,
            rule=QUOTA_UNKNOWN,
            about=f"{quota_id} of {service}",
            holders=_paths(holders),
            severity="warning" if guess else "error",
            allowed="quota ids that the snapshot lists",
            nearest=f"{_PULL} {ledger.project}, or add its limit to the file by hand",
            rests_on=_places(workspace, stack, held.holder.path),
        )


QUOTA_EXCEEDED = declare(
    "quota-exceeded",
    "Find a quota that the stacks of a project exceed together.",
    ruleset="quota",
    excuse="exemption",
)


def _exceeded(
    lines: Sequence[tuple[Line, Held]], workspace: Workspace, alternatives: Alternatives, snapshot: Snapshot
) -> Iterator[Draft]:
    """Yield findings about the limits that one field exceeds. The TPU or GPU limit is first; the others follow from it.

    The finding is a warning if the snapshot has no row for an unverified quota id, or if Google's pages disagree.
    """
    guesses = {line.key: not snapshot.covers(line.key) and is_guess(line.key, listed=True) for line, _ in lines}
    first, *more = sorted(lines, key=lambda short: (guesses[short[0].key], not alternatives.counts_chips(*short)))
    cause: str | None = None
    for line, held in (first, *more):
        holder = held.holder
        guess = guesses[line.key]
        uncertain = guess or line.disputed
        message = f"{line.key} needs {shown(line.used)}, {_of_which(line.holders, holder.stack)}"
        if line.open_request is not None:
            message += f"; {shown(line.open_request)} requested, which counts only once it is granted"
        draft = finding(
            _holder(workspace, holder.stack),
            holder.field or holder.path,
            message + (_GUESS if guess else "") + (_DISPUTED if line.disputed else ""),
            rule=QUOTA_EXCEEDED,
            about=str(line.key),
            amount=line.used,
            holders=_paths(line.holders),
            severity="warning" if uncertain else "error",
            follows=cause,
            rests_on=_places(workspace, holder.stack, holder.path),
        )
        if cause is None:
            cause = draft.place
            allowed, fits = _fitting(lines, line, held, alternatives)
            ways = list(alternatives.of(line, held, more=len(more)))
            if fits:
                ways.insert(0, fits)
            draft = replace(draft, allowed=allowed, nearest=tuple(ways))
        yield draft


def _fitting(
    lines: Sequence[tuple[Line, Held]], line: Line, held: Held, alternatives: Alternatives
) -> tuple[str, str | None]:
    """Return the limit, and the largest value of the field that sets ``held`` at which no limit is exceeded.

    If the disks are too large for even one VM, return the largest disk size instead. It is the size at which as many
    VMs fit as the other limits allow.
    """
    holder = held.holder
    allowed = f"{shown(line.limit or 0)} {line.unit}"
    if not holder.step or not holder.field:
        return allowed, None
    fitting = [
        (math.floor(((short.limit or 0) - (short.used - part.amount)) / part.holder.step), short)
        for short, part in lines
        if part.holder.step
    ]
    fits, tightest = min(fitting, key=itemgetter(0))
    if fits >= max(1, holder.base):
        return allowed, f"{holder.field[-1]} {fits} for {holder.label}"
    if smaller := _smaller_disk(lines, alternatives):
        return allowed, f"boot_disk.size_gb {smaller} for {holder.label}"
    beside_it = [other for other in tightest.holders if other.holder.label != holder.label]
    beside = (
        f" next to {beside_it[0].holder.label}, which uses {shown(beside_it[0].amount)} {tightest.unit}"
        if beside_it
        else ""
    )
    return f"{allowed}; no {holder.field[-1]} of {holder.label} fits{beside}", None


def _smaller_disk(lines: Sequence[tuple[Line, Held]], alternatives: Alternatives) -> int | None:
    """Return the size in GB of a pool's boot disks that fits the disk limits; None if even the default does not fit."""
    pool = alternatives.pool(lines[0][1].holder)
    if pool is None:
        return None
    rooms = {short.key: ((short.limit or 0) - (short.used - part.amount), part) for short, part in lines}
    disks = [room for key, room in rooms.items() if key.quota_id in DISK_QUOTAS]
    counts = [part.amount / part.holder.step for _, part in disks]
    counts += [room // part.holder.step for key, (room, part) in rooms.items() if key.quota_id not in DISK_QUOTAS]
    default = BOOT_DISK_LIMITS["gke"].default_gb
    size = pool.spec.boot_disk.size_gb or default
    count = min(counts)
    if not disks or count < 1:
        return None
    smaller = math.floor(min(size * room / (count * part.holder.step) for room, part in disks))
    return smaller if smaller >= default else None


def capacity_findings(
    lines: Iterable[CapacityLine], workspace: Workspace, before: Workspace | None = None
) -> list[Finding]:
    """Return findings about nominal quotas that exceed the pools' capacity or are not a multiple of a slice.

    ``before`` is the workspace before a change. It shows whose share has grown.
    """
    drafts: list[Draft] = []
    for line in lines:
        for share in line.shares:
            drafts.extend(_part_of_a_slice(line, share, workspace))
        if line.over:
            drafts.extend(_over_capacity(line, workspace, before))
            drafts.extend(_promised_to_teams(line, workspace))
    return located(drafts)


SHARE_NOT_WHOLE_SLICES = declare(
    "share-not-whole-slices",
    "Find a nominal quota that is not a multiple of the size of a slice or a VM.",
    ruleset="capacity",
    refused_by="`check` only. Kueue accepts the share, but no job can use the part of a slice or VM",
    excuse="exemption",
)


def _part_of_a_slice(line: CapacityLine, share: Held, workspace: Workspace) -> Iterator[Draft]:
    size = line.flavor.chips_per_slice
    if share.amount % size == 0:
        return
    unit = "slice" if line.flavor.accelerator.kind == "tpu" else "VM"
    message = f"is {shown(share.amount)}, but must be a multiple of {size}, one {unit} of {line.flavor.name}"
    whole = int(share.amount // size) * size
    fitting = [amount for amount in (whole + size, whole) if 0 < amount <= line.headroom + share.amount]
    nearest = min(fitting, key=lambda amount: abs(amount - share.amount), default=whole or size)
    pools = [place for pool in line.flavor.pools for place in _places(workspace, line.environment, pool.path)]
    yield finding(
        _holder(workspace, share.holder.stack),
        share.holder.field,
        message,
        rule=SHARE_NOT_WHOLE_SLICES,
        allowed=f"a multiple of {size}",
        nearest=nearest,
        spoils=_places(workspace, share.holder.stack, share.holder.path),
        rests_on=tuple(pools),
    )


CAPACITY_EXCEEDED = declare(
    "capacity-exceeded",
    "Find promises to teams that together exceed the pools of a cluster.",
    ruleset="capacity",
    refused_by="`check` only. Kueue accepts the queues, but jobs wait for VMs that the pools cannot have",
    excuse="exemption",
)


def _over_capacity(line: CapacityLine, workspace: Workspace, before: Workspace | None) -> Iterator[Draft]:
    """Yield findings if the shares of a flavor add up to more than the capacity of its pools.

    The finding is at the share that has grown, or at the largest share. The findings at other shares that could be
    lowered follow from it. A share that the change does not touch is never the cause.
    """
    shares = [share for share in line.shares if share.amount]
    grown = [share for share in shares if before and share.amount > (_amount_before(share, before) or 0)]
    enough = [share for share in shares if line.promised - share.amount <= line.capacity]  # if it is lowered
    promised = (
        f"{line.flavor.name} in {line.cluster} of {line.environment} is promised {shown(line.promised)} {line.resource}"
    )
    cause: str | None = None
    for share in grown or enough or shares:
        holders = _of_which(line.shares, max_named=MOST_NAMED if cause else len(line.shares))
        message = f"{promised}, {holders}; its pools have {shown(line.capacity)}"
        if share in grown and before:
            message += f"; {share.holder.label} had {shown(_amount_before(share, before) or 0)} before this change"
        draft = finding(
            _holder(workspace, share.holder.stack),
            share.holder.field,
            message,
            rule=CAPACITY_EXCEEDED,
            amount=line.promised,
            holders=_paths(shares),
            follows=cause,
            spoils=_places(workspace, share.holder.stack, share.holder.path),
            rests_on=(
                *_namesakes(line, workspace),
                *_places(workspace, line.environment, ("clusters", line.cluster, "node_pools")),
            ),
        )
        if cause is None:
            cause = draft.place
            fits = _lowered(line, share)
            draft = replace(
                draft,
                allowed=_ways_to_lower(line, [share, *(other for other in enough if other != share)], workspace),
                nearest=fits or None,
            )
        yield draft


def _lowered(line: CapacityLine, share: Held) -> int:
    """Return the largest value of a share, in whole slices, that fits next to the other shares."""
    return max(0, line.flavor.in_whole_slices(int(line.headroom + share.amount)))


def _ways_to_lower(line: CapacityLine, shares: Sequence[Held], workspace: Workspace) -> str:
    """Return a text that says how to fix shares that are too large.

    It names the shares to lower, their new values and their files, or by how much to lower all shares together. Larger
    pools are the alternative.
    """
    pools = ", ".join(pool.name for pool in line.flavor.pools)
    larger = f"larger pools of {line.flavor.name} ({pools})" if pools else f"pools of {line.flavor.name}"
    if line.headroom + shares[0].amount < 0:
        return f"shares lowered by {shown(-line.headroom)} in total, or {larger}"
    ways = []
    for share in shares[:MOST_NAMED]:
        fits = _lowered(line, share)
        stack = workspace.stacks.get(share.holder.stack)
        file = f" ({stack.place(share.holder.field)})" if stack and share != shares[0] else ""
        ways.append(f"{share.holder.label} lowered by {shown(share.amount - fits)} to {fits}{file}")
    return ", or ".join((*ways, larger))


def _amount_before(share: Held, before: Workspace) -> int | None:
    """Return the nominal quota of a share before a change, or None if the share did not exist."""
    stack = before.stacks.get(share.holder.stack)
    value: Any = stack.section if stack else None
    for part in share.holder.field:
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, str(part), None)
    return value if isinstance(value, int) else None


NOTEBOOK_POOL_PROMISED = declare(
    "notebook-pool-promised",
    "Find notebooks that bypass the queues and use a pool that is promised to teams.",
    ruleset="capacity",
    excuse="exemption",
)


def _promised_to_teams(line: CapacityLine, workspace: Workspace) -> Iterator[Draft]:
    """Yield a finding for each notebook pool that is in no queue although teams' shares need its capacity."""
    environment = workspace.stacks[line.environment].environment
    notebooks = environment.clusters[line.cluster].notebooks if environment else None
    if notebooks is None or line.promised > line.flavor.capacity_chips:
        return
    members = {pool.name for pool in line.flavor.pools}
    for number, pool in enumerate(notebooks.pools):
        if pool in members:
            message = (
                f"{pool} belongs to {line.flavor.name}: teams were promised {shown(line.promised)} "
                f"{line.resource}, but the pools that notebooks cannot use have {shown(line.capacity)}"
            )
            yield finding(
                _holder(workspace, line.environment),
                ("clusters", line.cluster, "notebooks", "pools", number),
                message,
                rule=NOTEBOOK_POOL_PROMISED,
                allowed="a pool that is promised to no team, or notebooks.teams, whose notebooks use the queue",
            )


def file_findings(lines: Iterable[FileLine], workspace: Workspace, before: Workspace | None = None) -> list[Finding]:
    """Return findings about Filestore instances that are smaller than the directories and home directories on them.

    ``before`` is the workspace before a change. With it, findings are only at directories that have grown, or at an
    instance that has shrunk.
    """
    lines_before = {(line.environment, line.instance): line for line in file_ledger(before)} if before else {}
    drafts: list[Draft] = []
    for line in lines:
        if not line.over:
            continue
        line_before = lines_before.get((line.environment, line.instance))
        grown = [share for share in line.shares if before and share.amount > (_amount_before(share, before) or 0)]
        if not grown and line_before and line.capacity < line_before.capacity:
            drafts.append(_shrunk(line, line_before, workspace))
        else:
            drafts.extend(_over_files(line, share, workspace) for share in grown or line.shares)
    return located(drafts)


FILE_CAPACITY_EXCEEDED = declare(
    "file-capacity-exceeded",
    "Find directories whose promised sizes exceed the capacity of an instance.",
    ruleset="capacity",
    refused_by="`check` only. Filestore refuses writes once the instance is full",
    excuse="exemption",
)


def _over_files(line: FileLine, share: Held, workspace: Workspace) -> Draft:
    fits = max(0, int(line.headroom + share.amount))
    message = (
        f"{line.instance} of {line.environment} has {shown(line.capacity)} GiB, but {shown(line.promised)} are "
        f"promised, {_of_which(line.shares)}"
    )
    allowed = f"at most {shown(fits)} in addition to the others"
    if line.grows_to is not None and line.grows_to >= line.promised:
        allowed += f"; or a larger capacity_gib of {line.instance}, up to {shown(line.grows_to)}"
    return finding(
        _holder(workspace, share.holder.stack),
        share.holder.field,
        message,
        rule=FILE_CAPACITY_EXCEEDED,
        amount=line.promised,
        holders=_paths(line.shares),
        allowed=allowed,
        nearest=fits or None,
        rests_on=(*_namesakes(line, workspace), *_places(workspace, line.environment, promised_of(line.instance))),
    )


def _shrunk(line: FileLine, before: FileLine, workspace: Workspace) -> Draft:
    message = (
        f"{line.instance} of {line.environment} has {shown(line.capacity)} GiB ({shown(before.capacity)} before this "
        f"change), but {shown(line.promised)} are promised, {_of_which(line.shares)}"
    )
    return finding(
        _holder(workspace, line.environment),
        ("filestore", line.instance, "capacity_gib"),
        message,
        rule=FILE_CAPACITY_EXCEEDED,
        amount=line.promised,
        holders=_paths(line.shares),
        allowed=f"at least {shown(line.promised)}, or smaller directories",
        rests_on=_places(workspace, line.environment, promised_of(line.instance)),
    )


def promised_of(instance: str) -> Path:
    """Return a path that links findings on an instance's size to findings on its directories.

    An error in the size makes the findings on the directories unreliable.
    """
    return ("filestore", instance, "directories")


def _namesakes(line: CapacityLine | FileLine, workspace: Workspace) -> tuple[Place, ...]:
    """Return the positions of team names that occur in several stack files; one of the files may be a copy."""
    stacks = {share.holder.stack: workspace.stacks[share.holder.stack] for share in line.shares}
    names = Counter(stack.team.name for stack in stacks.values() if stack.team)
    return tuple(stack.at(("name",)) for stack in stacks.values() if stack.team and names[stack.team.name] > 1)


def _places(workspace: Workspace, stack: str, path: Path) -> tuple[Place, ...]:
    """Return the position of a path in a stack, as the cause of a finding; empty if the workspace has no such stack."""
    holder = workspace.stacks.get(stack)
    return (holder.at(path),) if holder else ()


def _of_which(holders: tuple[Held, ...], stack: str | None = None, max_named: int = MOST_NAMED) -> str:
    """Return a text with each holder and its amount. Holders outside ``stack`` are named together with their stack."""
    names = [
        held.holder.label if stack in (None, held.holder.stack) else f"{held.holder.label} of {held.holder.stack}"
        for held in holders[:max_named]
    ]
    if len(holders) == 1:
        return f"all of it for {names[0]}"
    parts = [f"{name} {shown(held.amount)}" for name, held in zip(names, holders, strict=False)]
    if unnamed := holders[max_named:]:
        parts.append(f"{len(unnamed):,} more {shown(sum(held.amount for held in unnamed))}")
    return f"of which {', '.join(parts[:-1])} and {parts[-1]}"  # readable: a list follows


def _paths(holders: Iterable[Held]) -> Iterator[tuple[str, str]]:
    """Yield the stack and the path of the field that sets each holder's amount, which an exemption may refer to."""
    for held in holders:
        yield held.holder.stack, dotted(held.holder.field or held.holder.path)


def _holder(workspace: Workspace, stack: str) -> Stack | Anchor:
    """Return the stack to which findings are attached, even if the workspace does not contain it."""
    return workspace.stacks.get(stack) or Anchor(stack=stack)
