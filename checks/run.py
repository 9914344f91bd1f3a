"""A check from end to end: stack files, ledgers, plans, rules, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from checks.cost import Cost, stack_cost
from checks.report import Report, StackReport, accelerator_rows, branches, resource_tree, stack_kind
from modules.catalog.nearest import find_nearest
from modules.config.finding import Finding
from modules.config.names import Locator
from modules.config.section import enumeration
from modules.config.stack import Stack
from modules.config.workspace import Workspace, read_workspace
from modules.quota.ledger import CapacityLine, ProjectLedger, capacity_ledger, project_ledgers, workspace_demand
from modules.quota.snapshot import Snapshots, read_snapshots
from modules.rules import PRODUCTION, evaluate, ledger_findings, program, views_of_model, views_of_plan
from modules.rules.exemptions import Exemptions, read_exemptions

if TYPE_CHECKING:  # a check of the model alone loads no Pulumi
    from checks.recorder import Plan

Progress = Callable[[str], None]


class UnknownStackError(Exception):
    """A stack that was asked for and has no file; the message names the nearest that has."""


@dataclass
class _Check:
    """What a check knows while it runs."""

    workspace: Workspace
    snapshots: Snapshots
    ledgers: dict[str, ProjectLedger]
    capacity: list[CapacityLine]
    exemptions: Exemptions
    plans: dict[str, Plan] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def run_check(
    root: FilePath,
    *,
    today: date,
    selected: Sequence[str] = (),
    fast: bool = False,
    progress: Progress = lambda _: None,
) -> Report:
    """Check the selected stacks, or all; quotas and capacity are always summed over all of them.

    ``fast`` leaves out planning: the model and the rules over what it alone says. Raises UnknownStackError.
    """
    workspace = read_workspace(root)
    names = _names(workspace, selected)
    snapshots = read_snapshots(root, today)
    ledgers = project_ledgers(workspace_demand(workspace), snapshots)
    exemptions = read_exemptions(root, today)
    check = _Check(workspace, snapshots, ledgers, capacity_ledger(workspace), exemptions)
    check.failures += [*workspace.unreadable, *snapshots.unreadable, *exemptions.unreadable]
    if not workspace.stacks and not workspace.unreadable:
        check.failures.append(f"{root.name}/stacks has no file Pulumi.<stack>.yaml.")
    if not fast:
        _plan(check, names, progress)
    return _report(check, names, today, fast)


def _names(workspace: Workspace, selected: Sequence[str]) -> list[str]:
    for name in selected:
        if name not in workspace.stacks:
            nearest = find_nearest(name, workspace.stacks)
            hint = f" Nearest: {nearest}." if nearest else ""
            raise UnknownStackError(f"There is no stack {name}. There are: {enumeration(workspace.stacks)}.{hint}")
    return list(dict.fromkeys(selected)) or list(workspace.stacks)


def _plan(check: _Check, names: Sequence[str], progress: Progress) -> None:
    from checks.planning import PlanningError, plan_order, plan_stacks  # noqa: PLC0415 # loads Pulumi

    order = plan_order(check.workspace, names)
    plans = plan_stacks(check.workspace, order)
    for stack in order:
        progress(f"planning {stack.name}")
        try:
            planned, plan = next(plans)
        except PlanningError as error:
            check.failures.append(str(error))
            return
        check.plans[planned.name] = plan


def _report(check: _Check, names: Collection[str], today: date, fast: bool) -> Report:
    shared = ledger_findings(check.workspace, check.ledgers.values(), check.capacity)
    stacks = tuple(_stack_report(check, check.workspace.stacks[name], shared, fast) for name in names)
    projects = {stack.project for stack in stacks}
    environments = {stack.environment for stack in stacks}
    return Report(
        today=today,
        stacks=stacks,
        ledgers=tuple(ledger for ledger in check.ledgers.values() if ledger.project in projects),
        capacity=tuple(line for line in check.capacity if line.environment in environments and line.shares),
        findings=(*check.snapshots.findings, *_exemption_findings(check, stacks)),
        failures=tuple(check.failures),
    )


def _stack_report(check: _Check, stack: Stack, shared: Iterable[Finding], fast: bool) -> StackReport:
    plan = check.plans.get(stack.name)
    findings = [*stack.findings, *(finding for finding in shared if finding.stack == stack.name)]
    if stack.section and not stack.findings and (fast or plan):
        findings += _rule_findings(check.workspace, stack, plan)
    counted, exempted = check.exemptions.split(findings)
    return StackReport(
        name=stack.name,
        kind=stack_kind(stack),
        file=stack.source.file,
        project=check.workspace.project_of(stack),
        environment=stack.environment_name,
        planned=plan is not None,
        branches=branches(plan) if plan else (),
        resources=resource_tree(plan) if plan else (),
        accelerators=accelerator_rows(stack.environment) if stack.environment else (),
        cost=stack_cost(stack.section) if stack.section else Cost(),
        findings=tuple(counted),
        exempted=tuple(exempted),
    )


def _exemption_findings(check: _Check, stacks: Sequence[StackReport]) -> Iterable[Finding]:
    found = check.exemptions.findings(
        {exempted.entry for stack in stacks for exempted in stack.exempted},
        stacks=check.workspace.stacks,
        checked={stack.name for stack in stacks},
        decided={stack.name for stack in stacks if stack.planned},
    )
    known = check.workspace.stacks
    # A file that is no YAML has no name here, so an exemption for its stack may well be right.
    return (each for each in found if each.stack in known or not check.workspace.unreadable)


def _rule_findings(workspace: Workspace, stack: Stack, plan: Plan | None) -> list[Finding]:
    assert stack.section is not None
    locator = Locator(stack.section)
    views = views_of_plan(plan.resources, locator) if plan else views_of_model(stack, workspace)
    whole = program(
        views,
        stack=stack.name,
        environment=stack.environment_name,
        team=stack.team.name if stack.team else None,
        production=stack.environment_name in PRODUCTION,
    )
    return evaluate(whole, file=stack)
