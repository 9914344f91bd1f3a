"""``training-platform sandbox faults``: what goes wrong on purpose in a local cloud that is being served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.root import fail, repository

if TYPE_CHECKING:
    from sandbox.run.faults import Faults

app = typer.Typer(help="What goes wrong on purpose in the cloud of `sandbox serve`.", no_args_is_help=True)

Place = Annotated[Path | None, typer.Option("--workspace", help="Where the sandbox is kept; default: .sandbox/.")]
Root = Annotated[Path | None, typer.Option("--root", help="The repository; default: the one around this folder.")]


@app.command("list")
def list_faults(*, workspace: Place = None, root: Root = None) -> None:
    """Say which faults there are, and what each hit."""
    from sandbox.run.faults import fault_lines

    with _served(root, workspace) as faults:
        for line in fault_lines(faults.listed(), {}):
            typer.echo(line)


@app.command("add")
def add(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="FILE")],
    *,
    workspace: Place = None,
    root: Root = None,
) -> None:
    """Add the faults of a scenario file; their times begin now."""
    with _served(root, workspace) as faults:
        typer.echo(f"added: {', '.join(faults.add(scenario))}")


@app.command("clear")
def clear(
    names: Annotated[list[str] | None, typer.Argument(help="Faults; all of them without.", metavar="NAME")] = None,
    *,
    workspace: Place = None,
    root: Root = None,
) -> None:
    """Take faults away; what waited for them goes on."""
    with _served(root, workspace) as faults:
        faults.clear(names or ())


@contextmanager
def _served(root: Path | None, workspace: Path | None) -> Iterator[Faults]:
    """Give the faults of the server that runs; end the command with exit code 2 where there is none."""
    from sandbox.run.faults import served_faults
    from sandbox.run.folder import folder_at
    from sandbox.run.problems import CannotRun

    try:
        yield served_faults(folder_at(repository(root), workspace))
    except CannotRun as error:
        fail(str(error))
