"""``training-platform trace``: generates traces, imports them, and reads them from clusters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from training_platform.cli.shared import PATH, Commands, example, fail, need, say
from training_platform.parts.jobs.cli.runs import RunsOptions, access_options, progress

if TYPE_CHECKING:
    from kueue_model.imports import Imported

trace_app = Commands("trace", help="Make, import and pull traces, which list the jobs for simulate.")


@trace_app.command("make", epilog=example("training-platform trace make 'vision:8 h100:40:6' > october.csv"))
@click.argument(
    "kinds",
    nargs=-1,
    required=True,
    metavar="TEAM:NEEDS:PER_WEEK:HOURS[:PRIORITY]...",
    help="Kinds of jobs, such as 'vision:8 h100:40:6': a team, its needs, jobs a week, and hours of the median job.",
)
@click.option("--days", type=click.IntRange(1, 366), default=30, help="Length of the trace.")
@click.option("--seed", type=int, default=0, help="The same seed makes the same trace.")
def make(kinds: tuple[str, ...], days: int, seed: int) -> None:
    """Generate a random trace, with more arrivals by day and run times around a median, and print it as CSV."""
    from kueue_model import JobKind, invented, trace_text

    job_kinds: list[JobKind] = []
    invalid: list[str] = []
    for text in kinds:
        parts = text.split(":")
        try:
            team, needs, per_week, hours = parts[:4]
            kind = JobKind(
                team, needs, per_week=float(per_week), seconds=float(hours) * 3600, priority=":".join(parts[4:])
            )
        except ValueError:
            invalid.append(text)
            continue
        if 0 < kind.per_week <= 1_000_000 and 0 < kind.seconds <= 366 * 86_400:
            job_kinds.append(kind)
        else:
            invalid.append(text)
    if invalid:
        fail(f"{'; '.join(map(repr, invalid))}: write TEAM:NEEDS:PER_WEEK:HOURS, such as 'vision:8 h100:40:6'.")
    click.echo(trace_text(invented(job_kinds, days, seed)), nl=False)


@trace_app.command("import", epilog=example("training-platform trace import slurm sacct.txt --names names.yaml"))
@click.argument("kind", type=click.Choice(("slurm", "swf", "kueue")), help="Format of the file.")
@click.argument("file", type=PATH, help="Output of sacct --parsable2, a .swf file, or workloads as JSON.")
@click.option("--names", type=PATH, metavar="TABLE", help="YAML file: our names for the file's teams and accelerators.")
def import_trace(kind: str, file: Path, names: Path | None) -> None:
    """Convert another scheduler's records of jobs to a trace, and print it as CSV.

    Needs a file of that scheduler: `slurm` is the output of `sacct --allusers --parsable2
    --format=JobID,Submit,Account,ElapsedRaw,AllocTRES`, `swf` a file in the Standard Workload Format, `kueue` the
    output of `kubectl get workloads -A -o json`. Standard error counts the jobs that are left out. Exit code 1: some
    rows cannot be read.
    """
    from kueue_model.imports import read_foreign, read_table

    imported = read_foreign(file, kind, read_table(names))
    for finding in imported.findings:
        say(str(finding), err=True)
    _print_trace(imported)
    sys.exit(1 if imported.findings else 0)


@trace_app.command("pull", epilog=example("training-platform trace pull --environment prod > october.csv"))
@click.option("--environment", help="Only jobs of this environment.")
@click.option("--team", help="Only jobs of this team.")
@access_options
def pull_trace(environment: str | None, **chosen: Any) -> None:
    """Create a trace from the Kueue workloads that clusters still have, and print it as CSV.

    Needs the extra `jobs` and a kubeconfig. Reads the clusters in which teams have shares, as `job list` does. Standard
    error counts the jobs that are left out. Exit code 2: a cluster did not answer, and its jobs are missing.
    """
    need("jobs", "trace pull")
    from kueue_model.imports import Imported, NameTable
    from training_platform.clients.kubernetes_api import WORKLOADS, NoKubeconfigError
    from training_platform.config.reading.finding import UserError
    from training_platform.parts.jobs.runs.places import places

    options = RunsOptions(**chosen)
    imported = Imported()
    failures: dict[object, str] = {}
    for place in places(options.folder(), options.workspace(), environment=environment, team=options.team):
        if place.target == "gke":
            progress(f"Reading workloads of team {place.team.name} in {place.key} ...")
            try:
                items = list(options.api(place).objects(WORKLOADS, place.team.name))
                imported.add_workloads(items, NameTable(teams={"*": place.team.name}), cluster=place.key)
            except NoKubeconfigError as error:  # the same for every cluster
                failures.setdefault(NoKubeconfigError, str(error))
            except UserError as error:
                failures[str(error)] = str(error)
    imported.rows.sort(key=lambda row: str(row["submitted"]))
    _print_trace(imported)
    for sentence in failures.values():
        say(f"training-platform: {sentence}", err=True)
    sys.exit(2 if failures else 0)


def _print_trace(imported: Imported) -> None:
    from kueue_model import trace_text

    for reason, count in sorted(imported.left_out.items()):
        say(f"Left out: {count:,} {reason}.", err=True)
    say(f"{len(imported.rows):,} jobs.", err=True)
    click.echo(trace_text(imported.rows), nl=False)
