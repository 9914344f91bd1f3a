"""Why a text is not YAML, in a sentence that names the place to mend: the parser's own words name where it gave up."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

from training_platform.config.reading.finding import Position

_CONFLICT = re.compile(r"(<{7}|={7}|>{7})( |$)")
_SPACES = {"\u00a0": "a no-break space", "\u202f": "a narrow no-break space", "\u3000": "a full-width space"}
ODD_SPACE = re.compile("[\u00a0\u202f\u3000]")
# Where YAML would read a plain space: in the indentation, and after a colon or a dash.
_ODD_SPACE = re.compile(rf"(?:^[ \t]*|[:-] *)({ODD_SPACE.pattern})")
_NO_SPACE = re.compile(r" *(?:- +)*(?P<key>[\w.-]+):(?P<value>[^\s:/][^:]*)$")
_TAB = re.compile(" *\t")
_ITEM = re.compile(r" *- +")
_ENDS = {"{": "}", "[": "]"}


def space_name(text: str) -> str:
    """Return what the first space in a text that YAML takes for a letter is called."""
    return next(_SPACES[letter] for letter in text if letter in _SPACES)


def why_not_yaml(text: str, error: yaml.MarkedYAMLError) -> tuple[Position | None, str]:
    """Return where a text stops being YAML, and what to write there."""
    lines, mark = text.splitlines(), error.problem_mark or error.context_mark
    conflict = [number for number, line in enumerate(lines, 1) if _CONFLICT.match(line)]
    if conflict and lines[conflict[0] - 1].startswith("<"):
        *first, last = map(str, conflict)
        numbers = f"{', '.join(first)} and {last}" if first else last
        return Position(conflict[0], 1), f"a merge conflict is left on lines {numbers}; keep one side and no marker"
    problem = error.problem or error.context or ""
    if mark is None or not lines:
        return None, problem
    at = min(mark.line, len(lines) - 1)
    above = next((number for number in range(at - 1, -1, -1) if _is_content(lines[number])), at)
    return (
        _wrong_space(lines, at, above)
        or _unclosed(lines, error)
        or (_no_space_after_colon(lines, above) if "mapping values" in problem or "':'" in problem else None)
        or _indentation(lines, at, mark)
        or (_position(mark), f"{problem}; put a value with a colon in quotes" if "mapping" in problem else problem)
    )


_Why = tuple[Position, str] | None


def _wrong_space(lines: Sequence[str], at: int, above: int) -> _Why:
    """Return a space that YAML takes for a letter, on a line or the one above, or a tab in the line's indentation."""
    for number in (at, above):
        if odd := _ODD_SPACE.search(lines[number]):
            return Position(number + 1, odd.start(1) + 1), f"{space_name(odd[1])} is here; write a plain space"
    if tab := _TAB.match(lines[at]):
        return Position(at + 1, tab.end()), "a tab is in the indentation; indent with spaces"
    return None


def _unclosed(lines: Sequence[str], error: yaml.MarkedYAMLError) -> _Why:
    """Return a bracket or a quote that has no end, or brackets with no comma between two of their entries."""
    start, context = error.context_mark, error.context or ""
    if start is None or start.line >= len(lines):
        return None
    rest = "\n".join((lines[start.line][start.column :], *lines[start.line + 1 :]))
    if "quoted scalar" in context and "end of stream" in (error.problem or ""):
        return _position(start), f"the quote is not closed; write {rest[0]} at its end"
    if "flow" not in context or rest[:1] not in _ENDS:
        return None
    if not _closed(rest, rest[0]):
        return _position(start), f"the {rest[0]} is not closed; write {_ENDS[rest[0]]} at its end"
    return _position(error.problem_mark or start), f"no comma is between two entries of {rest[0]} {_ENDS[rest[0]]}"


def _closed(text: str, opened: str) -> bool:
    """Return whether the bracket with which a text begins has its end in it."""
    depth = 0
    for letter in text:
        depth += (letter == opened) - (letter == _ENDS[opened])
        if not depth:
            return True
    return False


def _no_space_after_colon(lines: Sequence[str], at: int) -> _Why:
    missing = _NO_SPACE.match(lines[at])
    if missing is None:
        return None
    said = f"no space after the colon; write {missing['key']}: {missing['value'].strip()}"
    return Position(at + 1, missing.start("key") + 1), said


def _indentation(lines: Sequence[str], at: int, mark: yaml.Mark) -> _Why:
    """Return a line that is indented as none above it that it could belong to, or deeper than a key with a value."""
    own, levels = len(lines[at]) - len(lines[at].lstrip(" ")), _levels(lines, at)
    if not levels or (own <= levels[0] and (own in levels or mark.column != own)):
        return None
    nearest = min(levels, key=lambda level: abs(level - own))
    said = f"the line is indented by {own} spaces and the one above by {levels[0]}; indent it by {nearest} spaces"
    return Position(at + 1, own + 1), said


def _levels(lines: Sequence[str], at: int) -> list[int]:
    """Return how far the lines above a line that enclose its place are indented, the nearest first."""
    levels: list[int] = []
    for line in reversed(lines[:at]):
        own = len(line) - len(line.lstrip(" "))
        item = _ITEM.match(line)
        for level in (item.end(), own) if item else (own,):
            if _is_content(line) and (not levels or level < levels[-1]):
                levels.append(level)
    return levels


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _position(mark: yaml.Mark) -> Position:
    return Position(mark.line + 1, mark.column + 1)
