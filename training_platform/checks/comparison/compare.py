"""Checks the stacks that a change can affect on both sides, and compares them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from training_platform.checks.baseline import Baseline
from training_platform.checks.comparison.base_files import BaseTree, base_tree
from training_platform.checks.comparison.changes import (
    CheckResult,
    StackResult,
    accelerator_changes,
    capacity_changes,
    cost_changes,
    quota_changes,
    resource_changes,
    result_of,
)
from training_platform.checks.comparison.comparison import Comparison, StackChange
from training_platform.checks.comparison.guard import guard
from training_platform.checks.plan_document import PlanDocuments, planned_of
from training_platform.checks.report import Report, fingerprints, set_aside
from training_platform.checks.stacks import CheckOptions, check_stacks, stack_names
from training_platform.config.model.stack import Stack, stack_name
from training_platform.config.reading.finding import Finding, UserError
from training_platform.config.reading.secrets import RUN_KEY, run_key
from training_platform.config.workspace import STACKS_FOLDER, Workspace, read_workspace, stack_file
from training_platform.resources.planned import Planned
from training_platform.resources.stack_plan import OWN_RESOURCES

_COMMAND = "training_platform/cli/plan.py"
_PATIENCE = 10  # seconds for the base's process to end its own
_EMPTY = CheckResult(stacks={}, quotas=(), capacity=(), identities=(), failures=())
PROGRAM = ("training_platform/", OWN_RESOURCES)
"""Files that decide the plan beside a stack's own; if one of them changed, the base is planned by its own code."""
FOR_ALL = (*PROGRAM, "requirements", f"{STACKS_FOLDER}/quotas/", f"{STACKS_FOLDER}/exemptions.yaml")


class _NotPlanned(Exception):
    """The base's own code could not plan; the message says why."""


def check_against(
    root: Path, ref: str, selected: Sequence[str], options: CheckOptions, *, baseline: Baseline, new_only: bool = False
) -> Report:
    """Check the stacks that the change since ``ref`` can affect, and compare them with what they were.

    ``new_only`` sets findings aside that the base has as well. Raises UserError.
    """
    options.progress(f"reading {ref}")
    with base_tree(root, ref) as tree:
        head_files, base_files = read_workspace(root), read_workspace(tree.root)
        scope = affected(tree.changed, head_files, base_files)
        for name, was in scope.renamed.items():
            if was in selected:
                raise UserError(f"There is no stack {was} any more: what {ref} calls {was} is called {name} now.")
        if selected:
            names = set(stack_names(head_files, selected))
            old = names | {was for name, was in scope.renamed.items() if name in names}
            head_names = tuple(name for name in scope.head if name in old)
            scope = replace(scope, head=head_names, base=tuple(name for name in scope.base if name in old))
        head = check_stacks(root, scope.head, replace(options, before=base_files), inputs=True)
        options.progress(f"planning {ref}")
        others = len(head_files.stacks) - len(scope.head)
        comparison = Comparison(ref=ref, commit=tree.commit, others=others, own_program=scope.own_program)
        base = _EMPTY
        try:
            base = _check_base(tree, scope, options)
            after = result_of(head)
            comparison = replace(
                comparison,
                stacks=tuple(_stacks(scope, base, after)),
                quotas=quota_changes(base, after),
                capacity=capacity_changes(base, after),
            )
        except _NotPlanned as error:
            comparison = replace(comparison, unknown=str(error))
        found = [*guard(comparison, head.workspace, base_files), *_unknown(comparison, head.workspace)]
    report = baseline.apply(_with_findings(head.report, found))
    report = replace(report, failures=(*report.failures, *_undeclared(scope, head_files, ref)))
    if new_only:
        # Files of findings, under the new names of their stacks.
        files = {stack_file(was): stack_file(name) for name, was in scope.renamed.items()}
        identities = ((rule, files.get(file, file), *rest) for rule, file, *rest in base.identities)
        report = set_aside(report, dict.fromkeys(fingerprints(identities), f"{ref} has it as well"))
    return replace(report, comparison=comparison)


def _undeclared(scope: Affected, head: Workspace, ref: str) -> Iterator[str]:
    """Yield a failure for each renamed stack whose file does not declare the old name of what is deployed."""
    for name, was in scope.renamed.items():
        stack = head.stacks[name]
        if name in scope.head and declared(stack) != was:
            yield (
                f"{stack.source.file}: is what {ref} calls {was}, and Pulumi makes all of a stack that it does not "
                f"know a second time. Rename what is deployed, with `pulumi stack rename {name} --stack {was}`, and "
                f"say so in the file: renamed_from: {was}"
            )


