"""The list of all pulumi_gcp types without a document: one line for each, with its top-level inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_origin

from pulumi import _types

from tools.documents.google import arguments, source, tokens

_HEADING = """\
# Types of pulumi-gcp {version} without a document: the names of their top-level inputs, by kind of value.
# Written by `make documents`; training_platform/rules/documents/sdk_types.py reads a line when a plan has its type.
"""
_SCALARS: Mapping[Any, str] = {str: "text", bool: "flag", int: "int64", float: "number"}


def write_sdk_types(path: Path, documented: Iterable[str]) -> None:
    """Write the list of types that are not in ``documented``."""
    lines = [_line(token) for token in sorted(set(tokens()) - set(documented))]
    heading = _HEADING.format(version=source()["pulumi-gcp"])
    path.write_text(heading + "".join(f"{line}\n" for line in lines), encoding="utf-8")


def _line(token: str) -> str:
    """Return the line of a type: ``gcp:sql/user:User list=databaseRoles text=host,instance,name``."""
    inputs: dict[str, list[str]] = defaultdict(list)
    for name, kind in sorted(_types.input_type_types(arguments(token)).items()):
        inputs[_kind(kind)].append(name)
    return " ".join([token, *(f"{kind}={','.join(names)}" for kind, names in sorted(inputs.items()))])


def _kind(annotation: Any) -> str:
    """Return the kind of value that an input takes, under the name that shapes use."""
    kind = _types.unwrap_type(annotation)
    origin = get_origin(kind)
    if isinstance(origin, type):
        if issubclass(origin, Mapping):
            return "map"
        if issubclass(origin, Sequence):
            return "list"
    if _types.is_input_type(kind):
        return "block"
    return _SCALARS.get(kind, "any")
