"""The losses of a change: what it takes, from whom, and the line that decides it.

A cause is a field of a stack file with its new value. One line may replace many resources in several stacks, and is one
finding for each effect. A loss that somebody acknowledges counts no more, and reports still show it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from training_platform.checks.change_report import (
    CapacityChange,
    Comparison,
    Consequence,
    InputChange,
    ResourceChange,
    StackChange,
)
from training_platform.checks.comparison.acknowledged_values import DIGEST
from training_platform.checks.comparison.changed_fields import value_in_model, written
from training_platform.checks.comparison.changes import REPLACED_SOURCE
from training_platform.checks.comparison.deciding_fields import KEEPS, NOTHING, REMOVED, Cause, DecidingFields, cause_of
from training_platform.checks.comparison.effects import effects_of_field, kind_name, type_rank
from training_platform.checks.comparison.lifted_protection import protection
from training_platform.checks.effect_kinds import EFFECT_KINDS, HEADLINES, LOSS_RULES, Effect, EffectKind
from training_platform.config.expansion import Flavor
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.own_prices import FILE as PRICES
from training_platform.config.reading.declaration import Rule, finding, located
from training_platform.config.reading.finding import Anchor, Finding, Path, Place, dotted
from training_platform.config.reading.section import enumeration, listed
from training_platform.config.workspace import Workspace, stack_file
from training_platform.resources.resource_types import CLUSTER, KUBERNETES, NAMESPACE, NODE_POOL
from training_platform.rules.exemptions import Exempted, Exemptions
from training_platform.rules.foreign_access import kept_foreign_grants

_LINE = Rule(id="effect", title="An effect that is shown, and no finding.", ruleset="changes")
LIFT = "deletion_protection: false"
_ALSO_ADDED: frozenset[EffectKind] = frozenset(("grants", "revokes", "opens"))
_MOST = 4  # most subjects that a finding names
_MOST_EFFECTS = 2  # most sentences that a finding has, of the gravest subjects
_OF_FILE = -1  # the rank of what a stack file shows by itself
_RETIRE = "mark the stack as retired and let the pipeline destroy it: docs/lifecycle.md"


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


class Loss(NamedTuple):
    """One effect on one subject, at its cause; ``resource`` and ``input`` are what changes in the plan, if anything."""

    cause: Cause
    effect: Effect
    subject: LostSubject
    resource: ResourceChange | None = None
    input: InputChange | None = None


@dataclass(frozen=True, kw_only=True)
class LossFinder:
    """Finds the consequences of a comparison, from the files of both sides.

    ``exemptions`` acknowledge some. A stack may cost more by ``most_more`` USD per hour before that is a finding,
    the least that either side allows.
    """

    comparison: Comparison
    head: Workspace
    base: Workspace
    fields: DecidingFields
    exemptions: Exemptions
    most_more: float | None = None

    def consequences(self) -> tuple[Consequence, ...]:
        """Return every effect that affects somebody, the worst first, each at its cause."""
        losses: dict[tuple[EffectKind, Cause], list[Loss]] = {}
        for loss in self._losses():
            losses.setdefault((loss.effect.kind, loss.cause), []).append(loss)
        for kind, cause in _needed_lifts(losses):
            del losses[kind, cause]
        consequences = [self._consequence(kind, cause, group) for (kind, cause), group in losses.items()]
        return tuple(sorted(consequences, key=_rank))

    def _losses(self) -> Iterator[Loss]:
        for change in self.comparison.stacks:
            if change.kind == "left":
                yield self._left_behind(change)
            elif change.kind != "removed":
                for resource in change.resources:
                    yield from self._of_resource(change, resource)
                yield from self._of_fields(change)
                yield from self._of_foreign_grants(change)
            yield from self._of_cost(change)
        for line in self.comparison.capacity:
            yield from self._of_capacity(line)

    def _left_behind(self, change: StackChange) -> Loss:
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
        if new := [other.name for other in self.comparison.stacks if other.kind == "added"]:
            first += (
                f"; or, if {enumeration(new)} is the same under a new name, write `renamed_from: {change.name}` there"
            )
        subject = LostSubject(0, "", f"{change.name} is still deployed", "")
        return Loss(Cause(change.name, (), "", REMOVED), Effect("stack", says, first), subject)

    def _of_resource(self, change: StackChange, resource: ResourceChange) -> Iterator[Loss]:
        if _goes_with_container(change, resource):
            return
        if not resource.inputs:
            if resource.effect.kind == "none" or (resource.kind == "added" and resource.effect.kind not in _ALSO_ADDED):
                return
            cause = self.fields.cause(change, resource, None)
            yield Loss(cause, resource.effect, self._subject(change, resource), resource)
            return
        for row in resource.forcing[:1] or resource.inputs:
            granted_again = row.new == REPLACED_SOURCE and row.effect.kind == "revokes"  # on the replacement
            if row.effect.kind != "none" and not granted_again:
                cause = self.fields.cause(change, resource, row)
                yield Loss(cause, row.effect, self._subject(change, resource), resource, row)

    def _subject(self, change: StackChange, resource: ResourceChange) -> LostSubject:
        """Return the subject for a resource: its kind, the key of its section, its size, its stack."""
        stack = change.base or change.head
        path = self.fields.section(stack.section, resource.name) if stack and stack.section else ()
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

    def _of_fields(self, change: StackChange) -> Iterator[Loss]:
        new = change.head
        old = change.base
        if new is None or old is None or new.section is None or old.section is None:
            return
        section = "environment" if new.environment else "team"
        for row in self.fields.changed(new, old):
            path = row.path
            if path[-1:] == ("lending_limit",) and not self._borrowed(new, path):
                continue
            was = value_in_model(old, path, row.was)
            now = value_in_model(new, path, row.now)
            for effect in effects_of_field(section, dotted(path), was, now):
                who = _people(was, now) if effect.kind == "grants" else _people(now, was)
                subject = LostSubject(_OF_FILE, f"{who}{section}", new.team.name if new.team else new.name, "")
                if len(path) > 1 and path[0] != "retired":
                    subject = LostSubject(_OF_FILE, f"{who}{dotted(path[:-1])}", "", new.name)
                yield Loss(cause_of(new, row), effect, subject)

    def _borrowed(self, stack: Stack, path: Path) -> bool:
        """Whether another team may borrow what a share lends."""
        cluster, flavor = map(str, path[-3:-1])
        for other, team, _ in self.base.teams():
            share = team.shares.get(cluster, {}).get(flavor)
            beside = team.environment == stack.environment_name and other.name != stack.name
            if beside and share and share.borrowing_limit != 0:
                return True
        return False

    def _of_foreign_grants(self, change: StackChange) -> Iterator[Loss]:
        """Find roles that a change gives one team on what is another team's."""
        new = {(row.type, row.name): row for row in change.resources if _gives(row)}
        stack = change.head
        if not new or stack is None:
            return
        for grant in kept_foreign_grants(stack.name, self.head):
            if resource := new.get(grant.planned.key):
                says = f"{grant.principal} of {grant.team} gets {grant.role} on {grant.resource} of {grant.owner}"
                effect = Effect("opens", says, f"agree on it with the people of {grant.owner}")
                subject = LostSubject(_OF_FILE, "", grant.resource, grant.owner)
                first = next(iter(resource.inputs), None)
                yield Loss(self.fields.cause(change, resource, None), effect, subject, input=first)

    def _of_cost(self, change: StackChange) -> Iterator[Loss]:
        more = change.most_usd.delta
        if self.most_more is None or more is None or more <= self.most_more:
            return
        file = f"{PRICES}, here or in {self.comparison.ref},"
        says = f"up to ${more:,.2f} per hour more, and {file} lets ${self.most_more:,.2f} through"
        effect = Effect("cost", says, "agree on it with whoever pays")
        yield Loss(Cause(change.name, (), "", f"{more:.2f}"), effect, LostSubject(0, "", change.name, ""))

    def _of_capacity(self, line: CapacityChange) -> Iterator[Loss]:
        """Find pools that shrink below the amount that teams are promised, at the line that shrinks them."""
        before, after = line.capacity
        promised = line.promised.after or 0
        stack = self.head.stacks.get(line.environment)
        if before is None or after is None or after >= before or after >= promised or stack is None:
            return
        says = f"its pools hold {after:,.0f} and held {before:,.0f}, and teams are promised {promised:,.0f}"
        effect = Effect("promises", says, "lower the shares first, or keep the machines")
        subject = LostSubject(0, "", f"{line.flavor} in {line.cluster}", line.environment)
        yield Loss(self._shrinking_field(line, stack, after), effect, subject)

    def _shrinking_field(self, line: CapacityChange, stack: Stack, after: float) -> Cause:
        """Return the field of a pool without whose change the flavor is larger; all pools if no plan tells."""
        section: Path = ("clusters", line.cluster, "node_pools")
        old = self.base.stacks.get(line.environment)
        changed = self.fields.changed(stack, old, section) if old else ()
        flavors = [_flavor(side, line) for side in (self.base, self.head)]
        pools = {pool.name for flavor in flavors if flavor for pool in flavor.pools}
        for row in changed:
            if row.path[3:4] and row.path[3] not in pools:
                continue
            trial = self.fields.trials.with_old_value(row, stack)
            flavor = _flavor(trial, line) if trial else None
            if trial is None or (flavor and flavor.queue_chips > after):
                return cause_of(stack, row)
        return Cause(stack.name, section, "", REMOVED)

    def _consequence(self, kind: EffectKind, cause: Cause, losses: Sequence[Loss]) -> Consequence:
        """Return the losses of one kind with the same cause as one consequence."""
        of_file = [loss for loss in losses if loss.subject.rank == _OF_FILE]  # which resources follow
        subjects = _subjects(of_file or losses)
        effects = _gravest_effects(of_file or losses)
        message = f"{HEADLINES[kind]}: {listed(subjects, _MOST)}"
        if fields := _fields(kind, cause, losses):
            message += f": {fields}"
        message += "".join(f"; {says}" for says in dict.fromkeys(effect.says for effect in effects))
        if name := self._new_name(cause):
            message += f"; {name} has the same fields: under a new name it is deleted, and another one created"
        first = next((effect.first for effect in effects if effect.first), "")
        if kind == "protection" and cause.path == ("retired",):
            first = "name in `keeps` what people still need of it"
        if lifts := self._lifts(losses):
            first += f"; while it is protected the engine refuses this: deploy `{LIFT}` {listed(lifts, _MOST)} before"
        finding = self._finding(kind, cause, message, first)
        entry = self.exemptions.of(finding) if kind in LOSS_RULES else None
        exempted = Exempted(finding, entry) if entry else None
        return Consequence(kind=kind, subjects=subjects, finding=finding, acknowledged=exempted)

    def _new_name(self, cause: Cause) -> str:
        """Return the key beside a removed one that has its fields; empty if there is none."""
        new = self.head.stacks.get(cause.stack)
        old = self.base.stacks.get(cause.stack)
        if cause.becomes != REMOVED or not cause.path or new is None or old is None:
            return ""
        fields = self.fields.changed(new, old)
        gone = [row.was for row in fields if row.path == cause.path]
        added = [row for row in fields if row.was is None and row.path[:-1] == cause.path[:-1]]
        return next((str(row.path[-1]) for row in added if isinstance(row.now, Mapping) and row.now in gone), "")

    def _lifts(self, losses: Iterable[Loss]) -> list[str]:
        """Return where the protection of lost resources is lifted: in their section, or in the environment."""
        lifts: dict[str, None] = {}
        for loss in losses:
            resource = loss.resource
            if resource is None or not resource.protected or resource.kind == "changed":
                continue
            name = loss.subject.stack
            stack = self.base.stacks.get(name) or self.head.stacks.get(name)
            path = self.fields.section(stack.section, resource.name) if stack and stack.section else ()
            lift = f"in the environment, since {dotted(path) or 'it'} has no such field,"
            for length in range(1, len(path) + 1):
                if stack and protection(stack, path[:length]) is not None:
                    lift = f"in {dotted(path[:length])}"
            lifts[lift] = None
        return list(lifts)

    def _finding(self, kind: EffectKind, cause: Cause, message: str, first: str) -> Finding:
        stack = self.head.stacks.get(cause.stack)
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
            severity="error" if kind == "stack" or self._protects(cause, kind) else "warning",
            allowed=allowed,
            resource=cause.resource or None,
            spoils=spoils,
            first=first or None,
            becomes=cause.becomes,
        )
        return located([draft])[0]

    def _protects(self, cause: Cause, kind: EffectKind) -> bool:
        """Whether the environment protects the resource of a cause, and its own section does not lift that."""
        workspace = self.base if kind == "protection" else self.head
        stack = workspace.stacks.get(cause.stack)
        home = workspace.environment_of(stack) if stack else None
        if stack is None or home is None or not home.deletion_protection or kind == "cost":
            return False
        if kind == "protection":
            return cause.path[-1:] != ("deletion_protection",) or len(cause.path) == 1
        return not any(protection(stack, cause.path[:length]) is False for length in range(1, len(cause.path) + 1))


