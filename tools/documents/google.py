"""Documents of Google's resources: the provider's inputs, each with the facts from its API's discovery document.

``resources.rest.fields`` finds the field of an input. For an input without a field, ``paths.yaml`` gives the reason.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_origin

import pulumi_gcp
from pulumi import _types

from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.resources.api_fields import DocumentField, field_of, map_values, paths, root
from training_platform.rules.documents.constraints import ANY, Constraint, Shape, ShapeKind, constraint
from training_platform.rules.documents.openapi import counts, limits

PATHS: Json = table(__file__, "paths.yaml")
_OUTPUT = frozenset(PATHS["output"])
_WIDTHS: Mapping[str, tuple[ShapeKind, Mapping[str, int]]] = {
    "int32": ("int32", {}), "int64": ("int64", {}), "uint32": ("int64", {"minimum": 0, "maximum": 2**32 - 1}),
    "uint64": ("int64", {"minimum": 0}),
}  # fmt: skip


class TypeReader:
    """Reads the structure of resource types as ``Shape``.

    ``missing`` collects inputs without a field in the API, ``output`` collects inputs whose field is output-only in the
    document, and ``used`` collects renamed inputs. Each entry consists of a message and an input:
    ``container.NodePool.cluster``.
    """

    def __init__(self) -> None:
        self.missing: set[str] = set()
        self.output: set[str] = set()
        self.used: set[str] = set()

    def type(self, token: str) -> Shape:
        """Return the shape of a resource type."""
        return self._block(resource(token), root(token))

    def _block(self, inputs: Block, field: DocumentField | None) -> Shape:
        fields = {}
        for name in sorted(inputs.inputs):
            place = f"{field.message}.{name}" if field else name
            api_field = self._field(name, field)
            is_output = place in _OUTPUT
            fields[name] = Shape(kind="output") if is_output else self._described(inputs, name, api_field)
        row = {"required": inputs.required} if inputs.required else {}
        return Shape(kind="block", fields=fields, limits=constraint(row))

    def _field(self, name: str, field: DocumentField | None) -> DocumentField | None:
        if field is None:
            return None
        message = field.message
        if name in paths()["names"].get(message, {}):
            self.used.add(f"{message}.{name}")
        place = field_of(name, field)
        if place is None:
            self.missing.add(f"{message}.{name}")
            return None
        if place.field.output_only:
            self.output.add(f"{message}.{name}")
        return place.field

    def _described(self, inputs: Block, name: str, field: DocumentField | None) -> Shape:
        """Return the shape of an input, with facts from descriptions. The API's facts override the provider's."""
        shape = self._value(inputs.inputs[name], field)
        kind = {"map": "list", "int32": "number", "int64": "number"}.get(shape.kind, shape.kind)
        if kind not in ("list", "number", "text") or shape.limits.enum is not None:
            return shape
        texts = (inputs.docs.get(name, ""), field.schema.get("description", "") if field else "")
        facts = constraint(prose_facts(kind, texts, shape.limits)).words()
        return replace(shape, limits=shape.limits._replace(**facts))

    def _value(self, kind: Any, field: DocumentField | None) -> Shape:
        kind = _types.unwrap_type(kind)
        origin = get_origin(kind)
        inner = get_args(kind)
        schema = field.schema if field else {}
        if origin in (Sequence, list) or (isinstance(origin, type) and issubclass(origin, Sequence)):
            entry = (
                DocumentField(schema.get("items") or map_values(schema) or schema, field.document) if field else None
            )
            return Shape(kind="list", entry=self._value(inner[0], entry), limits=constraint(counts(schema)))
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return Shape(kind="map", entry=self._value(inner[1], None))
        if _types.is_input_type(kind):
            return self._block(block(kind), field)
        while schema.get("type") == "array":  # an entry of a list of which the provider takes a single entry
            schema = schema["items"]
        return _scalar(kind, schema)


def _scalar(kind: Any, schema: Mapping[str, Any]) -> Shape:
    if kind is bool:
        return Shape(kind="flag")
    width = schema.get("format", "")
    if kind is int or (kind is str and width in _WIDTHS):
        name, bounds = _WIDTHS.get(width, _WIDTHS["int32"])
        return Shape(kind=name, limits=constraint({**bounds, **limits(schema)}))
    if kind is float:
        return Shape(kind="number", limits=constraint(limits(schema)))
    if kind is not str:
        return ANY
    row: Mapping[str, Any] = {}
    if "enum" in schema:
        row = {"enum": sorted(schema["enum"])}
    elif schema.get("type") == "string":
        row = limits(schema)
    return Shape(kind="text", limits=constraint(row))


def source() -> dict[str, str]:
    """Return the sources and their versions, keyed by source."""
    return {package: version(package) for package in ("google-api-python-client", "pulumi-gcp")}


_NUMBER: Final = r"(?:<code>)?[`\[(+]*(-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?)`?(?!,[0-9]{3}|\.?[0-9])"
_UNIT: Final = r"(?: ?(?:hours?|minutes|days?|\([^)]*\)))?"  # the unit that the input counts, repeated
_OTHER: Final = r"(?!\]? ?(?:%|\*|[KMGT]i?B|characters|bytes|UTF|Unicode|total))"  # what counts something else
_CHARACTERS: Final = r" ?(?:Unicode |UTF-8 )?(?:characters|chars|bytes)\b"
_UP_TO: Final = (
    r"(?:more than|(?:may|must|should|does|can) ?not exceed|limited to|up to|at (?:the )?most|"
    r"max(?:imum)?(?: size| length)?(?: allowed)?(?: [^.;]{0,50}?)?(?: is| of)?|(?:no|be) longer than|length <|<=|"
    r"less than or equal to)"
)
_WITHIN: Final = (
    r"\b(?:must|value|values|integer|range|Validation)\b[^.;]*?\b(?:between|from|range|in|are)(?: the)?(?: range)?"
    rf"(?: of| is)?(?: from)?:? ?{_NUMBER}{_UNIT} ?(?:to|and|,|-|through) ?{_NUMBER}{_OTHER}"
)
_BOTH: Final = (
    rf"(?:>=|greater than or equal to|at least) ?{_NUMBER}{_UNIT},? and (?:must be )?"
    rf"(?:<=|less than or equal to) ?{_NUMBER}{_OTHER}"
)
_LEAST: Final = (
    r"(?:minimum (?:allowed |lifetime )?value is|cannot be less than|must (?:be )?greater than or equal to|must be >=) "
    rf"{_NUMBER}{_OTHER}(?! (?:hour|minute|day))"
)
_MOST: Final = rf"maximum (?:allowed value|value allowed) is[^0-9.;]*{_NUMBER}(?!\.)s?{_OTHER}"
_ENTRIES: Final = (
    rf"\b(?:up to|at (?:the )?most|a maximum of|no more than|limited to|limit is) {_NUMBER}{_OTHER}"  # readable: words
)
_RULES: Final[Mapping[str, tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]]] = {
    kind: tuple((re.compile(pattern, re.IGNORECASE), names) for pattern, names in rows)
    for kind, rows in {
        "number": (
            (_WITHIN, ("minimum", "maximum")),
            (rf"\brange is ?{_NUMBER}(?:,| to) ?{_NUMBER}{_OTHER}", ("minimum", "maximum")),
            (rf"(?:^|\) ?)(?:between|range:) {_NUMBER} ?(?:to|and|,) ?{_NUMBER}{_OTHER}", ("minimum", "maximum")),
            (_BOTH, ("minimum", "maximum")),
            (rf"minimum value[^.;]*? is {_NUMBER} and the maximum value is {_NUMBER}{_OTHER}", ("minimum", "maximum")),
            (_MOST, ("maximum",)),
            (_LEAST, ("minimum",)),
        ),
        "text": (
            (rf"(?:between )?\b([0-9]+)(?:-| and | to )([0-9]+){_CHARACTERS}", ("minLength", "maxLength")),
            (rf"\b{_UP_TO} {_NUMBER}{_CHARACTERS}", ("maxLength",)),
            (rf"\b{_NUMBER}{_CHARACTERS} or (?:less|fewer)", ("maxLength",)),
        ),
        "list": ((_ENTRIES, ("maxItems",)),),
    }.items()
}
SENTENCE_END: Final = re.compile(r"(?<=[.!])\s+(?=[A-Z*`(-])|(?<=[a-z])\.(?=[A-Z])|(?<=:)\s+(?=[-*])")
_SOMETIMES: Final = re.compile(
    r"\b(?:if (?!set\b|specified\b)|when |whe(?:n|re)ver |for (?!this field|the year)|depending|recommend|custom |"
    r"approximately|valid values? (?:are|is) \S+,|by default|resulting name|unless|minimum \(default\)|API may|"
    r"or a valid|typically)",
    re.IGNORECASE,
)
# Older than what the API takes: IOPS of Hyperdisks begin at 3,000, and a cluster has up to 100 authorized networks.
_OUTDATED: Final = ("between 10,000 and 120,000", "up to 10 external networks")
_ZERO_IS_UNSET: Final = re.compile(r"\bIf 0 or not set\b", re.IGNORECASE)
_PATH: Final = re.compile(r"Format: `?projects/")  # beside a name alone, whose length is told
_LABEL: Final = re.compile(r"1-63 characters(?: long)?,? and comply with ?\[?RFC ?1035", re.IGNORECASE)


def prose_facts(kind: str, texts: Sequence[str], present: Constraint) -> dict[str, Any]:
    """Return the bounds and patterns that the descriptions of an input state. Later descriptions win."""
    if kind == "text" and (present.pattern is not None or any(map(_PATH.search, texts))):
        return {}
    facts: dict[str, Any] = {}
    for sentence in (part for text in texts for part in SENTENCE_END.split(re.sub(r"\s+", " ", text))):
        if not _SOMETIMES.search(sentence) and not any(words in sentence for words in _OUTDATED):
            facts |= _facts(kind, sentence)
    if "minimum" in facts and any(map(_ZERO_IS_UNSET.search, texts)):
        facts["minimum"] = min(facts["minimum"], 0)
    return {name: value for name, value in facts.items() if (name, value) != ("minLength", 1)}  # empty is not written


def _facts(kind: str, sentence: str) -> dict[str, Any]:
    if kind == "text" and _LABEL.search(sentence):
        return {"pattern": "^([a-z]([-a-z0-9]{0,61}[a-z0-9])?)?$"}
    for pattern, names in _RULES[kind]:
        if match := pattern.search(sentence):
            octal = "(octal)" in sentence
            numbers = [int(text, 8) if octal else float(text.replace(",", "")) for text in match.groups()]
            bounds = {name: n if n % 1 else int(n) for name, n in zip(names, numbers, strict=True)}
            if re.search(r"\bor 0\b", sentence) and "minimum" in bounds:
                bounds["minimum"] = 0
            return bounds
    return {}


_PARAMETER = re.compile(r":param [^\n]*? (\w+): (.*?)(?=\n\s*:param |\Z)", re.DOTALL)


class Block(NamedTuple):
    """A block of inputs: the type and docs of each input, keyed by its wire name, and the required inputs."""

    name: str
    inputs: dict[str, Any]
    required: list[str]
    docs: dict[str, str]


def tokens() -> Iterable[str]:
    """Return every resource type of the provider."""
    return _classes().keys()


def arguments(token: str) -> type:
    """Return the provider's class that contains the arguments of a resource type."""
    module, name = _classes()[token].split(".")
    args: type = getattr(importlib.import_module(f"pulumi_gcp.{module}"), f"{name}Args")
    return args


def resource(token: str) -> Block:
    """Return the inputs of a resource type."""
    return block(arguments(token))


@cache
def block(args: type) -> Block:
    """Return the inputs that a class of arguments defines."""
    wire = _types.input_type_py_to_pulumi_names(args)
    parameters = inspect.signature(args.__init__).parameters  # type: ignore[misc] # of the class, not of an instance
    required = [wire[name] for name, entry in parameters.items() if name in wire and entry.default is entry.empty]
    docs = {wire[name]: text for name, text in _PARAMETER.findall(inspect.getdoc(args.__init__) or "") if name in wire}  # type: ignore[misc]
    return Block(
        args.__name__.removesuffix("Args"), _types.input_type_types(args), required=sorted(required), docs=docs
    )


@cache
def _classes() -> dict[str, str]:
    text = Path(pulumi_gcp.__file__).read_text(encoding="utf-8")
    return {token: f"{module}.{name}" for token, module, name in re.findall(r'"(gcp:(\w+)/\w+:\w+)": "(\w+)"', text)}
