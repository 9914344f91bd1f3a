"""YAML with positions, read as the Pulumi engine reads it.

The engine (a Go YAML library) and PyYAML disagree on scalars such as ``yes``, ``0777``, ``1_000`` and dates. Here only
``true`` and ``false`` are booleans, numbers are decimal, and a plain scalar that the two readings could see
differently is a finding that asks for quotes, so that both always see the same value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from training_platform.config.reading.finding import Finding, Path, Position, dotted

_Base: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # libyaml is 5 times as fast, and not in every wheel
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
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
_DEEPEST = 60  # levels; our deepest stack file has 8
_LARGEST = 2**53  # a whole number beyond it is another number once it has been a float, as it is on Pulumi's wire


class UnreadableError(Exception):
    """A file that cannot be read or is not YAML; the message is one sentence with file, line and column."""


@dataclass
class Source:
    """A YAML file as plain values, with the place of every key and list item.

    ``findings`` holds what the file says that two readers would read differently, and keys given twice.
    """

    file: str
    value: Any = None
    positions: dict[Path, Position] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def position(self, path: Path) -> Position:
        """Return the place of a path, or of the nearest enclosing one that the file has."""
        while path and path not in self.positions:
            path = path[:-1]
        return self.positions.get(path, Position(1, 1))


def read_source(path: FilePath, file: str) -> Source:
    """Read a YAML file; ``file`` is the name that findings carry. Raises UnreadableError."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UnreadableError(f"{file}: cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{file}: is not UTF-8 text (byte {error.start}).") from error
    return parse_source(text, file)


def parse_source(text: str, file: str) -> Source:
    """Parse YAML text. Raises UnreadableError where it is not YAML, or nested without end."""
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UnreadableError(f"{file}{place}: is not YAML: {error.problem or error.context}.") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UnreadableError(f"{file}: is not YAML: {' '.join(str(error).split())}.") from error
    source = Source(file)
    if node is not None:
        source.value = _Reader(source).read(node, ())
    return source


def value_at(value: Any, path: Path) -> Any:
    """Return what stands at a path of mappings inside a file's value, None where nothing does."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


class _Reader:
    """Turns YAML nodes into values, noting the place of each."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.budget = 2_000_000  # values; aliases of aliases can multiply a small file beyond any memory

    def read(self, node: yaml.Node, path: Path) -> Any:
        self.budget -= 1
        if len(path) > _DEEPEST or self.budget < 0:
            raise UnreadableError(f"{self.source.file}: is nested or repeated too deeply at {dotted(path)[:80]}.")
        self.source.positions.setdefault(path, _position(node))
        if node.tag:
            self._find(path, node, f"has the tag {node.tag!r}; tags are not read")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None or key == "<<":
                self._find(
                    (*path, str(key or "?")), key_node, "is no plain key; merge keys and complex keys are not read"
                )
                continue
            if key in values:
                first = self.source.positions[(*path, key)]
                self._find((*path, key), key_node, f"is given twice, first on line {first.line}")
                continue
            self.source.positions[(*path, key)] = _position(key_node)
            if key_node.tag or (not key_node.style and _is_another_key(key)):
                message = f"the key {key!r} without quotes is read differently by different readers"
                self._find((*path, key), key_node, message, f'"{key}"')
            values[key] = self.read(value_node, (*path, key))
        return values

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        text = str(node.value)
        if not isinstance(node, yaml.ScalarNode) or node.style:  # quoted, or a block
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _AMBIGUOUS.match(text) or (_INT.match(text) and abs(int(text[:40])) > _LARGEST):
            self._find(path, node, f"{text!r} without quotes is read differently by different readers", f'"{text}"')
            return text
        if _INT.match(text):
            return int(text)
        if not _FLOAT.match(text):
            return text
        number = float(text)
        return int(number) if number.is_integer() else number  # the engine writes 1.0 as 1

    def _find(self, path: Path, node: yaml.Node, message: str, nearest: str | None = None) -> None:
        finding = Finding(
            rule="stack-yaml", severity="error", message=message, file=self.source.file,
            position=_position(node), path=dotted(path), allowed="one plain reading", nearest=nearest,
        )  # fmt: skip
        self.source.findings.append(finding)


class _Loader(_Base):  # type: ignore[misc] # it is one of two classes, and mypy cannot say which
    """Resolves nothing, so that a node has a tag only where the file writes one."""

    def resolve(self, _kind: type[yaml.Node], _value: object, _implicit: object) -> str:
        return ""


def _is_another_key(text: str) -> bool:
    """Return whether the engine takes a plain key for more than text and spells it anew: ``1.50``, ``~``, ``+1``."""
    number = _INT.match(text) and text != str(int(text[:40]))
    return bool(number or text in ("null", "~") or _AMBIGUOUS.match(text) or _FLOAT.match(text))


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)
