"""Checks requests against the discovery documents: names, types, enum values, formats, required parameters.

Bodies are normalised like in Google's JSON parser for protobufs: snake_case names are accepted, null means absent,
64-bit integers become strings, and output-only fields are dropped. The messages are those of Google's APIs (general
knowledge).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, cast

from local_google_cloud.requests.discovery import Api, Method
from local_google_cloud.requests.errors import Refusal, bad_request
from training_platform.catalog.types import Json
from training_platform.config.reading.secrets import HIDDEN, can_be_secret, secrets_in
from training_platform.rules.documents.constraints import Constraint, Shape, ShapeKind
from training_platform.rules.documents.problems import BrokenConstraint
from training_platform.rules.documents.scalars import FORMS, WIDTHS, InputCheck, SoundValues, scalar

Violation = tuple[str, str]  # field, what is wrong

_KINDS: Final[Mapping[str, ShapeKind]] = {"boolean": "flag", "number": "number", "integer": "number", "string": "text"}
_OUTPUT_ONLY: Final = re.compile(r"^\W*output[- ]only", re.IGNORECASE)
_PAYLOAD: Final = "Invalid JSON payload received. "
# Output only in the documents, but clients send them back to identify what they change.
_SENT_BACK: Final = frozenset({"etag", "fingerprint", "name", "labelFingerprint", "kind", "id"})
# Numbers of the enums that skip some, by name; in all others the number is the index in the document's list. Source:
# accelerator_type.proto and custom_job.proto of google.cloud.aiplatform, read 2026-11-21.
_NUMBERS: Final[Mapping[str, int]] = {
    "FLEX_START": 6, "NVIDIA_TESLA_A100": 8, "NVIDIA_A100_80GB": 9, "NVIDIA_L4": 11, "NVIDIA_H100_80GB": 13,
    "NVIDIA_H100_MEGA_80GB": 14, "NVIDIA_H200_141GB": 15, "NVIDIA_B200": 16, "NVIDIA_GB200": 17,
    "NVIDIA_RTX_PRO_6000": 18, "TPU_V2": 6, "TPU_V3": 7, "TPU_V4_POD": 10, "TPU_V5_LITEPOD": 12,
}  # fmt: skip
_DEPTH: Final = 64
# Sent by the released gcp provider and accepted by Google, but in no document. Source: terraform-provider-google-beta,
# resource_compute_network.go and resource_compute_router_nat.go.
_UNDOCUMENTED: Final = frozenset({"deleteBgpAlwaysCompareMed", "initialNatIps"})


def read_body(api: Api, method: Method, body: Any) -> Json:
    """Return the normalised body of a request. Raises Refusal with every violation."""
    if method.request is None or body is None:
        if body:
            raise bad_request([("", f"{_PAYLOAD}{method.id} takes no body.")])
        return {}
    if not isinstance(body, dict):
        raise bad_request([("", f"{_PAYLOAD}Root element must be a message.")])
    reader = _BodyReader(api)
    read: Json = reader.read({"$ref": method.request}, body, "", 0)
    if reader.violations:
        raise bad_request(reader.violations)
    return read


def read_query(api: Api, method: Method, query: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the query parameters, converted to their types. Raises Refusal with every unknown or invalid parameter.

    The Refusal also lists required parameters that are missing.
    """
    values: dict[str, Any] = {}
    violations: list[Violation] = []
    for name, text in query:
        if name in api.common or name.startswith("$"):
            continue
        parameter = _query_parameter(method, name)
        if parameter is None:
            violations.append((name, f'{_PAYLOAD}Unknown name "{name}": Cannot bind query parameter.'))
            continue
        key, spec = parameter
        value, expected = _parse_parameter(spec, text)
        if expected:
            violations.append((key, f"Invalid value at '{key}' ({expected}), \"{text}\""))
        elif spec.get("repeated"):
            values.setdefault(key, []).append(value)
        else:
            values[key] = value
    for name, spec in method.parameters.items():
        if spec.get("required") and spec["location"] == "query" and name not in values:
            violations.append((name, f"Required parameter is missing: {name}"))
    if violations:
        raise bad_request(violations)
    return values


def check_path(method: Method, parameters: Mapping[str, str]) -> None:
    """Check the path parameters against their patterns. Raises Refusal."""
    for name, value in parameters.items():
        pattern = method.parameters.get(name, {}).get("pattern")
        if pattern and not re.search(pattern, value):
            raise Refusal(400, f"Invalid value for field '{name}': '{value}'. Must match the regex '{pattern}'")


def camel_case(name: str) -> str:
    """Return the JSON name of a protobuf field. ``snake_case`` names are accepted too."""
    first, *later_words = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in later_words)


def _query_parameter(method: Method, name: str) -> tuple[str, Json] | None:
    for key in (name, camel_case(name)):
        spec = method.parameters.get(key)
        if spec is not None and spec["location"] == "query":
            return key, spec
    return None


def _parse_parameter(spec: Json, text: str) -> tuple[Any, str]:
    """Return the value of a parameter. If the text is invalid, also return Google's name of the expected type."""
    kind = spec.get("type")
    form = spec.get("format", "")
    if kind == "boolean":
        # The provider sends `forceUpdateAccessRestriction=` with every change of a backup vault: empty means false.
        return text == "true", "" if text in ("true", "false", "") else "TYPE_BOOL"
    if kind in ("integer", "number") or form in WIDTHS:
        number = int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None
        return number, _mismatch(spec, number)
    if "enum" in spec and text not in spec["enum"]:
        return None, "TYPE_ENUM"
    return text, ""


