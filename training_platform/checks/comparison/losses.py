"""The losses of a change: what it takes, from whom, and the line that decides it.

A cause is a field of a stack file with its new value. One line may replace many resources in several stacks, and is one
finding for each effect. A loss that somebody acknowledges counts no more, and reports still show it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

from training_platform.checks.change_report import (
    CapacityChange,
    Comparison,
    Consequence,
    InputChange,
    ResourceChange,
    StackChange,
)
from training_platform.checks.comparison.changed_fields import FieldChange, FieldTrials, changed_fields, written
from training_platform.checks.comparison.changes import REPLACED_SOURCE
from training_platform.checks.comparison.effects import effects_of_field, kind_name, type_rank
from training_platform.checks.comparison.foreign_grants import Teams, foreign_grants
from training_platform.checks.effect_kinds import EFFECT_KINDS, HEADLINES, LOSS_RULES, Effect, EffectKind
from training_platform.config.expansion import Flavor
from training_platform.config.model.environment import Environment, RetiredSpec
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.names import Locator
from training_platform.config.own_prices import FILE as PRICES
from training_platform.config.reading.declaration import Draft, Rule, declare, finding, located
from training_platform.config.reading.finding import Anchor, Finding, Path, Place, Severity, dotted
from training_platform.config.reading.secrets import can_be_secret
from training_platform.config.reading.section import enumeration, listed
from training_platform.config.reading.source import value_at
from training_platform.config.workspace import Workspace, stack_file
from training_platform.resources.plan import PlanError
from training_platform.resources.resource_types import CLUSTER, KUBERNETES, NAMESPACE, NODE_POOL
from training_platform.resources.stack_plan import stack_plan
from training_platform.rules.exemptions import Exempted, Exemptions

_LINE = Rule(id="effect", title="An effect that is shown, and no finding.", ruleset="changes")
LIFT = "deletion_protection: false"
REMOVED = "removed"
_KEEPS = ", keeps "
_NOTHING = "nothing"
_ALSO_ADDED: frozenset[EffectKind] = frozenset(("grants", "revokes", "opens"))
_DIGEST = "sha256:"
_LONGEST = 80  # characters of a mapping that an acknowledgement has as it is
_MOST = 4  # most subjects that a finding names
_MOST_EFFECTS = 2  # most sentences that a finding has, of the gravest subjects
_LINES: frozenset[EffectKind] = frozenset(("grants", "revokes", "unknown"))  # shown, and no findings
_OF_FILE = -1  # the rank of what a stack file shows by itself
_RETIRE = "mark the stack as retired and let the pipeline destroy it: docs/lifecycle.md"


class Cause(NamedTuple):
    """The field of a stack file that causes a change; ``was`` and ``becomes`` are its two values as strings.

    If no field is known to decide, it is the ``resource`` itself, by type and name; ``path`` is then its section.
    """

    stack: str
    path: Path
    was: str
    becomes: str
    resource: str = ""


class LostSubject(NamedTuple):
    """The subjects of a change, by rank; reports show several of the same name as one, with number and size."""

    rank: int
    kind: str
    name: str
    stack: str
    size: str = ""

    def text(self, count: int) -> str:
        """Return the noun for a number of subjects."""
        words = (self.kind, self.name, f"of {self.stack}" if self.stack else "")
        size = self.size
        if count > 1:
            size = f"{count}, each {size}" if size else str(count)
        return " ".join(word for word in words if word) + (f" ({size})" if size else "")


@dataclass
class _Group:
    """The effects of one kind that have the same cause."""

    effects: dict[Effect, int] = field(default_factory=dict)  # by the rank of their subjects, the gravest first
    subjects: dict[LostSubject, set[str]] = field(default_factory=dict)  # with the resources that each is
    inputs: dict[str, None] = field(default_factory=dict)
    lifts: dict[str, None] = field(default_factory=dict)  # where the protection of what is lost is lifted
    severity: Severity = "warning"


class LossFinder:
    """Finds the consequences of a comparison, from the files of both sides.

    ``exemptions`` acknowledge some. A stack may cost more by ``most_more`` USD per hour before that is a finding,
    the least that either side allows.
    """

    def __init__(
        self,
        comparison: Comparison,
        head: Workspace,
        base: Workspace,
        exemptions: Exemptions,
        most_more: float | None = None,
    ) -> None:
        self._comparison = comparison
        self._most_more = most_more
        self._head = head
        self._base = base
        self._exemptions = exemptions
        self._groups: dict[tuple[EffectKind, Cause], _Group] = {}
        self._locators: dict[int, Locator] = {}
        self._differences: dict[tuple[str, Path], list[FieldChange]] = {}
        self._trials = FieldTrials(head)

    def consequences(self) -> tuple[Consequence, ...]:
        """Return every effect that affects somebody, the worst first, each at its cause."""
        for change in self._comparison.stacks:
            if change.kind == "left":
                self._left_behind(change)
            elif change.kind != "removed":
                for resource in change.resources:
                    self._of_resource(change, resource)
                self._of_fields(change)
                self._of_foreign_grants(change)
            self._of_cost(change)
        for line in self._comparison.capacity:
            self._of_capacity(line)
        self._drop_needed_lifts()
        consequences = [self._consequence(kind, cause, group) for (kind, cause), group in self._groups.items()]
        return tuple(sorted(consequences, key=_rank))

    def _left_behind(self, change: StackChange) -> None:
        stack = change.base
        says = "nothing destroys what it has, which is billed on"
        if change.most_usd.before:
            says += f", up to ${change.most_usd.before:,.2f} per hour"
        if promised := _promised(stack.team if stack else None):
            says += f"; its queues hold {promised}"
        first = _RETIRE
        if stack and stack.retired:
            first = (
                f"keep the file until {stack.retired.since}, from which day on the pipeline destroys the stack by it"
            )
        if new := [other.name for other in self._comparison.stacks if other.kind == "added"]:
            first += (
                f"; or, if {enumeration(new)} is the same under a new name, write `renamed_from: {change.name}` there"
            )
        subject = LostSubject(0, "", f"{change.name} is still deployed", "")
        self._add(Cause(change.name, (), "", REMOVED), Effect("stack", says, first), subject, severity="error")

    def _of_resource(self, change: StackChange, resource: ResourceChange) -> None:
        if _goes_with_container(change, resource):
            return
        if not resource.inputs:
            if resource.effect.kind == "none" or (resource.kind == "added" and resource.effect.kind not in _ALSO_ADDED):
                return
            cause = self._cause(change, resource, None)
            self._add(cause, resource.effect, self._subject(change, resource), resource=resource)
            return
        for row in resource.forcing[:1] or resource.inputs:
            granted_again = row.new == REPLACED_SOURCE and row.effect.kind == "revokes"  # on the replacement
            if row.effect.kind != "none" and not granted_again:
                cause = self._cause(change, resource, row)
                self._add(cause, row.effect, self._subject(change, resource), resource=resource, change=row)

    def _of_fields(self, change: StackChange) -> None:
        new = change.head
        old = change.base
        if new is None or old is None or new.section is None or old.section is None:
            return
        section = "environment" if new.environment else "team"
        for path, was, now in self._changed(new, old):
            values = (_value(old, path, was), _value(new, path, now))
            if path[-1:] == ("lending_limit",) and not self._borrowed(new, path):
                continue
            for effect in effects_of_field(section, dotted(path), *values):
                without, having = values if effect.kind == "grants" else reversed(values)
                who = _people(without, having)
                subject = LostSubject(_OF_FILE, f"{who}{section}", new.team.name if new.team else new.name, "")
                if len(path) > 1 and path[0] != "retired":
                    subject = LostSubject(_OF_FILE, f"{who}{dotted(path[:-1])}", "", new.name)
                self._add(_cause_of(new, FieldChange(path, was, now)), effect, subject)

    def _borrowed(self, stack: Stack, path: Path) -> bool:
        """Whether another team may borrow what a share lends."""
        cluster, flavor = map(str, path[-3:-1])
        for other, team, _ in self._base.teams():
            share = team.shares.get(cluster, {}).get(flavor)
            beside = team.environment == stack.environment_name and other.name != stack.name
            if beside and share and share.borrowing_limit != 0:
                return True
        return False

    def _of_foreign_grants(self, change: StackChange) -> None:
        """Find roles that a change gives one team on what is another team's."""
        new = {(row.type, row.name): row for row in change.resources if _gives(row)}
        stack = change.head
        if not new or stack is None:
            return
        try:
            plan = stack_plan(stack, self._head)
        except PlanError:  # another finding says why
            return
        if plan is None:
            return
        for grant in foreign_grants(plan, stack.environment_name, Teams(self._head)):
            if resource := new.get(grant.key):
                says = f"{grant.principal} of {grant.team} gets {grant.role} on {grant.resource} of {grant.owner}"
                effect = Effect("opens", says, f"agree on it with the people of {grant.owner}")
                subject = LostSubject(_OF_FILE, "", grant.resource, grant.owner)
                first = next(iter(resource.inputs), None)
                self._add(self._cause(change, resource, None), effect, subject, change=first)

    def _of_cost(self, change: StackChange) -> None:
        more = change.most_usd.delta
        if self._most_more is None or more is None or more <= self._most_more:
            return
        file = f"{PRICES}, here or in {self._comparison.ref},"
        says = f"up to ${more:,.2f} per hour more, and {file} lets ${self._most_more:,.2f} through"
        effect = Effect("cost", says, "agree on it with whoever pays")
        self._add(Cause(change.name, (), "", f"{more:.2f}"), effect, LostSubject(0, "", change.name, ""))

    def _of_capacity(self, line: CapacityChange) -> None:
        """Find pools that shrink below the amount that teams are promised, at the line that shrinks them."""
        before, after = line.capacity
        promised = line.promised.after or 0
        stack = self._head.stacks.get(line.environment)
        if before is None or after is None or after >= before or after >= promised or stack is None:
            return
        old = self._base.stacks.get(line.environment)
        section: Path = ("clusters", line.cluster, "node_pools")
        cause = Cause(stack.name, section, "", REMOVED)
        flavors = [_flavor(side, line) for side in (self._base, self._head)]
        pools = {pool.name for flavor in flavors if flavor for pool in flavor.pools}
        rows = [] if old is None else self._changed(stack, old, section)
        for row in rows:
            if row.path[3:4] and row.path[3] not in pools:
                continue
            trial = self._trials.with_old_value(row, stack)
            flavor = _flavor(trial, line) if trial else None
            if trial is None or (flavor and flavor.queue_chips > after):
                cause = _cause_of(stack, row)
                break
        says = f"its pools hold {after:,.0f} and held {before:,.0f}, and teams are promised {promised:,.0f}"
        effect = Effect("promises", says, "lower the shares first, or keep the machines")
        subject = LostSubject(0, "", f"{line.flavor} in {line.cluster}", line.environment)
        self._add(cause, effect, subject)

    def _drop_needed_lifts(self) -> None:
        """Drop the lifted protection of a section that the change also replaces or removes, which is reported."""
        losing = [cause for kind, cause in self._groups if kind in ("data", "jobs")]
        for kind, cause in list(self._groups):
            section = cause.path[:-1]
            if kind != "protection" or cause.path[-1:] != ("deletion_protection",) or not section:
                continue
            if any(other.stack == cause.stack and other.path[: len(section)] == section for other in losing):
                del self._groups[kind, cause]

    def _add(
        self,
        cause: Cause,
        effect: Effect,
        subject: LostSubject,
        *,
        resource: ResourceChange | None = None,
        change: InputChange | None = None,
        severity: Severity | None = None,
    ) -> None:
        group = self._groups.setdefault((effect.kind, cause), _Group())
        group.effects[effect] = min(subject.rank, group.effects.get(effect, subject.rank))
        group.subjects.setdefault(subject, set()).add(resource.name if resource else "")
        if change is not None:
            group.inputs[str(change)] = None
        if resource is not None and resource.protected and resource.kind != "changed":
            group.lifts[self._lifted_at(subject.stack, resource.name)] = None
        if severity == "error" or self._protects(cause, effect.kind):
            group.severity = "error"

    def _protects(self, cause: Cause, kind: EffectKind) -> bool:
        """Whether the environment protects the resource of a cause, and its own section does not lift that."""
        workspace = self._base if kind == "protection" else self._head
        stack = workspace.stacks.get(cause.stack)
        home = workspace.environment_of(stack) if stack else None
        if stack is None or home is None or not home.deletion_protection:
            return False
        if kind == "cost":
            return False
        if kind == "protection":
            return cause.path[-1:] != ("deletion_protection",) or len(cause.path) == 1
        return not any(_protection(stack, cause.path[:length]) is False for length in range(1, len(cause.path) + 1))

    def _subject(self, change: StackChange, resource: ResourceChange) -> LostSubject:
        """Return the subject for a resource: its kind, the key of its section, its size, its stack."""
        stack = change.base or change.head
        path = self._path(stack.section, resource.name) if stack and stack.section else ()
        name = resource.name
        if path and path[:1] != ("shares",):
            name = str(path[-1])
            if isinstance(path[-1], int) and stack:
                name = str(written(stack, path[:-1])[path[-1]])
            if path[0] == "clusters" and len(path) > 2:
                name += f" in {path[1]}"
        without_chips = resource.type == NODE_POOL and "node_pools" not in path
        rank = 2 * type_rank(resource.type) + without_chips
        return LostSubject(rank, kind_name(resource.type), name, change.name, resource.size)

    def _cause(self, change: StackChange, resource: ResourceChange, changed: InputChange | None) -> Cause:
        """Return the field that decides a change, or the resource itself if the code changed and not the file."""
        if source := _replaced_source(change, changed):
            return self._cause(change, source, source.forcing[0])
        new = change.head
        old = change.base
        itself = Cause(change.name, (), "", _becomes(resource), f"{resource.type} {resource.name}")
        if new is None or new.section is None:
            return itself
        if change.kind == "retired" and new.retired is not None:
            return Cause(new.name, ("retired",), "", _end(new.retired))
        side = old.section if resource.kind == "removed" and old and old.section else new.section
        section = self._path(side, resource.name)
        candidates = self._candidates(new, old, section)
        near = [row for row in candidates if section and row[0] is new and _overlap(row[1].path, section)]
        if cause := self._deciding_field(change, resource, changed, candidates, near):
            return cause
        kept = self._changed(new, old, ("retired", "keeps")) if old and new.retired else []
        if kept and changed and changed.path == "retainOnDelete":
            return _cause_of(new, kept[0])
        if change.kind == "renamed" and resource.kind != "changed":
            return Cause(new.name, ("renamed_from",), "", _text(change.was))
        return itself._replace(path=section)

    def _deciding_field(
        self,
        change: StackChange,
        resource: ResourceChange,
        changed: InputChange | None,
        candidates: Sequence[tuple[Stack, FieldChange]],
        near: Sequence[tuple[Stack, FieldChange]],
    ) -> Cause | None:
        """Return the field without which the change is none; if no plan tells, the first near one, or the only one."""
        untold = []
        for stack, row in candidates:
            decides = self._trials.decides(row, stack, change.name, resource, changed)
            if decides:
                return _cause_of(stack, row)
            if decides is None:
                untold.append((stack, row))
        likely = [row for row in near if row in untold] or (untold if len(candidates) == 1 else [])
        return _cause_of(*likely[0]) if likely else None

    def _candidates(self, new: Stack, old: Stack | None, section: Path) -> list[tuple[Stack, FieldChange]]:
        """Return the changed fields that can decide a change: of its section, then its file, then its environment."""
        fields: dict[tuple[str, Path], tuple[Stack, FieldChange]] = {}
        for stack, was, path in self._homes(new, old, section):
            for row in self._changed(stack, was, path):
                fields.setdefault((stack.name, row.path), (stack, row))
        return list(fields.values())

    def _path(self, section: Environment | Team, name: str) -> Path:
        """Return the section of a file that declares a resource."""
        locator = self._locators.get(id(section))
        if locator is None:
            locator = self._locators[id(section)] = Locator(section)
        return locator.path(name)

    def _changed(self, new: Stack, old: Stack, section: Path = ()) -> list[FieldChange]:
        """Return the changed fields of a file below a section; cached for the many resources of a large change."""
        key = (new.name, section)
        if key not in self._differences:
            self._differences[key] = list(changed_fields(new, old, section))
        return self._differences[key]

    def _homes(self, new: Stack, old: Stack | None, section: Path) -> Iterator[tuple[Stack, Stack, Path]]:
        """Yield the possible causes of a change: its section, the whole file, and the environment's file."""
        if old is None or old.section is None:
            return
        yield new, old, section
        if section:
            yield new, old, ()
        home = self._head.stacks.get(new.environment_name)
        old_home = self._base.stacks.get(old.environment_name)
        same = new.environment_name == old.environment_name
        if new.team and same and home and old_home and home.section and old_home.section:
            yield home, old_home, ()

    def _consequence(self, kind: EffectKind, cause: Cause, group: _Group) -> Consequence:
        of_file = [subject for subject in group.subjects if subject.rank == _OF_FILE]  # which resources follow
        subjects = tuple(subject.text(len(group.subjects[subject])) for subject in sorted(of_file or group.subjects))
        effects = sorted(group.effects, key=group.effects.__getitem__)[:_MOST_EFFECTS]
        if of_file:
            effects = [effect for effect in effects if group.effects[effect] == _OF_FILE]
        message = f"{HEADLINES[kind]}: {listed(subjects, _MOST)}"
        if fields := _fields(kind, cause, group):
            message += f": {fields}"
        message += "".join(f"; {says}" for says in dict.fromkeys(effect.says for effect in effects))
        if name := self._new_name(cause):
            message += f"; {name} has the same fields: under a new name it is deleted, and another one created"
        first = next((effect.first for effect in effects if effect.first), "")
        if kind == "protection" and cause.path == ("retired",):
            first = "name in `keeps` what people still need of it"
        if group.lifts:
            lifts = listed(list(group.lifts), _MOST)
            first += f"; while it is protected the engine refuses this: deploy `{LIFT}` {lifts} before"
        finding = self._finding(kind, cause, message, first, group.severity)
        entry = self._exemptions.of(finding) if kind in LOSS_RULES else None
        exempted = Exempted(finding, entry) if entry else None
        return Consequence(kind=kind, subjects=subjects, finding=finding, acknowledged=exempted)

    def _new_name(self, cause: Cause) -> str:
        """Return the key beside a removed one that has its fields; empty if there is none."""
        new = self._head.stacks.get(cause.stack)
        old = self._base.stacks.get(cause.stack)
        if cause.becomes != REMOVED or not cause.path or new is None or old is None:
            return ""
        fields = self._changed(new, old)
        gone = [row.was for row in fields if row.path == cause.path]
        added = [row for row in fields if row.was is None and row.path[:-1] == cause.path[:-1]]
        return next((str(row.path[-1]) for row in added if isinstance(row.now, Mapping) and row.now in gone), "")

    def _lifted_at(self, name: str, resource: str) -> str:
        """Return where the protection of a resource is lifted: in its section, or in the environment if it has none."""
        stack = self._base.stacks.get(name) or self._head.stacks.get(name)
        path = self._path(stack.section, resource) if stack and stack.section else ()
        for length in range(len(path), 0, -1):
            if stack and _protection(stack, path[:length]) is not None:
                return f"in {dotted(path[:length])}"
        return f"in the environment, since {dotted(path) or 'it'} has no such field,"

    def _finding(self, kind: EffectKind, cause: Cause, message: str, first: str, severity: Severity) -> Finding:
        stack = self._head.stacks.get(cause.stack)
        allowed: str | None = None
        if kind in LOSS_RULES:
            resource = f"resource: {json.dumps(cause.resource)} and " if cause.resource else ""
            becomes = json.dumps(cause.becomes)
            allowed = f"an acknowledgement in stacks/exemptions.yaml, which names {resource}becomes: {becomes}"
        spoils: tuple[Place, ...] = ()
        if stack and kind in ("promises", "jobs") and cause.path[:1] == ("clusters",):
            spoils = (stack.at(cause.path[:2]), stack.at((*cause.path[:2], "node_pools")), stack.at(cause.path[:4]))
        draft = finding(
            stack or Anchor(stack=cause.stack, file=stack_file(cause.stack)),
            cause.path,
            message,
            rule=LOSS_RULES.get(kind, _LINE),
            severity=severity,
            allowed=allowed,
            resource=cause.resource or None,
            spoils=spoils,
            first=first or None,
            becomes=cause.becomes,
        )
        return located([draft])[0]


