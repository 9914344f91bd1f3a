"""The entry point. A subcommand, and its work, are imported when it runs, so that help and errors come at once."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from typing import Annotated

import typer

from training_platform.checks.signals import ended_by_signals
from training_platform.cli.options import Commands
from training_platform.cli.root import DISTRIBUTION, installed
from training_platform.cli.streams import COULD_NOT, StreamError, standard_streams
from training_platform.config.reading.finding import printable

TRACEBACK = "TRAINING_PLATFORM_TRACEBACK"
_NEW_OBJECTS = 100_000  # before Python looks for cycles; after its 700, a command spends a tenth of its start on it


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"{DISTRIBUTION} {installed()}")
        raise typer.Exit


class _Platform(Commands):
    """All commands."""

    places = {
        "": {
            "adopt": "adopt:adopt",
            "adopt-state": "adopt:adopt_state",
            "check": "check:check",
            "explain": "explain:explain",
            "schema": "authoring.schema:schema",
            "stacks": "stacks:stacks",
            "init": "authoring.init:app",
            "catalog": "catalog:app",
            "job": "job.files:app",
            "rules": "explain:app",
            "image": "job.image:app",
            "persistent-resource": "persistent_resource:app",
            "quota": "quota:app",
            "sandbox": "sandbox:app",
        },
        "job": {
            "submit": "job.runs:submit",
            "list": "job.runs:list_runs",
            "status": "job.runs:status",
            "cancel": "job.runs:cancel",
            "wait": "job.runs:wait_for",
            "why": "job.runs:why_it_waits",
            "logs": "job.runs:logs",
            "init": "authoring.init:job",
        },
        "quota": {"request": "quota_request:request"},
        "sandbox": {"faults": "sandbox_faults:app"},
    }


app = typer.Typer(
    cls=_Platform,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


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
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.freeze)  # else Python looks for cycles in all that is left, a sixth of a short command
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else it reads every installed package's entry points
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
