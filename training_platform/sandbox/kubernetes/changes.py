"""The structural difference of two sets of inputs, named by property paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

Path = tuple[str | int, ...]
_ABSENT = object()


class Change(NamedTuple):
    """One property that was added, deleted or updated."""

    path: Path
    kind: Literal["add", "delete", "update"]

    def within(self, path: Path) -> bool:
        """Whether the change touches ``path``: at it, below it, or because something above it came or went."""
        shared = min(len(path), len(self.path))
        return self.path[:shared] == path[:shared]

    def __str__(self) -> str:
        return text(self.path)


def changes(old: Any, new: Any, path: Path = ()) -> Iterator[Change]:
    """Compare readable values; a null counts as absent, and an unknown differs from all that is known."""
    old, new = (_ABSENT if value is None else value for value in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from changes(old.get(name), new.get(name), (*path, name))
    elif isinstance(old, list) and isinstance(new, list):
        for i in range(max(len(old), len(new))):
            yield from changes(_at(old, i), _at(new, i), (*path, i))
    elif old is _ABSENT and new is not _ABSENT:
        yield Change(path, "add")
    elif new is _ABSENT and old is not _ABSENT:
        yield Change(path, "delete")
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield Change(path, "update")


def text(path: Path) -> str:
    """Write a path as the engine does: ``spec.flavors[0]["example.com/key"]``."""
    written = ""
    for step in path:
        if isinstance(step, int):
            written += f"[{step}]"
        elif any(mark in step for mark in '."[]'):
            escaped = step.replace('"', '\\"')
            written += f'["{escaped}"]'
        else:
            written += f".{step}" if written else step
    return written


def _at(items: list[Any], i: int) -> Any:
    return items[i] if i < len(items) else None
