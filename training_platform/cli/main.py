"""The entry point. A subcommand's work is imported when it runs, so that help and errors come at once."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer

from training_platform.checks.signals import ended_by_signals
from training_platform.cli import (
    catalog,
    check,
    explain,
    persistent_resource,
    quota,
    quota_request,
    sandbox,
    sandbox_faults,
    stacks,
)
from training_platform.cli.authoring import init, schema
from training_platform.cli.job import files as job
from training_platform.cli.job import image
from training_platform.cli.job import runs as job_runs
from training_platform.cli.options import uncut_help
from training_platform.cli.root import DISTRIBUTION, installed
from training_platform.cli.streams import COULD_NOT, StreamError, standard_streams
from training_platform.config.reading.printable import printable

TRACEBACK = "TRAINING_PLATFORM_TRACEBACK"


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"{DISTRIBUTION} {installed()}")
        raise typer.Exit


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
app.command("check")(check.check)
app.command("explain")(explain.explain)
app.command("schema")(schema.schema)
app.command("stacks")(stacks.stacks)
app.add_typer(init.app, name="init")
app.add_typer(catalog.app, name="catalog")
job_runs.add_to(job.app)
job.app.command("init")(init.job)
app.add_typer(job.app, name="job")
app.add_typer(explain.app, name="rules")
app.add_typer(image.app, name="image")
app.add_typer(persistent_resource.app, name="persistent-resource")
app.add_typer(quota.app, name="quota")
quota.app.command("request")(quota_request.request)
app.add_typer(sandbox.app, name="sandbox")
sandbox.app.add_typer(sandbox_faults.app, name="faults")


uncut_help(app)


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Plan, check and run an organisation's training platform on Google Cloud."""


def main() -> None:
    """Run the command; a signal ends it quietly, with 130 for an interrupt, as shells expect.

    A mistake in this program ends with 2, could not check: Python's own 1 would read as findings.
    """
    with standard_streams(), ended_by_signals():
        try:
            app()
        except KeyboardInterrupt:
            sys.exit(130)
        except StreamError:
            raise
        except Exception as error:  # noqa: BLE001 # whatever it is, it says nothing of the stacks
            sys.exit(_failed(error))


def _failed(error: Exception) -> int:
    """Say what failed in one sentence; where it failed only to who asks. Returns the exit code."""
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    message = f"failed because of a bug of its own, so nothing was checked: {said}. {TRACEBACK}=1 shows where."
    sys.stderr.write(f"training-platform: {printable(message).encode('utf-8', 'backslashreplace').decode()}\n")
    return COULD_NOT


if __name__ == "__main__":
    main()
