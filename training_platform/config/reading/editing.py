"""Edits of a YAML file that leave every other line as it is: one key more or less, or another whole number."""

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
    """Return what ``git apply`` takes to make one text of a file, named from the repository on, another."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(unified_diff(old, new, f"a/{file}", f"b/{file}"))


def with_entry(text: str, file: str, path: Path, lines: Sequence[str]) -> str:
    """Return a file's text with one more key at the end of the mapping at ``path``, which need not be there yet.

    ``lines`` are the key and its value as block YAML without indentation; two blanks come before a comment. Raises
    UserError where the layout of the file leaves no place for them.
    """
    source, home, entry = parse_source(text, file), path, list(lines)
    while home and home not in source.positions:
        entry = [f"{home[-1]}:", *(_STEP + line for line in entry)]
        home = home[:-1]
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.removesuffix(newline).split(newline)
    row, column = source.position(home).line, source.position(home).column - 1
    head, inside = rows[row - 1], value_at(source.value, home)
    if flow := _FLOW.match(head, column):
        first, gap, comment = entry[0].partition("  #")
        rows[row - 1] = head[: flow.end()] + first + (", " if inside else "") + head[flow.end() :] + gap + comment
    else:
        margin = source.position((*home, next(iter(inside)))).column - 1 if inside else column + len(_STEP)
        end = next((at for at in range(row, len(rows)) if _leaves(rows[at], margin)), len(rows))
        while end > row and (not rows[end - 1].strip() or _indent(rows[end - 1]) < margin):
            end -= 1
        rows[end:end] = [" " * margin + line for line in entry]
    wanted = deepcopy(source.value)
    section = wanted
    for part in path:
        section[part] = section.get(part) or {}
        section = section[part]
    section |= parse_source("\n".join(lines), file).value
    return _verified(newline.join([*rows, ""]), source, wanted, path, lines)


def without_entry(text: str, file: str, path: Path) -> str:
    """Return a file's text without the key at ``path`` and, where it was the only one, without the mapping around it.

    Raises UserError as ``with_entry``.
    """
    source, gone = parse_source(text, file), path
    while len(value_at(source.value, gone[:-1])) == 1:
        gone = gone[:-1]
    wanted = deepcopy(source.value)
    del value_at(wanted, gone[:-1])[gone[-1]]
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.split(newline)
    row, column = source.position(gone).line - 1, source.position(gone).column - 1
    if rows[row][:column].strip():  # between the braces of a mapping in one line
        rest = re.sub(r"""^("[^"]*"|'[^']*'|[^:]*):\s+[^,}]*(,\s*)?""", "", rows[row][column:])
        before = rows[row][:column]
        rows[row] = (before.rstrip(" ,") if rest.startswith("}") else before) + rest
    else:
        end = next((at for at in range(row + 1, len(rows)) if _leaves(rows[at], column + 1)), len(rows))
        while end > row + 1 and (not rows[end - 1].strip() or _indent(rows[end - 1]) <= column):
            end -= 1
        del rows[row:end]
    return _verified(newline.join(rows), source, wanted, path, ())


def with_number(text: str, file: str, path: Path, number: int) -> str:
    """Return a file's text with another whole number at ``path``, which has one. Raises UserError as ``with_entry``."""
    source = parse_source(text, file)
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.split(newline)
    row, column = source.position(path).line - 1, source.position(path).column - 1
    rows[row] = rows[row][:column] + _NUMBER.sub(rf"\g<1>\g<2>{number}", rows[row][column:], count=1)
    wanted = deepcopy(source.value)
    value_at(wanted, path[:-1])[path[-1]] = number
    return _verified(newline.join(rows), source, wanted, path, [f"{path[-1]}: {number}"])


def _leaves(row: str, margin: int) -> bool:
    """Whether a line is outside a block whose keys have a margin; a comment alone never is."""
    return bool(row.strip()) and not row.lstrip().startswith("#") and _indent(row) < margin


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def _verified(text: str, before: Source, wanted: Any, path: Path, lines: Sequence[str]) -> str:
    """Return the text. Raises UserError unless it holds what the file held, the change, and nothing else."""
    try:
        after = parse_source(text, before.file)
    except UnreadableError:
        after = Source(before.file)
    if after.value != wanted or len(after.findings) > len(before.findings):  # such as for a key that is there twice
        by_hand = "write it by hand:\n" + "\n".join(f"  {line}" for line in lines) if lines else "delete it by hand."
        verb = "written" if lines else "deleted"
        raise UserError(
            f"{before.file}:{before.position(path).line}: is laid out so that no line of {path[-1]} can be {verb}: "
            f"give each key a line of its own, or {by_hand}"
        )
    return text
