"""The checks that Terraform's provider for Google Cloud makes on inputs before it calls an API, read from its source.

Pulumi's provider is built on it and makes the same checks. It refuses values that are not in an enum, exceed bounds or
do not match a pattern, and inputs that exclude one another. Only these facts are kept, under Pulumi's names of the
inputs.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_origin

from pulumi import _types

from tools.documents.google import Block, block, resource
from training_platform.catalog.reading import table
from training_platform.catalog.types import Json

Rows = dict[str, dict[str, Any]]
SOURCE = {"terraform-provider-google-beta": "93c65b2d60fea598528f2769b5b09de856f8cb8c, of 2026-08-21"}
_TABLE: Mapping[str, Mapping[str, Any]] = table(__file__, "provider_schemas.yaml")
LISTED = re.compile(r"(?:Possible values are:|Each value may be one of:) *((?:`[\w-]+`(?:, )?)+)")
_RESOURCE = r"^func Resource\w+\(\) \*schema\.Resource \{.*?return &schema\.Resource"
_GRANTED = r"^var \w+ = (?=map\[string\]\*schema\.Schema)"  # of grants: of what the role is


class SchemaBlock(NamedTuple):
    """A block of a schema: its inputs in Pulumi, its path in Pulumi, and its path in Terraform's schema."""

    inputs: Block
    path: str
    names: tuple[str, ...]


class Provider:
    """The provider's source: a folder with a subfolder for each service."""

    def __init__(self, services: Path) -> None:
        self._services = services

    def rows(self, token: str) -> Rows:
        """Return the checks on a resource type, keyed by path; empty if the source does not contain the resource."""
        module, _, name = token.removeprefix("gcp:").partition("/")
        file_name = f"{module}{name.partition(':')[2]}".lower()
        for pulumi_name, terraform_name in _TABLE["files"].items():
            file_name = file_name.replace(pulumi_name, terraform_name)
        file = self._files.get(re.sub(r"iam(member|binding|auditconfig)$", "iam", file_name))
        if file is None:
            return {}
        rows: Rows = defaultdict(dict)
        source = _Package(file.parent)
        _read(source.resource(file), SchemaBlock(resource(token), "", names=()), rows, source)
        return {path: row for path, row in sorted(rows.items()) if row}

    @cached_property
    def _files(self) -> dict[str, Path]:
        files = [file for file in sorted(self._services.glob("*/*.go")) if not file.stem.endswith("_test")]
        resources = {
            file.stem.removeprefix("resource_").replace("_", ""): file for file in files
            if file.stem.startswith("resource_")
        }  # fmt: skip
        grants = {f"{file.stem[4:]}_iam".replace("_", ""): file for file in files if file.stem.startswith("iam_")}
        return resources | grants


class _Package:
    """The Go files of one service. A name may be defined in any of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _text(self) -> str:
        files = sorted(file for file in self._folder.glob("*.go") if not file.stem.endswith("_test"))
        return "\n".join(file.read_text(encoding="utf-8") for file in files)

    def resource(self, file: Path) -> Json:
        """Return the schema of the resource that a file defines."""
        text = file.read_text(encoding="utf-8")
        if file.stem.startswith("iam_"):
            granted = re.search(_GRANTED, text, re.MULTILINE)
            return self.schema(Literal(text, granted.end()).value()) if granted else {}
        start = re.search(_RESOURCE, text, re.MULTILINE | re.DOTALL)
        literal = Literal(text, start.end()).value() if start else {}
        return self.schema(literal.get("Schema"))

    def schema(self, value: Any) -> Json:
        """Return the inputs that a schema defines. It may be a literal, a named value, or merged from others."""
        value = self.known(value)
        if isinstance(value, GoCall) and value.name.endswith("MergeSchemas"):
            return {name: entry for part in value.arguments for name, entry in self.schema(part).items()}
        return dict(value) if isinstance(value, Mapping) else {}

    def known(self, value: Any) -> Any:
        """Return the value to which a name refers, or the result of a function of the package without conditions."""
        if isinstance(value, Name) and re.fullmatch(r"\w+", value.name):
            return self._literal(rf"^(?:var|\t)?\s*{value.name}\s*:?=\s*(?=[\[&m])") or value
        if isinstance(value, GoCall) and re.fullmatch(r"\w+", value.name):
            return self._literal(rf"^func {value.name}\([^)]*\)[^\n]*\{{\n(?:(?!^\}}).)*?return (?=[&m])") or value
        return value

    def _literal(self, pattern: str) -> Any:
        start = re.search(pattern, self._text, re.MULTILINE | re.DOTALL)
        return Literal(self._text, start.end()).value() if start else None


def _read(schema: Json, place: SchemaBlock, rows: Rows, source: _Package) -> None:
    for name, definition in schema.items():
        attributes = source.known(definition)
        wire = _wire(name, place.inputs)
        if wire is None or not isinstance(attributes, Mapping):
            continue
        path = f"{place.path}.{wire}".removeprefix(".")
        kind = _types.unwrap_type(place.inputs.inputs[wire])
        origin = get_origin(kind)
        many = isinstance(origin, type) and not issubclass(origin, Mapping)
        if many:
            bounds = {"minItems": attributes.get("MinItems"), "maxItems": attributes.get("MaxItems")}
            rows[path] |= {name: bound for name, bound in bounds.items() if isinstance(bound, int)}
        docs = place.inputs.docs.get(wire, "")
        rows[path] |= _as_listed(_facts(attributes.get("ValidateFunc"), source), docs)
        rows[f"{path}[]" if many else path] |= _alike(attributes)
        for word, group in _groups(attributes, name, place, source):
            groups = rows[place.path].setdefault(word, [])
            if group not in groups:
                groups.append(group)
        required_names = source.known(attributes.get("RequiredWith")) or ()
        paths = [tuple(other.split(".0.")) for other in required_names if isinstance(other, str)]
        wires = [_wire(path[-1], place.inputs) for path in paths if path[:-1] == place.names and path[-1] != name]
        if required := list(filter(None, wires)):
            rows[place.path].setdefault("cases", []).append({"when": {wire: ["<written>"]}, "required": required})
        inner = _types.unwrap_type(get_args(kind)[-1]) if get_args(kind) else kind
        element = source.known(attributes.get("Elem"))
        if not isinstance(element, Mapping):
            continue
        entry = f"{path}[]" if many else path
        if _types.is_input_type(inner):
            _read(
                source.schema(element.get("Schema")),
                SchemaBlock(block(inner), entry, names=(*place.names, name)),
                rows,
                source,
            )
        elif many:
            rows[entry] |= _as_listed(_facts(element.get("ValidateFunc"), source), docs) | _alike(element)


def _wire(name: str, inputs: Block) -> str | None:
    """Return Pulumi's name of an input, which may differ in letter case and may be plural."""
    plain = name.replace("_", "").lower()
    spellings = (plain, f"{plain}s", f"{plain}es", f"{plain.removesuffix('y')}ies")
    return next((key for key in inputs.inputs if key.lower() in spellings), None)


