"""The fields and enum values that Kueue's definitions allow in each kind of object, for each version of the API.

``kinds.schema.json`` is written by ``python -m tools.kueue_kinds`` from the CustomResourceDefinitions of Kueue v0.19.2
(8eab687), config/components/crd/bases, read 2026-11-28.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from kueue_model.quotas import amount
from training_platform.catalog.nearest import find_nearest

GROUP: Final = "kueue.x-k8s.io"
_FILE: Final = Path(__file__).with_name("kinds.schema.json")
_NULL: Final = "tag:yaml.org,2002:null"
_STRINGS: Final = ("tag:yaml.org,2002:str", _NULL)
_HEAD: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
AMOUNTS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")
Shape = Mapping[str, Any]


@cache
def shapes() -> Mapping[str, Shape]:
    """Return what a kind may contain, keyed by ``KIND VERSION``: any of ``fields``, ``items``, ``enum``, ``type``."""
    return dict(json.loads(_FILE.read_text(encoding="utf-8")))


def refusals(kind: str, api_version: str, node: yaml.MappingNode, file: str) -> Iterator[str]:
    """Yield a sentence for each field and value that the API server refuses, with file and line."""
    version = api_version.removeprefix(f"{GROUP}/")
    versions = [name.removeprefix(f"{kind} ") for name in shapes() if name.startswith(f"{kind} ")]
    if versions and version not in versions:
        place = f"{file}:{node.start_mark.line + 1}"
        yield f"{place}: {kind} of {api_version} is not supported. Allowed: {_listed(versions)}."
    elif versions:
        yield from _refusals(node, shapes()[f"{kind} {version}"], f"{kind} of {version}", "", file)


def _refusals(node: yaml.Node, shape: Shape, subject: str, path: str, file: str) -> Iterator[str]:
    if shape.get("type") == "string" and node.tag not in _STRINGS:
        yield f"{file}:{node.start_mark.line + 1}: {path} is not a string. Allowed: a string, such as a name in quotes."
    elif isinstance(node, yaml.MappingNode) and "fields" in shape:
        yield from _refused_fields(node, shape, subject, path, file)
    elif isinstance(node, yaml.SequenceNode) and "items" in shape:
        for index, item in enumerate(node.value):
            yield from _refusals(item, shape["items"], subject, f"{path}[{index}]", file)
    elif isinstance(node, yaml.ScalarNode) and (reason := _wrong_value(node, shape, path.rpartition(".")[2])):
        yield f"{file}:{node.start_mark.line + 1}: {path} is {node.value!r}. {reason}"


def _refused_fields(node: yaml.MappingNode, shape: Shape, subject: str, path: str, file: str) -> Iterator[str]:
    allowed = shape["fields"]
    present = {key.value for key, value in node.value if value.tag != _NULL}
    for name in shape.get("required", ()):
        if name not in present:
            where = f"{path}.{name}" if path else name
            yield f"{file}:{node.start_mark.line + 1}: {subject} needs a value for {where}."
    for key, value in node.value:
        name = str(key.value)
        inner = f"{path}.{name}" if path else name
        if name in allowed:
            yield from _refusals(value, allowed[name], subject, inner, file)
        elif path or name not in _HEAD:
            yield f"{file}:{key.start_mark.line + 1}: {subject} has no field {inner}. {_nearest(name, allowed)}"


def _wrong_value(node: yaml.ScalarNode, shape: Shape, field: str) -> str:
    """Return a phrase that lists the values allowed instead, or an empty string if the value is valid."""
    text = str(node.value)
    if "enum" in shape and text not in shape["enum"]:
        return _nearest(text, {value: value for value in shape["enum"]})
    if field in AMOUNTS and node.tag != _NULL:
        try:
            amount("", text)
        except ValueError:
            return "Allowed: a quantity of 0 or more, such as 8, 500m or 64Gi."
    return ""


def _nearest(name: str, allowed: Mapping[str, object]) -> str:
    nearest = find_nearest(name, allowed)
    return f"Allowed: {_listed(allowed)}." + (f" Nearest: {nearest}." if nearest else "")


def _listed(names: Mapping[str, object] | list[str]) -> str:
    return ", ".join(sorted(names))
