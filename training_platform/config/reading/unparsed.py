"""Why a text is not YAML, in a sentence that names the place to mend: the parser's own words name where it gave up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from training_platform.config.reading.finding import Position

_CONFLICT = re.compile(r"(<{7}|={7}|>{7})( |$)")
_SPACES = {"\u00a0": "a no-break space", "\u202f": "a narrow no-break space", "\u3000": "a full-width space"}
ODD_SPACE = re.compile("[\u00a0\u202f\u3000]")
# Where YAML would read a plain space: in the indentation, and after a colon or a dash.
_ODD_SPACE = re.compile(rf"(?:^[ \t]*|[:-] *)({ODD_SPACE.pattern})")
_NO_SPACE = re.compile(r" *(?:- +)*(?P<key>[\w.-]+):(?P<value>[^\s:/][^:]*)$")
_TAB = re.compile(" *\t")
_SECOND_KEY = re.compile(r" *(?:- +)*[^\s:#]+: +(?P<rest>[^\s\"'{\[|>&*!][^:]*:(?: .*)?$)")
_MOST_LINES = 500  # of a text in which other indentations are tried
_NEAR = 12  # lines up from the place where the parser gave up
LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # libyaml is 5 times as fast, and not in every wheel
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
        or (_second_key(lines, mark) if "mapping values" in problem else None)
        or _indentation(lines, at)
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


def _second_key(lines: Sequence[str], mark: yaml.Mark) -> _Why:
    """Return a key and its value behind another key on one line, with a brace missing or with none."""
    line = lines[mark.line] if mark.line < len(lines) else ""
    keys = _SECOND_KEY.match(line)
    if keys is None or mark.column <= keys.start("rest"):
        return None
    rest = keys["rest"].strip()
    if rest.endswith("}") and "{" not in rest:
        said = f"the }} has no {{; write {{{rest}"
    else:
        said = f"two keys are on one line; write {{{rest}}}, or quotes if it is a text"
    return Position(mark.line + 1, keys.start("rest") + 1), said


def _indentation(lines: Sequence[str], at: int) -> _Why:
    """Return the line near a place that alone, or with all below it, makes the text YAML if it is indented otherwise.

    Of several the one counts that leaves the fewest keys without a value, then the one that moves a line alone, then
    the nearest to the place; the deeper of two.
    """
    if len(lines) > _MOST_LINES:
        return None
    near = [number for number in range(at, -1, -1) if _is_content(lines[number])][:_NEAR]
    levels = {_indent(line) + more for line in lines[: at + 1] if _is_content(line) for more in (0, 2)}
    ways: list[tuple[int, bool, int, int, int]] = []
    for rank, number in enumerate(near):
        own = _indent(lines[number])
        for level in levels - {own}:
            for end in {number + 1, _end_of_block(lines, number)}:
                moved = (f"{' ' * (level - own)}{line}"[max(0, own - level) :] for line in lines[number:end])
                odd = _odd_keys("\n".join((*lines[:number], *moved, *lines[end:], "")))
                if odd is not None:
                    ways.append((odd, end > number + 1, rank, abs(level - own), -level))
    if not ways:
        return None
    _, _, rank, _, negative = min(ways)
    number, own, level = near[rank], _indent(lines[near[rank]]), -negative
    above = next((_indent(line) for line in reversed(lines[:number]) if _is_content(line)), 0)
    said = f"the line is indented by {_spaces(own)} and the one above by {above}; indent it by {_spaces(level)}"
    return Position(number + 1, own + 1), said


def _end_of_block(lines: Sequence[str], start: int) -> int:
    """Return the number of the first line after one that is indented no deeper than it, and is no item of it."""
    own = _indent(lines[start])
    return next(
        (at for at in range(start + 1, len(lines)) if _is_content(lines[at]) and _indent(lines[at]) <= own), len(lines)
    )


def _odd_keys(text: str) -> int | None:
    """Return how many keys of a text have no value or are given twice; None where it is not YAML."""
    try:
        return _odd_below(yaml.compose(text, Loader=LOADER))
    except (yaml.YAMLError, RecursionError):
        return None


def _odd_below(node: yaml.Node | None) -> int:
    if isinstance(node, yaml.SequenceNode):
        return sum(map(_odd_below, node.value))
    if not isinstance(node, yaml.MappingNode):
        return 0
    keys = {str(key.value) for key, _ in node.value}
    empty = sum(isinstance(value, yaml.ScalarNode) and not (value.value or value.style) for _, value in node.value)
    return len(node.value) - len(keys) + empty + sum(_odd_below(value) for _, value in node.value)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _spaces(count: int) -> str:
    return f"{count} space{'' if count == 1 else 's'}"


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _position(mark: yaml.Mark) -> Position:
    return Position(mark.line + 1, mark.column + 1)
