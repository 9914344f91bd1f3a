"""All plain fields of a view in one pass over its inputs: rules ask for most of them, and fleets have many views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from training_platform.resources.planned import UNKNOWN, Shared
from training_platform.views.inputs import is_list


class Plain(NamedTuple):
    """A field that one input decides: its name, the keys that lead to the input, and how its value is read.

    A value of class ``right`` is taken as it is.
    """

    name: str
    path: tuple[str, ...]
    convert: Callable[[Any], Any]
    right: type | None


class Branch:
    """What stands at one place of the inputs: by key the fields that are read there, and the place below it."""

    __slots__ = ("names", "places")

    def __init__(self, fields: Iterable[Plain], depth: int = 0) -> None:
        listed = list(fields)
        self.names = {each.name for each in listed}
        by_key: dict[str, list[Plain]] = {}
        for each in listed:
            by_key.setdefault(each.path[depth], []).append(each)
        self.places = {key: _place(below, depth + 1) for key, below in by_key.items()}

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
        place = self.places.get
        for key, value in block.items():
            if value is None or (here := place(key)) is None:
                continue
            fields, branch = here
            for name, right, convert in fields:
                if value.__class__ is right:
                    found[name] = value
                elif (known := convert(value)) is UNKNOWN:
                    found.pop(name, None)
                else:
                    found[name] = known
            if branch is None:
                continue
            if value.__class__ is dict:
                branch._read(value, found)  # noqa: SLF001 # its own class
            elif isinstance(value, Shared):
                branch._read_shared(value, found)  # noqa: SLF001
            else:
                branch.read(value, found)

    def _read_shared(self, block: Shared, found: dict[str, Any]) -> None:
        """Put what a block of many resources says into ``found``: it is read once."""
        if self not in block.kept:
            every = dict.fromkeys(self.names, Ellipsis)
            self._read(block, every)
            said = {name: value for name, value in every.items() if value is not Ellipsis}
            block.kept[self] = said, self.names - every.keys()
        said, unknown = block.kept[self]
        found.update(said)
        for name in unknown:
            found.pop(name, None)


Place = tuple[tuple[tuple[str, type | None, Callable[[Any], Any]], ...], Branch | None]


def _place(fields: Iterable[Plain], depth: int) -> Place:
    """Return the fields that a key's own value decides, and the branch of those that stand below it."""
    listed = list(fields)
    here = tuple((each.name, each.right, each.convert) for each in listed if len(each.path) == depth)
    below = [each for each in listed if len(each.path) > depth]
    return here, Branch(below, depth) if below else None
