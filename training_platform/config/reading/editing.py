"""Edits one key of a YAML file and keeps all other lines: adds it, removes it, or changes its integer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from difflib import unified_diff
from typing import Any

from training_platform.config.reading.finding import Path, UserError
from training_platform.config.reading.source import Source, UnreadableError, parse_source, value_at

_FLOW = re.compile(r"""("[^"]*"|'[^']*'|[^:]*):\s*\{\s*""")
_NUMBER = re.compile(r"""("[^"]*"|'[^']*'|[^:]*)(:\s+)-?\d+""")
_STEP = "  "


def difference(file: str, before: str, after: str) -> str:
    """Return a patch for ``git apply`` that changes a file's text. ``file`` is relative to the repository."""
    lines = unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{file}", f"b/{file}")
    return "".join(lines)


def with_entry(text: str, file: str, path: Path, lines: Sequence[str]) -> str:
    """Return a file's text with a new key at the end of the mapping at ``path``, which may be missing.

    ``lines`` contains the key and its value as block YAML without indentation, with two spaces before a comment. Raises
    UserError if the lines cannot be added to the file's layout.
    """
    source = parse_source(text, file)
    home = path
    entry = list(lines)
    while home and home not in source.positions:
        entry = [f"{home[-1]}:", *(_STEP + line for line in entry)]
        home = home[:-1]
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.removesuffix(newline).split(newline)
    position = source.position(home)
    row = position.line
    column = position.column - 1
    head = rows[row - 1]
    inside = value_at(source.value, home)
    if flow := _FLOW.match(head, column):
        first, gap, comment = entry[0].partition("  #")
        rows[row - 1] = head[: flow.end()] + first + (", " if inside else "") + head[flow.end() :] + gap + comment
    else:
        margin = source.position((*home, next(iter(inside)))).column - 1 if inside else column + len(_STEP)
        end = next((index for index in range(row, len(rows)) if _leaves(rows[index], margin)), len(rows))
        while end > row and (not rows[end - 1].strip() or _indent(rows[end - 1]) < margin):
            end -= 1
        rows[end:end] = [" " * margin + line for line in entry]
    value = deepcopy(source.value)
    section = value
    for part in path:
        section[part] = section.get(part) or {}
        section = section[part]
    section |= parse_source("\n".join(lines), file).value
    return _verified(newline.join([*rows, ""]), source, value, path, lines)


def without_entry(text: str, file: str, path: Path) -> str:
    """Return a file's text without the key at ``path``. If its mapping is empty then, remove that too.

    Raises UserError like ``with_entry``.
    """
    source = parse_source(text, file)
    removed = path
    while len(value_at(source.value, removed[:-1])) == 1:
        removed = removed[:-1]
    value = deepcopy(source.value)
    del value_at(value, removed[:-1])[removed[-1]]
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.split(newline)
    position = source.position(removed)
    row = position.line - 1
    column = position.column - 1
    if rows[row][:column].strip():  # between the braces of a mapping in one line
        following_text = re.sub(r"""^("[^"]*"|'[^']*'|[^:]*):\s+[^,}]*(,\s*)?""", "", rows[row][column:])
        before = rows[row][:column]
        rows[row] = (before.rstrip(" ,") if following_text.startswith("}") else before) + following_text
    else:
        end = next((index for index in range(row + 1, len(rows)) if _leaves(rows[index], column + 1)), len(rows))
        while end > row + 1 and (not rows[end - 1].strip() or _indent(rows[end - 1]) <= column):
            end -= 1
        del rows[row:end]
    return _verified(newline.join(rows), source, value, path, ())


def with_number(text: str, file: str, path: Path, number: int) -> str:
    """Return a file's text with another integer at ``path``. Raises UserError like ``with_entry``."""
    source = parse_source(text, file)
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.split(newline)
    position = source.position(path)
    row = position.line - 1
    column = position.column - 1
    rows[row] = rows[row][:column] + _NUMBER.sub(rf"\g<1>\g<2>{number}", rows[row][column:], count=1)
    value = deepcopy(source.value)
    value_at(value, path[:-1])[path[-1]] = number
    return _verified(newline.join(rows), source, value, path, [f"{path[-1]}: {number}"])


def _leaves(row: str, margin: int) -> bool:
    """Return True if a line ends a block whose keys are indented by ``margin``. A comment line never does."""
    return bool(row.strip()) and not row.lstrip().startswith("#") and _indent(row) < margin


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def _verified(text: str, before: Source, expected: Any, path: Path, lines: Sequence[str]) -> str:
    """Return the text. Raises UserError if it does not parse to the expected value."""
    try:
        after = parse_source(text, before.file)
    except UnreadableError:
        after = Source(before.file)
    if after.value != expected or len(after.findings) > len(before.findings):  # such as a key given twice
        by_hand = "write it by hand:\n" + "\n".join(f"  {line}" for line in lines) if lines else "delete it by hand."
        verb = "written" if lines else "deleted"
        raise UserError(
            f"{before.file}:{before.position(path).line}: has a layout in which no line of {path[-1]} can be {verb}: "
            f"put each key on a separate line, or {by_hand}"
        )
    return text
