"""The plan of the stack that Pulumi selected.

Values come from Pulumi's configuration, and their positions from the stack file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

import pulumi

from training_platform.config.model.stack import (
    ENVIRONMENTS,
    PROJECT,
    SECTIONS,
    Stack,
    parse_stack,
    read_stack,
    stack_name,
)
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import Source, UnreadableError, read_source, value_at, whole_numbers
from training_platform.config.workspace import STACKS_FOLDER, Workspace, cross_check
from training_platform.resources.plan import Plan, PlanError
from training_platform.resources.stack_plan import stack_plan


def selected_plan() -> Plan:
    """Return the plan of the stack that Pulumi selected.

    Raises pulumi.RunError with all findings about the stack file's structure. An invalid file is never partly deployed.
    """
    stack, workspace = _selected_stack()
    try:
        plan = stack_plan(stack, workspace, pulumi.get_organization(), own_code_here=True)
    except PlanError as error:
        raise pulumi.RunError(str(error)) from error
    assert plan is not None  # _selected_stack refuses a team without its environment
    return plan


def _selected_stack() -> tuple[Stack, Workspace]:
    """Return the selected stack, and the workspace with the stack, its environment and everything it depends on."""
    name = pulumi.get_stack()
    root = FilePath(pulumi.get_root_directory())
    try:
        stack = parse_stack(name, _source(name, root))
        stacks = {stack.name: stack}
        if stack.team and (path := _stack_file(root, stack.team.environment)).exists():
            home = read_stack(path, root)
            stacks = {home.name: home, **stacks}
        if stack.lends:
            stacks |= {team.name: team for team in _teams(stack.name, root)}
    except UnreadableError as error:
        raise pulumi.RunError(str(error)) from error
    workspace = cross_check(Workspace(root, stacks))
    _refuse(finding for parsed in workspace.stacks.values() for finding in parsed.findings)
    return workspace.stacks[name], workspace


def _source(name: str, root: FilePath) -> Source:
    """Return the selected stack's configuration as the engine passes it, with the positions of values in its file."""
    config = pulumi.Config(PROJECT)
    values = {key: config.get_object(key.removeprefix(f"{PROJECT}:")) for key in SECTIONS}
    sections = {key: value for key, value in values.items() if value is not None}
    path = _stack_file(root, name)
    source = read_source(path, f"{STACKS_FOLDER}/{path.name}") if path.exists() else Source(file=f"stack {name}")
    _refuse_other_values(sections, source)
    # What only the file can say (keys given twice, envelope) is `check`'s to find: the engine has already read it.
    return dataclasses.replace(source, value={"config": sections}, findings=[])


def _refuse_other_values(sections: Mapping[str, Any], source: Source) -> None:
    """Raise pulumi.RunError for a section that comes partly from a Pulumi ESC environment, which `check` cannot see."""
    if not value_at(source.value, (ENVIRONMENTS,)):
        return
    in_file = value_at(source.value, ("config",)) or {}
    for key, value in sections.items():
        if whole_numbers(value) != in_file.get(key):
            raise pulumi.RunError(
                f"{source.file}: {key} differs from the file, because an environment of Pulumi ESC changes it, which "
                f"`check` cannot see. Keep the whole section in the file, and use ESC only for variables and gcp: "
                f"settings."
            )


def _teams(environment: str, root: FilePath) -> Iterator[Stack]:
    """Yield the stacks of an environment's teams, including those whose files the model rejects."""
    for path in sorted((root / STACKS_FOLDER).glob("Pulumi.*.yaml")):
        stack = read_stack(path, root)
        if stack.home_said == environment:
            yield stack


def _stack_file(root: FilePath, name: str) -> FilePath:
    path = root / STACKS_FOLDER / f"Pulumi.{name}.yaml"
    assert stack_name(path) == name
    return path


def _refuse(findings: Iterable[Finding]) -> None:
    texts = [str(finding) for finding in findings]
    if texts:
        raise pulumi.RunError("The model rejects the stack file:\n" + "\n".join(texts))
