"""Plans stacks by running the repository's own program."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

from training_platform.checks.planning.order import PlanningError
from training_platform.checks.planning.recorder import ORGANIZATION, Plan, ProgramError, record
from training_platform.config.model.stack import PROJECT, Stack
from training_platform.config.workspace import Workspace


def plan_stacks(workspace: Workspace, stacks: Iterable[Stack]) -> Iterator[tuple[Stack, Plan]]:
    """Plan stacks one by one, handing each environment's outputs to its teams. Raises PlanningError."""
    references: dict[str, Mapping[str, Any]] = {}
    for stack in stacks:
        plan = plan_stack(workspace.root, stack, references)
        references[reference(stack.name)] = plan.outputs
        yield stack, plan


def reference(stack: str) -> str:
    """Return the full name by which another stack's program refers to a stack."""
    return f"{ORGANIZATION}/{PROJECT}/{stack}"


def plan_stack(root: FilePath, stack: Stack, references: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Plan one stack by running ``__main__.py``. Raises PlanningError."""
    try:
        return record(
            lambda: _run(root),
            project=PROJECT,
            stack_name=stack.name,
            config=stack.config,
            references=references,
            root=root,
        )
    except ProgramError as error:
        raise PlanningError(f"stack {stack.name}: {error}.") from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{FilePath(last.filename).name}:{last.lineno}"
        raise PlanningError(f"stack {stack.name}: the program stopped at {place}: {error!r}.") from error


def _run(root: FilePath) -> None:
    """Run the program with its own folder on the path, as Python and the engine do: ``modules`` is the repository's."""
    with _on_path(root):
        runpy.run_path(str(root / "__main__.py"), run_name="__main__")


@contextmanager
def _on_path(folder: FilePath) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
