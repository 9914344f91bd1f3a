"""Groups the losses that a change causes by decision. Each decision is one finding and needs one acknowledgement.

Losses are grouped first by their cause and then by kind of effect. Several fields that together force one replacement
are one decision. Removing a section of an environment and the dependent sections of teams' files is also one decision.
An acknowledged loss does not count as a finding, but reports still show it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from training_platform.checks.change_report import Act, ActVerb, Consequence
from training_platform.checks.comparison.deciding_fields import Cause, DecidingFields
from training_platform.checks.comparison.lifted_protection import protection
from training_platform.checks.comparison.losses import OF_FILE, Loss, LostSubject
from training_platform.checks.effect_kinds import EFFECT_KINDS, HEADLINES, LOSS_RULES, Effect, EffectKind
from training_platform.config.model.stack import Stack
from training_platform.config.reading.declaration import Rule, finding, located
from training_platform.config.reading.finding import Anchor, Finding, Path, Place, dotted
from training_platform.config.reading.section import listed
from training_platform.config.workspace import Workspace, stack_file
from training_platform.quota.ledger_findings import promised_of
from training_platform.rules.exemptions import Exempted, ExemptionEntry, Exemptions
from training_platform.rules.losses import LOSS_RULES as RULES_OF_LOSSES
from training_platform.rules.losses import LossKind, LossPlace

_LINE = Rule(id="effect", title="An effect that is shown but is not a finding.", ruleset="changes")
_LIFT = "deletion_protection: false"
_MOST_SUBJECTS = 2  # that a finding names of its gravest effect
_MOST_OTHERS = 1  # subject of each other effect
_MOST_EFFECTS = 2  # sentences about the gravest subjects


@dataclass(frozen=True, kw_only=True)
class ActTeller:
    """Groups losses by decision, and describes the decisions; ``exemptions`` contains the acknowledgements."""

    head: Workspace
    base: Workspace
    fields: DecidingFields
    exemptions: Exemptions

    def acts(self, losses: Iterable[Loss]) -> tuple[Act, ...]:
        """Return every decision that affects somebody, the most serious first, each at the line that causes it."""
        acts = [self._act(group) for group in _without_needed_lifts(_grouped(losses))]
        return tuple(sorted(acts, key=_rank))

    def _act(self, losses: Sequence[Loss]) -> Act:
        causes = self._causes(losses)
        by_kind = _by_kind(losses)
        place = _place(causes)
        entries: list[ExemptionEntry] = []
        missing: list[Loss] = []
        for loss in losses:
            kind = _loss_kind(loss)
            if kind is None:
                continue
            own_place = _place([loss.own_cause or loss.causes[0]])
            entry = self.exemptions.accepting(place, own_place, kind, loss.stack, of_team=self._is_of_team(causes[0]))
            if entry:
                entries.append(entry)
            else:
                missing.append(loss)
        lacking = {loss.effect.kind for loss in missing}
        consequences = tuple(
            Consequence(
                kind=kind,
                subjects=_subjects(_told(of_kind)),
                acknowledged=kind in LOSS_RULES and kind not in lacking,
            )
            for kind, of_kind in by_kind.items()
        )
        act_finding = self._finding(causes, by_kind, missing if entries else ())
        acknowledged = Exempted(act_finding, entries[0]) if entries and not missing else None
        return Act(
            verb=_verb(causes[0], by_kind),
            finding=act_finding,
            consequences=consequences,
            was=causes[0].before.text,
            also=tuple(self._also(losses)),
            acknowledged=acknowledged,
        )

    def _causes(self, losses: Iterable[Loss]) -> list[Cause]:
        """Return the distinct causes of a decision. Causes in the environment's file come first."""
        causes = list(dict.fromkeys(cause for loss in losses for cause in loss.causes))
        return sorted(causes, key=self._is_of_team)

    def _is_of_team(self, cause: Cause) -> bool:
        stack = self.head.stacks.get(cause.stack)
        return stack is None or stack.environment is None

    def _also(self, losses: Iterable[Loss]) -> Iterator[str]:
        """Yield the lines of other files that are part of a decision, each only once."""
        own_causes = dict.fromkeys(loss.own_cause for loss in losses if loss.own_cause)
        for cause in own_causes:
            if stack := self.head.stacks.get(cause.stack):
                anchor = stack.locate(cause.path)
                yield f"{anchor.file}:{anchor.position.line}" if anchor.position else f"{anchor.file}"

    def _finding(
        self, causes: Sequence[Cause], by_kind: Mapping[EffectKind, Sequence[Loss]], missing: Iterable[Loss]
    ) -> Finding:
        """Return a decision's finding; ``missing`` are the losses that its acknowledgement does not list."""
        cause = causes[0]
        kind = next(iter(by_kind))
        rule = LOSS_RULES.get(kind, _LINE)
        stack = self.head.stacks.get(cause.stack)
        losses = [loss for of_kind in by_kind.values() for loss in of_kind]
        is_error = kind == "stack" or any(self._protects(loss.causes[0], loss.effect.kind) for loss in losses)
        takes = _taken(losses)
        allowed = self._allowed(_place(causes), missing) if kind in LOSS_RULES else None
        owners = [name for name, _ in takes if name != cause.stack]
        if allowed and owners and self._is_of_team(cause):
            allowed += f", merged before this change, because {listed(owners)} has to consent"
        draft = finding(
            stack or Anchor(stack=cause.stack, file=stack_file(cause.stack)),
            cause.path,
            self._message(causes, by_kind),
            rule=rule,
            severity="error" if is_error else "warning",
            allowed=allowed,
            resource=cause.resource or None,
            spoils=tuple(self._spoiled(causes, losses)) if kind in LOSS_RULES else (),
            rests_on=tuple(stack.at(cause.path[:length]) for length in range(2, len(cause.path) + 1)) if stack else (),
            first=self._first(cause, by_kind) or None,
            becomes=_place(causes).becomes,
            takes=takes,
        )
        return located([draft])[0]

    def _spoiled(self, causes: Iterable[Cause], losses: Iterable[Loss]) -> Iterator[Place]:
        """Yield the places in stack files about which other findings are no longer reliable after the decision."""
        own_causes = dict.fromkeys(loss.own_cause for loss in losses if loss.own_cause)
        for cause in (*causes, *own_causes):
            stack = self.head.stacks.get(cause.stack)
            if stack is None:
                continue
            path = cause.path
            if cause.after is None and path:
                yield stack.at(path)
            if path[:1] == ("clusters",):
                yield from (stack.at(path[:2]), stack.at((*path[:2], "node_pools")), stack.at(path[:4]))
            if path[:1] == ("filestore",) and len(path) > 1:
                yield stack.at(promised_of(str(path[1])))

    def _allowed(self, place: LossPlace, missing: Iterable[Loss]) -> str:
        lacking = [f"{', '.join(kinds)} of {stack}" for stack, kinds in _taken(missing)]
        if lacking:
            return f"an acknowledgement in stacks/exemptions.yaml that also lists {'; '.join(lacking)}"
        resource = f"resource: {json.dumps(place.resource)}, " if place.resource else ""
        allowed = f"an acknowledgement in stacks/exemptions.yaml with {resource}becomes: {json.dumps(place.becomes)}"
        if other := self.exemptions.of_another_value(place):
            allowed += f" ({other})"
        return allowed

    def _message(self, causes: Sequence[Cause], by_kind: Mapping[EffectKind, Sequence[Loss]]) -> str:
        """Return a decision's message: what is lost, who loses it, how the file changes, and what that means."""
        cause = causes[0]
        parts: list[str] = []
        for kind, losses in by_kind.items():
            if kind in LOSS_RULES or len(by_kind) == 1:
                names_of_kind = _MOST_OTHERS if parts else _MOST_SUBJECTS
                parts.append(f"{HEADLINES[kind]}: {listed(_subjects(_told(losses)), names_of_kind)}")
        message = "; ".join(parts)
        gravest = next(iter(by_kind.values()))
        if change := self._change(causes, gravest):
            message += f": {change}"
        message += "".join(f"; {says}" for says in _says(by_kind))
        if name := self._new_name(cause):
            message += f"; {name} has the same fields: a new name deletes the old resource and creates another"
        return message

    def _change(self, causes: Sequence[Cause], losses: Iterable[Loss]) -> str:
        """Return the change of the stack file in words, or the change of the inputs if the file does not show it."""
        cause = causes[0]
        stack = self.head.stacks.get(cause.stack)
        if any(loss.effect.kind in ("stack", "cost") for loss in losses):
            return ""
        if cause.path == ("retired",) and stack and stack.retired:
            exception = f", except {', '.join(sorted(stack.retired.keeps))}" if stack.retired.keeps else ""
            return f"is retired, and pipelines may destroy it from {stack.retired.since} on{exception}"
        fields = [other for other in causes if other.stack == cause.stack and not other.resource]
        if fields and all(field.after and not field.after.is_digest for field in fields):
            return " and ".join(dict.fromkeys(map(_from_to, fields)))
        name = str(cause.path[-1]) if cause.path else "it"
        if cause.after is None:
            was = "" if cause.before.is_digest else cause.before.text
            return " ".join(word for word in (name, was, "is removed") if word)
        inputs = dict.fromkeys(str(loss.input) for loss in losses if loss.input is not None)
        if inputs:
            return listed(list(inputs), _MOST_SUBJECTS)
        return "it is added" if cause.resource else f"{name} changes"

    def _first(self, cause: Cause, by_kind: Mapping[EffectKind, Sequence[Loss]]) -> str:
        """Return what to do before the change is deployed, according to its most serious effect."""
        effects = _gravest_effects(_told(next(iter(by_kind.values()))))
        first = next((effect.first for effect in effects if effect.first), "")
        if cause.path == ("retired",) and "data" not in by_kind:
            first = "list in `keeps` the sections that people still need"
        if places := self._places_to_lift([loss for losses in by_kind.values() for loss in losses]):
            first += f"; deploy `{_LIFT}` {places} before this change, or the Pulumi engine refuses it"
        return first

    def _places_to_lift(self, losses: Iterable[Loss]) -> str:
        """Return where to lift the protection of lost resources: in their own sections, or in the environment."""
        sections: dict[str, None] = {}
        without_field: dict[str, None] = {}
        for loss in losses:
            resource = loss.resource
            if resource is None or not resource.protected or resource.kind == "changed" or resource.at_end:
                continue
            stack = self.base.stacks.get(loss.stack) or self.head.stacks.get(loss.stack)
            path = self.fields.section(stack.section, resource.name) if stack and stack.section else ()
            lifting = [path[:length] for length in range(1, len(path) + 1) if _has_field(stack, path[:length])]
            if lifting:
                sections[dotted(lifting[-1])] = None
            else:
                without_field[dotted(path)] = None
        if without_field:
            named = [path for path in without_field if path]
            have = "has" if len(named) == 1 else "have"
            return "in the environment" + (f", since {listed(named, 2)} {have} no such field," if named else "")
        return f"in {listed(list(sections), _MOST_SUBJECTS)}" if sections else ""

    def _new_name(self, cause: Cause) -> str:
        """Return the new name of a renamed key: an added key of the same section with equal fields; empty if none."""
        new = self.head.stacks.get(cause.stack)
        old = self.base.stacks.get(cause.stack)
        if cause.after is not None or not cause.path or new is None or old is None:
            return ""
        fields = self.fields.changed(new, old)
        gone = [row.was for row in fields if row.path == cause.path]
        added = [row for row in fields if row.was is None and row.path[:-1] == cause.path[:-1]]
        return next((str(row.path[-1]) for row in added if isinstance(row.now, Mapping) and row.now in gone), "")

    def _protects(self, cause: Cause, kind: EffectKind) -> bool:
        """Return True if a resource is protected by the environment and its own section does not lift this."""
        workspace = self.base if kind == "protection" else self.head
        stack = workspace.stacks.get(cause.stack)
        home = workspace.environment_of(stack) if stack else None
        if stack is None or home is None or not home.deletion_protection or kind == "cost":
            return False
        if kind == "protection":
            return cause.path[-1:] != ("deletion_protection",) or len(cause.path) == 1
        return not any(protection(stack, cause.path[:length]) is False for length in range(1, len(cause.path) + 1))


