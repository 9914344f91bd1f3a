"""``training-platform job render|check|cost``: job files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from training_platform.cli.shared import (
    PATH,
    Commands,
    Format,
    complete_jobs,
    example,
    format_option,
    print_json,
    repository,
    root_option,
    say,
    say_beside,
    today_option,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from training_platform.config.reading.finding import Finding

app = Commands(
    "job",
    help="Training jobs. render, check, cost and init work offline; all others need a cluster or Vertex AI.",
)

Target = Literal["gke", "vertex"]
target_type = click.Choice(["gke", "vertex"])
job_file = click.argument("file", type=PATH, shell_complete=complete_jobs, help="jobs/<team>/<job>.yaml")


@app.command("render", epilog=example("training-platform job render jobs/nlp/pretrain.yaml --target gke"))
@job_file
@click.option("--target", type=target_type, help="Where it runs; required if the job has both.")
@today_option
@root_option
def render(file: Path, target: Target | None, today: str | None, root: Path | None) -> None:
    """Print a job as submitted: a JobSet as YAML, or the body of a Vertex AI CustomJob as JSON.

    Findings and charges to quotas are printed on standard error. Exit code 1: the job has errors. 2: it could not be
    read or rendered.
    """
    from training_platform.config.reading.clock import today as clock
    from training_platform.jobs.render import render_job

    folder = repository(root)
    rendered = render_job(file, folder, target, clock(folder, today))
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
@format_option
@today_option
@root_option
def check(files: tuple[Path, ...], output_format: Format, today: str | None, root: Path | None) -> None:
    """Check job files against their teams' stacks, for every target that they name.

    Exit code 0: clean. 1: errors. 2: a file could not be read.
    """
    from training_platform.checks.reports.json_report import finding_document
    from training_platform.config.reading.clock import today as clock
    from training_platform.config.workspace import read_workspace
    from training_platform.jobs.render import check_jobs, job_files

    folder = repository(root)
    paths = files or job_files(folder)
    day, workspace = clock(folder, today), read_workspace(folder)
    findings, unreadable = check_jobs(paths, folder, workspace, day)
    for sentence in unreadable:
        say(f"training-platform: {sentence}", err=True)
    warnings = sum(finding.severity == "warning" for finding in findings)
    errors = sum(finding.severity == "error" for finding in findings)
    if output_format == "json":
        documents = [finding_document(finding) for finding in findings]
        counts = {"errors": errors + len(unreadable), "warnings": warnings}
        print_json({"jobs": len(paths), **counts, "findings": documents})
    else:
        print_findings(findings)
        counted = [_counted(errors, "error"), _counted(warnings, "warning")]
        counted += [f"{_counted(len(unreadable), 'thing')} not checked"] if unreadable else []
        say(f"{_counted(len(paths), 'job')}: {', '.join(counted)}")
    sys.exit(2 if unreadable else int(errors > 0))


@app.command("cost", epilog=example("training-platform job cost jobs/vision/finetune.yaml"))
@job_file
@click.option("--target", type=target_type, help="Default: every target of the job.")
@format_option
@today_option
@root_option
def cost(file: Path, target: Target | None, output_format: Format, today: str | None, root: Path | None) -> None:
    """Print a job's cost at list prices, for each provisioning model: per hour, and for the longest run.

    Every sum is a lower bound: the output names the omissions. Exit code 1: the job has errors. 2: it could not be
    read.
    """
    from training_platform.config.reading.clock import today as clock
    from training_platform.jobs.cost import cost_text
    from training_platform.jobs.render import cost_of_file

    folder = repository(root)
    costs, findings = cost_of_file(file, folder, target, clock(folder, today))
    print_findings(findings, err=True)
    if output_format == "json":
        print_json([estimate.as_json() for estimate in costs])
    elif costs:
        for line in "\n\n".join(map(cost_text, costs)).splitlines():
            said = line.lstrip()
            say_beside(line[: len(line) - len(said)], said)
    sys.exit(int(any(finding.severity == "error" for finding in findings)))


def print_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Print findings, in the order of the file."""
    for finding in sorted(findings, key=lambda row: (row.file or "", row.position or (0, 0))):
        say(f"{finding.severity} {finding}  [{finding.rule}]", err=err)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
