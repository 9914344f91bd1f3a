"""Explains why a text is not YAML, and where to fix it, since the parser only reports where it stopped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import yaml

from training_platform.config.reading.finding import Position

_CONFLICT = re.compile(r"(<{7}|={7}|>{7})( |$)")
_SPACES = {"\u00a0": "a no-break space", "\u202f": "a narrow no-break space", "\u3000": "a full-width space"}
ODD_SPACE = re.compile("[\u00a0\u202f\u3000]")
# Where YAML expects a plain space: in the indentation, and after a colon or a dash.
_ODD_SPACE = re.compile(rf"(?:^[ \t]*|[:-] *)({ODD_SPACE.pattern})")
_NO_SPACE = re.compile(r" *(?:- +)*(?P<key>[\w.-]+):(?P<value>[^\s:/][^:]*)$")
_NO_COLON = re.compile(r"(?P<before> *(?:- +)*)(?P<key>[\w.-]+(?::[\w-]+)?)(?: +(?P<value>[^:#]+))?$")
_TAB = re.compile(" *\t")
_SECOND_KEY = re.compile(r" *(?:- +)*[^\s:#]+: +(?P<rest>[^\s\"'{\[|>&*!][^:]*:(?: .*)?$)")
_MOST_LINES = 500  # of a text whose indentation is tried
_NEAR = 12  # lines up from where the parser stopped
LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # libyaml is 5 times as fast, and not in every wheel
_ENDS = {"{": "}", "[": "]"}


def space_name(text: str) -> str:
    """Return the name of the first space character in a text that YAML does not treat as a space."""
    return next(_SPACES[letter] for letter in text if letter in _SPACES)


def why_not_yaml(text: str, error: yaml.MarkedYAMLError) -> tuple[Position | None, str]:
    """Return the position at which a text stops being valid YAML, and the correction."""
    lines = text.splitlines()
    mark = error.problem_mark or error.context_mark
    conflict = [number for number, line in enumerate(lines, 1) if _CONFLICT.match(line)]
    if conflict and lines[conflict[0] - 1].startswith("<"):
        *first, last = map(str, conflict)
        numbers = f"{', '.join(first)} and {last}" if first else last
        return Position(conflict[0], 1), (
            f"lines {numbers} have markers of a merge conflict; keep one side and delete the markers"
        )
    problem = error.problem or error.context or ""
    if mark is None or not lines:
        return None, problem
    stop = min(mark.line, len(lines) - 1)
    above = next((number for number in range(stop - 1, -1, -1) if _is_content(lines[number])), stop)
    why = _wrong_space(lines, stop, above) or _unclosed(lines, error) or _no_colon(lines, (stop, above))
    if not why and ("mapping values" in problem or "':'" in problem):
        why = _no_space_after_colon(lines, above)
    if not why and "mapping values" in problem:
        why = _second_key(lines, mark)
    if "mapping" in problem:
        problem += "; put a value with a colon in quotes"
    return why or _indentation(lines, stop) or (_position(mark), problem)


_Why = tuple[Position, str] | None


def _wrong_space(lines: Sequence[str], stop: int, above: int) -> _Why:
    """Find an unusual space in a line or the one above, or a tab in the line's indentation."""
    for number in (stop, above):
        if odd := _ODD_SPACE.search(lines[number]):
            return Position(number + 1, odd.start(1) + 1), f"{space_name(odd[1])} is here; write an ordinary space"
    if tab := _TAB.match(lines[stop]):
        return Position(stop + 1, tab.end()), "the indentation contains a tab; indent with spaces"
    return None


def _unclosed(lines: Sequence[str], error: yaml.MarkedYAMLError) -> _Why:
    """Find an unclosed bracket or quote, or two entries in brackets without a comma between them."""
    start = error.context_mark
    context = error.context or ""
    if start is None or start.line >= len(lines):
        return None
    unclosed_text = "\n".join((lines[start.line][start.column :], *lines[start.line + 1 :]))
    if "quoted scalar" in context and "end of stream" in (error.problem or ""):
        return _position(start), f"the quoted string is not closed; write {unclosed_text[0]} at the end"
    if "flow" not in context or unclosed_text[:1] not in _ENDS:
        return None
    if not _closed(unclosed_text, unclosed_text[0]):
        return _position(start), f"the {unclosed_text[0]} is not closed; write {_ENDS[unclosed_text[0]]} at the end"
    return _position(
        error.problem_mark or start
    ), f"a comma is missing between two entries of {unclosed_text[0]} {_ENDS[unclosed_text[0]]}"


