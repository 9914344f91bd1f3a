"""Checks the stacks that a change can affect, before and after the change, and compares the results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from training_platform.checks.baseline import Baseline
from training_platform.checks.causes import with_causes
from training_platform.checks.change_report import (
    Act,
    Amount,
    Comparison,
    ResourceChange,
    StackChange,
    StackChangeKind,
)
from training_platform.checks.comparison.acknowledged_values import leaves
from training_platform.checks.comparison.acts import ActTeller, unacknowledged
from training_platform.checks.comparison.base_files import BaseTree, base_tree
from training_platform.checks.comparison.changed_fields import written
from training_platform.checks.comparison.changes import (
    Side,
    StackAmounts,
    accelerator_changes,
    against_state,
    capacity_changes,
    cost_changes,
    quota_changes,
    removed,
    resource_changes,
    side_of,
    with_left_behind,
    with_unknown_lines,
)
from training_platform.checks.comparison.deciding_fields import DecidingFields
from training_platform.checks.comparison.deployed import DeployedStack, Preview
from training_platform.checks.comparison.effects import effect_of_loss
from training_platform.checks.comparison.lifted_protection import left_off
from training_platform.checks.comparison.losses import LossFinder
from training_platform.checks.comparison.refusals import (
    fixed_inputs,
    further_rights,
    kept_instances,
    placed_flavors,
    removals,
)
from training_platform.checks.comparison.upgrades import moved_requests, upgrades
from training_platform.checks.effect_kinds import LOSS_RULES, Effect
from training_platform.checks.outcome import FlatResource
from training_platform.checks.plan_document import PlanDocuments, planned_of
from training_platform.checks.report import Report, fingerprints, identity, set_aside, without_old_exempt
from training_platform.checks.stacks import CheckOptions, CheckResult, Files, check_files, read_files, stack_names
from training_platform.config.model.stack import Stack, stack_name
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.finding import Anchor, Finding, UserError
from training_platform.config.reading.secrets import RUN_KEY, run_key
from training_platform.config.reading.source import value_at
from training_platform.config.workspace import STACKS_FOLDER, Workspace, stack_file
from training_platform.quota.ledger_findings import holders_of
from training_platform.resources.plan import OWN_RESOURCES
from training_platform.resources.stack_plan import kept_resources
from training_platform.rules.exemptions import Exempted
from training_platform.rules.foreign_access import FOREIGN_ACCESS
from training_platform.rules.public_access import PUBLIC_ACCESS

_COMMAND = "training_platform/cli/plan.py"
_PATIENCE = 10  # seconds for the base's process to end
PROGRAM = ("training_platform/", OWN_RESOURCES)
"""Besides stack files, the files that affect plans. If one of them changed, the base is planned by its own code."""
FOR_ALL = (*PROGRAM, "requirements", f"{STACKS_FOLDER}/quotas/", f"{STACKS_FOLDER}/exemptions.yaml")


class _NotPlanned(Exception):
    """The base's own code could not plan; the message gives the reason."""


@dataclass(frozen=True, kw_only=True)
class BaseOptions:
    """What stacks are compared with: a commit, their deployed states, and previews that replace our own plans."""

    ref: str
    states: Mapping[str, DeployedStack] = field(default_factory=dict)
    previews: Mapping[str, Preview] = field(default_factory=dict)

    @property
    def deployed(self) -> tuple[str, ...]:
        """The stacks that are compared with their deployed state."""
        return tuple(dict.fromkeys((*self.states, *self.previews)))


