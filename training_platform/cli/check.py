"""``training-platform check``: plan and check stacks offline."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from training_platform.checks.output import FORMATS, check_writable, print_report, render, write_files
from training_platform.cli.shared import PATH, complete_stacks, example, fail, repository, root_option, today_option


@click.command(epilog=example("training-platform check --base origin/main --new-only"))
@click.argument(
    "stacks", nargs=-1, metavar="[STACK]...", shell_complete=complete_stacks, help="Stacks to check; default: all."
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(list(FORMATS)),
    help="Output format; repeatable. Default: text.",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="FORMAT=FILE",
    help="Also write the report to a file, such as sarif=report.sarif; repeatable.",
)
@click.option(
    "--links", default="", show_default=False, metavar="URL", help="URL prefix of the links in Markdown and HTML."
)
@click.option("--base", metavar="REF", help="Show what changes since REF, such as origin/main.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="With --base: compare a stack with its deployed state, the output of `pulumi stack export`; repeatable.",
)
@click.option(
    "--preview",
    "previews",
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="With --base: check a stack's preview, the output of `pulumi preview --json`; repeatable.",
)
@click.option("--new-only", is_flag=True, help="With --base: fail only for findings that are not in REF.")
@click.option("--write-baseline", is_flag=True, help="Write today's findings to stacks/baseline.yaml.")
@click.option("--strict", is_flag=True, help="Also exit with 1 for warnings.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Print every resource, quota and flavor, not only what is nearly full."
)
@today_option
@root_option
def check(
    *,
    stacks: tuple[str, ...],
    formats: tuple[str, ...],
    outputs: tuple[str, ...],
    links: str,
    base: str | None,
    states: tuple[Path, ...],
    previews: tuple[Path, ...],
    new_only: bool,
    write_baseline: bool,
    strict: bool,
    verbose: bool,
    today: str | None,
    root: Path | None,
) -> None:
    """Plan stacks without a cloud, and check them against quotas, capacity and every rule.

    Exit code 0: clean. 1: findings. 2: something could not be checked.
    """
    from training_platform.checks import run
    from training_platform.checks.process import progress_bar
    from training_platform.checks.stacks import CheckOptions
    from training_platform.config.reading.clock import today as clock
    from training_platform.policy.settings import wrong_configs

    _agree(base=base, new_only=new_only, write_baseline=write_baseline, deployed=bool(states or previews))
    printed = _printed(formats or ("text",))
    files = _files(outputs)
    folder = repository(root)
    check_writable(files)
    day = clock(folder, today)
    wrong = tuple(wrong_configs(folder))
    with progress_bar() as progress:
        options = CheckOptions(today=day, progress=progress)
        if write_baseline and not wrong:
            report = run.write_baseline(folder, options, selected=stacks)
        else:
            report = run.run_check(
                folder, options, selected=stacks, base=base, new_only=new_only, states=states, previews=previews
            )
    report = replace(report, failures=(*report.failures, *wrong))  # a deployment would fail
    if "html" in {*printed, *files.values()}:  # a page may be read long after the check, so it contains all details
        from training_platform.checks.comparison.base_files import commit_of

        report = replace(report, commit=commit_of(folder), checked=datetime.now(UTC))
    try:  # files first, so that a reader of standard output cannot prevent them
        write_files({path: render(report, output_format, links=links) for path, output_format in files.items()})
    finally:
        for shown in printed:
            print_report(report, shown, links=links, verbose=verbose)
    sys.exit(report.exit_code(strict=strict))


def _agree(*, base: str | None, new_only: bool, write_baseline: bool, deployed: bool) -> None:
    if deployed and base is None:
        fail("--state and --preview need --base REF: the changed lines are those that differ from REF.")
    if new_only and base is None:
        fail("--new-only needs --base REF: it reports the findings that are not in REF.")
    if write_baseline and base is not None:
        fail("--write-baseline writes today's findings of all stacks: leave --base out.")


def _printed(formats: Sequence[str]) -> list[str]:
    """Return the formats for standard output, without duplicates. A format that is a document must be the only one."""
    printed = [name for name in FORMATS if name in formats]
    documents = [name for name in printed if not FORMATS[name].mixable]
    if len(printed) > 1 and documents:
        name = documents[0]
        fail(f"--format {name} is a whole document: choose no other format, or write it with --output {name}=FILE.")
    return printed


def _files(outputs: Sequence[str]) -> dict[Path, str]:
    """Return the output files, each with its format."""
    from training_platform.catalog.nearest import find_nearest

    files: dict[Path, str] = {}
    for text in outputs:
        name, equals, file = text.partition("=")
        if not equals or not file or name not in FORMATS:
            nearest = find_nearest(name, FORMATS)
            hint = f" Nearest: {nearest}=FILE." if nearest and nearest != name else ""
            fail(f"--output {text}: write it as FORMAT=FILE; formats are {', '.join(FORMATS)}.{hint}")
        if any(Path(file).resolve() == path.resolve() for path in files):
            fail(f"--output {text}: {file} is given twice.")
        files[Path(file)] = name
    return files
