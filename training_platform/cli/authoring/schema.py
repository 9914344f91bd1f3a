"""``training-platform schema``: the JSON Schema that editors check stack files against."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from training_platform.cli.options import RootOption
from training_platform.cli.root import repository


def schema(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 where a file is not current.")
    ] = False,
    root: RootOption = None,
) -> None:
    """Write the JSON Schemas of stack files and job files beside them."""
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


def schema_files() -> dict[str, str]:
    """Return the text of every generated schema by its path in the repository."""
    from training_platform.config import schema as stacks
    from training_platform.jobs import schema as jobs
    from training_platform.quota import snapshot_file as snapshots
    from training_platform.rules import exemptions

    schemas = {
        stacks.SCHEMA_FILE: stacks.stack_schema(),
        snapshots.SCHEMA_FILE: snapshots.snapshot_schema(),
        exemptions.SCHEMA_FILE: exemptions.exemptions_schema(),
        jobs.SCHEMA_FILE: jobs.job_schema(),
    }
    return {file: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for file, schema in schemas.items()}