def check_against(
    root: Path,
    base_options: BaseOptions,
    selected: Sequence[str],
    options: CheckOptions,
    *,
    baseline: Baseline,
    new_only: bool,
) -> Report:
    """Check the stacks that the change since a base can affect, and compare them with their base.

    With ``new_only``, findings that the base also has do not count. Raises UserError.
    """
    ref = base_options.ref
    options.progress(f"reading {ref}")
    with base_tree(root, ref) as tree:
        head_files = read_files(root, options.today)
        base_files = read_files(tree.root, options.today)
        head_files = replace(head_files, exemptions=head_files.exemptions.since(base_files.exemptions))
        scope = _scope(tree, base_options, head_files.workspace, base_files.workspace, selected)
        options = replace(options, base_files=base_files.workspace, inputs=True)
        options.progress(f"planning {ref}")
        base: CheckResult | None = None
        unknown: str | None = None
        try:
            base, unknown = _check_base(tree, base_files, scope, options)
        except _NotPlanned as error:
            unknown = str(error)
        if base is not None:
            options = replace(options, held_before=holders_of(base.ledgers.projects.values()))
        head = check_files(head_files, scope.head, options)
        comparison = _compared(scope, base_options, head, base, options.today)
        comparison = replace(comparison, commit=tree.commit, unknown=unknown)
        sides = head_files.workspace, base_files.workspace
        fields = DecidingFields(*sides)
        finder = LossFinder(
            comparison=comparison, head=sides[0], base=sides[1], fields=fields, most_more=_most_more(head, base)
        )
        teller = ActTeller(head=sides[0], base=sides[1], fields=fields, exemptions=head_files.exemptions)
        acts = _known_openings(teller.acts(finder.losses()), head.report)
        comparison = replace(comparison, acts=tuple(acts))
        findings = unacknowledged(comparison.acts)
        findings += _other_findings(comparison, head_files.workspace, base_files.workspace)
    report = with_causes(_with_findings(head.report, head.plans.safe(findings)), {})
    report = baseline.apply(report)
    report = replace(report, failures=(*report.failures, *_undeclared(scope, head_files.workspace, ref)))
    if new_only and base is not None:
        why = f"{ref} has this finding as well"
        report = set_aside(report, dict.fromkeys(_known_fingerprints(base.report.all_findings(), scope), why))
        exempt_before = [row.finding for stack in base.report.stacks for row in stack.exempted]
        report = without_old_exempt(report, set(_known_fingerprints(exempt_before, scope)), why)
    return replace(report, comparison=comparison)


def _scope(
    tree: BaseTree, base_options: BaseOptions, head: Workspace, base: Workspace, selected: Sequence[str]
) -> Affected:
    """Return the stacks to compare: those that the change can affect, and those whose deployed state is known."""
    scope = affected(tree.changed, head, base)
    for name, was in scope.renamed.items():
        if was in selected:
            ref = base_options.ref
            raise UserError(f"There is no stack {was} any more: the stack that is {was} in {ref} is now called {name}.")
    if selected:
        names = set(stack_names(head, selected))
        old = names | {was for name, was in scope.renamed.items() if name in names}
        head_names = tuple(name for name in scope.head if name in old)
        scope = replace(scope, head=head_names, base=tuple(name for name in scope.base if name in old))
    deployed = base_options.deployed
    missing = [name for name in deployed if name not in head.stacks and name not in base.stacks]
    if missing:
        raise UserError(
            f"A state is given for the stack {missing[0]}, which exists neither here nor in {base_options.ref}."
        )
    return replace(
        scope,
        head=tuple(name for name in head.stacks if name in {*scope.head, *deployed}),
        base=tuple(name for name in base.stacks if name in {*scope.base, *deployed}),
    )


def _check_base(tree: BaseTree, files: Files, scope: Affected, options: CheckOptions) -> tuple[CheckResult, str | None]:
    """Check the base. If its code differs, that code plans and this code checks the plans. Raises _NotPlanned.

    The returned sentence gives the reason why the base's code could plan only some of the stacks.
    """
    unplanned = None
    options = replace(options, base_files=None)
    if scope.own_program:
        documents = _base_plans(tree)
        plans = {document.stack: list(planned_of(document)) for document in documents.plans}
        options = replace(options, base_plans=plans)
        if documents.failures and not plans.keys() >= set(scope.base):
            reasons = " ".join(documents.failures)
            unplanned = f"the code of commit {tree.commit[:12]} does not plan every stack: {reasons}"
    return check_files(files, scope.base, options), unplanned


def _base_plans(tree: BaseTree) -> PlanDocuments:
    """Return the plans of the base's stacks, made by the base's own code. Raises _NotPlanned."""
    commit = f"the code of commit {tree.commit[:12]}"
    if not (tree.root / _COMMAND).is_file():
        raise _NotPlanned(f"{commit} cannot plan here: it has no command `plan`")
    code, output, errors = _run(tree.root)
    last = next(iter(reversed(errors.strip().splitlines())), f"exit code {code}")
    try:
        return PlanDocuments.model_validate_json(output)
    except ValidationError as error:
        reason = "it prints plans of another version" if code == 0 else last
        raise _NotPlanned(f"{commit} cannot plan here: {reason}") from error


