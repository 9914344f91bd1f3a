"""Checks the stacks that a change can affect on both sides, and says what differs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from training_platform.checks.report import Report, fingerprints, set_aside
from training_platform.checks.stacks import Options, check_stacks, stack_names
from training_platform.config.model.stack import Stack, stack_name
from training_platform.config.reading.finding import Finding, UserError
from training_platform.config.workspace import STACKS_FOLDER, Workspace, read_workspace

_PROCESS = "training_platform/checks/comparison/base_process.py"
_PATIENCE = 10  # seconds for the base's process to end its own
_EMPTY = CheckResult(stacks={}, quotas=(), capacity=(), identities=(), failures=())
PROGRAM = ("modules/", "training_platform/", "__main__.py", "Pulumi.yaml")
"""What decides, beside a stack's files, what is planned; where it changed, the base is planned by its own."""
FOR_ALL = (*PROGRAM, "requirements", f"{STACKS_FOLDER}/quotas/", f"{STACKS_FOLDER}/exemptions.yaml")


class _NotPlanned(Exception):
    """The base's own program does not say what it plans; the message says why."""


def check_against(
    root: Path, ref: str, selected: Sequence[str], options: Options, *, baseline: Baseline, new_only: bool = False
) -> Report:
    """Check the stacks that the change since ``ref`` can affect, and compare them with what they were.

    ``new_only`` sets findings aside that the base has as well. Raises UserError.
    """
    options.progress(f"reading {ref}")
    with base_tree(root, ref) as tree:
        head_files, base_files = read_workspace(root), read_workspace(tree.root)
        scope = affected(tree.changed, head_files, base_files)
        if selected:
            _refuse_old_names(selected, scope, ref)
            scope = _narrowed(scope, stack_names(head_files, selected))
        head = check_stacks(root, scope.head, options, inputs=True)
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
        report = set_aside(report, dict.fromkeys(_known(base, scope), f"{ref} has it as well"))
    return replace(report, comparison=comparison)


def _refuse_old_names(selected: Sequence[str], scope: Affected, ref: str) -> None:
    for name, was in scope.renamed.items():
        if was in selected:
            raise UserError(f"There is no stack {was} any more: what {ref} calls {was} is called {name} now.")


def _undeclared(scope: Affected, head: Workspace, ref: str) -> Iterator[str]:
    """Say of stacks with another name that nobody here knows whether what is deployed has it too."""
    for name, was in scope.renamed.items():
        stack = head.stacks[name]
        if name in scope.head and declared(stack) != was:
            yield (
                f"{stack.source.file}: is what {ref} calls {was}, and Pulumi makes all of a stack that it does not "
                f"know a second time. Rename what is deployed, with `pulumi stack rename {name} --stack {was}`, and "
                f"say so in the file: renamed_from: {was}"
            )


def _narrowed(scope: Affected, selected: Collection[str]) -> Affected:
    wanted = {*selected, *(was for name, was in scope.renamed.items() if name in selected)}
    return replace(
        scope,
        head=tuple(name for name in scope.head if name in wanted),
        base=tuple(name for name in scope.base if name in wanted),
    )


