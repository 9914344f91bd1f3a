"""``training-platform job``: training jobs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from training_platform.cli.root import fail, repository, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from training_platform.config.reading.finding import Finding

app = typer.Typer(help="Training jobs.", no_args_is_help=True)

Root = Annotated[Path | None, typer.Option("--root", help="The repository; default: the one around this folder.")]
Today = Annotated[
    str | None, typer.Option("--today", help="The date to check dated files against, such as 2026-11-21.")
]


class Target(StrEnum):
    """Where a job runs."""

    gke = "gke"
    vertex = "vertex"


@app.command("render")
def render(
    file: Annotated[Path, typer.Argument(help="jobs/<team>/<job>.yaml")],
    *,
    target: Annotated[
        Target | None, typer.Option("--target", help="Where it runs; required if the job has both.")
    ] = None,
    today: Today = None,
    root: Root = None,
) -> None:
    """Print what a job would submit: a JobSet as YAML, or the body of a Vertex AI CustomJob as JSON.

    Findings, and what it charges to quotas, go to standard error. Exit code 1: the job has errors. 2: it could not be
    read, or not be rendered as asked.
    """
    from training_platform.config.reading.clock import today as clock
    from training_platform.config.reading.source import UnreadableError
    from training_platform.jobs.render import RenderError, render_job

    folder = repository(root)
    try:
        rendered = render_job(file, folder, target.value if target else None, clock(folder, today))
    except (UnreadableError, RenderError) as error:
        fail(str(error))
    print_findings(rendered.findings, err=True)
    for line in rendered.notes:
        say(f"# {line}", err=True)
    typer.echo(rendered.text, nl=False)
    raise typer.Exit(int(rendered.failed))


@app.command("check")
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Job files; default: all in jobs/.", metavar="[FILE]...")
    ] = None,
    *,
    today: Today = None,
    root: Root = None,
) -> None:
    """Check job files against their teams' stacks, for every target that they name.

    Exit code 0: clean. 1: errors. 2: a file could not be read.
    """
    from training_platform.config.reading.clock import today as clock
    from training_platform.config.reading.source import UnreadableError
    from training_platform.config.workspace import read_workspace
    from training_platform.jobs.render import check_job, job_files

    folder = repository(root)
    paths, unreadable = files or job_files(folder), False
    found: list[Finding] = []
    try:
        day, workspace = clock(folder, today), read_workspace(folder)
    except UnreadableError as error:
        fail(str(error))
    for path in paths:
        try:
            found.extend(check_job(path, folder, workspace, day))
        except UnreadableError as error:
            unreadable = True
            say(f"training-platform: {error}", err=True)
    print_findings(found)
    errors = sum(finding.severity == "error" for finding in found)
    warnings = len(found) - errors
    say(f"{_counted(len(paths), 'job')}: {_counted(errors, 'error')}, {_counted(warnings, 'warning')}")
    raise typer.Exit(2 if unreadable else int(errors > 0))


def print_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Print findings, one after another."""
    for finding in findings:
        say(f"{finding.severity} {finding}  [{finding.rule}]", err=err)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
