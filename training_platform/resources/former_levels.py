"""Aliases for resources that had different parent components in the previous version."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from training_platform.catalog.reading import read_file
from training_platform.resources.plan import Alias, Plan, parent_types

FILE: Final = Path(__file__).parent / "data" / "former_levels.yaml"
_BETWEEN: Final = " > "
_PACKAGE: Final = "training-platform"


def add_former_levels(plan: Plan) -> None:
    """Add aliases so that updating a stack of the previous version does not change any of its resources."""
    for node in plan.nodes():
        names = [None, *(alias.name for alias in node.aliases)]
        for types in former_types((*parent_types(node), node.type)):
            *parents, former_type = types
            node.aliases += [Alias(name=name, type=former_type, parents=tuple(parents)) for name in names]


@cache
def former_types(types: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the types that a resource or component had before, each with those of its parents, outermost first."""
    return _table().get(types, ())


@cache
def _table() -> dict[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    return {_types(now): tuple(map(_types, before)) for now, before in read_file(FILE).items()}


def _types(text: str) -> tuple[str, ...]:
    """Split a text into types in Pulumi's form. In the text, our own types are written without their package."""
    return tuple(part if part.count(":") == 2 else f"{_PACKAGE}:{part}" for part in text.split(_BETWEEN))
