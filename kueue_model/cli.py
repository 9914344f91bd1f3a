"""The command ``kueue-model``, which simulates the jobs of a trace in the queues of any cluster with Kueue."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

import click

from kueue_model.cluster import Cluster
from kueue_model.imports import NameTable, read_foreign
from kueue_model.manifests import read_manifests, with_machines
from kueue_model.output import FORMATS, checked_trace, exit_code, print_result, write_plots
from kueue_model.results import Result, play_trace
from kueue_model.traces import Trace, read_rows, read_trace
from training_platform.config.reading.finding import Finding, UserError, bug, printable
from training_platform.config.reading.section import counted

_PATH: Final = click.Path(path_type=Path)
_WIDEST: Final = 120
_EPILOG: Final = "\b\nExample:\n  kueue-model queues workloads.json"


class _Command(click.Command):
    """A command that ends with exit code 2 and a one-sentence message if its files cannot be simulated."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except UserError as error:
            click.echo(f"kueue-model: {printable(str(error))}", err=True)
            ctx.exit(2)


@click.command(cls=_Command, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("manifests", type=_PATH)
@click.argument("trace", type=_PATH)
@click.option("--against", type=_PATH, metavar="PATH", help="Compare with these earlier manifests.")
@click.option("--changes", type=_PATH, metavar="FILE", help="CSV file: when queues are held or jobs change priority.")
@click.option("--machines", type=_PATH, metavar="FILE", help="YAML file: when machines of a flavor arrive and leave.")
@click.option("--runs", type=click.IntRange(1, 1000), default=1, help="Number of runs, each with its own seed.")
@click.option("--seed", type=int, default=0, help="Seed of the first run; the same seed repeats a run.")
@click.option("--plots", type=_PATH, metavar="FOLDER", help="Write SVG charts of waits by queue and of use by flavor.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="text",
    help="Output format.",
)
def kueue_model(
    *,
    manifests: Path,
    trace: Path,
    against: Path | None,
    changes: Path | None,
    machines: Path | None,
    runs: int,
    seed: int,
    plots: Path | None,
    output_format: str,
) -> None:
    """Simulate the jobs of TRACE in the queues of MANIFESTS, without a cluster or network.

    MANIFESTS is a file or folder with ClusterQueues and their related objects, as `kubectl get -o yaml` prints them.
    TRACE is the output of `kubectl get workloads -A -o json`, or a CSV file of jobs.

    Exit code 0: the simulation succeeded. 1: it found preemption loops, jobs that never end, or unusable rows of the
    trace. 2: it could not run.
    """
    queues = [read_manifests(path) for path in (manifests, against) if path is not None]
    if machines is not None:
        queues = with_machines(queues, machines)
    name = queues[0].cluster.name
    clusters = [played.cluster._replace(name=name) for played in queues]
    notes = list(queues[0].left_out)
    notes += [f"{against}: {note}" for played in queues[1:] for note in played.left_out if note not in notes]
    printed: list[Finding] = []
    traces = [checked_trace(_trace(trace, cluster, notes), trace, changes, [cluster], printed) for cluster in clusters]
    figures = [
        [play_trace([cluster], jobs, played.times, run_seed) for run_seed in range(seed, seed + runs)]
        for cluster, jobs, played in zip(clusters, traces, queues, strict=True)
    ]
    unusable = traces[0].unusable
    if unusable:
        notes.append(f"Left out of {trace}: {counted(unusable, 'unusable row')}.")
    if machines is None:
        notes.append(
            "All machines of the nominal quota are assumed to exist; give your own figures in --machines FILE."
        )
    base = figures[1] if against else []
    result = Result(figures[0], base, ref=str(against or ""), notes=notes, has_resources=True)
    if plots:
        write_plots(result, plots)
    width = min(shutil.get_terminal_size((_WIDEST, 0)).columns, _WIDEST)
    print_result(result, output_format, "kueue-model", width)
    sys.exit(exit_code(figures[0], unusable))


def _trace(path: Path, cluster: Cluster, notes: list[str]) -> Trace:
    """Read a trace, or convert workloads to one. The function adds to ``notes`` how many workloads it leaves out."""
    if path.suffix != ".json":
        return read_trace(path, [cluster])
    imported = read_foreign(path, "kueue", NameTable(), resources=True)
    for reason, count in sorted(imported.left_out.items()):
        note = f"Left out of {path}: {count:,} {reason}."
        if note not in notes:
            notes.append(note)
    trace = read_rows(path, imported.rows, [cluster])
    findings = (*imported.findings, *trace.findings)
    return trace._replace(findings=findings, unusable=trace.unusable + len(imported.findings))


def main() -> None:
    """Run the command. A bug in this program ends it with exit code 2 and a one-sentence message."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # without it, pydantic reads all entry points
    try:
        kueue_model()
    except Exception as error:  # noqa: BLE001 # any error here is a bug, and nothing about the manifests
        click.echo(f"kueue-model: {printable(bug('failed before the simulation ended', error))}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
