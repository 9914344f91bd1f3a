"""Checks the stacks that a change can affect, on both sides, and compares the results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pydantic import ValidationError

from training_platform.checks.baseline import Baseline
from training_platform.checks.causes import with_causes
from training_platform.checks.comparison.base_files import BaseTree, base_tree
from training_platform.checks.comparison.changes import (
    CheckResult,
    StackResult,
    accelerator_changes,
    against_state,
    capacity_changes,
    cost_changes,
    quota_changes,
    removed,
    resource_changes,
    result_of,
    with_left_behind,
)
from training_platform.checks.comparison.comparison import Amount, Comparison, StackChange, StackKind
from training_platform.checks.comparison.deployed import Deployed, Preview
from training_platform.checks.comparison.effects import Effect, effect_of_loss
from training_platform.checks.comparison.losses import LossFinder, is_over, left_off, with_losses
from training_platform.checks.comparison.refusals import (
    fixed_inputs,
    further_rights,
    kept_instances,
    placed_flavors,
    removals,
)
from training_platform.checks.comparison.upgrades import moved_requests, upgrades
from training_platform.checks.plan_document import PlanDocuments, planned_of
from training_platform.checks.report import Report, fingerprints, set_aside
from training_platform.checks.stacks import Checked, CheckOptions, check_stacks, stack_names
from training_platform.config.model.stack import Stack, stack_name
from training_platform.config.reading.finding import Finding, UserError
from training_platform.config.reading.secrets import RUN_KEY, run_key
from training_platform.config.workspace import STACKS_FOLDER, Workspace, read_workspace, stack_file
from training_platform.resources.stack_plan import OWN_RESOURCES, kept_resources

_COMMAND = "training_platform/cli/plan.py"
_PATIENCE = 10  # seconds for the base's process to end
_EMPTY = CheckResult(stacks={}, quotas=(), capacity=(), identities=(), failures=())
PROGRAM = ("training_platform/", OWN_RESOURCES)
"""Files that affect plans beside stack files; if one of them changed, the base is planned by its own code."""
FOR_ALL = (*PROGRAM, "requirements", f"{STACKS_FOLDER}/quotas/", f"{STACKS_FOLDER}/exemptions.yaml")


class _NotPlanned(Exception):
    """The base's own code could not plan; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """The base of a comparison: a commit, states of stacks by name, and previews instead of our own plans."""

    ref: str
    states: Mapping[str, Deployed] = field(default_factory=dict)
    previews: Mapping[str, Preview] = field(default_factory=dict)

    @property
    def deployed(self) -> tuple[str, ...]:
        """The stacks whose base is their deployed state."""
        return tuple(dict.fromkeys((*self.states, *self.previews)))


def check_against(
    root: Path,
    base: Base,
    selected: Sequence[str],
    options: CheckOptions,
    *,
    baseline: Baseline,
    new_only: bool = False,
) -> Report:
    """Check the stacks that the change since a base can affect, and compare them with their base.

    ``new_only`` sets findings aside that the base has as well. Raises UserError.
    """
    ref = base.ref
    options.progress(f"reading {ref}")
    with base_tree(root, ref) as tree:
        head_files = read_workspace(root)
        base_files = read_workspace(tree.root)
        scope = _scope(tree, base, head_files, base_files, selected)
        head = check_stacks(root, scope.head, replace(options, before=base_files), inputs=True)
        options.progress(f"planning {ref}")
        others = len(head_files.stacks) - len(scope.head)
        comparison = Comparison(
            ref=ref, commit=tree.commit, others=others, own_program=scope.own_program, deployed=base.deployed
        )
        before = _EMPTY
        limits = [head.prices.most_more_per_hour]
        try:
            checked, unplanned = _check_base(tree, scope, options)
            limits.append(checked.prices.most_more_per_hour)
            before = result_of(checked)
            left = _left_behind(scope, head_files, base_files, options.today)
            after = with_left_behind(result_of(head), checked, left)
            comparison = replace(
                comparison,
                stacks=tuple(_stacks(scope, before, after, base, _Files(head_files, base_files, left))),
                quotas=quota_changes(before, after),
                capacity=capacity_changes(before, after),
                unknown=unplanned,
            )
        except _NotPlanned as error:
            comparison = replace(comparison, unknown=str(error))
        most_more = min((limit for limit in limits if limit is not None), default=None)
        finder = LossFinder(comparison, head.workspace, base_files, head.exemptions, most_more)
        consequences = finder.consequences()
        comparison = replace(comparison, consequences=consequences)
        findings = with_losses(consequences)
        findings += _other_findings(comparison, head.workspace, base_files)
    report = with_causes(_with_findings(head.report, head.safe(findings)), {})
    report = baseline.apply(report)
    report = replace(report, failures=(*report.failures, *_undeclared(scope, head_files, ref)))
    if new_only:
        # Files of findings, under the new names of their stacks.
        files = {stack_file(was): stack_file(name) for name, was in scope.renamed.items()}
        identities = ((rule, files.get(file, file), *rest) for rule, file, *rest in before.identities)
        report = set_aside(report, dict.fromkeys(fingerprints(identities), f"{ref} has it as well"))
    return replace(report, comparison=comparison)