class _LossGroup:
    """Losses that have causes in common."""

    def __init__(self) -> None:
        self.causes: dict[Cause, None] = {}
        self.losses: list[Loss] = []


def _grouped(losses: Iterable[Loss]) -> list[list[Loss]]:
    """Return losses in groups: losses with a common cause are in one group, and so are losses linked by others."""
    groups: dict[Cause, _LossGroup] = {}
    for loss in losses:
        group = _LossGroup()
        group.losses.append(loss)
        group.causes.update(dict.fromkeys(loss.causes))
        for cause in loss.causes:
            other = groups.get(cause)
            if other is not None and other is not group:
                other.losses += group.losses
                other.causes.update(group.causes)
                group = other
            groups.update(dict.fromkeys(group.causes, group))
    return [group.losses for group in {id(group): group for group in groups.values()}.values()]


def _without_needed_lifts(groups: Iterable[list[Loss]]) -> Iterator[list[Loss]]:
    """Yield the groups. Leave out lifted protection of a section whose replacement or removal is reported anyway."""
    groups = list(groups)
    losing: list[Cause] = []
    for losses in groups:
        for loss in losses:
            if loss.effect.kind in ("data", "jobs"):
                losing += loss.causes
    for losses in groups:
        kept = [loss for loss in losses if not _is_needed_lift(loss, losing)]
        if kept:
            yield kept


