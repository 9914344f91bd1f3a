"""``training-platform stacks``: lists the stacks of a repository in the order of deployment, for pipelines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from training_platform.cli.shared import example, fail, repository, root_option, say, today_option

if TYPE_CHECKING:
    from datetime import date

    from training_platform.config.model.stack import Stack
    from training_platform.config.workspace import Workspace


@click.command(epilog=example("training-platform stacks prod"))
@click.argument(
    "environment",
    required=False,
    help="Print the stacks of this environment and of its teams; default: all environments.",
)
@click.option("--production/--no-production", default=None, help="Only production environments, or only others.")
@click.option(
    "--base", help="Order for the change since this commit: teams that lose something come before the environment."
)
@click.option(
    "--retired", is_flag=True, help="Only the retired stacks of ENVIRONMENT, which are destroyed, teams first."
)
@click.option(
    "--kept",
    is_flag=True,
    help="With --retired: print what these stacks keep, who pays for it, and which stacks end later.",
)
@today_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on one line.")
@root_option
def stacks(
    *,
    environment: str | None,
    production: bool | None,
    base: str | None,
    retired: bool,
    kept: bool,
    today: str | None,
    as_json: bool,
    root: Path | None,
) -> None:
    """Print the environments with production last, or one environment's stack followed by its teams' stacks.

    The command uses the content of stack files, not their names. Exit code 1: no order can deploy the change since
    ``--base`` in one pass. 2: a file does not name its environment, or the base cannot be read.
    """
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.reading.clock import today as clock
    from training_platform.config.workspace import environment_order, read_workspace, stacks_of

    _refuse_half_of(environment=environment, base=base, retired=retired, kept=kept)
    workspace = read_workspace(repository(root))
    later: list[str] = []
    before, last = environment_order(workspace)
    names = [*before, *last]
    if production is not None:
        names = last if production else before
    if environment is not None:
        if environment not in (*before, *last):
            nearest = find_nearest(environment, [*before, *last])
            fail(f"There is no environment {environment}.{f' Nearest: {nearest}.' if nearest else ''}")
        names = stacks_of(workspace, environment)
        if base:
            names = _ordered(names, environment, workspace, base)
        if retired:
            every = names
            names = _ended(every, workspace, clock(workspace.root, today))
            later = [name for name in every if name not in names]
    if kept:
        kept_lines = [line for name in names for line in _kept(workspace.stacks[name])]
        names = [*kept_lines, *(line for name in later for line in _ends_later(workspace.stacks[name]))]
    if as_json:
        say(json.dumps(names))
    elif names:
        say("\n".join(names))


def _refuse_half_of(*, environment: str | None, base: str | None, retired: bool, kept: bool) -> None:
    """Exit if an option is given without another option that it requires."""
    if kept and not retired:
        fail("--kept needs --retired: it prints what retired stacks keep.")
    if environment is None and retired:
        fail("--retired needs ENVIRONMENT: an environment's teams are destroyed before the environment.")
    if environment is None and base:
        fail("--base needs ENVIRONMENT: it orders the stacks of that environment and of its teams.")


def _ended(names: list[str], workspace: Workspace, day: date) -> list[str]:
    """Return the stacks whose retirement date has arrived, the teams' stacks first."""
    ended = []
    for name in names:
        end = workspace.stacks[name].retired
        if end is not None and end.since <= day:
            ended.append(name)
    return sorted(ended, key=lambda name: workspace.stacks[name].team is None)


def _kept(stack: Stack) -> list[str]:
    """Return a line for each section that a retired stack keeps, with who pays for it."""
    end = stack.retired
    return [f"{stack.name} keeps {section}; {end.paid_by} pays" for section in end.keeps] if end else []


def _ends_later(stack: Stack) -> list[str]:
    """Return a line with the retirement date of a stack, if the date is in the future."""
    end = stack.retired
    return [f"{stack.name} ends on {end.since}; nothing of it is destroyed before that date"] if end else []


def _ordered(names: list[str], environment: str, workspace: Workspace, base: str) -> list[str]:
    """Return an environment's stacks in the order that the change since ``base`` requires. Exits if no order works."""
    from training_platform.checks.comparison.base_files import base_tree
    from training_platform.checks.comparison.refusals import deployment_order
    from training_platform.config.workspace import read_workspace

    with base_tree(workspace.root, base) as tree:
        order = deployment_order(workspace, read_workspace(tree.root), environment)
    if why := order.two_deployments:
        fail(f"The change since {base} needs two deployments of {environment}, additions first: {why}.", code=1)
    after = [name for name in names if name not in order.before]  # the environment is the first of these
    return [*(name for name in names if name in order.before), *after]


@click.command(epilog=example("training-platform schema"))
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is out of date.")
@root_option
def schema(check: bool, root: Path | None) -> None:
    """Write the JSON Schemas of stack files and job files into their folders."""
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
        click.echo(f"{name}: {'is out of date; run `training-platform schema`' if check else 'written'}")
    sys.exit(int(check and bool(stale)))


def schema_files() -> dict[str, str]:
    """Return the text of every generated schema, keyed by its path in the repository."""
    from training_platform.checks.parts import part_schemas
    from training_platform.config import schema as stacks
    from training_platform.quota import snapshot as snapshots
    from training_platform.rules import exemptions

    schemas = {
        stacks.SCHEMA_FILE: stacks.stack_schema(),
        snapshots.SCHEMA_FILE: snapshots.snapshot_schema(),
        exemptions.SCHEMA_FILE: exemptions.exemptions_schema(),
        **part_schemas(),
    }
    return {file: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for file, schema in schemas.items()}