def _needed_lifts(causes: Iterable[tuple[EffectKind, Cause]]) -> list[tuple[EffectKind, Cause]]:
    """Return the lifted protection of sections that the change also replaces or removes, which is reported."""
    losing = [cause for kind, cause in causes if kind in ("data", "jobs")]
    needed: list[tuple[EffectKind, Cause]] = []
    for kind, cause in causes:
        section = cause.path[:-1]
        if kind != "protection" or cause.path[-1:] != ("deletion_protection",) or not section:
            continue
        if any(other.stack == cause.stack and other.path[: len(section)] == section for other in losing):
            needed.append((kind, cause))
    return needed


def _subjects(losses: Iterable[Loss]) -> tuple[str, ...]:
    """Return the nouns for what is lost, the gravest first; one for several resources of the same name."""
    resources: dict[LostSubject, set[str]] = {}
    for loss in losses:
        resources.setdefault(loss.subject, set()).add(loss.resource.name if loss.resource else "")
    return tuple(subject.text(len(resources[subject])) for subject in sorted(resources))


def _gravest_effects(losses: Iterable[Loss]) -> list[Effect]:
    ranks: dict[Effect, int] = {}
    for loss in losses:
        ranks[loss.effect] = min(loss.subject.rank, ranks.get(loss.effect, loss.subject.rank))
    return sorted(ranks, key=ranks.__getitem__)[:_MOST_EFFECTS]


