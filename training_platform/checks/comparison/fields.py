"""Which line of a stack file a change of a resource's input comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from training_platform.checks.comparison.comparison import InputChange
from training_platform.checks.planning.outcome import leaves
from training_platform.config.model.stack import Stack
from training_platform.config.names import sections
from training_platform.config.reading.finding import Path
from training_platform.config.reading.source import value_at


def field_of(change: InputChange, section: Path, new: Stack, old: Stack | None) -> Path:
    """Return the field of a section that a change comes from: the one that changed.

    Of several it is the one whose value stands in the input, before or after. Where that decides nothing, the code may
    have changed and not the file: then it is the section itself.
    """
    if old is None:
        return section
    changed = dict(_changed(section, new, old))
    if len(changed) == 1:
        return next(iter(changed))
    inputs = {_text(value) for value in (change.old, change.new)} - {""}
    fitting = [path for path, values in changed.items() if inputs & values]
    return fitting[0] if fitting else section


def _changed(section: Path, new: Stack, old: Stack) -> Iterator[tuple[Path, set[str]]]:
    """Yield the fields of a section that differ, each with its two values; sections inside it are not in it."""
    was, now = _values(old, section), _values(new, section)
    inner = {path for _, path in sections(new.section) if path[: len(section)] == section} if new.section else set()
    for name in {**now, **was}:
        path = (*section, *name.split("."))
        if was.get(name) == now.get(name) or any(path[: len(each)] == each != section for each in inner):
            continue
        yield path, {_text(was.get(name)), _text(now.get(name))}


def _values(stack: Stack, section: Path) -> dict[str, Any]:
    value = value_at(stack.source.value, (*stack.below, *section))
    return leaves(value) if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Return a value as it may stand in a file and in an input alike: a list of one as the one."""
    if isinstance(value, list):
        return _text(value[0]) if len(value) == 1 else ",".join(map(_text, value))
    return "" if value is None else str(value)
