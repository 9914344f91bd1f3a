"""``training-platform quota``: shows the use of limits, reads limits from Google Cloud, and writes requests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import click

from training_platform.cli.shared import Commands, example, fail, repository, root_option, say, today_option
from training_platform.config.reading.finding import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import date

    from training_platform.clients.quota_pull import Pulled
    from training_platform.quota.charges import QuotaKey
    from training_platform.quota.needed_requests import ProjectRequests
    from training_platform.quota.overview import Overview
    from training_platform.quota.snapshot import Snapshots

app = Commands("quota", help="Quotas of the projects: who uses what, and what to request from Google Cloud.")


GroupBy = Literal["project", "region", "quota", "stack", "team"]
QuotaFormat = Literal["text", "json", "markdown"]
_format = click.option(
    "--format", "output_format", type=click.Choice(get_args(QuotaFormat)), default="text", help="Output format."
)
_only_projects = click.option("--project", "projects", multiple=True, help="Only these; repeatable.")


@app.command("show", epilog=example("training-platform quota show --by team --region us-central1"))
@click.option("--by", default="project", type=click.Choice(get_args(GroupBy)), help="Grouping of the output.")
@_only_projects
@click.option("--region", "regions", multiple=True, help="Only these; repeatable.")
@click.option("--quota", "quotas", multiple=True, help="Only these ids; repeatable.")
@click.option("--stack", "stacks", multiple=True, help="Only quotas that this stack uses; repeatable.")
@click.option("--team", "teams", multiple=True, help="Only quotas that this team uses; repeatable.")
@_format
@today_option
@root_option
def show(
    *,
    by: GroupBy,
    projects: tuple[str, ...],
    regions: tuple[str, ...],
    quotas: tuple[str, ...],
    stacks: tuple[str, ...],
    teams: tuple[str, ...],
    output_format: QuotaFormat,
    today: str | None,
    root: Path | None,
) -> None:
    """Show the used and the free part of every limit, and each team's share of the clusters' capacity.

    Use is counted over all stacks, at the autoscaling maximum. Exit code 2: a file could not be counted.
    """
    from training_platform.checks.reports.quota_tables import (
        overview_json,
        overview_markdown,
        print_overview,
        quota_console,
    )
    from training_platform.quota.overview import Selection, select

    selection = Selection(projects=projects, regions=regions, quotas=quotas, stacks=stacks, teams=teams)
    overview = overview_of(root, today)
    try:
        chosen = select(overview, selection)
    except UserError as error:
        say_not_counted(overview)
        fail(str(error))
    if output_format == "text":
        print_overview(chosen, by, quota_console())
    else:
        say(overview_json(chosen, by) if output_format == "json" else overview_markdown(chosen, by).rstrip())
    sys.exit(2 if overview.not_counted else 0)


@app.command("plan", epilog=example("training-platform quota plan"))
@_only_projects
@_format
@today_option
@root_option
def plan(projects: tuple[str, ...], output_format: QuotaFormat, today: str | None, root: Path | None) -> None:
    """Print the limits to request for all stacks, alternatives that fit today, and the YAML to paste.

    Exit code 2: a file could not be counted.
    """
    from training_platform.checks.reports.quota_tables import plans_json, plans_markdown, print_plans, quota_console
    from training_platform.quota.needed_requests import needed_requests
    from training_platform.quota.overview import Selection, select

    overview = overview_of(root, today)
    say_not_counted(overview)
    chosen = select(overview, Selection(projects=projects))
    plans = needed_requests(chosen.ledgers, chosen.workspace)
    if output_format == "text":
        print_plans(plans, quota_console())
    else:
        click.echo(plans_json(plans) if output_format == "json" else plans_markdown(plans).rstrip())
    sys.exit(2 if overview.not_counted else 0)


@app.command("init", epilog=example("training-platform quota init"))
@today_option
@root_option
def init(today: str | None, root: Path | None) -> None:
    """Write a placeholder for each project without a snapshot, so that other commands work without credentials.

    A placeholder contains the demand of stacks and jobs. It is not a limit, so nothing is compared with it. If the
    demand has grown, existing placeholders are raised. Exit code 2: a file could not be counted, and nothing was
    written.
    """
    from training_platform.checks.output import write_files
    from training_platform.checks.parts import checks_of_files
    from training_platform.quota.snapshot import FOLDER

    folder = repository(root)
    overview = overview_of(root, today)
    if overview.not_counted:
        say_not_counted(overview)
        fail("nothing was written.")
    of_files: dict[QuotaKey, float] = {}
    for check in checks_of_files():
        of_files |= check.quota_needs(folder, overview.workspace, overview.today)
    texts = dict(_placeholders(overview, of_files, folder / FOLDER))
    write_files(texts, folders=True)
    for file in texts:
        click.echo(f"{FOLDER}/{file.name}: written; quota pull replaces it with the limits of Google Cloud")
    if not texts:
        click.echo("Every project has a snapshot.")


def _placeholders(overview: Overview, of_jobs: Mapping[QuotaKey, float], folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield file and text of a placeholder for each missing snapshot, and for each placeholder below present needs."""
    from training_platform.quota.snapshot import placeholder_text, unmarked

    for ledger in overview.ledgers:
        file = folder / f"{ledger.project}.yaml"
        snapshot = ledger.snapshot
        needs = {line.key: line.used for line in ledger.lines}
        needs |= {key: amount for key, amount in of_jobs.items() if key.project == ledger.project}
        if not file.exists():
            yield file, placeholder_text(ledger.project, needs, overview.today)
        elif snapshot:
            lacks = any((snapshot.amount(key) or 0) < amount for key, amount in needs.items())
            if (snapshot.placeholder and lacks) or unmarked(file.read_text(encoding="utf-8")):
                yield file, placeholder_text(ledger.project, needs, overview.today, snapshot)


