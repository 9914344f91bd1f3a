"""All plain fields of a view in one pass over its inputs: rules ask for most of them, and fleets have many views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from training_platform.resources.planned import UNKNOWN
from training_platform.rules.views.inputs import is_list


class Plain(NamedTuple):
    """A field that one input decides: its name, the keys that lead to the input, and how its value is read.

    A value of class ``right`` is taken as it is.
    """

    name: str
    path: tuple[str, ...]
    convert: Callable[[Any], Any]
    right: type | None


class Branch:
    """What stands at one place of the inputs: the fields that are read there, and the places below it."""

    __slots__ = ("branches", "leaves", "names")

    def __init__(self, fields: Iterable[Plain], depth: int = 0) -> None:
        listed = list(fields)
        here = [each for each in listed if len(each.path) == depth + 1]
        self.names = [each.name for each in listed]
        self.leaves = [(each.path[depth], each.name, each.right, each.convert) for each in here]
        deeper = [each for each in listed if len(each.path) > depth + 1]
        keys = dict.fromkeys(each.path[depth] for each in deeper)
        self.branches = [(key, Branch([each for each in deeper if each.path[depth] == key], depth + 1)) for key in keys]

    def read(self, value: Any, found: dict[str, Any]) -> None:
        """Put what is written below a value into ``found``, and take out of it what is not known."""
        if value is not UNKNOWN and is_list(value):
            value = value[0] if value else None
        if value is UNKNOWN:
            for name in self.names:
                found.pop(name, None)
        elif isinstance(value, Mapping):
            self._read(value, found)

    def _read(self, block: Mapping[str, Any], found: dict[str, Any]) -> None:
        for key, name, right, convert in self.leaves:
            if (value := block.get(key)) is not None:
                if value.__class__ is right:
                    found[name] = value
                elif (known := convert(value)) is UNKNOWN:
                    found.pop(name, None)
                else:
                    found[name] = known
        for key, branch in self.branches:
            if (inner := block.get(key)) is not None:
                if inner.__class__ is dict:
                    branch._read(inner, found)  # noqa: SLF001 # its own class
                else:
                    branch.read(inner, found)
