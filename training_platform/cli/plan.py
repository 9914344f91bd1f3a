"""``training-platform plan``: prints the resources that a stack would register, without accessing a cloud."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from training_platform.cli.shared import complete_stacks, example, fail, repository, root_option, say

if TYPE_CHECKING:
    from training_platform.checks.plan_document import PlanDocument, ResourceDocument

_COLUMNS = 80  # of a terminal that is not widened


@click.command(epilog=example("training-platform plan prod --resource us-central2-v4-small-0-pool"))
@click.argument(
    "stacks", nargs=-1, metavar="[STACK]...", shell_complete=complete_stacks, help="Stacks to plan; default: all."
)
@click.option("--resource", metavar="NAME", help="Print the inputs of one resource; NAME is its name in the plan.")
@click.option("--format", "output_format", type=click.Choice(["tree", "json"]), default="tree", help="Output format.")
@root_option
def plan(
    *, stacks: tuple[str, ...], resource: str | None, output_format: Literal["tree", "json"], root: Path | None
) -> None:
    """Print the plan of stacks: components and resources with their lines in the stack file.

    Secrets are not shown. Exit code 0: the stacks were planned. 2: a stack has no plan; `check` prints the reason.
    """
    from training_platform.checks.plan_document import PlanDocuments, plan_document
    from training_platform.checks.stacks import stack_names
    from training_platform.config.workspace import read_workspace
    from training_platform.resources.plan import PlanError
    from training_platform.resources.stack_plan import plannable, stack_plan

    workspace = read_workspace(repository(root))
    names = stack_names(workspace, stacks or None)
    failures = [*workspace.unreadable.values()]
    documents = []
    sound = {stack.name for stack in plannable(workspace, names)}
    for name in names:
        stack = workspace.stacks[name]
        try:
            composed = stack_plan(stack, workspace) if name in sound else None
        except PlanError as error:
            failures.append(str(error))
            continue
        if composed is None:
            failures.append(f"Stack {name} has errors, so it has no plan: training-platform check {name} shows them.")
        else:
            documents.append(plan_document(stack, composed))
    if resource is not None:
        resource_names = [planned.name for document in documents for planned in document.resources if planned.custom]
        if resource not in resource_names:
            fail(" ".join((*failures, _unknown(resource, names, resource_names))))
        documents = [_with_one(document, resource) for document in documents]
    if output_format == "json":
        click.echo(PlanDocuments(plans=tuple(documents), failures=tuple(failures)).model_dump_json(indent=1))
    else:
        for document in documents:
            lines = _details(document) if resource else _tree(document)
            say("\n".join(lines))
    for failure in failures:
        say(f"training-platform: {failure}", err=True)
    sys.exit(2 if failures else 0)


def _with_one(document: PlanDocument, name: str) -> PlanDocument:
    same_name = tuple(planned for planned in document.resources if planned.name == name and planned.custom)
    return document.model_copy(update={"resources": same_name, "outputs": {}})


def _unknown(name: str, stacks: Sequence[str], resource_names: Sequence[str]) -> str:
    from training_platform.catalog.nearest import find_nearest

    nearest = find_nearest(name, resource_names)
    hint = f" Nearest: {nearest}." if nearest else ""
    return f"No resource of {', '.join(stacks)} is called {name!r}: training-platform plan lists them.{hint}"


def _tree(document: PlanDocument) -> Iterator[str]:
    """Yield a line for each component and resource, below its parent. Lines that are too long are wrapped."""
    from training_platform.config.workspace import stack_file

    children: dict[tuple[str, str] | None, list[ResourceDocument]] = {}
    for resource in document.resources:
        children.setdefault(resource.parent, []).append(resource)
    count = sum(resource.custom for resource in document.resources)
    file = stack_file(document.stack)
    yield f"{document.stack}: {count} resources, each with its line in {file}"

    def below(parent: tuple[str, str] | None, indent: str) -> Iterator[str]:
        for resource in children.get(parent, ()):
            kind = resource.type.rpartition(":")[2]
            name = f"{indent}{resource.name}"
            details = f"{kind}  {resource.place.removeprefix(file)}"
            if len(name) + len(details) + 2 <= _COLUMNS:
                yield f"{name}  {details}"
            else:
                yield name
                yield f"{indent}    {details}"
            yield from below((resource.type, resource.name), f"{indent}  ")

    yield from below(None, "  ")
    for read in document.reads:
        yield f"  {read.name}  {read.type.rpartition(':')[2]}, only read: {read.id}"


def _details(document: PlanDocument) -> Iterator[str]:
    """Yield the lines of each resource, with all of its inputs and options."""
    import yaml

    for resource in document.resources:
        yield f"{resource.name}  {resource.type}  {resource.place}"
        sections: dict[str, Any] = {"inputs": _readable(resource.inputs)}
        if resource.options:
            sections["options"] = _readable(resource.options)
        if resource.inputs_from:
            sections["inputs from"] = {name: [key[1] for key in keys] for name, keys in resource.inputs_from.items()}
        yield yaml.safe_dump(sections, sort_keys=False, allow_unicode=True, width=120).rstrip()


def _readable(value: Any) -> Any:
    """Return a value in a form for people: secrets have no digest, and a type with a name becomes one string."""
    from training_platform.config.reading.secrets import HIDDEN

    if isinstance(value, dict):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if isinstance(value, tuple):
        return value[1]
    return HIDDEN if isinstance(value, str) and value.startswith(HIDDEN) else value
