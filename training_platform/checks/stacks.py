"""A check of stacks from end to end: files, plans, ledgers, rules and findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path as FilePath
from pathlib import PurePath

from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.prices import LIST, Cost, PriceBook
from training_platform.checks.causes import with_causes
from training_platform.checks.cost import stack_cost
from training_platform.checks.outcome import Outcome, outcome_of
from training_platform.checks.parts import part_findings
from training_platform.checks.process import Progress, quiet
from training_platform.checks.report import Report, StackReport, accelerator_rows, stack_kind
from training_platform.config.model.stack import Stack, stack_name
from training_platform.config.names import Locator
from training_platform.config.own_prices import read_own_prices
from training_platform.config.reading.finding import Finding, UserError, others_go_on
from training_platform.config.reading.secrets import Secrets
from training_platform.config.reading.section import enumeration
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import Workspace, read_workspace, stack_file
from training_platform.quota.charges import Charge
from training_platform.quota.chip_hours import Usages, budget_findings, read_usages
from training_platform.quota.demand import stack_demand
from training_platform.quota.ledger import CapacityLine, ProjectLedger, capacity_ledger, file_ledger, project_ledgers
from training_platform.quota.ledger_findings import ledger_findings
from training_platform.quota.requests import requested
from training_platform.quota.snapshot import Snapshots, read_snapshots
from training_platform.resources.plan import PlanError
from training_platform.resources.stack_plan import plannable, stack_plan
from training_platform.resources.stack_resource import StackResource
from training_platform.rules import View, views_of_plan
from training_platform.rules.exemptions import Exemptions, read_exemptions
from training_platform.rules.rights import keep_grants, rights_findings
from training_platform.rules.suggestions import Suggestions

JOBS = "jobs"
"""The folder of job files in a repository, which a part checks."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Options of a check; ``before`` is the workspace before a change.

    ``plans`` are the planned resources of stacks by name, if the repository's own code planned them, not this code.
    """

    today: date
    before: Workspace | None = None
    plans: Mapping[str, Sequence[StackResource]] | None = None
    progress: Progress = quiet


@dataclass
class Checked:
    """A report with its sources: all ledgers by project, and the outcome of each planned stack."""

    report: Report
    workspace: Workspace
    snapshots: Snapshots
    ledgers: dict[str, ProjectLedger]
    capacity: list[CapacityLine]
    exemptions: Exemptions
    usages: Usages
    outcomes: Mapping[str, Outcome]
    plan_findings: list[Finding] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    part_findings: list[Finding] = field(default_factory=list)
    prices: PriceBook = LIST
    price_findings: list[Finding] = field(default_factory=list)
    secrets: Secrets = field(default_factory=Secrets)

    def safe(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return findings without the secrets of any plan."""
        return [row.without_values() if self.secrets.shown_in(row.shown) else row for row in findings]


def check_stacks(
    root: FilePath, names: Sequence[str] | None, options: CheckOptions, *, inputs: bool = False
) -> Checked:
    """Check the named stacks, or all for None, and every job; with ``inputs`` outcomes have the inputs of resources.

    Raises UserError.
    """
    workspace = read_workspace(root)
    names = stack_names(workspace, names)
    check = _planned(workspace, root, names, options, inputs=inputs)
    judges = part_findings()
    for judge in judges.values():
        findings, unreadable = judge(root, workspace, options.today)
        check.part_findings += findings
        check.failures += [sentence for sentence in unreadable if sentence not in check.failures]
    if (root / JOBS).is_dir() and JOBS not in judges:
        check.failures.append(f"{JOBS}/: this installation lacks the part of training-platform that checks job files.")
    check.report = _report(check, names, options)
    failures: list[str] = []
    with others_go_on("which finding follows from which", failures):
        check.report = with_causes(check.report, {**workspace.unreadable, **check.snapshots.unreadable})
    check.report = replace(check.report, failures=(*check.report.failures, *failures))
    return check


def _planned(
    workspace: Workspace, root: FilePath, names: Collection[str], options: CheckOptions, *, inputs: bool
) -> Checked:
    """Plan every stack, one at a time since a plan is much larger than its file, and sum up their use."""
    today = options.today
    snapshots = read_snapshots(root, today)
    exemptions = read_exemptions(root, today)
    usages = read_usages(root)
    failures = [*workspace.unreadable.values(), *snapshots.unreadable.values(), *exemptions.unreadable]
    failures += usages.unreadable
    charges: list[Charge] = []
    outcomes: dict[str, Outcome] = {}
    plan_findings: list[Finding] = []
    secrets = Secrets()
    judged = {stack.name for stack in plannable(workspace, names)}
    for done, stack in enumerate(workspace.stacks.values()):
        options.progress(f"planning {stack.name}", done, len(workspace.stacks))
        views: list[View] | None = None
        with others_go_on(stack.source.file, failures):
            try:
                planned = _resources(stack, workspace, options)
            except PlanError as error:
                plan_findings.append(stack.finding("plan", error.path, str(error)))
                planned = None
            for resource in planned or ():
                secrets.add(resource.inputs)
            if planned is not None and stack.section is not None:
                views = views_of_plan(planned, Locator(stack.section))
                if stack.name in judged:
                    outcomes[stack.name] = outcome_of(stack, planned, views, inputs=inputs)
        with others_go_on(f"the demand of {stack.source.file}", failures):
            charges += stack_demand(stack, workspace, views)
    ledgers = project_ledgers(charges, snapshots, requested(workspace))
    capacity = capacity_ledger(workspace)
    check = Checked(Report(today=today), workspace, snapshots, ledgers, capacity, exemptions, usages, outcomes)
    check.plan_findings = plan_findings
    check.secrets = secrets
    check.failures += failures
    try:
        check.prices, check.price_findings = read_own_prices(root)
    except UnreadableError as error:
        check.failures.append(str(error))
    spoilt = dict.fromkeys(finding.file for finding in snapshots.findings if finding.severity == "error")
    check.failures += [f"{file} has errors, so what fits its limits cannot be said." for file in spoilt]
    return check


