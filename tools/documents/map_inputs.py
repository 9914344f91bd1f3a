"""Writes the table of map inputs, ``training_platform/resources/data/map_inputs.yaml``, from the installed pulumi_gcp.

The keys of a map, such as users' labels, are sent unchanged. The names of other inputs are converted by ``camel_case``.
The provider's annotations show which inputs are maps. ValueError is raised for inputs that neither the table nor this
conversion supports: an irregular name, a map of blocks, or a block inside itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pulumi import _types

from tools.documents.google import arguments
from training_platform.resources.spelling import camel_case

_HEADING = """\
# Inputs that are maps, by resource type: their keys are users' and keep their spelling. Written by `make documents`.
# Names are those of pulumi-gcp's Python; items of a list have the path of the list. Types without a map are left out.
"""


def write_map_inputs(path: Path, tokens: Iterable[str]) -> None:
    """Write the table for resource types."""
    paths = {token: sorted(map_paths(arguments(token))) for token in sorted(tokens)}
    rows = {token: maps for token, maps in paths.items() if maps}
    path.write_text(_HEADING + yaml.safe_dump(rows), encoding="utf-8")


def map_paths(block: type, outer: tuple[type, ...] = ()) -> Iterator[str]:
    """Yield the path of every map in a class of arguments. ``outer`` contains the classes that enclose this class."""
    if block in outer:
        raise ValueError(f"{block.__name__} contains itself, so the paths of its maps would be infinite")
    kinds = _types.input_type_types(block)
    for name, wire_name in _types.input_type_py_to_pulumi_names(block).items():
        if camel_case(name) != wire_name:
            raise ValueError(f"{block.__name__}.{name} is {wire_name} in requests, not {camel_case(name)}")
        kind = _without_lists(kinds[wire_name])
        if _is_a(kind, Mapping):
            if _types.is_input_type(_without_lists(get_args(kind)[1])):
                raise ValueError(
                    f"{block.__name__}.{name} is a map of blocks, whose inputs would keep their Python names"
                )
            yield name
        elif _types.is_input_type(kind):
            yield from (f"{name}.{path}" for path in map_paths(kind, (*outer, block)))


def _without_lists(kind: Any) -> Any:
    """Return the type of an input without the lists around it, however deeply nested."""
    kind = _types.unwrap_type(kind)
    return _without_lists(get_args(kind)[0]) if _is_a(kind, Sequence) else kind


def _is_a(kind: Any, container: type) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, container)
