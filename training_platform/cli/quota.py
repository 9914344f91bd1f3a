"""``training-platform quota``: who holds what, limits from Google Cloud, and what to ask it for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from training_platform.cli.options import RootOption, TodayOption
from training_platform.cli.root import fail, repository, say
from training_platform.config.reading.finding import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import date

    from training_platform.clients.quota_pull import Pulled
    from training_platform.quota.keys import QuotaKey
    from training_platform.quota.overview import Overview
    from training_platform.quota.snapshot import Snapshots

app = typer.Typer(
    help="Quotas of the projects: who uses what, and what to request from Google Cloud.", no_args_is_help=True
)


By = Literal["project", "region", "quota", "stack", "team"]
FormatOption = Annotated[Literal["text", "json", "markdown"], typer.Option("--format", help="Output format.")]


@app.command("show")
def show(
    *,
    by: Annotated[By, typer.Option("--by", help="What to group the output by.")] = "project",
    projects: Annotated[list[str] | None, typer.Option("--project", help="Only these; repeatable.")] = None,
    regions: Annotated[list[str] | None, typer.Option("--region", help="Only these; repeatable.")] = None,
    quotas: Annotated[list[str] | None, typer.Option("--quota", help="Only these ids; repeatable.")] = None,
    stacks: Annotated[list[str] | None, typer.Option("--stack", help="Only what these use; repeatable.")] = None,
    teams: Annotated[list[str] | None, typer.Option("--team", help="Only what these use; repeatable.")] = None,
    output_format: FormatOption = "text",
    today: TodayOption = None,
    root: RootOption = None,
) -> None:
    """Show who uses what of every limit, what is left, and each team's share of the clusters' capacity.

    Counted over all stacks, at the autoscaling maximum. Exit code 2: a file could not be counted.
    """
    from training_platform.checks.reports.quota.json_report import overview_json
    from training_platform.checks.reports.quota.markdown_report import overview_markdown
    from training_platform.checks.reports.quota.text_report import print_overview, quota_console
    from training_platform.quota.overview import Selection, select

    wanted = Selection(
        projects=projects or (), regions=regions or (), quotas=quotas or (), stacks=stacks or (), teams=teams or ()
    )
    overview = overview_of(root, today)
    try:
        chosen = select(overview, wanted)
    except UserError as error:
        say_not_counted(overview)
        fail(str(error))
    if output_format == "text":
        print_overview(chosen, by, quota_console())
    else:
        say(overview_json(chosen, by) if output_format == "json" else overview_markdown(chosen, by).rstrip())
    raise typer.Exit(2 if overview.not_counted else 0)


@app.command("plan")
def plan(
    *,
    projects: Annotated[list[str] | None, typer.Option("--project", help="Only these; repeatable.")] = None,
    output_format: FormatOption = "text",
    today: TodayOption = None,
    root: RootOption = None,
) -> None:
    """Say which limits to request so that all stacks fit, what would fit today instead, and the YAML to paste.

    Exit code 2: a file could not be counted.
    """
    from training_platform.checks.reports.quota.json_report import plans_json
    from training_platform.checks.reports.quota.markdown_report import plans_markdown
    from training_platform.checks.reports.quota.text_report import print_plans, quota_console
    from training_platform.quota.overview import Selection, select
    from training_platform.quota.plan import plan_requests

    overview = overview_of(root, today)
    say_not_counted(overview)
    chosen = select(overview, Selection(projects=projects or ()))
    plans = plan_requests(chosen.ledgers, chosen.workspace)
    if output_format == "text":
        print_plans(plans, quota_console())
    else:
        typer.echo(plans_json(plans) if output_format == "json" else plans_markdown(plans).rstrip())
    raise typer.Exit(2 if overview.not_counted else 0)


@app.command("init")
def init(*, today: TodayOption = None, root: RootOption = None) -> None:
    """Write a snapshot of what stacks and jobs need for each project without one, to work without credentials.

    A snapshot that it wrote before gets what it does not list. Exit code 2: a file could not be counted, and nothing
    was written.
    """
    from training_platform.checks.output import write_files
    from training_platform.jobs.render import needs_of_jobs
    from training_platform.quota.snapshot import FOLDER

    folder = repository(root)
    overview = overview_of(root, today)
    if overview.not_counted:
        say_not_counted(overview)
        fail("nothing was written.")
    of_jobs = needs_of_jobs(folder, overview.workspace, overview.today)
    texts = dict(_first_snapshots(overview, of_jobs, folder / FOLDER))
    write_files(texts, folders=True)
    for file in texts:
        typer.echo(f"{FOLDER}/{file.name}: written; quota pull writes the limits of Google Cloud in its place")
    if not texts:
        typer.echo("Every project has a snapshot.")


def _first_snapshots(overview: Overview, of_jobs: Mapping[QuotaKey, float], folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield file and text of each snapshot that is missing, or was written so before and lacks what is needed now."""
    from training_platform.quota.snapshot_file import is_first, snapshot_text

    for each in overview.ledgers:
        file, snapshot = folder / f"{each.project}.yaml", each.snapshot
        needs = {line.key: line.used for line in each.lines}
        needs |= {key: amount for key, amount in of_jobs.items() if key.project == each.project}
        lacks = snapshot and any(snapshot.limit(key) is None for key in needs)
        if not file.exists() or (lacks and is_first(file.read_text(encoding="utf-8"))):
            yield file, snapshot_text(each.project, needs, overview.today, snapshot)


