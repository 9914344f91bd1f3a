"""The repository that the pack stands in, if it stands in one: stack files, snapshots, and so file and line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from functools import cached_property
from pathlib import Path

from modules.config.clock import today
from modules.config.finding import Finding
from modules.config.names import Locator
from modules.config.source import UnreadableError
from modules.config.stack import Stack
from modules.config.workspace import Workspace, read_workspace
from modules.quota.demand import stack_demand
from modules.quota.ledger import capacity_ledger, project_ledgers
from modules.quota.snapshot import read_snapshots
from modules.rules import Program, View, ledger_findings, program, views_of_plan
from modules.rules.exemptions import Exemptions, read_exemptions
from modules.rules.planned import UNKNOWN, Planned
from modules.rules.quota import demand_of_views

NOT_COUNTED = (
    "quotas are not checked: this pack stands in no checkout of the repository, so neither the project's limits nor "
    "what other stacks ask is known here"
)


class Checkout:
    """A folder that may hold ``stacks/``; its files are read once, when first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def workspace(self) -> Workspace | None:
        """All stack files; None where there are none."""
        found = read_workspace(self.root)
        return found if found.stacks else None

    @cached_property
    def exemptions(self) -> Exemptions:
        """What ``stacks/exemptions.yaml`` exempts today; nothing where it, or the clock, cannot be read."""
        try:
            return read_exemptions(self.root, today(self.root))
        except UnreadableError as error:
            return Exemptions(date.min, unreadable=(str(error),))

    def stack_file(self, name: str) -> Stack | None:
        """Return a stack as its file says, None where there is no file, or the model rejects it."""
        stack = self.workspace.stacks.get(name) if self.workspace else None
        return stack if stack and stack.section else None

    def program(self, stack: str, planned: Iterable[Planned], production: Iterable[str]) -> Program:
        """Return a stack's planned resources as a program.

        Without a stack file its environment is not known; it is production then where the stack's name, or the part
        before its first dash, is one of the production environments.
        """
        file = self.stack_file(stack)
        names = {file.environment_name} if file else {stack, stack.partition("-")[0]}
        return program(
            self.views(stack, planned),
            stack=stack,
            environment=file.environment_name if file else UNKNOWN,  # type: ignore[arg-type] # not decided, then
            team=file.team.name if file and file.team else None,
            production=not names.isdisjoint(production),
        )

    def views(self, stack: str, planned: Iterable[Planned]) -> list[View]:
        """Return the views of planned resources, each with its section of the stack file where there is one."""
        file = self.stack_file(stack)
        return views_of_plan(planned, Locator(file.section) if file and file.section else None)

    def quota_findings(self, stack: str, planned: Iterable[Planned]) -> tuple[list[Finding], list[str]]:
        """Return what both ledgers say of a stack, and a sentence for everything that they leave open.

        This stack is counted from its plan, all others from their files.
        """
        if self.workspace is None:
            return [], [NOT_COUNTED]
        try:
            snapshots = read_snapshots(self.root, today(self.root))
        except UnreadableError as error:
            return [], [f"quotas are not checked: {error}"]
        charges, notes = demand_of_views(self.views(stack, planned))
        for other in self.workspace.stacks.values():
            if other.name != stack:
                charges += stack_demand(other, self.workspace)
        ledgers = project_ledgers(charges, snapshots)
        found = ledger_findings(self.workspace, ledgers.values(), capacity_ledger(self.workspace))
        unread = [*self.workspace.unreadable, *snapshots.unreadable]
        return [finding for finding in found if finding.stack == stack], [*unread, *map(str, notes)]
