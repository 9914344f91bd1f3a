"""What pulumi_gcp says of its inputs: names as the wire has them, types, and which must be there."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pulumi_gcp
from pulumi import _types

_PARAMETER = re.compile(r":param [^\n]*? (\w+): (.*?)(?=\n\s*:param |\Z)", re.DOTALL)


class Block(NamedTuple):
    """A block of inputs: of each by its name on the wire the type and the docs, and which must be there."""

    name: str
    inputs: dict[str, Any]
    required: list[str]
    docs: dict[str, str]


def resource(token: str) -> Block:
    """Return the inputs of a type of resource."""
    module, name = _classes()[token].split(".")
    return block(getattr(importlib.import_module(f"pulumi_gcp.{module}"), f"{name}Args"))


@cache
def block(args: type) -> Block:
    """Return the inputs of a class of arguments."""
    wire = _types.input_type_py_to_pulumi_names(args)
    parameters = inspect.signature(args.__init__).parameters  # type: ignore[misc] # of the class, not of an instance
    required = [wire[name] for name, each in parameters.items() if name in wire and each.default is each.empty]
    docs = {wire[name]: text for name, text in _PARAMETER.findall(inspect.getdoc(args.__init__) or "") if name in wire}  # type: ignore[misc]
    return Block(args.__name__.removesuffix("Args"), _types.input_type_types(args), sorted(required), docs)


@cache
def _classes() -> dict[str, str]:
    text = Path(pulumi_gcp.__file__).read_text(encoding="utf-8")
    return {token: f"{module}.{name}" for token, module, name in re.findall(r'"(gcp:(\w+)/\w+:\w+)": "(\w+)"', text)}
