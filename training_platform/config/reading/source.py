"""YAML with positions, parsed like the Pulumi engine parses it.

The engine (a Go YAML library) and PyYAML disagree on scalars such as ``yes``, ``0777``, ``1_000`` and dates. Here only
``true`` and ``false`` are booleans, and numbers are decimal. A plain scalar that the two might parse differently
produces a finding that requests quotes, so that both always read the same value.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import yaml

from training_platform.config.reading.declaration import declare, finding, located
from training_platform.config.reading.finding import Anchor, Finding, Path, Place, Position, UserError, dotted
from training_platform.config.reading.unparsed import LOADER, ODD_SPACE, space_name, why_not_yaml

STACK_YAML = declare(
    "stack-yaml",
    "Find YAML that two parsers would read differently.",
    ruleset="files",
)


_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_GROUP = re.compile(r"[0-9]{3}")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)\.[0-9]+\Z")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_AMBIGUOUS = re.compile(
    r"""(?: [-+]?0[0-9_]+ | [-+]?[0-9][0-9_]*_[0-9_]* | [-+]?0[box][0-9a-fA-F_]+     # octal, 1_000, hexadecimal
        | [-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?                                       # sexagesimal
        | [-+]?(\.[0-9]+|[0-9]+\.)([eE][-+]?[0-9]+)? | [-+]?[0-9]+(\.[0-9]+)?[eE][-+]?[0-9]+
        | [-+]?\.(inf|Inf|INF) | \.(nan|NaN|NAN)
        | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt\ ].*)?                                   # dates and times
        | True|TRUE|False|FALSE|Null|NULL|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|y|Y|n|N ) \Z""",
    re.VERBOSE,
)
_SMART_QUOTES = re.compile("[\u2018\u201a\u201c\u201e](.*)[\u2018\u2019\u201c\u201d]", re.DOTALL)
_DEEPEST = 60  # levels; our deepest stack file has 8
_TOO_DEEP = "is nested or repeated too deeply"
_MOST_BYTES = 64 * 2**20
_MOST_REPEATED = 1_000_000  # events that aliases expand to; aliases of aliases multiply a small file without limit
_LARGEST = 2**53  # larger integers change when they become floats, as on Pulumi's wire


_Event = Any  # an event of libyaml; the stubs lack the attributes of each kind


class UnreadableError(UserError):
    """Raised for a file that cannot be read or is not YAML. The message is one sentence with file, line and column."""


@dataclass
class Source:
    """A YAML file as plain values, with the position of every key and list item.

    ``findings`` are about values that parsers read differently, and about duplicate keys. ``written`` contains the
    original text of numbers that print differently, such as 1.30.
    """

    file: str
    value: Any = None
    positions: dict[Path, Position] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    written: dict[Path, str] = field(default_factory=dict)

    def position(self, path: Path) -> Position:
        """Return the position of a path, or of the nearest enclosing path in the file."""
        while path and path not in self.positions:
            path = path[:-1]
        return self.positions.get(path, Position(1, 1))

    def place(self, path: Path) -> Place:
        """Return a path of the file as a ``Place``, by which findings refer to their causes."""
        return (self.file, *map(str, path))

    def locate(self, field: Path) -> Anchor:
        """Return the file, position and path of a value, as findings need them."""
        return Anchor(file=self.file, position=self.position(field), path=dotted(field))


class SourceSection(NamedTuple):
    """A section of a file, and its stack if it has one. Findings about it have paths relative to the section."""

    source: Source
    below: Path = ()
    stack: str | None = None

    def place(self, path: Path) -> Place:
        """Return a path of the section as a ``Place``, by which findings refer to their causes."""
        return self.source.place((*self.below, *path))

    def locate(self, field: Path) -> Anchor:
        """Return the file, position and path of a value in the section, as findings need them."""
        position = self.source.position((*self.below, *field))
        return Anchor(stack=self.stack, file=self.source.file, position=position, path=dotted(field))


def read_source(path: FilePath, file: str) -> Source:
    """Read a YAML file. ``file`` is its name in findings, relative to the repository. Raises UnreadableError.

    A symbolic link that leaves the repository is refused, since messages could quote any file on the machine.
    """
    root = os.path.abspath(path).removesuffix(file)  # noqa: PTH100 # pathlib keeps `..`, or follows the link
    try:
        is_inside = path.resolve().is_relative_to(FilePath(root).resolve())
    except RuntimeError as error:
        raise UnreadableError(f"{file}: is a symbolic link to itself.") from error
    if root and not is_inside:
        raise UnreadableError(f"{file}: is a symbolic link to a place outside the repository.")
    try:
        if path.exists() and not path.is_file():
            raise UnreadableError(f"{file}: is not a regular file.")  # a pipe or a device may never end
        with path.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UnreadableError(f"{file}: is larger than {_MOST_BYTES // 2**20} MiB.")
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UnreadableError(f"{file}: cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{file}: is not UTF-8 text (byte {error.start}).") from error
    return parse_source(text, file)


def parse_source(text: str, file: str) -> Source:
    """Parse YAML text. Raises UnreadableError if it is not YAML, or if nesting or aliases are too deep.

    The parser reads libyaml's events one by one. libyaml itself would build its tree of nodes by recursion in C: deep
    nesting would crash the process, and parsing would take six times as long.
    """
    source = Source(file)
    try:
        source.value = Reader(source, yaml.parse(text, Loader=LOADER)).document()
    except yaml.MarkedYAMLError as error:
        position, why = why_not_yaml(text, error)
        prefix = ":".join(map(str, (file, *(position or ()))))
        if "nesting depth" in (error.problem or ""):  # the limit of PyYAML's own scanner, since 6.0.4
            raise UnreadableError(f"{prefix}: {_TOO_DEEP}.") from error
        raise UnreadableError(f"{prefix}: is not YAML: {why}.") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UnreadableError(f"{file}: is not YAML: {' '.join(str(error).split())}.") from error
    return source


def value_at(value: Any, path: Path) -> Any:
    """Return the value at a path of mapping keys, or None if the path does not exist."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


