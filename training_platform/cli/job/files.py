"""``training-platform job render|check|cost``: job files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from training_platform.cli.options import FormatOption, RootOption, TodayOption
from training_platform.cli.root import complete_jobs, print_json, repository, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from training_platform.config.reading.finding import Finding

app = typer.Typer(help="Training jobs.", no_args_is_help=True)

JobFile = Annotated[Path, typer.Argument(help="jobs/<team>/<job>.yaml", autocompletion=complete_jobs)]
Target = Literal["gke", "vertex"]


@app.command("render")
def render(
    file: JobFile,
    *,
    target: Annotated[
        Target | None, typer.Option("--target", help="Where it runs; required if the job has both.")
    ] = None,
    today: TodayOption = None,
    root: RootOption = None,
) -> None:
    """Print what a job would submit: a JobSet as YAML, or the body of a Vertex AI CustomJob as JSON.

    Findings, and what it charges to quotas, go to standard error. Exit code 1: the job has errors. 2: it could not be
    read, or not be rendered as asked.
    """
    from training_platform.config.reading.clock import today as clock
    from training_platform.jobs.render import render_job

    folder = repository(root)
    rendered = render_job(file, folder, target, clock(folder, today))
    print_findings(rendered.findings, err=True)
    for line in rendered.notes:
        say(f"# {line}", err=True)
    typer.echo(rendered.text, nl=False)
    raise typer.Exit(int(rendered.failed))


@app.command("check")
def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Job files; default: all in jobs/.", metavar="[FILE]...", autocompletion=complete_jobs),
    ] = None,
    *,
    output_format: FormatOption = "text",
    today: TodayOption = None,
    root: RootOption = None,
) -> None:
    """Check job files against their teams' stacks, for every target that they name.

    Exit code 0: clean. 1: errors. 2: a file could not be read.
    """
    from training_platform.config.reading.clock import today as clock
    from training_platform.config.workspace import read_workspace
    from training_platform.jobs.render import check_jobs, job_files

    folder = repository(root)
    paths = files or job_files(folder)
    day, workspace = clock(folder, today), read_workspace(folder)
    found, unreadable = check_jobs(paths, folder, workspace, day)
    for sentence in unreadable:
        say(f"training-platform: {sentence}", err=True)
    errors = sum(finding.severity == "error" for finding in found)
    if output_format == "json":
        _print_found(len(paths), errors, found)
    else:
        print_findings(found)
        warnings = len(found) - errors
        say(f"{_counted(len(paths), 'job')}: {_counted(errors, 'error')}, {_counted(warnings, 'warning')}")
    raise typer.Exit(2 if unreadable else int(errors > 0))


@app.command("cost")
def cost(
    file: JobFile,
    *,
    target: Annotated[Target | None, typer.Option("--target", help="Default: every target of the job.")] = None,
    output_format: FormatOption = "text",
    today: TodayOption = None,
    root: RootOption = None,
) -> None:
    """Print what a job costs at list prices, for each provisioning model: an hour of it, and its longest run.

    Every sum is a least one: the output says what it leaves out. Exit code 1: the job has errors. 2: it could not be
    read.
    """
    from training_platform.config.reading.clock import today as clock
    from training_platform.jobs.cost import cost_text
    from training_platform.jobs.render import cost_of_file

    folder = repository(root)
    costs, findings = cost_of_file(file, folder, target, clock(folder, today))
    print_findings(findings, err=True)
    if output_format == "json":
        print_json([each.as_json() for each in costs])
    elif costs:
        say("\n\n".join(map(cost_text, costs)))
    raise typer.Exit(int(any(finding.severity == "error" for finding in findings)))


def print_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Print findings, in the order of the file."""
    for finding in sorted(findings, key=lambda each: (each.file or "", each.position or (0, 0))):
        say(f"{finding.severity} {finding}  [{finding.rule}]", err=err)


def _print_found(jobs: int, errors: int, found: list[Finding]) -> None:
    from training_platform.checks.reports.json_report import finding_document

    documents = [finding_document(finding) for finding in found]
    print_json({"jobs": jobs, "errors": errors, "warnings": len(found) - errors, "findings": documents})


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
