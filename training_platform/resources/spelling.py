"""The names of inputs: ``node_config`` in pulumi-gcp's Python API, ``nodeConfig`` when sent to the provider.

Keys of a map are chosen by users and are never renamed. ``data/map_inputs.yaml`` lists the maps of each resource type,
because the same name can be a map in one type and a block or a list in another. ``make documents`` generates it from
the provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from training_platform.catalog.reading import read_file
from training_platform.resources.resource_types import KUBERNETES
from training_platform.resources.stack_resource import PROVIDER_TYPES, UNKNOWN

FILE = Path(__file__).parent / "data" / "map_inputs.yaml"
Maps: TypeAlias = "dict[str, Maps | None]"  # by the name of an input: None for a map, else the maps inside a block
_NO_MAPS: Maps = {}


def map_inputs(resource_type: str) -> frozenset[str]:
    """Return the paths of a type's inputs that are maps, such as ``node_config.labels``, including items of lists."""
    return frozenset(_table().get(resource_type, ()))


def wire_inputs(
    resource_type: str, inputs: Mapping[str, Any], leaf: Callable[[Any], Any] = lambda value: value
) -> dict[str, Any]:
    """Return inputs as they are sent to the provider: renamed, with tuples as lists, and without None.

    Keys of a map and of a Kubernetes object are not renamed. The settings of a provider become JSON strings. ``leaf``
    is called with every value that is not a dictionary, list or tuple, including None in a list. Its result is used
    unchanged.
    """
    if resource_type.startswith(KUBERNETES):
        wire: dict[str, Any] = _kept(dict(inputs), leaf)
    else:
        wire = _respelt(dict(inputs), _maps(resource_type), leaf)
    if resource_type.startswith(PROVIDER_TYPES):
        wire = {name: _setting(value) for name, value in wire.items()}
    return wire


def _setting(value: Any) -> Any:
    """Return a setting of a provider as it is sent: as a JSON string."""
    return value if value is UNKNOWN or isinstance(value, str) else json.dumps(value)


@cache
def camel_case(name: str) -> str:
    """Return a name in the form that is sent to the provider."""
    first, *later_words = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in later_words)


@cache
def python_name(name: str) -> str:
    """Return an input's name in pulumi-gcp's Python API."""
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def _respelt(value: Any, maps: Maps, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        wire = {}
        for name, item in value.items():
            if item is None:
                continue
            inner = maps.get(name, _NO_MAPS)
            wire[camel_case(name)] = _kept(item, leaf) if inner is None else _respelt(item, inner, leaf)
        return wire
    if isinstance(value, list | tuple):
        return [_respelt(item, maps, leaf) for item in value]
    return leaf(value)


def _kept(value: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _kept(item, leaf) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_kept(item, leaf) for item in value]
    return leaf(value)


@cache
def _maps(resource_type: str) -> Maps:
    """Return the paths of a type's maps as a tree, which is walked together with its inputs."""
    tree: Maps = {}
    for path in _table().get(resource_type, ()):
        *blocks, name = path.split(".")
        block = tree
        for part in blocks:
            inner = block.setdefault(part, {})
            assert inner is not None, f"{path} is inside a map"
            block = inner
        block[name] = None
    return tree


@cache
def _table() -> Mapping[str, list[str]]:
    return read_file(FILE)