class _BodyReader:
    def __init__(self, api: Api) -> None:
        self._api = api
        self.violations: list[Violation] = []

    def read(self, schema: Json, value: Any, path: str, depth: int) -> Any:
        kind = schema.get("type")
        if kind == "array":
            if not isinstance(value, list):
                return self._wrong(path, "a list", value)
            return [self.read(schema["items"], item, f"{path}[{i}]", depth) for i, item in enumerate(value)]
        if kind != "object" and "$ref" not in schema:
            return self._scalar(schema, value, path)
        if not isinstance(value, dict):
            return self._wrong(path, schema.get("$ref", "a map"), value)
        message = self._api.schemas[schema["$ref"]] if "$ref" in schema else schema
        bare = "$ref" not in schema and not {"properties", "additionalProperties"} & schema.keys()
        return value if bare else self._message(message, value, path, depth)

    def _message(self, schema: Json, value: Json, path: str, depth: int) -> Json:
        if depth > _DEPTH:
            self.violations.append((path, f"{_PAYLOAD}Nesting too deep."))
            return {}
        properties = schema.get("properties", {})
        additional = schema.get("additionalProperties")
        read: Json = {}
        for written, item in value.items():
            name = written if written in properties else camel_case(written)
            if name in properties:
                spec = properties[name]
                if item is not None and not (_output_only(spec) and name not in _SENT_BACK):
                    read[name] = self.read(spec, item, f"{path}.{name}" if path else name, depth + 1)
            elif additional is not None:
                read[written] = self.read(additional, item, f"{path}.{written}" if path else written, depth + 1)
            elif name not in _UNDOCUMENTED:
                where = f" at '{path}'" if path else ""
                self.violations.append((path, f'{_PAYLOAD}Unknown name "{written}"{where}: Cannot find field.'))
        return read

    def _scalar(self, schema: Json, value: Any, path: str) -> Any:
        """Read a scalar. Enum values may be numbers, and 64-bit integers become strings."""
        read = value
        hint = ""
        is_integer = schema.get("format") in WIDTHS
        if "enum" in schema and isinstance(value, int) and not isinstance(value, bool):
            # Documents have no numbers: the index in the list is right unless the enum skips numbers.
            names = {_NUMBERS.get(name, index): name for index, name in enumerate(schema["enum"])}
            read = names.get(value, value)
        elif "enum" in schema:
            hint = f"; allowed: {', '.join(name for name in schema['enum'] if not name.endswith('_UNSPECIFIED'))}"
        elif is_integer and (number := _integer(value)) is not None:
            read = number
        if expected := _mismatch(schema, read):
            return self._wrong(path, expected, value, hint)
        return str(read) if is_integer and schema["type"] == "string" else read

    def _wrong(self, path: str, expected: str, value: Any, hint: str = "") -> None:
        shown = f'"{value}"' if isinstance(value, str) else str(value)
        keys = tuple(re.split(r"[.\[\]]+", path))
        if can_be_secret(keys) or any(True for _ in secrets_in(value, keys)):
            shown = HIDDEN
        self.violations.append((path, f"Invalid value at '{path}' ({expected}), {shown[:200]}{hint}"))


def output_only(api: Api, ref: str) -> Iterator[str]:
    """Yield the output-only properties of a schema."""
    for name, spec in api.schemas[ref].get("properties", {}).items():
        if _output_only(spec) and name not in _SENT_BACK:
            yield name


def _output_only(spec: Json) -> bool:
    return bool(spec.get("readOnly")) or bool(_OUTPUT_ONLY.match(spec.get("description", "")))


def _integer(value: Any) -> int | None:
    """Return an integer that JSON represents as a number or a string, or None for any other value."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _mismatch(schema: Json, value: Any) -> str:
    """Return Google's name of the type that a scalar should have, or "" if it has this type."""
    kind = schema.get("type") or ""
    form = schema.get("format") or ""
    right, check = _type_check(kind, form, tuple(schema.get("enum", ())))
    problems: list[BrokenConstraint] = []
    if value.__class__ is not right:
        check(value, (), problems.append)
    if not problems:
        return ""
    if "enum" in schema:
        return "TYPE_ENUM"
    if kind == "boolean":
        return "TYPE_BOOL"
    if kind == "string" and form not in WIDTHS and not isinstance(value, str):
        return "TYPE_STRING"
    return f"TYPE_{(form or kind).upper().replace('-', '_')}"


@cache
def _type_check(kind: str, form: str, values: tuple[str, ...]) -> tuple[SoundValues, InputCheck]:
    shape = Shape(kind=_KINDS.get(kind, "any"))
    if values:
        shape = Shape(kind="text", limits=Constraint(enum=["", *values]))
    elif form in WIDTHS:
        shape = Shape(kind=cast("ShapeKind", form))
    elif kind == "string" and form in FORMS:
        shape = Shape(kind="text", limits=Constraint(format="google-byte" if form == "byte" else form))
    return scalar(shape, strict=True)
