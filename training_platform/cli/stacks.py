"""``training-platform stacks``: which stacks there are, in the order of deployment, for pipelines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from training_platform.cli.options import RootOption
from training_platform.cli.root import fail, repository, say

if TYPE_CHECKING:
    from training_platform.config.workspace import Workspace


def stacks(
    environment: Annotated[
        str | None, typer.Argument(help="Print this environment's stack and its teams'; default: the environments.")
    ] = None,
    *,
    production: Annotated[
        bool | None, typer.Option("--production/--no-production", help="Only environments that are production, or not.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            help="Order for the change since this commit: teams that let something go stand before the environment.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list on one line.")] = False,
    root: RootOption = None,
) -> None:
    """Print the environments, production last, or the stacks of one, its teams after it.

    They are asked of the files' content. Exit code 1: no order deploys the change since ``--base`` in one go; 2: a file
    does not say where it belongs, or the base cannot be read.
    """
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.workspace import environment_order, read_workspace, stacks_of

    workspace = read_workspace(repository(root))
    before, last = environment_order(workspace)
    names = [*before, *last] if production is None else last if production else before
    if environment is not None:
        if environment not in (*before, *last):
            nearest = find_nearest(environment, [*before, *last])
            fail(f"There is no environment {environment}.{f' Nearest: {nearest}.' if nearest else ''}")
        names = stacks_of(workspace, environment)
        if base:
            names = _ordered(names, environment, workspace, base)
    if as_json:
        say(json.dumps(names))
    elif names:
        say("\n".join(names))


def _ordered(names: list[str], environment: str, workspace: Workspace, base: str) -> list[str]:
    """Return an environment's stacks in the order that the change since ``base`` wants; exit where there is none."""
    from training_platform.checks.comparison.base_files import base_tree
    from training_platform.checks.comparison.deployment_order import deployment_order
    from training_platform.config.workspace import read_workspace

    with base_tree(workspace.root, base) as tree:
        order = deployment_order(workspace, read_workspace(tree.root), environment)
    if why := order.two_deployments:
        fail(f"The change since {base} wants two deployments of {environment}, additions first: {why}.", code=1)
    after = [name for name in names if name not in order.before]  # the environment is the first of these
    return [*(name for name in names if name in order.before), *after]
