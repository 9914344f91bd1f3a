"""The names by which Pulumi knows what a stack has: types from the outermost component on, and logical names.

``tests/stacks/names.yaml`` is a snapshot of those of the tests' organisation. `make inventories` only adds to it:
what a stack no longer has by a name of the snapshot has to have an alias of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import yaml

from tests.support.places import ROOT
from training_platform.resources.plan import Component, Node, Plan, is_read, parent_types

FILE = ROOT / "tests" / "stacks" / "names.yaml"
Names = dict[str, dict[str, list[str]]]
"""Logical names by stack and types."""
_HEAD = "# Written by `make inventories`. Deleting a line means that deployed resources of that name are deleted.\n"


def current_names(plan: Plan) -> set[tuple[str, str]]:
    """Return types and name of everything that a plan registers."""
    nodes = (node for node in plan.nodes() if not is_read(node))
    return {("$".join((*parent_types(node), node.type)), node.name) for node in nodes}


def former_names(plan: Plan) -> set[tuple[str, str]]:
    """Return types and name of everything that an alias of a plan says, as Pulumi passes aliases on to children."""
    return {("$".join(types), name) for node in plan.nodes() for types, name in _every_name(node)}


def _every_name(node: Node) -> Iterator[tuple[tuple[str, ...], str]]:
    above: list[tuple[str, ...]] = [()]
    if isinstance(node.parent, Component) and node.parent.parent is not None:
        above = [types for types, _ in _every_name(node.parent)]
    for parents in above:
        yield (*parents, node.type), node.name
    for alias in node.aliases:
        former_parents = above if alias.parents is None else [alias.parents]
        for parents in former_parents:
            yield (*parents, alias.type or node.type), alias.name or node.name


def with_earlier(names: Mapping[str, Iterable[tuple[str, str]]], earlier: Names) -> str:
    """Return a snapshot with the names of stacks by name and those of an earlier snapshot."""
    rows: Names = {}
    for stack, by_types in earlier.items():
        rows[stack] = {types: list(kept) for types, kept in by_types.items()}
    for stack, keys in names.items():
        for types, name in keys:
            rows.setdefault(stack, {}).setdefault(types, []).append(name)
    ordered = {
        stack: {types: " ".join(sorted(set(by_types[types]))) for types in sorted(by_types)}
        for stack, by_types in sorted(rows.items())
    }
    return _HEAD + str(yaml.safe_dump(ordered, sort_keys=False, width=120))


def snapshot() -> Names:
    """Return the committed snapshot."""
    if not FILE.exists():
        return {}
    document = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {stack: {types: names.split() for types, names in by_types.items()} for stack, by_types in document.items()}
