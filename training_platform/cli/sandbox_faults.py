"""``training-platform sandbox faults``: what goes wrong on purpose in a local cloud that is being served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from training_platform.cli.options import takes
from training_platform.cli.root import say
from training_platform.cli.sandbox import WHERE, Options

if TYPE_CHECKING:
    from training_platform.sandbox.run.faults import Faults

app = typer.Typer(help="Faults injected into the cloud of `sandbox serve`.", no_args_is_help=True)


@app.command("list")
@takes(Options, *WHERE)
def list_faults(*, options: Options) -> None:
    """Say which faults there are, and what each hit."""
    from training_platform.sandbox.run.faults import fault_lines

    for line in fault_lines(_served(options).listed(), {}):
        say(line)


@app.command("add")
@takes(Options, *WHERE)
def add(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="FILE")],
    *,
    options: Options,
) -> None:
    """Add the faults of a scenario file; their times begin now."""
    say(f"added: {', '.join(_served(options).add(scenario))}")


@app.command("clear")
@takes(Options, *WHERE)
def clear(
    names: Annotated[list[str] | None, typer.Argument(help="Faults; all of them without.", metavar="NAME")] = None,
    *,
    options: Options,
) -> None:
    """Take faults away; what waited for them goes on."""
    _served(options).clear(names or ())


def _served(options: Options) -> Faults:
    """Return the faults of the server that runs. Raises CannotRun where there is none."""
    from training_platform.sandbox.run.faults import served_faults

    return served_faults(options.folder())