def _gives(resource: ResourceChange) -> bool:
    """Whether a resource gives rights that it did not give before."""
    if not resource.inputs:
        return resource.kind == "added"
    forcing = any(row.new != REPLACED_SOURCE for row in resource.forcing)
    return any(row.effect.kind == "grants" for row in resource.inputs) or forcing


def _replaced_source(change: StackChange, changed: InputChange | None) -> ResourceChange | None:
    """Return the replaced resource that an input refers to, if that is why the input changes."""
    if changed is None or changed.new != REPLACED_SOURCE:
        return None
    sources = (other for other in change.resources if other.kind == "replaced" and other.name == changed.old)
    return next(sources, None)


_CONTAINERS = {CLUSTER: "cluster", NAMESPACE: "namespace"}
"""Types whose loss takes objects with it, and the ends of their names after the prefix that those objects share."""


def _goes_with_container(change: StackChange, resource: ResourceChange) -> bool:
    """Whether an object is lost with its cluster or namespace, which is reported instead."""
    if resource.kind not in ("removed", "replaced") or not resource.type.startswith(KUBERNETES):
        return False
    beginnings = [
        other.name.removesuffix(_CONTAINERS[other.type])
        for other in change.resources
        if other.type in _CONTAINERS and other.kind == resource.kind and other is not resource
    ]
    return resource.name.startswith(tuple(beginnings))