def _check_base(tree: BaseTree, scope: Affected, options: CheckOptions) -> CheckResult:
    """Check the base; if its code differs, that code plans, and this code judges. Raises _NotPlanned if it cannot."""
    if scope.own_program:
        options = replace(options, plans=_base_plans(tree))
    return result_of(check_stacks(tree.root, scope.base, options, inputs=True))


def _base_plans(tree: BaseTree) -> dict[str, list[Planned]]:
    """Return what the base's own code plans for each of its stacks. Raises _NotPlanned."""
    commit = f"the code of commit {tree.commit[:12]}"
    if not (tree.root / _COMMAND).is_file():
        raise _NotPlanned(f"{commit} cannot plan here: it has no command `plan`")
    code, output, errors = _run(tree.root)
    last = next(iter(reversed(errors.strip().splitlines())), f"exit code {code}")
    try:
        documents = PlanDocuments.model_validate_json(output)
    except ValidationError as error:
        reason = "it prints plans of another version" if code == 0 else last
        raise _NotPlanned(f"{commit} cannot plan here: {reason}") from error
    return {document.stack: list(planned_of(document)) for document in documents.plans}


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


def _stacks(scope: Affected, base: CheckResult, head: CheckResult) -> Iterator[StackChange]:
    for name in scope.head:
        was = scope.renamed.get(name, name)
        yield _stack(name, base.stacks.get(was), head.stacks.get(name), was)
    renamed = {*scope.renamed.values()}
    for name in scope.base:
        if name not in head.stacks and name not in renamed:
            yield _stack(name, base.stacks.get(name), None, name)


def _stack(name: str, before: StackResult | None, after: StackResult | None, was: str) -> StackChange:
    least, most = cost_changes(before, after)
    sides = (("the base", before), ("the work tree", after))
    unplanned = [side for side, stack in sides if stack and stack.resources is None]
    old = before.resources or () if before else ()
    new = after.resources or () if after else ()
    return StackChange(
        name=name,
        kind="renamed" if was != name else "added" if before is None else "removed" if after is None else "changed",
        was=was if was != name else None,
        resources=() if unplanned else resource_changes(old, new),
        accelerators=accelerator_changes(before, after),
        least_usd=least,
        most_usd=most,
        unknown=f"not planned in {' and '.join(unplanned)}" if unplanned else None,
    )


def _unknown(comparison: Comparison, workspace: Workspace) -> Iterator[Finding]:
    """Yield a warning for stacks of which the base could not be planned: what the change replaces is not known."""
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
    """Return the report with more findings, each with its stack where that is one of the report's."""
    by_stack: dict[str, list[Finding]] = defaultdict(list)
    names = {stack.name for stack in report.stacks}
    for finding in findings:
        by_stack[finding.stack if finding.stack in names and finding.stack else ""].append(finding)
    stacks = tuple(replace(stack, findings=(*stack.findings, *by_stack[stack.name])) for stack in report.stacks)
    return replace(report, stacks=stacks, findings=(*report.findings, *by_stack[""]))


@dataclass(frozen=True, kw_only=True)
class Affected:
    """``head`` and ``base`` are the stacks to look at on each side; ``renamed`` has the old name by the new one.

    ``own_program`` says that the base has to be planned by its own program.
    """

    head: tuple[str, ...]
    base: tuple[str, ...]
    renamed: Mapping[str, str]
    own_program: bool


def affected(changed: Iterable[str], head: Workspace, base: Workspace) -> Affected:
    """Return the stacks that the changed files, named below the repository, can affect."""
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
    """Return the stacks of the changed files, with an environment its teams on both sides, and those that lend."""
    folder = PurePosixPath(STACKS_FOLDER)
    paths = (PurePosixPath(path) for path in changed)
    touched = {name for path in paths if path.parent == folder and (name := stack_name(path)) is not None}
    names = set(touched)
    for side in (head, base):
        names |= {stack.name for stack in side.stacks.values() if stack.environment_name in touched}
        homes = (side.stacks.get(side.stacks[name].environment_name) for name in touched if name in side.stacks)
        names |= {home.name for home in homes if home and home.lends}
    return names


def renamings(head: Workspace, base: Workspace) -> dict[str, str]:
    """Return the old name of every stack that is the same under a new one: the same team, or project and clusters.

    A team of a renamed environment is the same team. Where several could be meant, none is, unless a file declares it.
    """
    gone = {name: stack for name, stack in base.stacks.items() if name not in head.stacks}
    new = {name: stack for name, stack in head.stacks.items() if name not in base.stacks}
    names = {name: was for name, stack in new.items() if (was := declared(stack)) in gone}
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
    """Return the name that a stack had before, as its file declares it; empty where it does not."""
    return (stack.section.renamed_from if stack.section else None) or ""