def _scope(tree: BaseTree, base: Base, head: Workspace, before: Workspace, selected: Sequence[str]) -> Affected:
    """Return the stacks to compare: those that the change can affect, and those with a known state."""
    scope = affected(tree.changed, head, before)
    for name, was in scope.renamed.items():
        if was in selected:
            raise UserError(f"There is no stack {was} any more: what {base.ref} calls {was} is called {name} now.")
    if selected:
        names = set(stack_names(head, selected))
        old = names | {was for name, was in scope.renamed.items() if name in names}
        head_names = tuple(name for name in scope.head if name in old)
        scope = replace(scope, head=head_names, base=tuple(name for name in scope.base if name in old))
    unknown = [name for name in base.deployed if name not in head.stacks and name not in before.stacks]
    if unknown:
        raise UserError(f"There is no stack {unknown[0]}, neither here nor in {base.ref}, whose state is given.")
    named = {*base.deployed}
    return replace(
        scope,
        head=tuple(name for name in head.stacks if name in {*scope.head, *named}),
        base=tuple(name for name in before.stacks if name in {*scope.base, *named}),
    )


def _other_findings(comparison: Comparison, head: Workspace, base: Workspace) -> Iterator[Finding]:
    """Yield the findings of a change other than losses."""
    yield from left_off(comparison, head, base)
    yield from upgrades(comparison, head)
    yield from moved_requests(comparison, head)
    yield from removals(head, base)
    yield from placed_flavors(head, base)
    yield from fixed_inputs(comparison, head)
    yield from kept_instances(head, base)
    yield from further_rights(comparison, head, base)
    yield from _unknown(comparison, head)


def _undeclared(scope: Affected, head: Workspace, ref: str) -> Iterator[str]:
    """Yield a failure for each renamed stack whose file does not declare the deployed stack's name."""
    for name, was in scope.renamed.items():
        stack = head.stacks[name]
        if name in scope.head and declared(stack) != was:
            yield (
                f"{stack.source.file}: is what {ref} calls {was}, and Pulumi makes all of a stack that it does not "
                f"know a second time. Rename what is deployed, with `pulumi stack rename {name} --stack {was}`, and "
                f"say so in the file: renamed_from: {was}"
            )


def _left_behind(scope: Affected, head: Workspace, base: Workspace, today: date) -> frozenset[str]:
    """Return the stacks whose files are gone but that no pipeline destroyed: they still hold their resources."""
    gone = {name for name in base.stacks if name not in head.stacks and name not in scope.renamed.values()}
    return frozenset(name for name in gone if not is_over(base.stacks[name], today))


def _check_base(tree: BaseTree, scope: Affected, options: CheckOptions) -> tuple[Checked, str | None]:
    """Check the base; if its code differs, that code plans and this code checks the plans. Raises _NotPlanned.

    The sentence is why the base's code planned some of its stacks only.
    """
    unplanned = None
    if scope.own_program:
        documents = _base_plans(tree)
        plans = {document.stack: list(planned_of(document)) for document in documents.plans}
        options = replace(options, plans=plans)
        if documents.failures and not plans.keys() >= set(scope.base):
            reasons = " ".join(documents.failures)
            unplanned = f"the code of commit {tree.commit[:12]} does not plan every stack: {reasons}"
    return check_stacks(tree.root, scope.base, options, inputs=True), unplanned


def _base_plans(tree: BaseTree) -> PlanDocuments:
    """Return the plans of the base's stacks by the base's own code. Raises _NotPlanned."""
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
    """Run the base's command; return its exit code, its output and its errors. An interrupt ends it, too."""
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


class _Files(NamedTuple):
    """The stack files of both sides, and the stacks without a file that are still deployed."""

    head: Workspace
    base: Workspace
    left: Container[str]


def _stacks(
    scope: Affected, before: CheckResult, after: CheckResult, base: Base, files: _Files
) -> Iterator[StackChange]:
    for name in scope.head:
        was = scope.renamed.get(name, name)
        change = _stack(name, before.stacks.get(was), after.stacks.get(name), was)
        state = base.states.get(was)
        preview = base.previews.get(name)
        planned = after.stacks.get(name)
        if preview:
            change = replace(change, resources=preview.changes, unknown=None)
        elif state and planned and planned.resources is not None:
            change = replace(change, resources=against_state(state.resources, planned.resources), unknown=None)
        old = files.base.stacks.get(was)
        if old is not None and not change.unknown:
            if old.retired is None:
                change = _retired(change, files.head.stacks[name], planned)
            else:
                change = _after_retirement(change, files.head.stacks[name])
        yield change
    renamed = {*scope.renamed.values()}
    for name in scope.base:
        if name not in after.stacks and name not in renamed:
            gone = _stack(name, before.stacks.get(name), None, name)
            state = base.states.get(name)
            if name in files.left or (state and state.resources):  # none of its use is freed
                least = gone.least_usd.before
                most = gone.most_usd.before
                gone = replace(gone, accelerators=(), least_usd=Amount(least, least), most_usd=Amount(most, most))
                yield replace(gone, kind="left", resources=())
            else:
                yield gone