def is_over(stack: Stack, today: date) -> bool:
    """Whether a stack's own file retires it, so that a pipeline has destroyed it."""
    return stack.retired is not None and stack.retired.since <= today


PROTECTION_LEFT_OFF = declare(
    "protection-left-off",
    "Find protection that is off and can be on again.",
    ruleset="changes",
    severity="warning",
)


def left_off(comparison: Comparison, head: Workspace) -> Iterator[Draft]:
    """Find protection that was lifted before this change, which no longer needs it."""
    for change in comparison.stacks:
        new = change.head
        old = change.base
        if new is None or old is None or new.section is None or old.section is None or change.unknown:
            continue
        home = head.environment_of(new)
        if home is None or not home.deletion_protection:
            continue
        needed = [
            Locator(stack.section).path(resource.name)
            for stack in (new, old)
            for resource in change.resources
            if resource.kind in ("replaced", "removed") and stack.section is not None
        ]
        for path in _lifted_sections(new.source.value, new.below):
            if _protection(old, path) is False and path not in needed:
                yield finding(
                    new,
                    (*path, "deletion_protection"),
                    "is false, and nothing in this change needs it",
                    rule=PROTECTION_LEFT_OFF,
                    allowed="true, once it is deployed",
                    nearest="true",
                )


def _flavor(workspace: Workspace, line: CapacityChange) -> Flavor | None:
    """Return the flavor of a cluster, None if there is none."""
    stack = workspace.stacks.get(line.environment)
    if stack is None or stack.environment is None or line.cluster not in stack.environment.clusters:
        return None
    return workspace.flavors(line.environment, line.cluster).get(line.flavor)


