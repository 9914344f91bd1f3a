"""``training-platform schema``: the JSON Schema that editors check stack files against."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from training_platform.cli.root import repository


def schema(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 where a file is not current.")
    ] = False,
    root: Annotated[
        Path | None, typer.Option("--root", help="The repository; default: the one around this folder.")
    ] = None,
) -> None:
    """Write the JSON Schemas of stack files and job files beside them."""
    from training_platform.checks.schemas import schema_files

    folder = repository(root)
    stale = []
    for name, text in schema_files().items():
        path = folder / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for name in stale:
        typer.echo(f"{name}: {'is not current; run `training-platform schema`' if check else 'written'}")
    raise typer.Exit(int(check and bool(stale)))