@app.command("pull", epilog=example("training-platform quota pull"))
@click.argument(
    "projects", nargs=-1, metavar="[PROJECT]...", help="Projects to read; default: the projects of all stacks."
)
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@click.option("--endpoint", metavar="URL", help="URL of another Cloud Quotas server, such as the sandbox's.")
@today_option
@root_option
def pull(projects: tuple[str, ...], dry_run: bool, endpoint: str | None, today: str | None, root: Path | None) -> None:
    """Read the projects' limits from Google Cloud into stacks/quotas/, and print the changes.

    Needs the extra `quota` and application default credentials. If a project cannot be read, no file is written. A
    snapshot contains only limits, not their present use. Exit code 2: a project could not be read.
    """
    from training_platform.checks.output import write_files
    from training_platform.checks.process import progress_bar
    from training_platform.clients.quota_pull import CloudQuotas
    from training_platform.clients.quota_pull import pull as pull_project
    from training_platform.quota.snapshot import read_snapshots

    folder = repository(root)
    overview = overview_of(root, today)
    say_not_counted(overview)
    snapshots = read_snapshots(folder, overview.today)
    names = _projects(projects, overview)
    texts = {name: _text(folder, name, snapshots) for name in names}
    apis = [CloudQuotas(name, endpoint) for name in names]
    with progress_bar() as progress:
        pulled = [
            pull_project(
                api,
                old=snapshots.get(api.project),
                text=texts[api.project],
                needed={
                    (line.key.service, line.key.quota_id)
                    for ledger in overview.ledgers
                    for line in ledger.lines
                    if ledger.project == api.project
                },
                today=overview.today,
                progress=progress,
            )
            for api in apis
        ]
    if not dry_run:
        write_files({folder / result.file: result.text for result in pulled}, folders=True)
    for result in pulled:
        _say_pulled(result, overview.today, dry_run=dry_run)


def overview_of(root: Path | None, today: str | None) -> Overview:
    """Return what the stacks of a repository use of each limit and of each cluster's capacity."""
    from training_platform.config.reading.clock import today as clock
    from training_platform.quota.overview import read_overview

    folder = repository(root)
    return read_overview(folder, clock(folder, today))


def _projects(selected: Iterable[str], overview: Overview) -> list[str]:
    """Return the projects to read. Selected projects need not appear in stack files."""
    from training_platform.config.reading.section import ProjectId, fits

    names = list(dict.fromkeys(selected)) or [ledger.project for ledger in overview.ledgers]
    for name in names:
        if not fits(ProjectId, name):
            fail(f"{name!r} is not a project id: 6 to 30 lower-case letters, digits and dashes.")
    if not names:
        fail("No stack file that can be read has a project; give one: training-platform quota pull PROJECT")
    return names