def _people(without: Any, having: Any) -> str:
    """Return who is only in the second of two lists, as the beginning of a sentence; empty where that is nobody."""
    before, after = (side if isinstance(side, list) else [] for side in (without, having))
    added = [item for item in after if item not in before and isinstance(item, str) and "@" in item]
    people = [item.rpartition(":")[2] for item in added]
    return f"{listed(people, _MOST)} in " if people else ""


def _rank(consequence: Consequence) -> tuple[int, bool, str]:
    return (EFFECT_KINDS.index(consequence.kind), consequence.acknowledged is not None, consequence.finding.place)


def _promised(team: Team | None) -> str:
    """Return the nominal quotas of a team's queues, by flavor."""
    amounts: dict[str, int] = {}
    clusters = team.shares.values() if team else ()
    for shares in clusters:
        for flavor, share in shares.items():
            amounts[flavor] = amounts.get(flavor, 0) + share.nominal_quota
    return enumeration([f"{amount} {flavor}" for flavor, amount in amounts.items()])


def _value(stack: Stack, path: Path, written: Any) -> Any:
    """Return a switch or a number as the model has it, which knows defaults; another value as it is written."""
    value: Any = stack.section
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, str(part), None)
    return value if isinstance(value, int) else written


def _protection(stack: Stack, path: Path) -> bool | None:
    """Return the protection that a section sets, or None if it has no such field."""
    value = _value(stack, (*path, "deletion_protection"), None)
    return value if path else None