def _gives(resource: ResourceChange) -> bool:
    """Whether a resource gives rights that it did not give before."""
    if not resource.inputs:
        return resource.kind == "added"
    forcing = any(row.new != REPLACED_SOURCE for row in resource.forcing)
    return any(row.effect.kind == "grants" for row in resource.inputs) or forcing


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


def _fields(kind: EffectKind, cause: Cause, losses: Iterable[Loss]) -> str:
    """Return the change of the stack file as words, or of the inputs if the file does not show it."""
    if kind in ("stack", "cost"):
        return ""
    if cause.path == ("retired",):
        since, _, kept = cause.becomes.partition(KEEPS)
        exception = "" if kept == NOTHING else f", but for {kept}"
        return f"is retired, and destroyed from {since} on{exception}"
    name = str(cause.path[-1]) if cause.path else "it"
    was = "" if cause.was.startswith(DIGEST) else cause.was
    if cause.becomes == REMOVED:
        return " ".join(word for word in (name, was, "is removed") if word)
    if not cause.resource and not cause.becomes.startswith(DIGEST):
        return f"{name} from {was or 'nothing'} to {cause.becomes or 'nothing'}"
    inputs = dict.fromkeys(str(loss.input) for loss in losses if loss.input is not None)
    if inputs:
        return listed(list(inputs), _MOST)
    return "it is added" if cause.resource else f"{name} changes"


def with_losses(findings: Iterable[Consequence]) -> list[Finding]:
    """Return the losses that nobody acknowledges, as findings."""
    return [row.finding for row in findings if row.is_loss and row.acknowledged is None]