def _resources(stack: Stack, workspace: Workspace, options: CheckOptions) -> Sequence[StackResource] | None:
    """Return a stack's planned resources; None if the model rejects its file. Raises PlanError."""
    if stack.findings:
        return None
    if options.plans is not None:
        return options.plans.get(stack.name)
    plan = stack_plan(stack, workspace)
    if plan is None:
        return None
    keep_grants(plan, workspace)
    return plan.planned()


def stack_names(workspace: Workspace, selected: Sequence[str] | None) -> list[str]:
    """Return the stacks to check, each once. Raises UserError."""
    if selected is None:
        return list(workspace.stacks)
    for name in selected:
        if name not in workspace.stacks:
            if sentence := workspace.unreadable.get(stack_file(name)):
                raise UserError(sentence)
            beginnings = [stack for stack in workspace.stacks if name.startswith(stack)]
            nearest = stack_name(PurePath(name)) or next(iter(beginnings), find_nearest(name, workspace.stacks))
            hint = f" Nearest: {nearest}." if nearest else ""
            raise UserError(f"There is no stack {name}. There are: {enumeration(workspace.stacks)}.{hint}")
    return list(dict.fromkeys(selected))


def _report(check: Checked, names: Collection[str], options: CheckOptions) -> Report:
    shared: list[Finding] = []
    with others_go_on("the limits of projects and clusters", check.failures):
        shared = ledger_findings(check.workspace, check.ledgers.values(), check.capacity, options.before)
        shared += budget_findings(check.workspace, check.usages, options.today)
    with others_go_on("the rights of people, jobs and agents", check.failures):
        shared += rights_findings(check.workspace)
    suggestions = Suggestions(check.workspace, check.ledgers)
    files = [check.workspace.stacks[name] for name in names]
    stacks = tuple(_stack_report(check, stack, shared, suggestions) for stack in files)
    projects = {stack.project for stack in stacks}
    environments = {stack.environment for stack in stacks}
    return Report(
        today=options.today,
        stacks=stacks,
        ledgers=tuple(ledger for ledger in check.ledgers.values() if ledger.project in projects),
        capacity=tuple(line for line in check.capacity if line.environment in environments),
        files=tuple(line for line in file_ledger(check.workspace) if line.environment in environments),
        # A job repeats the findings of its snapshot.
        findings=tuple(
            check.safe(
                (
                    *dict.fromkeys(
                        (*check.snapshots.findings, *check.usages.findings, *check.price_findings, *check.part_findings)
                    ),
                    *_exemption_findings(check, stacks),
                )
            )
        ),
        known_stacks=frozenset(check.workspace.stacks),
        failures=tuple(check.failures),
    )


def _stack_report(check: Checked, stack: Stack, shared: Iterable[Finding], suggestions: Suggestions) -> StackReport:
    outcome = check.outcomes.get(stack.name)
    about_stack = (*shared, *check.plan_findings)
    findings = [*stack.findings, *(finding for finding in about_stack if finding.stack == stack.name)]
    cost = Cost()
    with others_go_on(stack.source.file, check.failures):
        by_rules = outcome.findings if outcome else ()
        check.failures += [f"{stack.source.file}: {finding.message}." for finding in by_rules if finding.failed]
        findings += suggestions.to(finding for finding in by_rules if not finding.failed)
        cost = stack_cost(stack.section, check.prices) if stack.section else cost
    counted, exempted = check.exemptions.split(check.safe(findings))
    return StackReport(
        name=stack.name,
        kind=stack_kind(stack),
        file=stack.source.file,
        project=check.workspace.project_of(stack),
        environment=stack.environment_name,
        planned=outcome is not None,
        branches=outcome.branches if outcome else (),
        resources=outcome.resources if outcome else (),
        accelerators=accelerator_rows(stack.environment) if stack.environment else (),
        cost=cost,
        findings=tuple(counted),
        exempted=tuple(exempted),
    )


def _exemption_findings(check: Checked, stacks: Sequence[StackReport]) -> Iterable[Finding]:
    findings = check.exemptions.findings(
        {exempted.entry for stack in stacks for exempted in stack.exempted},
        stacks=check.workspace.stacks,
        checked={stack.name for stack in stacks},
        decided={stack.name for stack in stacks if stack.planned},
    )
    stacks_with_files = check.workspace.stacks
    # An invalid YAML file has no stack here, so an exemption for its stack may be valid.
    return (finding for finding in findings if finding.stack in stacks_with_files or not check.workspace.unreadable)
