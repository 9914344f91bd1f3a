"""Which stacks a change can affect, by the files that it touches, and which stacks have only another name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from training_platform.config.model.stack import Stack, stack_name
from training_platform.config.workspace import STACKS_FOLDER, Workspace

PROGRAM = ("modules/", "training_platform/", "__main__.py", "Pulumi.yaml")
"""What decides, beside a stack's files, what is planned; where it changed, the base is planned by its own."""
FOR_ALL = (*PROGRAM, "requirements", f"{STACKS_FOLDER}/quotas/", f"{STACKS_FOLDER}/exemptions.yaml")


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
