"""``training-platform check``: plan and check stacks offline."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.root import fail, repository


class Format(StrEnum):
    """How a report is written."""

    text = "text"
    json = "json"


def check(
    stacks: Annotated[
        list[str] | None, typer.Argument(help="Stacks to check; default: all.", metavar="[STACK]...")
    ] = None,
    *,
    fast: Annotated[
        bool, typer.Option("--fast", help="Check the model and the ledgers alone, without planning.")
    ] = False,
    output_format: Annotated[Format, typer.Option("--format", help="How the report is written.")] = Format.text,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too.")] = False,
    today: Annotated[
        str | None, typer.Option("--today", help="The day to judge dated files by, such as 2026-11-21.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option("--root", help="The repository; default: the one around this folder.")
    ] = None,
) -> None:
    """Plan stacks without a cloud, and check them against quotas, capacity and every rule.

    Exit code 0: clean. 1: findings. 2: something could not be checked.
    """
    from checks.output import print_json, print_text, progress_line
    from checks.run import UnknownStackError, run_check
    from modules.config.clock import today as clock
    from modules.config.source import UnreadableError

    folder = repository(root)
    try:
        day = clock(folder, today)
        with progress_line() as progress:
            report = run_check(folder, today=day, selected=stacks or (), fast=fast, progress=progress)
    except (UnknownStackError, UnreadableError) as error:
        fail(str(error))
    printers = {Format.text: print_text, Format.json: print_json}
    printers[output_format](report)
    raise typer.Exit(report.exit_code(strict=strict))
