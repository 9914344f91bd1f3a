"""The repository that contains the pack, if any: its stack files and snapshots, which give findings file and line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.reading.clock import today
from training_platform.config.reading.declaration import located
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.policy import single_stack
from training_platform.policy.settings import PRODUCTION, SNAPSHOT
from training_platform.policy.single_stack import snapshot_of
from training_platform.quota.demand import charged_views, demand_of_views, stack_demand, workspace_demand
from training_platform.quota.ledger import capacity_ledger, project_ledgers
from training_platform.quota.ledger_findings import ledger_findings
from training_platform.quota.requests import requested
from training_platform.quota.snapshot import read_snapshots
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import View, views_of_plan
from training_platform.rules.exemptions import Exemptions, read_exemptions
from training_platform.rules.existing_networks import existing_networks, existing_subnets, subnet_uses
from training_platform.rules.rights import rights_findings
from training_platform.rules.suggestions import Suggestions
from training_platform.rules.workloads import workload_findings


class CheckoutFacts(NamedTuple):
    """A stack's environment and team, and whether it is production.

    If neither a stack file nor a setting contains them, environment and production are unknown, and the team is None.
    """

    environment: str
    team: str | None
    production: bool | None


class Checkout:
    """A folder that may contain ``stacks/``. Its files are read once, on first use.

    ``root`` is None for a program of another project, since our stack files do not describe it.
    """

    def __init__(self, root: Path | None) -> None:
        self.root = root

    @cached_property
    def workspace(self) -> Workspace | None:
        """All stack files, or None if there are none."""
        workspace = read_workspace(self.root) if self.root else None
        return workspace if workspace and workspace.stacks else None

    @cached_property
    def exemptions(self) -> Exemptions:
        """The exemptions in ``stacks/exemptions.yaml`` valid today; none if this file or the clock cannot be read."""
        if self.root is None:
            return Exemptions(date.min)
        try:
            return read_exemptions(self.root, today(self.root))
        except UnreadableError as error:
            return Exemptions(date.min, unreadable=(str(error),))

    def stack_file(self, name: str) -> Stack | None:
        """Return a stack from its file, or None without a file or if the model rejects it."""
        stack = self.workspace.stacks.get(name) if self.workspace else None
        return stack if stack and stack.section else None

    def facts(self, stack: str, settings: Mapping[str, Any]) -> CheckoutFacts:
        """Return the facts about a stack that rules need. Without a stack file, they are a policy's settings."""
        if file := self.stack_file(stack):
            return CheckoutFacts(file.environment_name, _team_name(file), production=file.production)
        setting = settings.get
        return CheckoutFacts(setting("environment", UNKNOWN), setting("team"), production=setting(PRODUCTION, UNKNOWN))

    def views(self, stack: str, planned: Iterable[StackResource]) -> list[View]:
        """Return the planned resources as views, the form that rules read, each with its section of the stack file."""
        views = list(views_of_plan(planned, self._locators.get(stack)))
        file = self.stack_file(stack)
        return [*views, *existing_subnets(file)] if file else views

    @cached_property
    def _locators(self) -> dict[str, Locator]:
        stacks = self.workspace.stacks if self.workspace else {}
        return {name: Locator(stack.section) for name, stack in stacks.items() if stack.section}

    def suggested(self, findings: list[Finding]) -> list[Finding]:
        """Return findings with suggestions that fit the limits. Without stack files, the findings are unchanged."""
        return self._suggestions.to(findings) if findings and self._suggestions else findings

    @cached_property
    def _suggestions(self) -> Suggestions | None:
        if self.workspace is None or self.root is None:
            return None
        try:
            snapshots = read_snapshots(self.root, today(self.root))
        except UnreadableError:
            return None  # the policy of quotas reports why
        return Suggestions(self.workspace, project_ledgers(workspace_demand(self.workspace, failures=[]), snapshots))

    def existing_networks(self, stack: str, planned: Iterable[StackResource]) -> list[Finding]:
        """Return a stack's findings about existing networks, whose ranges and other users are in stack files."""
        file = self.stack_file(stack)
        if self.workspace is None or file is None or file.environment is None:
            return []
        uses = list(subnet_uses(file, self.views(stack, planned)))
        for other, environment in self.workspace.environments():
            if environment.network is not None and other.name != stack:
                uses += subnet_uses(other, charged_views(other, self.workspace))
        return [row for row in located(existing_networks(uses, self.workspace)) if row.stack == stack]

    def quota_findings(
        self, stack: str, planned: Iterable[StackResource], settings: Mapping[str, Any]
    ) -> tuple[list[Finding], list[str]]:
        """Return a stack's findings about limits and capacity, and a sentence for each question that is still open.

        The charges of this stack come from its plan, those of all others from their files. Without stack files, only
        this stack is counted, and compared with the snapshot in the settings.
        """
        if self.workspace is None or self.root is None:
            value = settings.get(SNAPSHOT)
            return single_stack.quota_findings(self.views(stack, planned), snapshot_of(value) if value else None)
        try:
            snapshots = read_snapshots(self.root, today(self.root))
        except UnreadableError as error:
            return [], [f"quotas are not checked: {error}"]
        charges, notes = demand_of_views(self.views(stack, planned))
        for other in self.workspace.stacks.values():
            if other.name != stack:
                charges += stack_demand(other, self.workspace)
        ledgers = project_ledgers(charges, snapshots, requested(self.workspace))
        findings = ledger_findings(self.workspace, ledgers.values(), capacity_ledger(self.workspace))
        findings += workload_findings(self.workspace)
        findings += rights_findings(self.workspace, [stack])
        unread = [*self.workspace.unreadable.values(), *snapshots.unreadable.values(), *map(str, snapshots.findings)]
        return [finding for finding in findings if finding.stack == stack], [*unread, *map(str, notes)]


def _team_name(file: Stack) -> str | None:
    return file.team.name if file.team else None