def _groups(
    attributes: Mapping[str, Any], name: str, place: SchemaBlock, source: _Package
) -> Iterator[tuple[str, list[str]]]:
    """Yield each group of inputs that exclude or require one another, if all of them are in the same block."""
    for attribute, word in _TABLE["groups"].items():
        names = source.known(attributes.get(attribute)) or []
        paths = [tuple(path.split(".0.")) for path in names if isinstance(path, str)]
        if not paths or len(paths) != len(names) or any(path[:-1] != place.names for path in paths):
            continue
        this_input = _wire(name, place.inputs)
        members = {_wire(path[-1], place.inputs) for path in paths} | {this_input}
        if attribute != "ConflictsWith":
            yield word, sorted(filter(None, members))
        elif this_input:
            yield from ((word, sorted((this_input, other))) for other in sorted(filter(None, members - {this_input})))


def _as_listed(facts: dict[str, Any], docs: str) -> dict[str, Any]:
    """Return an enum extended by the values that the pinned SDK's docs add. It is closed if the docs name all values.

    The source is older than the SDK. If the docs do not name all values, the list may have changed, so the enum stays
    open, which means that other values are accepted.
    """
    if "enum" not in facts:
        return facts
    words = set(re.findall(r"(?<![\w-])[\w-]+(?![\w-])", docs))
    named = {value for value in facts["enum"] if "UNSPECIFIED" not in value}
    listed = set(re.findall(r"`([\w-]+)`", "".join(LISTED.findall(docs))))
    return {"enum": sorted({*facts["enum"], *listed}), "closed": named <= words}