@app.command("pull")
def pull(
    projects: Annotated[
        list[str] | None, typer.Argument(help="Projects to read; default: those of all stacks.", metavar="PROJECT")
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change, and write nothing.")] = False,
    endpoint: Annotated[
        str | None, typer.Option("--endpoint", metavar="URL", help="Another Cloud Quotas, such as the sandbox's.")
    ] = None,
    today: TodayOption = None,
    root: RootOption = None,
) -> None:
    """Read the projects' limits from Google Cloud into stacks/quotas/, and say what changed.

    Needs the extra `quota` and application default credentials. Writes every file or none. A snapshot has limits alone:
    what runs now is not in it. Exit code 2: a project could not be read.
    """
    from training_platform.checks.output import write_files
    from training_platform.checks.progress import progress_bar
    from training_platform.clients.cloud_quotas import ENDPOINT, CloudQuotas, open_session
    from training_platform.clients.quota_pull import pull as pull_project
    from training_platform.quota.snapshot import read_snapshots

    folder = repository(root)
    overview = overview_of(root, today)
    say_not_counted(overview)
    address = (endpoint or ENDPOINT).rstrip("/") + "/"
    snapshots = read_snapshots(folder, overview.today)
    names = _projects(projects or (), overview)
    texts = {name: _text(folder, name, snapshots) for name in names}
    api = CloudQuotas(open_session(address), address)
    with progress_bar() as progress:
        pulled = [
            pull_project(
                api,
                name,
                old=snapshots.get(name),
                text=texts[name],
                needed=_needed(overview, name),
                today=overview.today,
                progress=progress,
            )
            for name in names
        ]
    if not dry_run:
        write_files({folder / each.file: each.text for each in pulled}, folders=True)
    for each in pulled:
        _say_pulled(each, overview.today, dry_run=dry_run)


def overview_of(root: Path | None, today: str | None) -> Overview:
    """Return both ledgers of a repository."""
    from training_platform.config.reading.clock import today as clock
    from training_platform.quota.overview import read_overview

    folder = repository(root)
    return read_overview(folder, clock(folder, today))


def _projects(given: Iterable[str], overview: Overview) -> list[str]:
    """Return the projects to read; one that no stack has may be asked for, if its name can be one."""
    from training_platform.config.reading.section import ProjectId, fits

    names = list(dict.fromkeys(given)) or [ledger.project for ledger in overview.ledgers]
    for name in names:
        if not fits(ProjectId, name):
            fail(f"{name!r} is not a project id: 6 to 30 lower-case letters, digits and dashes.")
    if not names:
        fail("No stack file names a project that could be read; name one: training-platform quota pull PROJECT")
    return names


def _text(folder: Path, project: str, snapshots: Snapshots) -> str | None:
    """Return a snapshot's text, None where there is none; ends the command where it holds what nobody can read."""
    from training_platform.quota.snapshot import FOLDER

    file = f"{FOLDER}/{project}.yaml"
    spoilt = {each.file for each in snapshots.findings if each.severity == "error"}
    if file in spoilt or any(each.startswith(f"{file}:") for each in snapshots.unreadable):
        fail(f"{file} cannot be kept as it is: mend it, or delete it to have a new one; nothing was written.")
    path = folder / file
    return path.read_text(encoding="utf-8-sig") if path.exists() else None


def _needed(overview: Overview, project: str) -> set[tuple[str, str]]:
    lines = (line for ledger in overview.ledgers if ledger.project == project for line in ledger.lines)
    return {(line.key.service, line.key.quota_id) for line in lines}


def _say_pulled(pulled: Pulled, day: date, *, dry_run: bool) -> None:
    changed = len(pulled.changes)
    count = f"{changed:,} limit{'' if changed == 1 else 's'} changed" if changed else "no limit changed"
    say(f"{pulled.file}: {count}; {'not written' if dry_run else f'limits of {day}'}")
    service = ""
    for change in pulled.changes:
        if change.service != service:
            service = change.service
            say(f"  {service}")
        say(f"    {change}")
    for quota_id in pulled.missing:
        say(f"  not listed, though stacks need it: {quota_id}")


def say_not_counted(overview: Overview) -> None:
    """Say on standard error what is missing in an overview."""
    for sentence in overview.not_counted:
        say(f"training-platform: not counted: {sentence}", err=True)