def _check_base(tree: BaseTree, scope: Affected, options: Options) -> CheckResult:
    """Check the base, by its own program where that has changed. Raises _NotPlanned where that fails."""
    if not scope.own_program:
        return result_of(check_stacks(tree.root, scope.base, options, inputs=True))
    if not (tree.root / _PROCESS).is_file():
        raise _NotPlanned(
            f"the program of commit {tree.commit[:12]} cannot be run here: it is laid out otherwise, without {_PROCESS}"
        )
    out = tree.root.with_name("result.json")
    how = "fast" if options.fast else options.planner.to_text()
    arguments = [str(tree.root), options.today.isoformat(), how, str(out), *scope.base]
    code, said = _run(tree.root, arguments)
    if code:
        last = next(iter(reversed(said.strip().splitlines())), f"exit code {code}")
        raise _NotPlanned(f"the program of commit {tree.commit[:12]} cannot be run here: {last}")
    try:
        return CheckResult.model_validate_json(out.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise _NotPlanned(f"the program of commit {tree.commit[:12]} speaks another version of this") from error


def _run(root: Path, arguments: Sequence[str]) -> tuple[int, str]:
    """Run the base's own process; return its exit code and what it says. An interrupt ends it with all that it runs."""
    with subprocess.Popen(  # noqa: S603 # this interpreter, and arguments of ours
        [sys.executable, "-P", "-m", _PROCESS.removesuffix(".py").replace("/", "."), *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            _, said = process.communicate()
        except BaseException:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            process.kill()
            raise
        return process.returncode, said


def _stacks(scope: Affected, base: CheckResult, head: CheckResult) -> Iterator[StackChange]:
    for name in scope.head:
        was = scope.renamed.get(name, name)
        yield _stack(name, base.stacks.get(was), head.stacks.get(name), was if was != name else None)
    renamed = {*scope.renamed.values()}
    for name in scope.base:
        if name not in head.stacks and name not in renamed:
            yield _stack(name, base.stacks.get(name), None, None)


def _stack(name: str, before: StackResult | None, after: StackResult | None, was: str | None) -> StackChange:
    kind = "renamed" if was else "added" if before is None else "removed" if after is None else "changed"
    least, most = cost_changes(before, after)
    unplanned = [
        side for side, stack in (("the base", before), ("the work tree", after)) if stack and stack.resources is None
    ]
    old = before.resources or () if before else ()
    new = after.resources or () if after else ()
    return StackChange(
        name=name,
        kind=kind,  # type: ignore[arg-type] # mypy takes the chain for a text
        was=was,
        resources=() if unplanned else resource_changes(old, new),
        accelerators=accelerator_changes(before, after),
        least_usd=least,
        most_usd=most,
        unknown=f"not planned in {' and '.join(unplanned)}" if unplanned else None,
    )


def _unknown(comparison: Comparison, workspace: Workspace) -> Iterator[Finding]:
    """Say of what the base could not be planned that nobody knows what a change of it replaces."""
    if comparison.unknown:
        yield Finding(rule="base-not-planned", severity="warning", message=comparison.unknown)
    for stack in comparison.stacks:
        file = workspace.stacks.get(stack.name)
        if stack.unknown == "not planned in the base" and file:
            message = f"is {stack.unknown}, so it is not known what this change replaces"
            yield Finding(
                rule="base-not-planned", severity="warning", message=message, stack=stack.name, file=file.source.file
            )


def _with_findings(report: Report, found: Sequence[Finding]) -> Report:
    """Return the report with more findings, each with its stack where that is one of the report's."""
    names = {stack.name for stack in report.stacks}
    stacks = tuple(
        replace(stack, findings=(*stack.findings, *(each for each in found if each.stack == stack.name)))
        for stack in report.stacks
    )
    rest = tuple(each for each in found if each.stack not in names)
    return replace(report, stacks=stacks, findings=(*report.findings, *rest))


def _known(base: CheckResult, scope: Affected) -> frozenset[str]:
    """Return the fingerprints of the base's findings, under the new names of stacks that have one."""
    files = {_file(was): _file(name) for name, was in scope.renamed.items()}
    return frozenset(fingerprints((each[0], files.get(each[1], each[1]), *each[2:]) for each in base.identities))


def _file(stack: str) -> str:
    return f"{STACKS_FOLDER}/Pulumi.{stack}.yaml"


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
    names = {*head.stacks, *base.stacks} if _any(changed, FOR_ALL) else _of_files(changed, head, base)
    renamed = renamings(head, base)
    names |= {was for name, was in renamed.items() if name in names}
    return Affected(
        head=tuple(name for name in head.stacks if name in names),
        base=tuple(name for name in base.stacks if name in names),
        renamed=renamed,
        own_program=_any(changed, PROGRAM),
    )


def renamings(head: Workspace, base: Workspace) -> dict[str, str]:
    """Return the old name of every stack that is the same under a new one: the same team, or project and clusters.

    A team of a renamed environment is the same team. Where several could be meant, none is, unless a file says it.
    """
    gone = {name: stack for name, stack in base.stacks.items() if name not in head.stacks}
    new = {name: stack for name, stack in head.stacks.items() if name not in base.stacks}
    said = {name: was for name, stack in new.items() if (was := declared(stack)) in gone}
    for name, was in said.items():
        new.pop(name)
        gone.pop(was, None)
    environments = said | _pairs(new.values(), gone.values(), {})
    return environments | _pairs(new.values(), gone.values(), environments, teams=True)


def declared(stack: Stack) -> str:
    """Return what a stack file says that the stack was called before; empty where it does not."""
    return (stack.section.renamed_from if stack.section else None) or ""


def _pairs(
    new: Iterable[Stack], gone: Iterable[Stack], environments: Mapping[str, str], *, teams: bool = False
) -> dict[str, str]:
    was: dict[object, list[str]] = {}
    for stack in gone:
        was.setdefault(_identity(stack, {}, teams), []).append(stack.name)
    found: dict[object, list[str]] = {}
    for stack in new:
        found.setdefault(_identity(stack, environments, teams), []).append(stack.name)
    return {
        names[0]: was[key][0]
        for key, names in found.items()
        if key is not None and len(names) == 1 and len(was.get(key, ())) == 1
    }


def _identity(stack: Stack, environments: Mapping[str, str], teams: bool) -> object:
    """Return what tells a stack from others whatever it is called, None for a rejected file or the other kind."""
    if stack.environment and not teams:
        return (stack.environment.project, frozenset(stack.environment.clusters))
    if stack.team and teams:
        return (environments.get(stack.team.environment, stack.team.environment), stack.team.name)
    return None


def _any(changed: Iterable[str], parts: tuple[str, ...]) -> bool:
    return any(path.startswith(parts) for path in changed)


def _of_files(changed: Iterable[str], head: Workspace, base: Workspace) -> set[str]:
    """Return the stacks of the changed files, with an environment its teams on both sides, and those that lend."""
    folder = PurePosixPath(STACKS_FOLDER)
    paths = (PurePosixPath(path) for path in changed)
    touched = {name for path in paths if path.parent == folder and (name := stack_name(path)) is not None}
    teams = {stack.name for side in (head, base) for stack in side.stacks.values() if stack.environment_name in touched}
    lenders = {
        home.name
        for side in (head, base)
        for name in touched
        if (stack := side.stacks.get(name)) and (home := side.stacks.get(stack.environment_name)) and home.lends
    }
    return touched | teams | lenders