def _lifted_sections(value: Any, below: Path) -> Iterator[Path]:
    """Yield the sections of a file with ``deletion_protection: false``, from its own section on."""
    for path, leaf in _leaves(value_at(value, below)):
        if path[-1:] == ("deletion_protection",) and len(path) > 1 and leaf is False:
            yield path[:-1]


def _overlap(path: Path, section: Path) -> bool:
    """Whether a field is in a section, or a part of the file that was added or removed with the section in it."""
    shorter = min(len(path), len(section))
    return path[:shorter] == section[:shorter]


def _becomes(resource: ResourceChange) -> str:
    """Return what becomes of a resource: its changed inputs, or all inputs of an added one."""
    if resource.kind == "removed":
        return REMOVED
    changed = {row.path: REMOVED if row.new is None else row.new for row in resource.inputs}
    return _text(changed or resource.planned)


def _end(retired: RetiredSpec) -> str:
    """Return the end of a stack as an acknowledgement names it, which is stale once the stack keeps less."""
    return f"{retired.since}{_KEEPS}{', '.join(sorted(retired.keeps)) or _NOTHING}"


def _cause_of(stack: Stack, row: FieldChange) -> Cause:
    return Cause(stack.name, row.path, _text(row.was), REMOVED if row.now is None else _text(row.now))


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _text(value: Any) -> str:
    """Return a value as an acknowledgement names it: a list by its items, a long mapping or a secret by its digest."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if not isinstance(value, Mapping):
        return _flow(value)
    text = _flow(value)
    secret = any(can_be_secret(path) for path, _ in _leaves(value))
    return _digest(value) if secret or len(text) > _LONGEST else text


def _flow(value: Any) -> str:
    """Return a value on one line, as YAML has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    return str(value)


