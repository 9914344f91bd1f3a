"""Which stacks are deployed, and in which order: by what their files say, never by what they are called."""

from __future__ import annotations

from training_platform.config.reading.errors import UserError
from training_platform.config.workspace import Workspace


def environment_order(workspace: Workspace) -> tuple[list[str], list[str]]:
    """Return the environments that are not production, and those that are or do not say. Raises UserError."""
    _refuse_unsorted(workspace)
    names = {stack.name: environment.production for stack, environment in workspace.environments()}
    return (
        [name for name, production in names.items() if production is False],
        [name for name, production in names.items() if production is not False],
    )


def stacks_of(workspace: Workspace, environment: str) -> list[str]:
    """Return an environment's stack and then its teams'. Raises UserError."""
    _refuse_unsorted(workspace)
    return [name for name, stack in workspace.stacks.items() if stack.environment_name == environment]


def _refuse_unsorted(workspace: Workspace) -> None:
    """Leave no stack out in silence: one that nobody can place might be of the environment that is deployed."""
    rejected = (
        finding.one_line for stack in workspace.stacks.values() if not stack.section for finding in stack.findings
    )
    for sentence in (*workspace.unreadable, *rejected):
        raise UserError(f"it is not known where each stack belongs: {sentence}")