class Reader:
    """Converts YAML's events to values, and records their positions.

    An alias replays the events of its anchor, which ``anchors`` contains. ``sizes`` contains the number of these events
    after all aliases in them are expanded.
    """

    def __init__(self, source: Source, events: Iterator[_Event]) -> None:
        self.source = source
        self.events = events
        self.anchors: dict[str, list[_Event]] = {}
        self.sizes: dict[str, int] = {}
        self.open: list[str] = []  # anchors being read, the outermost first
        self.repeating = False
        self.repeated = 0

    def document(self) -> Any:
        """Return the value of the only document, or None if there is no document."""
        next(self.events)  # the stream's start
        if isinstance(next(self.events), yaml.StreamEndEvent):
            return None
        value = self.read(next(self.events), ())
        next(self.events)  # the document's end
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._not_yaml(after, "a second document starts here")
        return value

    def read(self, event: _Event, path: Path) -> Any:
        """Return the value that starts with an event."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        if event.anchor and not self.repeating:
            self._remember(event)
            return self._replay(event.anchor, path)
        return self._value(event, path)

    def _value(self, event: _Event, path: Path) -> Any:
        if len(path) > _DEEPEST:
            raise self._too_deep(event)
        self.source.positions.setdefault(path, _position(event))
        if _tag(event):
            self._report(path, event, f"has the tag {event.tag!r}; tags are not supported")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        if not isinstance(event, yaml.SequenceStartEvent):
            return self._scalar(event, path)
        values: list[Any] = []
        while not isinstance(entry := next(self.events), yaml.SequenceEndEvent):
            values.append(self.read(entry, (*path, len(values))))
        return values

    def _alias(self, event: _Event, path: Path) -> Any:
        name = event.anchor
        if name not in self.anchors:
            raise self._not_yaml(event, f"no anchor {name!r} precedes this alias")
        if not self.repeating:
            self.repeated += self.sizes[name]
        if name in self.open or self.repeated > _MOST_REPEATED:
            raise self._too_deep(event)
        outer_repeating = self.repeating
        self.repeating = True
        value = self._replay(name, path)
        self.repeating = outer_repeating
        return value

    def _replay(self, name: str, path: Path) -> Any:
        """Return the value of an anchor by replaying its events."""
        first, *following_events = self.anchors[name]
        outer_events = self.events
        self.events = iter(following_events)
        self.open.append(name)
        value = self._value(first, path)
        self.open.pop()
        self.events = outer_events
        return value

    def _remember(self, event: _Event) -> None:
        """Store an anchor's events, and their number after the expansion of aliases."""
        if event.anchor in self.anchors:
            raise self._not_yaml(event, f"the anchor {event.anchor!r} is given twice")
        events = self.anchors[event.anchor] = self._rest_of(event)
        aliases = [str(inner.anchor) for inner in events if isinstance(inner, yaml.AliasEvent)]
        self.sizes[event.anchor] = len(events) + sum(self.sizes.get(name, 0) for name in aliases)
        if self.sizes[event.anchor] > _MOST_REPEATED:
            raise self._too_deep(event)

    def _rest_of(self, event: _Event) -> list[_Event]:
        """Return an event followed by all events of its value."""
        events = [event]
        depth = int(isinstance(event, yaml.CollectionStartEvent))
        while depth:
            events.append(event := next(self.events))
            depth += int(isinstance(event, yaml.CollectionStartEvent)) - int(isinstance(event, yaml.CollectionEndEvent))
            if depth > _DEEPEST:
                raise self._too_deep(event)
        return events

    def _mapping(self, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(event)
            if key is None or key == "<<":
                message = "is not a plain key; merge keys and complex keys are not supported"
                allowed = "explicit keys, or an alias for a whole value"
                self._report((*path, key or "?"), event, message, allowed=allowed)
                self._rest_of(next(self.events))
                continue
            if _GROUP.fullmatch(key) and values and _is_integer(number := list(values.values())[-1]):
                message = f"the comma ends the number {number}, so {key} is read as another key"
                meant = f"{number}{key}"
                self._report(
                    (*path, list(values)[-1]), event, message, meant, "a number without commas between its digits"
                )
                self._rest_of(next(self.events))
                values[list(values)[-1]] = int(meant)  # to find no other mistake in it
                continue
            key_path = (*path, key)
            if key in values:
                first = self.source.positions[key_path]
                message = f"is given twice, first on line {first.line}"
                allowed = "each key only once, or another name for one of the two"
                places = (self.source.place(path), self.source.place(key_path))
                self._report(key_path, event, message, allowed=allowed, spoils=places)
                self._rest_of(next(self.events))
                continue
            self.source.positions[key_path] = _position(event)
            if _tag(event) or (not event.style and _is_another_key(key)):
                message = f"different YAML parsers read the unquoted key {key!r} differently"
                self._report(key_path, event, message, f'"{key}"')
            values[key] = self.read(next(self.events), key_path)
        return values

    def _key(self, event: _Event) -> str | None:
        """Return a plain key. For a list, a mapping or an alias, skip it and return None."""
        if not isinstance(event, yaml.ScalarEvent):
            self._rest_of(event)
            return None
        if event.anchor and not self.repeating:
            self._remember(event)
        return sys.intern(event.value)  # a few hundred names, in each of many files

    def _scalar(self, event: _Event, path: Path) -> Any:
        text = str(event.value)
        if event.style:  # quoted, or a block
            return text
        if text in _WORDS:
            return _WORDS[text]
        if not text.isascii() and (plain := _with_plain_characters(text)):
            odd = ODD_SPACE.search(text)
            fault = f"has {space_name(text)}" if odd else "has smart quotes"
            allowed = "ordinary spaces, or quotes around the string" if odd else "plain quotes"
            self._report(
                path, event, f"{fault}, which YAML reads as part of the string", plain if odd else f'"{plain}"', allowed
            )
            return plain
        if _AMBIGUOUS.match(text) or (_INT.match(text) and abs(int(text[:40])) > _LARGEST):
            self._report(path, event, f"different YAML parsers read the unquoted {text!r} differently", f'"{text}"')
            return text
        if _INT.match(text):
            return int(text)
        if not _FLOAT.match(text):
            return text
        number = float(text)
        value = int(number) if number.is_integer() else number  # the engine writes 1.0 as 1
        if str(value) != text:
            self.source.written[path] = text
        return value

    def _not_yaml(self, event: _Event, why: str) -> UnreadableError:
        line, column = _position(event)
        return UnreadableError(f"{self.source.file}:{line}:{column}: is not YAML: {why}.")

    def _too_deep(self, event: _Event) -> UnreadableError:
        line, column = _position(event)
        return UnreadableError(f"{self.source.file}:{line}:{column}: {_TOO_DEEP}.")

    def _report(
        self,
        path: Path,
        event: _Event,
        message: str,
        nearest: str | None = None,
        allowed: str = "a form that all YAML parsers read in the same way",
        *,
        spoils: tuple[Place, ...] = (),
    ) -> None:
        place = Anchor(file=self.source.file, position=_position(event))
        draft = finding(place, path, message, rule=STACK_YAML, allowed=allowed, nearest=nearest, spoils=spoils)
        self.source.findings += located([draft])


def _with_plain_characters(text: str) -> str | None:
    """Replace unusual spaces in an unquoted text and remove smart quotes around it. Return None if it has neither."""
    quoted = _SMART_QUOTES.fullmatch(text)
    plain = ODD_SPACE.sub(" ", quoted[1] if quoted else text).strip()
    return plain if plain != text else None


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_another_key(text: str) -> bool:
    """Return True if the engine parses a plain key as another type and changes its text: ``1.50``, ``~``, ``+1``."""
    number = _INT.match(text) and text != str(int(text[:40]))
    return bool(number or text in ("null", "~") or _AMBIGUOUS.match(text) or _FLOAT.match(text))


def _tag(event: _Event) -> bool:
    return bool(event.tag) and event.tag != "!"


def _position(event: _Event) -> Position:
    return _shared(event.start_mark.line + 1, event.start_mark.column + 1)


_shared = cache(Position)  # hundreds of files have values at the same positions


def whole_numbers(value: Any) -> Any:
    """Return a value with integers in place of integral floats at any depth: 8 for 8.0 in the wire format."""
    if isinstance(value, Mapping):
        return {key: whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