def _closed(text: str, opened: str) -> bool:
    """Return True if a text closes the bracket that it starts with."""
    depth = 0
    for letter in text:
        depth += (letter == opened) - (letter == _ENDS[opened])
        if not depth:
            return True
    return False


def _no_colon(lines: Sequence[str], numbers: Iterable[int]) -> _Why:
    """Find a key without a colon. With the colon added, the text has to be YAML without empty or duplicate keys."""
    for number in numbers:
        missing = _NO_COLON.match(lines[number])
        if missing is None:
            continue
        line = f"{missing['key']}: {missing['value'] or ''}".rstrip()
        if _odd_keys("\n".join((*lines[:number], f"{missing['before']}{line}", *lines[number + 1 :], ""))) == 0:
            return Position(number + 1, missing.start("key") + 1), f"the colon after the key is missing; write {line}"
    return None


def _no_space_after_colon(lines: Sequence[str], number: int) -> _Why:
    missing = _NO_SPACE.match(lines[number])
    if missing is None:
        return None
    message = f"the space after the colon is missing; write {missing['key']}: {missing['value'].strip()}"
    return Position(number + 1, missing.start("key") + 1), message


def _second_key(lines: Sequence[str], mark: yaml.Mark) -> _Why:
    """Find a second key and value on one line, with one brace or without braces."""
    line = lines[mark.line] if mark.line < len(lines) else ""
    keys = _SECOND_KEY.match(line)
    if keys is None or mark.column <= keys.start("rest"):
        return None
    second_entry = keys["rest"].strip()
    if second_entry.endswith("}") and "{" not in second_entry:
        message = f"the }} has no {{; write {{{second_entry}"
    else:
        message = f"two keys are on one line; write {{{second_entry}}}, or quotes if it is a string"
    return Position(mark.line + 1, keys.start("rest") + 1), message


class _Reindent(NamedTuple):
    """A different indentation of a line that makes the text YAML. The smallest tuple is the best correction."""

    odd_keys: int  # keys that are then without a value or given twice
    with_block: bool  # whether the lines below it move too
    distance: int  # lines up from where the parser stopped
    shift: int
    negative_level: int  # the deeper of two is better


def _indentation(lines: Sequence[str], stop: int) -> _Why:
    """Find a line near ``stop`` that makes the text YAML if it (or its whole block) is indented differently."""
    if len(lines) > _MOST_LINES:
        return None
    near = [number for number in range(stop, -1, -1) if _is_content(lines[number])][:_NEAR]
    levels = {_indent(line) + more for line in lines[: stop + 1] if _is_content(line) for more in (0, 2)}
    fixes: list[_Reindent] = []
    for distance, number in enumerate(near):
        current = _indent(lines[number])
        for level in levels - {current}:
            for end in {number + 1, _end_of_block(lines, number)}:
                moved = (f"{' ' * (level - current)}{line}"[max(0, current - level) :] for line in lines[number:end])
                odd_keys = _odd_keys("\n".join((*lines[:number], *moved, *lines[end:], "")))
                if odd_keys is not None:
                    fixes.append(
                        _Reindent(
                            odd_keys,
                            end > number + 1,
                            distance=distance,
                            shift=abs(level - current),
                            negative_level=-level,
                        )
                    )
    if not fixes:
        return None
    best = min(fixes)
    number = near[best.distance]
    current = _indent(lines[number])
    above = next((_indent(line) for line in reversed(lines[:number]) if _is_content(line)), 0)
    target = _spaces(-best.negative_level)
    message = (
        f"this line is indented by {_spaces(current)}, and the line above by {above}; indent this line by {target}"
    )
    return Position(number + 1, current + 1), message


def _end_of_block(lines: Sequence[str], start: int) -> int:
    """Return the number of the first line after a line's block, which is the next one that is not indented deeper."""
    for number in range(start + 1, len(lines)):
        if _is_content(lines[number]) and _indent(lines[number]) <= _indent(lines[start]):
            return number
    return len(lines)


def _odd_keys(text: str) -> int | None:
    """Return the number of keys that are empty or duplicate, or None if a text is not YAML."""
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