def _digest(value: Any) -> str:
    """Return a digest of a value that is not a scalar, so that an acknowledgement covers exactly this value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return f"{_DIGEST}{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _fields(kind: EffectKind, cause: Cause, group: _Group) -> str:
    """Return the change of the stack file as words, or of the inputs if the file does not show it."""
    if kind in ("stack", "cost"):
        return ""
    if cause.path == ("retired",):
        since, _, kept = cause.becomes.partition(_KEEPS)
        exception = "" if kept == _NOTHING else f", but for {kept}"
        return f"is retired, and destroyed from {since} on{exception}"
    name = str(cause.path[-1]) if cause.path else "it"
    was = "" if cause.was.startswith(_DIGEST) else cause.was
    if cause.becomes == REMOVED:
        return " ".join(word for word in (name, was, "is removed") if word)
    if not cause.resource and not cause.becomes.startswith(_DIGEST):
        return f"{name} from {was or 'nothing'} to {cause.becomes or 'nothing'}"
    if group.inputs:
        return listed(list(group.inputs), _MOST)
    return "it is added" if cause.resource else f"{name} changes"


def with_losses(findings: Iterable[Consequence]) -> list[Finding]:
    """Return the losses that nobody acknowledges, as findings."""
    return [row.finding for row in findings if row.is_loss and row.acknowledged is None]
