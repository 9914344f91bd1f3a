"""``training-platform job render|check|cost|usage``: commands for job files and for teams' chip-hours."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from training_platform.cli.shared import (
    PATH,
    Commands,
    Format,
    LateCommands,
    commands_of,
    complete_jobs,
    example,
    fail,
    folded,
    format_option,
    line_width,
    local_cloud_option,
    need,
    print_json,
    repository,
    root_option,
    say,
    say_folded,
    today_option,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date, datetime

    from training_platform.config.model.environment import Environment
    from training_platform.config.model.team import Team
    from training_platform.config.reading.finding import Finding
    from training_platform.config.workspace import Workspace
    from training_platform.quota.chip_hours import Hours

_COMMANDS = LateCommands(commands_of("training_platform.parts.jobs.cli", {
    "render": "job:render", "check": "job:check", "cost": "job:cost", "usage": "job:usage", "submit": "runs:submit",
    "debug": "runs:debug", "list": "runs:list_runs", "status": "runs:status", "cancel": "runs:cancel",
    "requeue": "runs:requeue_run", "wait": "runs:wait_for", "why": "runs:why_it_waits", "logs": "runs:logs",
    "exec": "inside:execute", "port-forward": "inside:port_forward", "top": "inside:top", "init": "init_job:init_job",
}))  # fmt: skip
app = Commands(
    "job",
    commands=_COMMANDS,
    help="Training jobs. render, check, cost and init work offline; all others need Google Cloud or a cluster.",
)

TargetName = Literal["gke", "vertex"]
target_type = click.Choice(["gke", "vertex"])
job_file = click.argument("file", type=PATH, shell_complete=complete_jobs, help="jobs/<team>/<job>.yaml")


@app.command("render", epilog=example("training-platform job render jobs/nlp/pretrain.yaml --target gke"))
@job_file
@click.option("--target", type=target_type, help="Target of the run; required if the job has both.")
@format_option
@today_option
@root_option
def render(
    file: Path, *, target: TargetName | None, output_format: Format, today: str | None, root: Path | None
) -> None:
    """Print a job in the form that is submitted: a JobSet, or the body of a Vertex AI CustomJob, as YAML or JSON.

    Findings and quota charges are printed on standard error. Exit code 1: the job has errors. 2: it could not be read
    or rendered.
    """
    from training_platform.config.reading.clock import today as clock
    from training_platform.parts.jobs.render import render_job

    folder = repository(root)
    rendered = render_job(file, folder, target, clock(folder, today), as_json=output_format == "json")
    print_findings(rendered.findings, err=True)
    for line in rendered.notes:
        say(f"# {line}", err=True)
    click.echo(rendered.text, nl=False)
    sys.exit(int(rendered.failed))


@app.command("check", epilog=example("training-platform job check jobs/vision/finetune.yaml"))
@click.argument(
    "files",
    nargs=-1,
    type=PATH,
    metavar="[FILE]...",
    shell_complete=complete_jobs,
    help="Job files; default: all in jobs/.",
)
@click.option(
    "--verbose", "-v", is_flag=True, help="Also print what each job requests, and its part of each VM; only as text."
)
@format_option
@today_option
@root_option
def check(
    files: tuple[Path, ...], *, verbose: bool, output_format: Format, today: str | None, root: Path | None
) -> None:
    """Check job files against their teams' stacks, for every target that they name.

    Exit code 0: clean. 1: errors. 2: a file could not be read.
    """
    from training_platform.checks.reports.conclusion import (
        Conclusion,
        VerdictState,
        counted_kinds,
        more_about,
        of_severities,
    )
    from training_platform.config.reading.clock import today as clock
    from training_platform.config.reading.section import counted
    from training_platform.config.workspace import read_workspace
    from training_platform.parts.jobs.job_checks import check_jobs, job_files

    folder = repository(root)
    paths = files or job_files(folder)
    day = clock(folder, today)
    workspace = read_workspace(folder)
    findings, unreadable = check_jobs(paths, folder, workspace, day)
    for sentence in unreadable:
        say_folded(f"training-platform: {sentence}", err=True)
    checked = len(paths) - len(unreadable)
    warnings = sum(finding.severity == "warning" for finding in findings)
    errors = sum(finding.severity == "error" for finding in findings)
    if output_format == "json":
        from training_platform.checks.reports.json_report import finding_document  # imports all rules for stacks

        documents = [finding_document(finding) for finding in findings]
        counts = {"errors": errors + len(unreadable), "warnings": warnings}
        print_json({"jobs": checked, **counts, "findings": documents})
    else:
        print_findings(findings)
        if verbose:
            _say_notes(paths, folder, workspace, day)
        parts = of_severities(findings)
        unjudged = counted_kinds(Counter(finding.unjudged for finding in findings if finding.unjudged))
        state: VerdictState = "partial" if unjudged else "clean"
        if errors:
            state = "findings"
        if unreadable:
            parts.append(f"{counted(len(unreadable), 'thing')} not checked")
            state = "unchecked"
        say(str(Conclusion(state, counted(checked, "job"), counts=", ".join(parts), unjudged=unjudged)))
        if errors or warnings:
            say(more_about(min(findings, key=lambda finding: finding.severity != "error")))
    sys.exit(2 if unreadable else int(errors > 0))


def _say_notes(paths: Iterable[Path], folder: Path, workspace: Workspace, day: date) -> None:
    """Print the notes about job files. Files that cannot be read were reported before."""
    from training_platform.config.reading.finding import others_go_on
    from training_platform.config.reading.source import UnreadableError
    from training_platform.parts.jobs.job_checks import notes_of_file

    for path in paths:
        with suppress(UnreadableError), others_go_on(path.as_posix(), []):
            for note in notes_of_file(path, folder, workspace, day):
                say(note)


@app.command("cost", epilog=example("training-platform job cost jobs/vision/finetune.yaml"))
@click.argument("file", type=PATH, required=False, shell_complete=complete_jobs, help="jobs/<team>/<job>.yaml")
@click.option("--target", type=target_type, help="Default: every target of the job.")
@click.option("--team", help="Instead of a job: the chip-hours of this team in a month, and its budgets.")
@click.option("--environment", help="The team's environment; required if several have a team of that name.")
@click.option("--month", metavar="YYYY-MM", help="With --team; default: this month.")
@format_option
@today_option
@root_option
def cost(
    *, file: Path | None, target: TargetName | None, team: str | None, environment: str | None, month: str | None,
    output_format: Format, today: str | None, root: Path | None,
) -> None:  # fmt: skip
    """Print a job's cost at list prices for each provisioning model: per hour, and for the maximum run time.

    Every sum is a lower bound, and the output lists the costs that it omits. With --team, print a team's use in a
    month, from the ledger that `job usage` writes. Exit code 1: the job has errors. 2: it could not be read.
    """
    from training_platform.config.reading.clock import today as clock

    folder = repository(root)
    if (file is None) == (team is None):
        fail("name a job file, or a team with --team.")
    if file is None:
        _say_team(folder, str(team), environment, month, today=clock(folder, today), output_format=output_format)
        return
    if month or environment:
        fail("--month and --environment are for --team: a job file has its own environment.")
    from training_platform.parts.jobs.job_cost import cost_of_file, cost_text

    costs, findings = cost_of_file(file, folder, target, clock(folder, today))
    print_findings(findings, err=True)
    if output_format == "json":
        print_json([estimate.as_json() for estimate in costs])
    elif costs:
        say(folded("\n\n".join(map(cost_text, costs)), line_width()))
    sys.exit(int(any(finding.severity == "error" for finding in findings)))


def _say_team(
    folder: Path, name: str, environment: str | None, month: str | None, *, today: date, output_format: Format
) -> None:
    from training_platform.config.own_prices import read_own_prices
    from training_platform.config.reading.section import fits
    from training_platform.config.workspace import read_workspace
    from training_platform.parts.jobs.job_cost import team_cost, team_text
    from training_platform.quota.chip_hours import COMMAND, FOLDER, Month, month_of, read_usages

    if month is not None and not fits(Month, month):
        fail(f"--month {month!r} is not a month: write it as {month_of(today)}.")
    workspace = read_workspace(folder)
    usages = read_usages(folder)
    book, wrong = read_own_prices(folder)
    print_findings((*usages.findings, *wrong), err=True)
    for sentence in usages.unreadable:
        say(f"training-platform: {sentence}", err=True)
    team = _team_called(workspace, name, environment)
    if (ledger := usages.files.get(team.environment)) is None:
        file = f"{FOLDER}/{team.environment}.yaml"
        fail(f"{file} does not exist or has errors: {COMMAND} --environment {team.environment} writes it.")
    month_cost = team_cost(workspace, team, usages, month or month_of(today), book)
    if output_format == "json":
        print_json(
            {"team": team.name, "environment": team.environment, "read": str(ledger.read), **month_cost.as_json()}
        )
        return
    say(team_text(month_cost))
    say(f"# Read on {ledger.read:%Y-%m-%d %H:%M} UTC. Jobs on Vertex AI are not in it.", err=True)


def _team_called(workspace: Workspace, name: str, environment: str | None) -> Team:
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.reading.section import enumeration

    teams = [team for _, team, _ in workspace.teams() if environment in (None, team.environment)]
    named = [team for team in teams if team.name == name]
    if not named:
        nearest = find_nearest(name, [team.name for team in teams])
        names = enumeration({team.name for team in teams}) or "none is declared"
        fail(f"There is no team {name}. Allowed: {names}." + (f" Nearest: {nearest}." if nearest else ""))
    if len(named) > 1:
        homes = " and ".join(sorted(team.environment for team in named))
        fail(f"{homes} each have a team {name}: choose one with --environment.")
    return named[0]


@app.command("usage", epilog=example("training-platform job usage --environment prod > holds.diff"))
@click.option("--environment", "environments", multiple=True, help="Only these; repeatable.")
@click.option("--dry-run", is_flag=True, help="Write no ledger.")
@local_cloud_option
@today_option
@root_option
def usage(
    environments: tuple[str, ...], local_cloud: str | None, today: str | None, root: Path | None, *, dry_run: bool
) -> None:
    """Read the chip-hours of teams in this and the last month into stacks/usage/, and print the required holds.

    Needs the extra `jobs`, application default credentials, and `roles/monitoring.viewer` in the environment's project.
    Standard output is a patch to team files for `git apply`. It adds `hold` for teams that have used up
    `monthly_chip_hours`, and removes it when a new month has begun. Standard error lists budgets that are 80% used.
    Exit code 2: an environment could not be read, or the series of one queue disagree; no file was written.
    """
    from dataclasses import replace
    from datetime import UTC, datetime, time

    from training_platform.checks.output import write_files
    from training_platform.clients.google_api import local_endpoint
    from training_platform.config.reading.clock import today as clock
    from training_platform.config.workspace import read_workspace
    from training_platform.quota import chip_hours

    need("jobs", "job usage")
    folder = repository(root)
    now = datetime.now(UTC)
    day = clock(folder, today)
    if day != now.date():
        now = datetime.combine(day, time(23, 55), UTC)
    workspace = read_workspace(folder)
    usages = chip_hours.read_usages(folder)
    for sentence in (*usages.unreadable, *map(str, usages.findings)):
        fail(f"{sentence} Correct the file, or delete it.")
    homes = {stack.name: home for stack, home in workspace.environments() if home.clusters}
    for name in environments:
        if name not in homes:
            fail(f"There is no environment {name} with clusters. There are: {', '.join(homes) or 'none'}.")
    texts = {}
    endpoint = local_endpoint(local_cloud, "monitoring")
    for name in environments or homes:
        hours_by_month = _hours_by_month(homes[name], name, chip_hours.month_of(day), now, endpoint)
        path = folder / chip_hours.FOLDER / f"{name}.yaml"
        texts[path] = chip_hours.usage_text(usages.files.get(name), hours_by_month, now)
        usages = usages.with_text(name, texts[path])
    if not dry_run:
        write_files(texts, folders=True)
    for path in texts:
        say(f"{path.relative_to(folder)}: {'not written' if dry_run else 'written'}", err=True)
    findings = chip_hours.budget_findings(workspace, usages, day)
    print_findings((replace(finding, severity="warning") for finding in findings), err=True)
    click.echo(chip_hours.proposal(workspace, usages, day), nl=False)


def _hours_by_month(home: Environment, name: str, month: str, now: datetime, endpoint: str | None) -> dict[str, Hours]:
    """Return the chip-hours of an environment's teams in a month and the month before, if it had clusters then.

    Raises UserError if the series of one queue disagree. Raises GoogleError.
    """
    from training_platform.clients.google_services import prometheus
    from training_platform.quota import chip_hours

    hours_by_month = {}
    for each_month in (chip_hours.month_before(month), month):
        query = chip_hours.question(home, name, each_month, now)
        if query is None:
            continue
        samples = prometheus(home.project, query.expr, query.time, endpoint)
        disputed_samples = prometheus(home.project, query.disputed, query.time, endpoint)
        hours = chip_hours.hours_of(samples, home, name)
        chip_hours.refuse_disputed(hours, chip_hours.hours_of(disputed_samples, home, name), each_month)
        hours_by_month[each_month] = hours
    return hours_by_month


def print_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Print findings in the order of the file."""
    for finding in sorted(findings, key=lambda row: (row.file or "", row.position or (0, 0))):
        subject, _, advice = str(finding).partition("\n")
        line = f"{finding.severity} {subject}  [{finding.rule}]"
        say_folded(f"{line}\n{advice}" if advice else line, err=err)