def _stack(name: str, before: StackResult | None, after: StackResult | None, was: str) -> StackChange:
    least, most = cost_changes(before, after)
    sides = (("the base", before), ("the work tree", after))
    unplanned = [side for side, stack in sides if stack and stack.resources is None]
    old = before.resources or () if before else ()
    new = after.resources or () if after else ()
    return StackChange(
        name=name,
        kind=_kind(name, was, before, after),
        was=was if was != name else None,
        resources=() if unplanned else resource_changes(old, new),
        accelerators=accelerator_changes(before, after),
        least_usd=least,
        most_usd=most,
        unknown=f"not planned in {' and '.join(unplanned)}" if unplanned else None,
    )


def _retired(change: StackChange, stack: Stack, planned: StackResult | None) -> StackChange:
    """Return the change of a stack that it retires: all resources are destroyed except those that the stack keeps."""
    if stack.retired is None or stack.section is None or planned is None:
        return change
    sources = {
        (resource.type, resource.name): [source for keys in resource.inputs_from.values() for source in keys]
        for resource in planned.resources or ()
    }
    kept = kept_resources(stack.section, stack.retired, sources)
    resources = [
        removed(resource) for resource in planned.resources or () if (resource.type, resource.name) not in kept
    ]
    return replace(change, kind="retired", resources=tuple(resources))


def _after_retirement(change: StackChange, stack: Stack) -> StackChange:
    """Return the change of a stack that was retired: what it no longer keeps is destroyed, unless the stack goes on."""
    resources = []
    for resource in change.resources:
        effect = effect_of_loss(resource.type) if stack.retired else Effect("none", "its stack goes on")
        inputs = tuple(
            row._replace(effect=effect) if row.path == "retainOnDelete" and not row.new else row
            for row in resource.inputs
        )
        resources.append(replace(resource, inputs=inputs))
    return replace(change, resources=tuple(resources))


def _kind(name: str, was: str, before: StackResult | None, after: StackResult | None) -> StackKind:
    if was != name:
        return "renamed"
    if before is None:
        return "added"
    return "removed" if after is None else "changed"


def _unknown(comparison: Comparison, workspace: Workspace) -> Iterator[Finding]:
    """Yield a warning for stacks with a base that could not be planned: the replacements of the change are unknown."""
    if comparison.unknown:
        yield Finding(rule="base-not-planned", severity="warning", message=comparison.unknown)
    for stack in comparison.stacks:
        file = workspace.stacks.get(stack.name)
        if stack.unknown == "not planned in the base" and file:
            message = f"is {stack.unknown}, so it is not known what this change replaces"
            yield Finding(
                rule="base-not-planned", severity="warning", message=message, stack=stack.name, file=file.source.file
            )


def _with_findings(report: Report, findings: Sequence[Finding]) -> Report:
    """Return the report with more findings, each at its stack if the report has the stack."""
    by_stack: dict[str, list[Finding]] = defaultdict(list)
    names = {stack.name for stack in report.stacks}
    for finding in findings:
        by_stack[finding.stack if finding.stack in names and finding.stack else ""].append(finding)
    stacks = tuple(replace(stack, findings=(*stack.findings, *by_stack[stack.name])) for stack in report.stacks)
    return replace(report, stacks=stacks, findings=(*report.findings, *by_stack[""]))


@dataclass(frozen=True, kw_only=True)
class Affected:
    """The stacks to compare on each side, ``head`` and ``base``; ``renamed`` has old names by new ones.

    ``own_program`` says that the base has to be planned by its own program.
    """

    head: tuple[str, ...]
    base: tuple[str, ...]
    renamed: Mapping[str, str]
    own_program: bool


def affected(changed: Iterable[str], head: Workspace, base: Workspace) -> Affected:
    """Return the stacks that changed files can affect; their paths are relative to the repository."""
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
    """Return the stacks of the changed files, the teams of changed environments on both sides, and lending teams."""
    folder = PurePosixPath(STACKS_FOLDER)
    paths = (PurePosixPath(path) for path in changed)
    names_of_files = [stack_name(path) for path in paths if path.parent == folder]
    touched = {name for name in names_of_files if name is not None}
    names = set(touched)
    for side in (head, base):
        names |= {stack.name for stack in side.stacks.values() if stack.environment_name in touched}
        homes = (side.stacks.get(side.stacks[name].environment_name) for name in touched if name in side.stacks)
        names |= {home.name for home in homes if home and home.lends}
    return names


def renamings(head: Workspace, base: Workspace) -> dict[str, str]:
    """Return the old names of renamed stacks: those with the same team, or with the same project and clusters.

    A team of a renamed environment is the same team. Where several could be meant, none is, unless a file declares it.
    """
    gone = {name: stack for name, stack in base.stacks.items() if name not in head.stacks}
    new = {name: stack for name, stack in head.stacks.items() if name not in base.stacks}
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
    """Return the former name that a stack's file declares, or an empty string."""
    return (stack.section.renamed_from if stack.section else None) or ""
