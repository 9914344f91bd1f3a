"""Names of inputs, and which of them are maps, held against pulumi_gcp for every type that components register."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pulumi
import pytest

from training_platform.resources import gcp
from training_platform.resources.declared import MAP_FIELDS
from training_platform.resources.spelling import camel_case

RESOURCES = Path(__file__).resolve().parents[3] / "training_platform" / "resources"
_BLOCK = re.compile(r"\w+Args\b")


class Kind(NamedTuple):
    """A type of resource: the provider's module and class, and the inputs that we say."""

    service: str
    provider: type[pulumi.CustomResource]
    inputs: frozenset[str]


def kinds() -> dict[str, Kind]:
    """Return every function of ``resources/gcp.py`` by its name."""
    tree = ast.parse(Path(gcp.__file__).read_text(encoding="utf-8"))
    packages = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "pulumi_gcp")
    services = {each.asname or each.name: each.name for node in packages for each in node.names}
    said = inputs_said()
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("_taken_by("):
            assert isinstance(node.value, ast.Call)
            name, taken = ast.unparse(node.targets[0]), ast.unparse(node.value.args[0])
            module, kind, _ = taken.split(".")
            service = importlib.import_module(f"pulumi_gcp.{services[module]}")
            found[name] = Kind(services[module], getattr(service, kind), said.pop(name))
    assert not said, "not in gcp.py"
    return found


def inputs_said() -> dict[str, frozenset[str]]:
    """Return the names of inputs that stand in calls of ``gcp.{name}``, by that name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(RESOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("gcp."):
                found[ast.unparse(node.func).removeprefix("gcp.")] |= {str(each.arg) for each in node.keywords}
    return {name: frozenset(inputs) for name, inputs in found.items()}


KINDS = kinds()


def test_every_kind_is_looked_at() -> None:
    assert len(KINDS) >= 34


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_input_is_one_of_the_provider(kind: Kind) -> None:
    known = set(inspect.signature(kind.provider._internal_init).parameters)  # type: ignore[attr-defined]

    assert kind.inputs <= known


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_names_and_maps_are_those_of_the_provider(kind: Kind) -> None:
    taken = annotated(kind.provider._internal_init)  # type: ignore[attr-defined]
    for name in kind.inputs:
        assert_as_it_is(name, taken[name])
        assert camel_case(name) == wire_name(kind.provider, name), name
    for block in blocks_of(kind):
        for name, annotation in annotated(block.__init__).items():  # type: ignore[misc] # of the class itself
            assert_as_it_is(name, annotation)
            assert camel_case(name) == wire_name(block, name), f"{block.__name__}.{name}"


def test_blocks_are_looked_at_to_their_depth() -> None:
    names = {block.__name__ for block in blocks_of(KINDS["node_pool"])}

    assert {"NodePoolNodeConfigArgs", "NodePoolNodeConfigReservationAffinityArgs"} <= names
    assert len(names) > 50


def annotated(function: Callable[..., Any]) -> dict[str, str]:
    """Return the annotations of a constructor's parameters as text, as the SDK may have them anyway."""
    parameters = inspect.signature(function).parameters.values()
    return {each.name: str(each.annotation) for each in parameters if each.annotation is not each.empty}


def blocks_of(kind: Kind) -> list[type]:
    """Return the classes of blocks that a resource's inputs name, and those that these name."""
    taken = annotated(kind.provider._internal_init)  # type: ignore[attr-defined]
    module = importlib.import_module(f"pulumi_gcp.{kind.service}")
    return list(blocks(module, str([taken[name] for name in kind.inputs]), set()))


def blocks(module: ModuleType, text: str, seen: set[str]) -> Iterator[type]:
    for name in _BLOCK.findall(text):
        if name not in seen and hasattr(module, name):
            seen.add(name)
            block = getattr(module, name)
            yield block
            yield from blocks(module, str(annotated(block.__init__)), seen)


def assert_as_it_is(name: str, annotation: str) -> None:
    """Assert that a map is listed as one, and that no block is."""
    if "Mapping[" in annotation:
        assert name in MAP_FIELDS
    if _BLOCK.search(annotation):
        assert name not in MAP_FIELDS


def wire_name(typed: type, name: str) -> str:
    getter = getattr(typed, name).fget
    return str(getattr(getter, "_pulumi_name", name))