def _text(folder: Path, project: str, snapshots: Snapshots) -> str | None:
    """Return the text of a project's snapshot, or None if it does not exist. Exits if it is unreadable."""
    from training_platform.quota.snapshot import FOLDER

    file = f"{FOLDER}/{project}.yaml"
    spoilt = {finding.file for finding in snapshots.findings if finding.severity == "error"}
    if file in spoilt or file in snapshots.unreadable:
        fail(f"{file} cannot be updated: fix its findings, or delete it for a new one; nothing was written.")
    path = folder / file
    return path.read_text(encoding="utf-8-sig") if path.exists() else None


def _say_pulled(pulled: Pulled, day: date, *, dry_run: bool) -> None:
    from training_platform.config.reading.section import counted

    changed = len(pulled.changes)
    count = f"{counted(changed, 'limit')} changed" if changed else "no limit changed"
    say(f"{pulled.file}: {count}; {'not written' if dry_run else f'limits of {day}'}")
    service = ""
    for change in pulled.changes:
        if change.service != service:
            service = change.service
            say(f"  {service}")
        say(f"    {change}")
    for quota_id in pulled.missing:
        say(f"  needed by stacks, but not listed: {quota_id}")


def say_not_counted(overview: Overview) -> None:
    """Print on standard error what an overview does not contain."""
    for sentence in overview.not_counted:
        say(f"training-platform: not counted: {sentence}", err=True)


@app.command(epilog=example("training-platform quota request"))
@_only_projects
@click.option("--justification", metavar="TEXT", help="Reason; default: each stack's use.")
@click.option("--contact", metavar="EMAIL", help="Contact for Google; default: the first of alerts.emails.")
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@today_option
@root_option
def request(
    *,
    projects: tuple[str, ...],
    justification: str | None,
    contact: str | None,
    dry_run: bool,
    today: str | None,
    root: Path | None,
) -> None:
    """Write the requests that `quota plan` prints into the environments' stack files, for review.

    The next deployment of an environment sends them to Google Cloud. Comments and other lines are kept. If a file
    cannot be counted or written, no file is changed, and the exit code is 2.
    """
    from training_platform.checks.output import write_files
    from training_platform.checks.reports.quota_tables import plan_summary
    from training_platform.config.reading.section import Email, fits
    from training_platform.quota.needed_requests import needed_requests, with_requests
    from training_platform.quota.overview import Selection, select

    folder = repository(root)
    overview = overview_of(root, today)
    say_not_counted(overview)
    if overview.not_counted:
        fail("the stacks' needs are unknown until these errors are fixed; nothing was written.")
    if not fits(Email | None, contact):
        fail(f"--contact {contact}: that is not an address such as ml-platform@example.com.")
    chosen = select(overview, Selection(projects=projects))
    plans = needed_requests(chosen.ledgers, chosen.workspace)
    texts = {}
    for plan in plans:
        if plan.needed:
            path = folder / plan.stack.source.file if plan.stack else folder
            text = path.read_bytes().decode("utf-8-sig") if plan.stack else ""
            texts[path] = with_requests(plan, text, contact=contact, justification=justification)
    if not dry_run:
        write_files(texts)
    for plan in plans:
        _say_plan(plan, plan_summary(plan), dry_run=dry_run)


def _say_plan(plan: ProjectRequests, summary: str, *, dry_run: bool) -> None:
    from training_platform.checks.reports.sections import limit, location, quota_name
    from training_platform.config.reading.section import counted

    if not plan.needed or plan.stack is None:
        say(f"{plan.ledger.project}: {summary}")
        return
    count = counted(len(plan.needed), "request")
    say(f"{plan.stack.source.file}: {count} {'not written' if dry_run else 'written'}")
    for need in plan.needed:
        line = need.line
        change = f"{limit(line)} -> {need.value:,} {line.unit}"
        say(f"  {need.name}: {quota_name(line.key)} in {location(line.key)}, {change}")