def _is_needed_lift(loss: Loss, losing: Iterable[Cause]) -> bool:
    cause = loss.causes[0]
    section = cause.path[:-1]
    if loss.effect.kind != "protection" or cause.path[-1:] != ("deletion_protection",) or not section:
        return False
    return any(other.stack == cause.stack and other.path[: len(section)] == section for other in losing)


def _by_kind(losses: Iterable[Loss]) -> dict[EffectKind, list[Loss]]:
    """Return losses keyed by kind, the most serious first."""
    by_kind: dict[EffectKind, list[Loss]] = {}
    for loss in sorted(losses, key=lambda loss: EFFECT_KINDS.index(loss.effect.kind)):
        by_kind.setdefault(loss.effect.kind, []).append(loss)
    return by_kind


def _loss_kind(loss: Loss) -> LossKind | None:
    return next((kind for kind in RULES_OF_LOSSES if kind == loss.effect.kind), None)


def _place(causes: Sequence[Cause]) -> LossPlace:
    """Return the causes of a decision as its acknowledgement writes them. If there are several, each has its value."""
    cause = causes[0]
    becomes = cause.becomes
    if len(causes) > 1:
        becomes = ", ".join(f"{_name(other, cause)}: {other.becomes}" for other in causes)
    path = None if cause.resource else dotted(cause.path) or "."
    return LossPlace(stack=cause.stack, path=path, resource=cause.resource or None, becomes=becomes)