def _alike(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the differences between two strings that the provider ignores, or nothing for a block."""
    same = attributes.get("DiffSuppressFunc")
    word = _TABLE["alike"].get(same.name.rpartition(".")[2]) if isinstance(same, Name) else None
    is_text = isinstance(kind := attributes.get("Type"), Name) and kind.name.endswith("TypeString")
    return {"alike": word} if word and is_text and not (word == "case" and "ValidateFunc" in attributes) else {}


def close_alike(types: dict[str, Rows]) -> None:
    """Close each enum whose values are documented at a longer path with the same end.

    For example, a node pool has the same blocks as its cluster, but with shorter docs.
    """
    documented = [
        (token.partition("/")[0], f".{path}", row["enum"])
        for token, rows in types.items() for path, row in rows.items() if row.get("closed")
    ]  # fmt: skip
    for token, rows in types.items():
        module = token.partition("/")[0]
        for path, row in rows.items():
            if not row.get("closed", True):
                row["closed"] = any(
                    module == other and end.endswith(f".{path}") and values == row["enum"]
                    for other, end, values in documented
                )


def _facts(check: Any, source: _Package) -> dict[str, Any]:
    """Return the facts that a check of a value implies, or nothing if the check is Go code without a known name."""
    if not isinstance(check, (GoCall, Name)):
        return {}
    word = check.name.rpartition(".")[2]
    if word in _TABLE["words"]:
        return dict(_TABLE["words"][word])
    if isinstance(check, Name):
        return {}
    arguments = check.arguments
    if word == "OrEmpty":
        return _facts(arguments[0], source)
    if word == "ValidateRFC1035Name":
        return {"pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "minLength": arguments[0], "maxLength": arguments[1]}
    if word in ("ValidateEnum", "StringInSlice") and arguments[1:] != [True]:
        values = source.known(arguments[0])
        texts = [text for text in values if isinstance(text, str) and text] if isinstance(values, Sequence) else []
        return {"enum": sorted(set(texts))} if texts and len(texts) >= len(values) - 1 else {}
    if word in _TABLE["bounds"]:
        numbers = zip(_TABLE["bounds"][word], arguments, strict=False)
        return {name: number for name, number in numbers if isinstance(number, (int, float))}
    if word in ("ValidateRegexp", "StringMatch", "MustCompile"):
        pattern = arguments[0]
        if isinstance(pattern, GoCall):
            return _facts(pattern, source)
        whole = isinstance(pattern, str) and pattern.startswith("^") and pattern.endswith("$")
        return {"pattern": pattern} if whole and "[:" not in pattern and r"\p" not in pattern else {}
    return {}


_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<raw>`[^`]*`)|(?P<text>"(?:\\.|[^"\\])*")|(?P<number>-?\d+(?:\.\d+)?)"""
    r"""|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>:=|.)""",
    re.DOTALL,
)
_PAIRS: Final = {"(": ")", "{": "}", "[": "]"}


class Name(NamedTuple):
    """The name of a constant, a variable or a function."""

    name: str


class GoCall(NamedTuple):
    """A function call with its arguments."""

    name: str
    arguments: list[Any]


class Literal:
    """Reads one value of a Go source, starting at a position."""

    def __init__(self, source: str, start: int) -> None:
        self._source = source
        self._place = start
        self._token: re.Match[str] | None = None
        self._next()

    def value(self) -> Any:
        """Return the value at the current position, and skip the remainder of its expression."""
        while self._is("&") or self._is("*"):
            self._next()
        operand = self._operand()
        while self._token and not any(self._is(end) for end in ",)}]:"):
            if self._is("(") or self._is("{") or self._is("["):
                self._skip()
            else:
                self._next()
        return operand

    def _operand(self) -> Any:
        if self._token is None:
            return None
        if self._token["raw"] or self._token["text"]:
            return self._text()
        if number := self._token["number"]:
            self._next()
            return float(number) if "." in number else int(number)
        if self._is("["):
            self._type()
        elif self._is("{"):
            return self._block()
        elif name := self._token["name"]:
            return self._named(name)
        if self._is("{"):
            return self._block()
        self._next()
        return None

    def _named(self, name: str) -> Any:
        self._next()
        if name == "map":
            self._type()
            return self._block()
        if name == "func":
            while self._token and not self._is("{"):
                self._skip() if self._is("(") else self._next()
            self._skip()
            return Name(name)
        if self._is("("):
            return GoCall(name, self._entries(")", self.value))
        if self._is("{"):
            return self._block()
        return {"true": True, "false": False}.get(name, Name(name))

    def _text(self) -> str:
        written = self._token[0] if self._token else ""
        self._next()
        return written[1:-1] if written.startswith("`") else str(json.loads(written))

    def _type(self) -> None:
        """Skip the type before a literal: ``[]string``, ``[string]*schema.Schema``."""
        while self._token and not self._is("{"):
            self._next()

    def _block(self) -> Any:
        rows = self._entries("}", self._entry)
        return {key: value for key, value in rows if key is not None} if any(row[0] for row in rows) else [
            value for _, value in rows
        ]  # fmt: skip

    def _entry(self) -> tuple[Any, Any]:
        first = self.value()
        if not self._is(":"):
            return None, first
        self._next()
        return first.name if isinstance(first, Name) else first, self.value()

    def _entries(self, end: str, read: Callable[[], Any]) -> list[Any]:
        self._next()
        entries = []
        while self._token and not self._is(end):
            entries.append(read())
            if self._is(","):
                self._next()
        self._next()
        return entries

    def _skip(self) -> None:
        """Skip the content of a pair of brackets."""
        opened = self._token[0] if self._token else ""
        depth = 0
        while self._token:
            depth += self._is(opened)
            depth -= self._is(_PAIRS.get(opened, ""))
            self._next()
            if not depth:
                return

    def _is(self, sign: str) -> bool:
        return self._token is not None and self._token["sign"] == sign

    def _next(self) -> None:
        while self._place < len(self._source):
            token = _TOKEN.match(self._source, self._place)
            assert token is not None
            self._place = token.end()
            if token.lastgroup:
                self._token = token
                return
        self._token = None