def _run(root: Path) -> tuple[int, str, str]:
    """Run the command of the base, and return its exit code, output and errors. An interrupt also ends the command."""
    with subprocess.Popen(  # noqa: S603 # this interpreter, and arguments of ours
        [sys.executable, "-P", "-m", "training_platform.cli.main", "plan", "--format", "json", "--root", str(root)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), RUN_KEY: run_key()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            output, errors = process.communicate()
        except BaseException:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            process.kill()
            raise
        return process.returncode, output, errors


def _compared(
    scope: Affected, base_options: BaseOptions, head_check: CheckResult, base_check: CheckResult | None, today: date
) -> Comparison:
    """Return how the work tree (head) differs from the base; no differences if there is no base."""
    comparison = Comparison(
        ref=base_options.ref,
        other_stacks=len(head_check.files.workspace.stacks) - len(scope.head),
        own_program=scope.own_program,
        deployed=base_options.deployed,
    )
    if base_check is None:
        return comparison
    base = side_of(base_check)
    left_behind = _left_behind(scope, head_check.files.workspace, base.workspace, today)
    head = with_left_behind(side_of(head_check), base_check, left_behind)
    known_base = with_unknown_lines(base, head)
    known_head = with_unknown_lines(head, base)
    return replace(
        comparison,
        stacks=tuple(_stacks(scope, base_options, head, base, left_behind)),
        quotas=quota_changes(known_base, known_head),
        capacity=capacity_changes(known_base, known_head),
    )


def _left_behind(scope: Affected, head: Workspace, base: Workspace, today: date) -> frozenset[str]:
    """Return the stacks whose files were removed although no pipeline destroyed them. Their resources still exist."""
    kept = {*head.stacks, *head.unread_stacks, *scope.renamed.values()}
    gone = {name for name in base.stacks if name not in kept}
    return frozenset(name for name in gone if not _is_over(base.stacks[name], today))


def _is_over(stack: Stack, today: date) -> bool:
    """Return True if the stack's file says that it is retired by now, so that a pipeline has destroyed the stack."""
    return stack.retired is not None and stack.retired.since <= today


def _stacks(
    scope: Affected, base_options: BaseOptions, head: Side, base: Side, left_behind: Container[str]
) -> Iterator[StackChange]:
    """Yield the change of each stack in the head, then the changes of stacks that exist only in the base."""
    for name in scope.head:
        was = scope.renamed.get(name, name)
        change = _stack(name, was, head, base)
        state = base_options.states.get(was)
        preview = base_options.previews.get(name)
        planned = head.resources.get(name)
        if preview:
            change = replace(change, resources=preview.changes, unknown=None)
        elif state and planned is not None:
            change = replace(change, resources=against_state(state.resources, planned), unknown=None)
        comparable_base = None if change.unknown else change.base
        if comparable_base and comparable_base.retired:
            change = _after_retirement(change)
        elif comparable_base:
            change = _retired(change, planned)
        yield change
    renamed = {*scope.renamed.values()}
    for name in scope.base:
        if name in head.stacks or name in renamed:
            continue
        gone = _stack(name, name, head, base)
        if name in head.unknown:
            yield gone
            continue
        state = base_options.states.get(name)
        if name in left_behind or (state and state.resources):  # none of its use is freed
            minimum = gone.least_usd.before
            maximum = gone.most_usd.before
            gone = replace(gone, accelerators=(), least_usd=Amount(minimum, minimum), most_usd=Amount(maximum, maximum))
            gone = replace(gone, kind="left", resources=())
        yield gone


def _stack(name: str, was: str, head: Side, base: Side) -> StackChange:
    """Return the change of a stack that is named ``was`` in the base. The stack may exist on only one side."""
    head_report = head.stacks.get(name)
    base_report = base.stacks.get(was)
    base_amounts = StackAmounts(base_report, was in base.workspace.unknown_stacks)
    head_amounts = StackAmounts(head_report, name in head.workspace.unknown_stacks)
    minimum, maximum = cost_changes(base_amounts, head_amounts)
    unplanned = []
    if base_amounts.unknown or (base_report and was not in base.resources):
        unplanned.append("the base")
    if head_amounts.unknown or (head_report and name not in head.resources):
        unplanned.append("the work tree")
    resources: tuple[ResourceChange, ...] = ()
    if not unplanned:
        resources = resource_changes(base.resources.get(was, ()), head.resources.get(name, ()))
    return StackChange(
        name=name,
        kind=_kind(name, was, base_amounts, head_amounts),
        was=was if was != name else None,
        resources=resources,
        accelerators=accelerator_changes(base_amounts, head_amounts),
        least_usd=minimum,
        most_usd=maximum,
        unpriced=Amount(base_amounts.unpriced, head_amounts.unpriced),
        unknown=f"not planned in {' and '.join(unplanned)}" if unplanned else None,
        head=head.workspace.stacks.get(name),
        base=base.workspace.stacks.get(was),
    )


def _kind(name: str, was: str, base: StackAmounts, head: StackAmounts) -> StackChangeKind:
    if was != name:
        return "renamed"
    if base.report is None and not base.unknown:
        return "added"
    return "removed" if head.report is None and not head.unknown else "changed"


def _retired(change: StackChange, planned: Sequence[FlatResource] | None) -> StackChange:
    """Return the change of a stack that is being retired: its other changes, and all resources that will be destroyed.

    The retirement also lifts the options that keep the engine from deleting resources. This is not reported as a
    change.
    """
    stack = change.head
    if stack is None or stack.retired is None or stack.section is None or planned is None:
        return change
    sources = {resource.key: chain.from_iterable(resource.inputs_from.values()) for resource in planned}
    kept = kept_resources(stack.section, stack.retired, sources)
    other_changes = []
    for resource in change.resources:
        inputs = tuple(row for row in resource.inputs if row.path not in ("protect", "retainOnDelete"))
        if inputs or not resource.inputs:
            other_changes.append(replace(resource, inputs=inputs))
    added_now = {resource.key for resource in change.resources if resource.kind == "added"}
    plan = {resource.key: resource for resource in planned}
    destroyed = [
        replace(removed(resource, plan), at_end=True)
        for resource in planned
        if resource.key not in kept and resource.key not in added_now
    ]
    return replace(change, kind="retired", resources=(*other_changes, *destroyed))


def _after_retirement(change: StackChange) -> StackChange:
    """Return the change of a stack that was already retired in the base.

    A resource that the retired stack no longer keeps will be destroyed, unless the retirement is withdrawn.
    """
    ends = change.head is not None and change.head.retired is not None
    resources = []
    for resource in change.resources:
        effect = effect_of_loss(resource.type) if ends else Effect("none", "its stack goes on")
        inputs = tuple(
            row._replace(effect=effect) if row.path == "retainOnDelete" and not row.new else row
            for row in resource.inputs
        )
        resources.append(replace(resource, inputs=inputs))
    return replace(change, resources=tuple(resources))


_OPEN = (PUBLIC_ACCESS, FOREIGN_ACCESS.id)
"""Rules that report open access, whether or not this change opens it."""


def _known_openings(acts: Iterable[Act], report: Report) -> Iterator[Act]:
    """Yield the decisions. If a rule already reports the access that one opens, the decision refers to that finding.

    If that finding is exempt, the decision is exempt as well.
    """
    counted = [row for row in report.all_findings() if row.rule in _OPEN]
    exempted = [row for row in report.all_exempted() if row.finding.rule in _OPEN]
    for act in acts:
        losses = [row for row in act.consequences if row.kind in LOSS_RULES]
        if act.acknowledged is None and losses and all(row.kind == "opens" for row in losses):
            excused = next((other for other in exempted if _is_about_same(act.finding, other.finding)), None)
            cause = next((other for other in counted if _is_about_same(act.finding, other)), None)
            if cause:
                yield replace(act, finding=replace(act.finding, follows=cause.place, root=cause.mark))
                continue
            if excused:
                consequences = tuple(replace(row, acknowledged=row in losses) for row in act.consequences)
                yield replace(act, consequences=consequences, acknowledged=Exempted(act.finding, excused.entry))
                continue
        yield act


def _is_about_same(opening: Finding, state: Finding) -> bool:
    """Return True if two findings are about the same resource or the same section of a stack file."""
    if opening.stack != state.stack:
        return False
    if opening.resource and opening.resource == state.resource:
        return True
    paths = sorted((opening.path, state.path), key=len)
    return bool(paths[0]) and f"{paths[1]}.".startswith(f"{paths[0]}.")


def _most_more(head: CheckResult, base: CheckResult | None) -> float | None:
    """Return the USD per hour by which a stack's cost may rise: the lower of both sides' limits, or None."""
    limits = [check.files.prices.most_more_per_hour for check in (head, base) if check is not None]
    return min((limit for limit in limits if limit is not None), default=None)


def _other_findings(comparison: Comparison, head: Workspace, base: Workspace) -> list[Finding]:
    """Return the findings about a change that are not losses."""
    return located(_other_drafts(comparison, head, base))


def _other_drafts(comparison: Comparison, head: Workspace, base: Workspace) -> Iterator[Draft]:
    yield from left_off(comparison, head)
    yield from upgrades(comparison, head)
    yield from moved_requests(comparison)
    yield from removals(head, base)
    yield from placed_flavors(head, base)
    yield from fixed_inputs(comparison)
    yield from kept_instances(head, base)
    yield from further_rights(comparison, head, base)
    yield from _unknown(comparison)


BASE_NOT_PLANNED = declare(
    "base-not-planned",
    "Find a stack that cannot be compared with the base of a change.",
    ruleset="changes",
    severity="warning",
    unjudged="change of a stack",
)


def _unknown(comparison: Comparison) -> Iterator[Draft]:
    """Yield a warning about stacks whose base could not be planned: the change may replace resources unnoticed."""
    if comparison.unknown:
        yield finding(Anchor(), (), comparison.unknown, rule=BASE_NOT_PLANNED)
    for stack in comparison.stacks:
        if stack.unknown == "not planned in the base" and stack.head:
            message = f"is {stack.unknown}, so it is not known what this change replaces"
            place = Anchor(stack=stack.name, file=stack.head.source.file)
            yield finding(place, (), message, rule=BASE_NOT_PLANNED)


def _with_findings(report: Report, findings: Sequence[Finding]) -> Report:
    """Return the report with additional findings. Each is added to its stack if the report contains the stack."""
    by_stack: dict[str, list[Finding]] = defaultdict(list)
    names = {stack.name for stack in report.stacks}
    for row in findings:
        by_stack[row.stack if row.stack in names and row.stack else ""].append(row)
    stacks = tuple(replace(stack, findings=(*stack.findings, *by_stack[stack.name])) for stack in report.stacks)
    return replace(report, stacks=stacks, findings=(*report.findings, *by_stack[""]))


def _undeclared(scope: Affected, head: Workspace, ref: str) -> Iterator[str]:
    """Yield a failure for each renamed stack whose file does not declare the stack's deployed name."""
    for name, was in scope.renamed.items():
        stack = head.stacks[name]
        if name in scope.head and declared(stack) != was:
            yield (
                f"{stack.source.file}: this stack is {was} in {ref}. Pulumi does not know the new name, and would "
                f"create all resources of the stack a second time. Rename the deployed stack with `pulumi stack "
                f"rename {name} "
                f"--stack {was}`, and add to the file: renamed_from: {was}"
            )


def _known_fingerprints(findings: Iterable[Finding], scope: Affected) -> Iterator[str]:
    """Yield the fingerprints of the base's findings, computed with the new file name if a stack was renamed."""
    files = {stack_file(was): stack_file(name) for name, was in scope.renamed.items()}
    identities = (identity(finding) for finding in findings)
    return fingerprints((rule, files.get(file, file), *other_parts) for rule, file, *other_parts in identities)


@dataclass(frozen=True, kw_only=True)
class Affected:
    """The stacks to compare in ``head`` and in ``base``. ``renamed`` maps new names to old names.

    ``own_program`` says that the base must be planned by the version of the program that it contains.
    """

    head: tuple[str, ...]
    base: tuple[str, ...]
    renamed: Mapping[str, str]
    own_program: bool


def affected(changed: Iterable[str], head: Workspace, base: Workspace) -> Affected:
    """Return the stacks that changed files can affect; the paths are relative to the repository."""
    changed = tuple(changed)
    if any(path.startswith(FOR_ALL) for path in changed):
        names = {*head.stacks, *base.stacks}
    else:
        names = _of_files(changed, head, base)
    renamed = renamings(head, base)
    names |= {was for name, was in renamed.items() if name in names}
    return Affected(
        head=tuple(name for name in head.stacks if name in names),
        base=tuple(name for name in base.stacks if name in names),
        renamed=renamed,
        own_program=any(path.startswith(PROGRAM) for path in changed),
    )


def _of_files(changed: Iterable[str], head: Workspace, base: Workspace) -> set[str]:
    """Return the stacks of changed files, the teams of changed environments, and environments that name changed teams.

    An environment is affected if it names a team that is added, removed or renamed. If it lends what is promised to no
    team, any change of its teams affects it.
    """
    folder = PurePosixPath(STACKS_FOLDER)
    paths = (PurePosixPath(path) for path in changed)
    names_of_files = [stack_name(path) for path in paths if path.parent == folder]
    touched = {name for name in names_of_files if name is not None}
    names = set(touched)
    for side in (head, base):
        names |= {stack.name for stack in side.stacks.values() if stack.environment_name in touched}
        for name in touched & side.stacks.keys():
            home = side.stacks.get(side.stacks[name].environment_name)
            teams = {_team_name(head, name), _team_name(base, name)}
            if home and (home.lends or (len(teams) == 2 and any(_names(home, team) for team in teams))):
                names.add(home.name)
    return names


def _names(home: Stack, team: str | None) -> bool:
    """Return True if an environment's file contains the name of a team, as a key or in a list."""
    values = leaves(written(home, ())) if team else ()
    return any(team in path or (isinstance(value, list) and team in value) for path, value in values)


def _team_name(side: Workspace, stack: str) -> str | None:
    """Return the team name that a stack has on this side, or None if this side has no team stack of that name."""
    team = side.stacks[stack].team if stack in side.stacks else None
    return team.name if team else None


def renamings(head: Workspace, base: Workspace) -> dict[str, str]:
    """Return the old names of renamed stacks: stacks with the same team, or with the same project and clusters.

    A team stays the same team if its environment is renamed. If several stacks match, none counts as renamed, unless a
    file declares it.
    """
    head_names = {*head.stacks, *head.unread_stacks}
    base_names = {*base.stacks, *base.unread_stacks}
    gone = {name: stack for name, stack in base.stacks.items() if name not in head_names}
    new = {name: stack for name, stack in head.stacks.items() if name not in base_names}
    old_names = {name: declared(stack) for name, stack in new.items()}
    names = {name: was for name, was in old_names.items() if was in gone}
    for name, was in names.items():
        new.pop(name)
        gone.pop(was, None)

    def pairs(
        identity: Callable[[Stack, Mapping[str, str]], object], environments: Mapping[str, str]
    ) -> dict[str, str]:
        old: dict[object, list[str]] = defaultdict(list)
        for stack in gone.values():
            old[identity(stack, {})].append(stack.name)
        current: dict[object, list[str]] = defaultdict(list)
        for stack in new.values():
            current[identity(stack, environments)].append(stack.name)
        return {
            stacks[0]: old[key][0]
            for key, stacks in current.items()
            if key is not None and len(stacks) == 1 and len(old[key]) == 1
        }

    environments = names | pairs(_environment_identity, {})
    return environments | pairs(_team_identity, environments)


def _environment_identity(stack: Stack, _: Mapping[str, str]) -> object:
    return (stack.environment.project, frozenset(stack.environment.clusters)) if stack.environment else None


def _team_identity(stack: Stack, environments: Mapping[str, str]) -> object:
    team = stack.team
    return (environments.get(team.environment, team.environment), team.name) if team else None


def declared(stack: Stack) -> str:
    """Return the former name that a stack's file declares, even if the model rejects the file; empty if none."""
    name = value_at(stack.source.value, (*stack.below, "renamed_from"))
    return name if isinstance(name, str) else ""
