"""``training-platform stacks``: which stacks there are, in the order of deployment, for pipelines."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from training_platform.cli.options import RootOption
from training_platform.cli.root import fail, repository, say


def stacks(
    environment: Annotated[
        str | None, typer.Argument(help="Print this environment's stack and its teams'; default: the environments.")
    ] = None,
    *,
    production: Annotated[
        bool | None, typer.Option("--production/--no-production", help="Only environments that are production, or not.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list on one line.")] = False,
    root: RootOption = None,
) -> None:
    """Print the environments, production last, or the stacks of one, its teams after it.

    They are asked of the files' content. Exit code 2: a file does not say where it belongs.
    """
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.deployment_order import UnsortedError, environment_order, stacks_of
    from training_platform.config.workspace import read_workspace

    workspace = read_workspace(repository(root))
    try:
        before, last = environment_order(workspace)
        names = [*before, *last] if production is None else last if production else before
        if environment is not None:
            if environment not in (*before, *last):
                nearest = find_nearest(environment, [*before, *last])
                fail(f"There is no environment {environment}.{f' Nearest: {nearest}.' if nearest else ''}")
            names = stacks_of(workspace, environment)
    except UnsortedError as error:
        fail(str(error))
    if as_json:
        say(json.dumps(names))
    elif names:
        say("\n".join(names))
