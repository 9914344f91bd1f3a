"""Plans stacks by running the repository's own program, environments before the teams that refer to them."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from checks.recorder import ORGANIZATION, Plan, ProgramError, record
from modules.config.stack import PROJECT, Stack
from modules.config.workspace import Workspace


class PlanningError(Exception):
    """A stack that could not be planned; the message is one sentence that says where the program stopped."""


def plan_order(workspace: Workspace, selected: Iterable[str]) -> list[Stack]:
    """Return the stacks to plan for ``selected``: each environment once, before its teams; rejected ones left out."""
    wanted = dict.fromkeys(selected)
    homes = dict.fromkeys(workspace.stacks[name].environment_name for name in wanted)
    names = dict.fromkeys([*homes, *wanted])
    sound = {name: stack for name, stack in workspace.stacks.items() if not stack.findings}
    stacks = [sound[name] for name in names if name in sound and sound[name].environment_name in sound]
    return sorted(stacks, key=lambda stack: stack.team is not None)


def plan_stacks(workspace: Workspace, stacks: Iterable[Stack]) -> Iterator[tuple[Stack, Plan]]:
    """Plan stacks one by one, handing each environment's outputs to its teams. Raises PlanningError."""
    references: dict[str, Mapping[str, Any]] = {}
    for stack in stacks:
        plan = plan_stack(workspace.root, stack, references)
        references[f"{ORGANIZATION}/{PROJECT}/{stack.name}"] = plan.outputs
        yield stack, plan


def plan_stack(root: FilePath, stack: Stack, references: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Plan one stack by running ``__main__.py``. Raises PlanningError."""
    main = root / "__main__.py"
    try:
        return record(
            lambda: runpy.run_path(str(main), run_name="__main__"),
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
