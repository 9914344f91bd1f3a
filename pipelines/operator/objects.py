"""Writes a Stack object of the Pulumi Kubernetes Operator for every stack file: `python -m pipelines.operator.objects`.

The operator runs each stack in a pod of its own, teams at the same time: the way for hundreds of stacks.
``settings.yaml`` beside this file is every object's spec; the names of its fields are those of ``pulumi.com/v1``
(operator documentation, docs/stacks.md, read 2026-11-21). A team's stack waits until its environment has succeeded
within the last day.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from training_platform.config.model.stack import PROJECT, Stack
from training_platform.config.workspace import Workspace, read_workspace

SETTINGS = Path(__file__).with_name("settings.yaml")
NAMESPACE = "pulumi"
WITHIN = "24h"


def stack_objects(workspace: Workspace, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the object of every stack, environments first."""
    for stack in workspace.stacks.values():
        yield {
            "apiVersion": "pulumi.com/v1",
            "kind": "Stack",
            "metadata": {"name": object_name(stack.name), "namespace": NAMESPACE},
            "spec": {"stack": f"organization/{PROJECT}/{stack.name}", **settings, **_after(stack)},
        }


def object_name(stack: str) -> str:
    """Return a stack's name as Kubernetes takes names of objects: stack names may hold ``_`` and capitals."""
    return stack.lower().replace("_", "-")


def _after(stack: Stack) -> dict[str, Any]:
    if not stack.team:
        return {}
    requirement = {"succeededWithinDuration": WITHIN}
    return {"prerequisites": [{"name": object_name(stack.environment_name), "requirement": requirement}]}


def main(root: Path) -> int:
    """Print all objects; return 2 and say why where a stack file cannot be read or is rejected."""
    workspace = read_workspace(root)
    wrong = [*workspace.unreadable, *(str(each) for stack in workspace.stacks.values() for each in stack.findings)]
    for sentence in wrong:
        click.echo(sentence, err=True)
    if not wrong:
        settings = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
        click.echo(yaml.safe_dump_all(stack_objects(workspace, settings), sort_keys=False), nl=False)
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
