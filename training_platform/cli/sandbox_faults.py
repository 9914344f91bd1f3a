"""``training-platform sandbox faults``: what goes wrong on purpose in a local cloud that is being served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from training_platform.cli.options import takes
from training_platform.cli.root import fail, say
from training_platform.cli.sandbox import WHERE, Options

if TYPE_CHECKING:
    from training_platform.sandbox.run.faults import Faults

app = typer.Typer(help="Faults injected into the cloud of `sandbox serve`.", no_args_is_help=True)


@app.command("list")
@takes(Options, *WHERE)
def list_faults(*, options: Options) -> None:
    """Say which faults there are, and what each hit."""
    from training_platform.sandbox.run.faults import fault_lines

    with _served(options) as faults:
        for line in fault_lines(faults.listed(), {}):
            say(line)


@app.command("add")
@takes(Options, *WHERE)
def add(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="FILE")],
    *,
    options: Options,
) -> None:
    """Add the faults of a scenario file; their times begin now."""
    with _served(options) as faults:
        say(f"added: {', '.join(faults.add(scenario))}")


@app.command("clear")
@takes(Options, *WHERE)
def clear(
    names: Annotated[list[str] | None, typer.Argument(help="Faults; all of them without.", metavar="NAME")] = None,
    *,
    options: Options,
) -> None:
    """Take faults away; what waited for them goes on."""
    with _served(options) as faults:
        faults.clear(names or ())


@contextmanager
def _served(options: Options) -> Iterator[Faults]:
    """Give the faults of the server that runs; end the command with exit code 2 where there is none."""
    from training_platform.sandbox.run.faults import served_faults
    from training_platform.sandbox.run.problems import CannotRun

    try:
        yield served_faults(options.folder())
    except CannotRun as error:
        fail(str(error))
