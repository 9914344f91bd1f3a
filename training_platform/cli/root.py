"""Where the repository is that a command works on."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import typer

from training_platform.config.reading.printable import printable


def repository(given: Path | None) -> Path:
    """Return the repository's root: ``given``, or the nearest folder upwards that has ``Pulumi.yaml`` and ``stacks/``.

    Ends the command with exit code 2 and one sentence where there is none.
    """
    start = (given or Path()).resolve()
    folders = (start,) if given else (start, *start.parents)
    found = (folder for folder in folders if (folder / "Pulumi.yaml").is_file() and (folder / "stacks").is_dir())
    return next(found, None) or fail(
        f"{given or 'This folder'} is no training-platform repository: it has no Pulumi.yaml beside a folder stacks/."
    )


def fail(message: str) -> NoReturn:
    """End the command with exit code 2, could not check or wrong usage, and one sentence on standard error."""
    say(f"training-platform: {message}", err=True)
    raise typer.Exit(2)


def say(text: str, *, err: bool = False) -> None:
    """Print text that may hold names from files: printable, so that no log takes it for a command."""
    typer.echo(printable(text), err=err)
