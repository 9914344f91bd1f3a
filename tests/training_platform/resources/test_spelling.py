"""Names of inputs, and which of them are maps, held against pulumi_gcp for every type that components register."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pulumi
import pytest

from training_platform.resources.spelling import MAP_FIELDS, camel_case

RESOURCES = Path(__file__).resolve().parents[3] / "training_platform" / "resources"
_BLOCK = re.compile(r"'?(\w+ArgsDict)'?")


def kinds() -> Iterator[tuple[str, type[pulumi.CustomResource], type]]:
    """Yield module, class of the provider and TypedDict of ours, by what the docstrings of the TypedDicts name."""
    for path in sorted(RESOURCES.rglob("*.py")):
        module = importlib.import_module(".".join(path.relative_to(RESOURCES.parents[0].parent).with_suffix("").parts))
        for _, own in inspect.getmembers(module, inspect.isclass):
            if not own_of(own, module):
                continue
            found = re.search(r"``gcp\.(\w+)\.(\w+)``", own.__doc__ or "")
            assert found, f"{own.__name__} does not say what takes it"
            service = importlib.import_module(f"pulumi_gcp.{found[1]}")
            yield found[1], getattr(service, found[2]), own


def own_of(each: type, module: ModuleType) -> bool:
    return each.__module__ == module.__name__ and each.__name__.endswith("Inputs")


KINDS = list(kinds())


def test_every_kind_is_looked_at() -> None:
    assert len(KINDS) >= 14


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]} {kind[2].__name__}")
def test_every_input_is_one_of_the_provider(kind: tuple[str, type[pulumi.CustomResource], type]) -> None:
    _, provider, own = kind
    known = set(inspect.signature(provider._internal_init).parameters)  # type: ignore[attr-defined]

    assert set(own.__annotations__) <= known


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]} {kind[2].__name__}")
def test_names_and_maps_are_those_of_the_provider(kind: tuple[str, type[pulumi.CustomResource], type]) -> None:
    service, provider, own = kind
    module = importlib.import_module(f"pulumi_gcp.{service}")
    taken = inspect.signature(provider._internal_init).parameters  # type: ignore[attr-defined]
    inputs = {name: taken[name].annotation for name in own.__annotations__}
    for name, annotation in inputs.items():
        assert_as_it_is(name, annotation)
        assert camel_case(name) == wire_name(provider, name), name
    for block in blocks(module, str(list(inputs.values()))):
        typed = getattr(module, block.removesuffix("Dict"))
        for name, annotation in getattr(module, block).__annotations__.items():
            assert_as_it_is(name, annotation)
            assert camel_case(name) == wire_name(typed, name), f"{block}.{name}"


def blocks(module: ModuleType, text: str, seen: set[str] | None = None) -> Iterator[str]:
    """Yield the provider's dictionaries that annotations name, and those that these name."""
    seen = set() if seen is None else seen
    for block in _BLOCK.findall(text):
        if block not in seen and hasattr(module, block):
            seen.add(block)
            yield block
            yield from blocks(module, str(getattr(module, block).__annotations__), seen)


def assert_as_it_is(name: str, annotation: Any) -> None:
    """Assert that a map is listed as one, and that no block is."""
    if "Mapping[" in str(annotation):
        assert name in MAP_FIELDS
    if "ArgsDict" in str(annotation):
        assert name not in MAP_FIELDS


def wire_name(typed: type, name: str) -> str:
    getter = getattr(typed, name).fget
    return str(getattr(getter, "_pulumi_name", name))