def _name(field: Cause, beside: Cause) -> str:
    """Return the key of a field, or its path if it is in another file or section than ``beside``."""
    if field.stack != beside.stack:
        return f"{field.stack} {dotted(field.path)}"
    return dotted(field.path[-1:] if field.path[:-1] == beside.path[:-1] else field.path)


def _taken(losses: Iterable[Loss]) -> tuple[tuple[str, tuple[LossKind, ...]], ...]:
    """Return the kinds of losses that each stack has."""
    by_stack: dict[str, set[LossKind]] = {}
    for loss in losses:
        if kind := _loss_kind(loss):
            by_stack.setdefault(loss.stack, set()).add(kind)
    return tuple(
        (stack, tuple(kind for kind in RULES_OF_LOSSES if kind in kinds)) for stack, kinds in sorted(by_stack.items())
    )


def _verb(cause: Cause, kinds: Iterable[EffectKind]) -> ActVerb:
    if "stack" in kinds:
        return "left"
    if "cost" in kinds:
        return "costs more"
    if cause.path == ("retired",):
        return "retired"
    if cause.after is None:
        return "removed"
    return "changed" if cause.before.text else "added"


def _from_to(cause: Cause) -> str:
    name = cause.path[-1] if cause.path else "it"
    if not cause.before.text:
        return f"{name} is set to {cause.becomes}"
    return f"{name} from {cause.before.text} to {cause.becomes or 'nothing'}"


def _told(losses: Sequence[Loss]) -> Sequence[Loss]:
    """Return the losses that the stack file itself shows, or all losses if it shows none.

    The reader can infer the affected resources from the file.
    """
    return [loss for loss in losses if loss.subject.rank == OF_FILE] or losses


def _subjects(losses: Iterable[Loss]) -> tuple[str, ...]:
    """Return nouns for everything that is lost, the most serious first.

    Several resources of the same name share one noun.
    """
    resources: dict[LostSubject, set[str]] = {}
    for loss in losses:
        resources.setdefault(loss.subject, set()).add(loss.resource.name if loss.resource else "")
    return tuple(subject.text(len(resources[subject])) for subject in sorted(resources))


def _says(by_kind: Mapping[EffectKind, Sequence[Loss]]) -> list[str]:
    """Return sentences about the most serious kind of effect: one if there are other kinds of losses, otherwise two.

    There is no sentence about what a team's own file loses because of a removal in its environment.
    """
    gravest = next(iter(by_kind.values()))
    effects = _gravest_effects([loss for loss in _told(gravest) if loss.own_cause is None])
    sentences = 1 if len(set(by_kind) & set(LOSS_RULES)) > 1 else _MOST_EFFECTS
    return list(dict.fromkeys(effect.says for effect in effects[:sentences]))


def _gravest_effects(losses: Iterable[Loss]) -> list[Effect]:
    ranks: dict[Effect, int] = {}
    for loss in losses:
        ranks[loss.effect] = min(loss.subject.rank, ranks.get(loss.effect, loss.subject.rank))
    return sorted(ranks, key=ranks.__getitem__)[:_MOST_EFFECTS]


def _has_field(stack: Stack | None, path: Path) -> bool:
    return stack is not None and protection(stack, path) is not None


def _rank(act: Act) -> tuple[int, bool, str]:
    gravest = act.consequences[0].kind
    return (EFFECT_KINDS.index(gravest), act.acknowledged is not None, act.finding.place)


def unacknowledged(acts: Iterable[Act]) -> list[Finding]:
    """Return a finding for each decision that causes losses and is not acknowledged."""
    return [act.finding for act in acts if act.is_loss and act.acknowledged is None]
