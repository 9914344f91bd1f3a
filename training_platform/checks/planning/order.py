"""Which stacks are planned for those that are checked, and in which order."""

from __future__ import annotations

from collections.abc import Iterable

from training_platform.config.model.stack import Stack
from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import Workspace


class PlanningError(UserError):
    """A stack that could not be planned; the message is one sentence that says where the program stopped."""


def plan_order(workspace: Workspace, selected: Iterable[str]) -> list[Stack]:
    """Return the stacks to plan for ``selected``: each environment once, before its teams; rejected ones left out.

    An environment that lends what no team was promised is left out with any of its teams: nobody knows what it lends.
    """
    wanted = dict.fromkeys(selected)
    homes = dict.fromkeys(workspace.stacks[name].environment_name for name in wanted)
    names = dict.fromkeys([*homes, *wanted])
    rejected = {stack.home_said for stack in workspace.stacks.values() if stack.findings}
    sound = {
        name: stack
        for name, stack in workspace.stacks.items()
        if not stack.findings and not (stack.lends and name in rejected)
    }
    stacks = [sound[name] for name in names if name in sound and sound[name].environment_name in sound]
    return sorted(stacks, key=lambda stack: stack.team is not None)
