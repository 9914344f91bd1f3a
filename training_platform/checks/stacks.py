"""Checks stacks in steps: read the files, plan the stacks, sum up their use of limits, run the rules, report.

Each step returns a frozen result that the following steps use. A bug in one step is reported as a failure of the check,
and the other steps still run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path as FilePath
from pathlib import PurePath

from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.prices import LIST, Cost, PriceBook
from training_platform.checks.causes import with_causes
from training_platform.checks.cost import stack_cost
from training_platform.checks.outcome import Outcome, outcome_of
from training_platform.checks.parts import CheckedStacks, checks_of_files
from training_platform.checks.process import Progress, quiet
from training_platform.checks.report import Report, StackReport, accelerator_rows, stack_kind
from training_platform.config.model.stack import Stack, stack_name
from training_platform.config.names import Locator
from training_platform.config.own_prices import read_own_prices
from training_platform.config.owners import read_owners
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.finding import Finding, UserError, others_go_on
from training_platform.config.reading.rejection import STACK_MODEL
from training_platform.config.reading.secrets import Secrets
from training_platform.config.reading.section import enumeration
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import Workspace, read_workspace, stack_file
from training_platform.quota.charges import Charge
from training_platform.quota.chip_hours import Usages, budget_findings, read_usages
from training_platform.quota.demand import stack_demand
from training_platform.quota.ledger import (
    CapacityLine,
    FileLine,
    ProjectLedger,
    capacity_ledger,
    file_ledger,
    project_ledgers,
)
from training_platform.quota.ledger_findings import HolderKey, ledger_findings
from training_platform.quota.requests import requested
from training_platform.quota.snapshot import Snapshots, read_snapshots
from training_platform.resources.plan import PlanError, own_anchor
from training_platform.resources.stack_plan import plannable, stack_plan
from training_platform.resources.stack_resource import StackResource
from training_platform.rules import View, views_of_plan
from training_platform.rules.exemptions import Exemptions, read_exemptions
from training_platform.rules.existing_networks import SubnetUse, existing_networks, existing_subnets, subnet_uses
from training_platform.rules.foreign_access import foreign_access, keep_foreign_grants
from training_platform.rules.rights import keep_grants, rights_findings
from training_platform.rules.suggestions import Suggestions
from training_platform.rules.workloads import workload_findings

JOBS = "jobs"
"""The folder of a repository that contains job files, which a part (an optional extension) checks."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Options of a check. ``base_files`` are the files before a change, and ``held_before`` is what they use of quotas.

    ``base_plans`` are the planned resources of stacks, keyed by name, if the repository's own code planned them instead
    of this code. If ``inputs``, the results contain the inputs of resources, which a comparison needs.
    """

    today: date
    base_files: Workspace | None = None
    held_before: Mapping[HolderKey, float] | None = None
    base_plans: Mapping[str, Sequence[StackResource]] | None = None
    inputs: bool = False
    progress: Progress = quiet


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of a repository that a check reads. ``findings`` are about files other than stack files."""

    workspace: Workspace
    snapshots: Snapshots
    exemptions: Exemptions
    usages: Usages
    prices: PriceBook
    findings: tuple[Finding, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Plans:
    """The plans of all stacks: what they charge to quotas, and the result for each selected stack that has a plan.

    - ``findings`` give the reason why a stack has no plan.
    - ``secrets`` are the secret values in all plans.
    - ``unplanned`` are the stacks whose plan failed.
    """

    charges: tuple[Charge, ...]
    outcomes: Mapping[str, Outcome]
    findings: tuple[Finding, ...]
    secrets: Secrets
    failures: tuple[str, ...]
    unplanned: frozenset[str] = frozenset()
    subnet_uses: tuple[SubnetUse, ...] = ()

    def safe(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return findings from which the secret values of all plans are removed."""
        return [finding.without_values() if self.secrets.shown_in(finding.shown) else finding for finding in findings]


@dataclass(frozen=True, kw_only=True)
class Ledgers:
    """How much all stacks use of the projects' quotas, of the clusters' capacity, and of Filestore instances."""

    projects: Mapping[str, ProjectLedger]
    capacity: tuple[CapacityLine, ...]
    files: tuple[FileLine, ...]


@dataclass(frozen=True, kw_only=True)
class Judgements:
    """The findings about the selected stacks, keyed by stack, and the findings about other files."""

    of_stacks: Mapping[str, tuple[Finding, ...]]
    of_files: tuple[Finding, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The result of a whole check, with the result of each of its steps."""

    files: Files
    plans: Plans
    ledgers: Ledgers
    report: Report


def check_stacks(root: FilePath, selected: Sequence[str] | None, options: CheckOptions) -> CheckResult:
    """Check the selected stacks, or all stacks if None, and all jobs. Raises UserError."""
    return check_files(read_files(root, options.today), selected, options)


def check_files(files: Files, selected: Sequence[str] | None, options: CheckOptions) -> CheckResult:
    """Check the selected stacks of a repository whose files are already read. Raises UserError."""
    names = stack_names(files.workspace, selected)
    plans = plan_stacks(files.workspace, names, options)
    ledgers = sum_up(files, plans)
    judgements = judge(files, plans, ledgers, names, options)
    report = report_of(files, plans, ledgers, judgements, options.today)
    return CheckResult(files=files, plans=plans, ledgers=ledgers, report=report)


def stack_names(workspace: Workspace, selected: Sequence[str] | None) -> list[str]:
    """Return the names of the stacks to check, without duplicates. Raises UserError."""
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


def read_files(root: FilePath, today: date) -> Files:
    """Read all files that a check needs."""
    workspace = read_workspace(root)
    snapshots = read_snapshots(root, today)
    exemptions = read_exemptions(root, today)
    usages = read_usages(root)
    failures = [*workspace.unreadable.values(), *snapshots.unreadable.values(), *exemptions.unreadable]
    failures += usages.unreadable
    prices = LIST
    price_findings: list[Finding] = []
    try:
        prices, price_findings = read_own_prices(root)
    except UnreadableError as error:
        failures.append(str(error))
    owner_findings: list[Finding] = []
    try:
        _, owner_findings = read_owners(root, workspace)
    except UnreadableError as error:
        failures.append(str(error))
    spoilt = dict.fromkeys(finding.file for finding in snapshots.findings if finding.severity == "error")
    failures += [f"{file} has errors, so it is not known what its limits allow." for file in spoilt]
    return Files(
        workspace=workspace,
        snapshots=snapshots,
        exemptions=exemptions,
        usages=usages,
        prices=prices,
        findings=(*snapshots.findings, *usages.findings, *price_findings, *owner_findings),
        failures=tuple(failures),
    )


PLAN = declare(
    "plan",
    "Find a stack that cannot be planned. Two resources have the same type and name, resources depend on each other "
    "in a circle, or own_resources.py fails.",
    ruleset="files",
    refused_by="Pulumi, when the program registers the resources",
)


def plan_stacks(workspace: Workspace, names: Collection[str], options: CheckOptions) -> Plans:
    """Plan all stacks and run the rules on the selected ones.

    Stacks are planned one at a time, because a plan is much larger than its file.
    """
    charges: list[Charge] = []
    outcomes: dict[str, Outcome] = {}
    findings: list[Finding] = []
    secrets = Secrets()
    uses: list[SubnetUse] = []
    failures: list[str] = []
    judged = {stack.name for stack in plannable(workspace, names)}
    for done, stack in enumerate(workspace.stacks.values()):
        options.progress(f"planning {stack.name}", done, len(workspace.stacks))
        views: list[View] | None = None
        with others_go_on(stack.source.file, failures):
            try:
                planned = _planned_resources(stack, workspace, options)
            except PlanError as error:
                findings += located([_plan_draft(stack, error)])
                planned = None
            for resource in planned or ():
                secrets.add(resource.inputs)
            if planned is not None and stack.section is not None:
                views = [*views_of_plan(planned, Locator(stack.section)), *existing_subnets(stack)]
                uses += subnet_uses(stack, views)
                if stack.name in judged:
                    outcomes[stack.name] = outcome_of(stack, planned, views, inputs=options.inputs)
        with others_go_on(f"the demand of {stack.source.file}", failures):
            charges += stack_demand(stack, workspace, views)
    return Plans(
        charges=tuple(charges),
        outcomes=outcomes,
        findings=tuple(findings),
        secrets=secrets,
        failures=tuple(failures),
        unplanned=frozenset(row.stack for row in findings if row.stack),
        subnet_uses=tuple(uses),
    )


def _plan_draft(stack: Stack, error: PlanError) -> Draft:
    """Return a finding about a stack without a plan, at the line of the organisation's own code if that failed."""
    if error.line is None:
        return finding(stack, error.path, str(error), rule=PLAN)
    place = own_anchor(stack.name, error.line)
    return finding(place, (), error.reason, rule=PLAN)


def _planned_resources(stack: Stack, workspace: Workspace, options: CheckOptions) -> Sequence[StackResource] | None:
    """Return a stack's planned resources; None if the model rejects its file. Raises PlanError."""
    if stack.findings:
        return None
    if options.base_plans is not None:
        return options.base_plans.get(stack.name)
    plan = stack_plan(stack, workspace)
    if plan is None:
        return None
    keep_grants(plan, workspace)
    keep_foreign_grants(plan, stack.environment_name, workspace)
    return plan.planned()


def sum_up(files: Files, plans: Plans) -> Ledgers:
    """Return how much of each limit all stacks together use."""
    workspace = files.workspace
    return Ledgers(
        projects=project_ledgers(plans.charges, files.snapshots, requested(workspace)),
        capacity=tuple(capacity_ledger(workspace)),
        files=tuple(file_ledger(workspace)),
    )


def judge(files: Files, plans: Plans, ledgers: Ledgers, names: Sequence[str], options: CheckOptions) -> Judgements:
    """Return the findings of all rules about the selected stacks, and the findings of parts about their own files."""
    workspace = files.workspace
    failures: list[str] = []
    of_parts: list[Finding] = []
    checks = checks_of_files()
    stacks = CheckedStacks(
        root=workspace.root,
        today=options.today,
        workspace=workspace,
        charges=plans.charges,
        snapshots=files.snapshots,
    )
    for check in checks:
        findings, unreadable = check.findings(stacks)
        of_parts += findings
        failures += unreadable
    if (workspace.root / JOBS).is_dir() and all(check.folder != JOBS for check in checks):
        failures.append(f"{JOBS}/: this installation lacks the part of training-platform that checks job files.")
    of_all_stacks: list[Finding] = located(_without_environment(workspace, names, plans.unplanned))
    with others_go_on("the limits of projects and clusters", failures):
        of_all_stacks += ledger_findings(
            workspace, ledgers.projects.values(), ledgers.capacity, options.base_files, options.held_before
        )
        of_all_stacks += located(existing_networks(plans.subnet_uses, workspace))
        of_all_stacks += workload_findings(workspace)
        of_all_stacks += budget_findings(workspace, files.usages, options.today)
    with others_go_on("the rights of people, jobs and agents", failures):
        of_all_stacks += rights_findings(workspace)
        of_all_stacks += located(foreign_access(workspace))
    suggestions = Suggestions(workspace, ledgers.projects)
    of_stacks: dict[str, tuple[Finding, ...]] = {}
    for name in names:
        stack = workspace.stacks[name]
        outcome = plans.outcomes.get(name)
        of_rules = outcome.findings if outcome else ()
        failures += [f"{stack.source.file}: {finding.message}." for finding in of_rules if finding.failed]
        suggested: list[Finding] = []
        with others_go_on(stack.source.file, failures):
            suggested = suggestions.to(finding for finding in of_rules if not finding.failed)
        about_stack = [finding for finding in (*of_all_stacks, *plans.findings) if finding.stack == name]
        of_stacks[name] = tuple(plans.safe((*stack.findings, *about_stack, *suggested)))
    return Judgements(
        of_stacks=of_stacks,
        of_files=tuple(plans.safe(dict.fromkeys((*files.findings, *of_parts)))),  # a job repeats those of its snapshot
        failures=tuple(failures),
    )


def _without_environment(workspace: Workspace, names: Collection[str], unplanned: Collection[str]) -> Iterator[Draft]:
    """Yield a finding for each selected team whose environment has no plan and is not selected itself.

    The environment's file was rejected or its plan failed, and no other finding says so. Without the plan it is unknown
    what the team's members and jobs are allowed to do there.
    """
    for name in names:
        stack = workspace.stacks[name]
        home = workspace.stacks.get(stack.environment_name)
        if stack.team is None or home is None or home.name in names:
            continue
        if home.section is None or home.name in unplanned:
            state = "is rejected" if home.section is None else "cannot be planned"
            message = f"{home.source.file} {state}, so nothing that needs {home.name} is checked"
            allowed = f"a file without the errors that `check {home.name}` finds"
            yield finding(stack, ("environment",), message, rule=STACK_MODEL, allowed=allowed)


def report_of(files: Files, plans: Plans, ledgers: Ledgers, judgements: Judgements, today: date) -> Report:
    """Return the report about the selected stacks with the limits that they use. Exempt findings do not count."""
    workspace = files.workspace
    failures = [*files.failures, *plans.failures, *judgements.failures]
    stacks = [
        _stack_report(workspace.stacks[name], files, plans, findings, failures)
        for name, findings in judgements.of_stacks.items()
    ]
    projects = {stack.project for stack in stacks}
    environments = {stack.environment for stack in stacks}
    report = Report(
        today=today,
        stacks=tuple(stacks),
        ledgers=tuple(ledger for ledger in ledgers.projects.values() if ledger.project in projects),
        capacity=tuple(line for line in ledgers.capacity if line.environment in environments),
        files=tuple(line for line in ledgers.files if line.environment in environments),
        findings=(*judgements.of_files, *plans.safe(_exemption_findings(files, stacks))),
        known_stacks=frozenset(workspace.stacks),
        failures=tuple(dict.fromkeys(failures)),
    )
    unlinked: list[str] = []
    with others_go_on("the causes of findings", unlinked):
        report = with_causes(report, {**workspace.unreadable, **files.snapshots.unreadable})
    return replace(report, failures=(*report.failures, *unlinked))


def _stack_report(
    stack: Stack, files: Files, plans: Plans, findings: Iterable[Finding], failures: list[str]
) -> StackReport:
    """Return the report about a stack. If a bug prevents the calculation of its cost, that is a failure."""
    outcome = plans.outcomes.get(stack.name)
    counted, exempted = files.exemptions.split(findings)
    cost = Cost()
    with others_go_on(f"the cost of {stack.source.file}", failures):
        if stack.section:
            cost = stack_cost(stack.section, files.prices)
    return StackReport(
        name=stack.name,
        kind=stack_kind(stack),
        file=stack.source.file,
        project=files.workspace.project_of(stack),
        environment=stack.environment_name,
        planned=outcome is not None,
        branches=outcome.branches if outcome else (),
        resources=outcome.resources if outcome else (),
        accelerators=accelerator_rows(stack.environment) if stack.environment else (),
        cost=cost,
        findings=tuple(counted),
        exempted=tuple(exempted),
    )


def _exemption_findings(files: Files, stacks: Sequence[StackReport]) -> Iterable[Finding]:
    """Return the findings about exemptions that are unused, expired, or for a stack that does not exist."""
    workspace = files.workspace
    used = {exempted.entry for stack in stacks for exempted in stack.exempted}
    counted = [finding for stack in stacks for finding in stack.findings]
    findings = files.exemptions.findings(
        used | files.exemptions.exceeded(counted),
        stacks=workspace.stacks,
        checked={stack.name for stack in stacks},
        decided={stack.name for stack in stacks if stack.planned},
    )
    # An invalid YAML file has no stack here, so an exemption for its stack may be valid.
    return (finding for finding in findings if finding.stack in workspace.stacks or not workspace.unreadable)
