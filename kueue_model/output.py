"""Prints the findings about a trace, and prints the result of a simulation in any of its formats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kueue_model import results
from kueue_model.cluster import Cluster
from kueue_model.page import page, plot_files
from kueue_model.results import Figures, Result
from kueue_model.traces import Trace, read_changes
from training_platform.config.reading.finding import Finding, UserError, printable

FORMATS: Final = ("text", "json", "markdown", "html")


def checked_trace(
    trace: Trace, path: Path, changes: Path | None, clusters: Sequence[Cluster], printed: list[Finding]
) -> Trace:
    """Print those findings about a trace that are not in ``printed``, and return the trace including its changes.

    Raises UserError for a trace without a usable job, and for changes that cannot be read.
    """
    for finding in trace.findings:
        if finding not in printed:
            click.echo(printable(str(finding)), err=True)
    printed.extend(trace.findings)
    if not trace.jobs:
        raise UserError(f"{path} has no usable job.")
    return trace if changes is None else trace._replace(changes=read_changes(changes, trace, list(clusters)))


def print_result(result: Result, output_format: str, title: str, width: int) -> None:
    """Print a result. ``title`` is the title of the HTML page, and ``width`` the maximum number of columns of text."""
    if output_format == "json":
        text = json.dumps(results.document(result), indent=2)
    elif output_format == "html":
        text = page(result, title)
    elif output_format == "markdown":
        text = printable(results.markdown(result))
    else:
        text = printable(results.text(result, width))
    click.echo(text.rstrip())


def write_plots(result: Result, folder: Path) -> None:
    """Write each team's waits and each flavor's chips as SVG plots. Raises UserError if this is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, drawing in plot_files(result):
            (folder / name).write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}.") from error


def exit_code(figures: Sequence[Figures], unusable: int) -> int:
    """Return 1 if there are unusable rows, preemption loops or jobs that never end, else 0."""
    return int(bool(unusable) or any(run.loop_moments or run.endless for run in figures))
