"""Requests against the discovery documents: unknown names, wrong types, enum values, formats, required parameters.

A body is normalised as Google's JSON reading of protobufs does it: snake_case names are taken, null is absence, 64-bit
integers become texts, and what the document calls output only is dropped. Wordings: answers of Google's APIs to such
bodies, general knowledge.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from training_platform.catalog.types import Json
from training_platform.resources.spelling import camel_case
from training_platform.sandbox.cloud.requests.discovery import Api, Method
from training_platform.sandbox.cloud.requests.errors import ApiError, bad_request

Violation = tuple[str, str]  # field, what is wrong

_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
_DURATION: Final = re.compile(r"-?[0-9]+(\.[0-9]{1,9})?s")
_OUTPUT_ONLY: Final = re.compile(r"^\W*output[- ]only", re.IGNORECASE)
_PAYLOAD: Final = "Invalid JSON payload received. "
# Output only in the documents, and yet sent back by clients to name what they change.
_KEPT: Final = frozenset({"etag", "fingerprint", "name", "labelFingerprint", "kind", "id"})
# The numbers of enums that skip some, by name; of all others the number is the place in the document's list. Source:
# accelerator_type.proto and custom_job.proto of google.cloud.aiplatform, read 2026-11-21.
_NUMBERS: Final[Mapping[str, int]] = {
    "FLEX_START": 6, "NVIDIA_TESLA_A100": 8, "NVIDIA_A100_80GB": 9, "NVIDIA_L4": 11, "NVIDIA_H100_80GB": 13,
    "NVIDIA_H100_MEGA_80GB": 14, "NVIDIA_H200_141GB": 15, "NVIDIA_B200": 16, "NVIDIA_GB200": 17,
    "NVIDIA_RTX_PRO_6000": 18, "TPU_V2": 6, "TPU_V3": 7, "TPU_V4_POD": 10, "TPU_V5_LITEPOD": 12,
}  # fmt: skip
_DEPTH: Final = 64
# Sent by the released gcp provider and taken by Google, though no document has them. Source: terraform-provider-google-
# beta, resource_compute_network.go and resource_compute_router_nat.go.
_UNDOCUMENTED: Final = frozenset({"deleteBgpAlwaysCompareMed", "initialNatIps"})


def read_body(api: Api, method: Method, body: Any) -> Json:
    """Return a request's body, normalised. Raises ApiError with every violation."""
    if method.request is None or body is None:
        if body:
            raise bad_request([("", f"{_PAYLOAD}{method.id} takes no body.")])
        return {}
    if not isinstance(body, dict):
        raise bad_request([("", f"{_PAYLOAD}Root element must be a message.")])
    reader = _Reader(api)
    read = reader.message(method.request, body, "", 0)
    if reader.violations:
        raise bad_request(reader.violations)
    return read


def read_query(api: Api, method: Method, query: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the query's parameters, converted. Raises ApiError for an unknown, a wrong or a missing one."""
    values: dict[str, Any] = {}
    violations: list[Violation] = []
    for name, text in query:
        if name in api.common or name.startswith("$"):
            continue
        schema = _parameter(method, name)
        if schema is None:
            violations.append((name, f'{_PAYLOAD}Unknown name "{name}": Cannot bind query parameter.'))
            continue
        key, spec = schema
        value, wrong = _from_text(spec, text)
        if wrong:
            violations.append((key, f"Invalid value at '{key}' ({wrong}), \"{text}\""))
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
    """Check the parameters in the path against their patterns. Raises ApiError."""
    for name, value in parameters.items():
        pattern = method.parameters.get(name, {}).get("pattern")
        if pattern and not re.search(pattern, value):
            raise ApiError(400, f"Invalid value for field '{name}': '{value}'. Must match the regex '{pattern}'")


def _parameter(method: Method, name: str) -> tuple[str, Json] | None:
    for key in (name, camel_case(name)):
        spec = method.parameters.get(key)
        if spec is not None and spec["location"] == "query":
            return key, spec
    return None


def _from_text(spec: Json, text: str) -> tuple[Any, str]:
    kind, form = spec.get("type"), spec.get("format", "")
    if kind == "boolean":
        # The provider sends `forceUpdateAccessRestriction=` with every change of a backup vault: an empty one is false.
        return text == "true", "" if text in ("true", "false", "") else "TYPE_BOOL"
    if kind in ("integer", "number") or form in _RANGES:
        if not re.fullmatch(r"-?[0-9]{1,19}", text):
            return None, f"TYPE_{(form or kind or '').upper()}"
        low, high = _RANGES.get(form, (-(2**63), 2**63))
        return int(text), "" if low <= int(text) <= high else f"TYPE_{form.upper()}"
    if "enum" in spec and text not in spec["enum"]:
        return None, "TYPE_ENUM"
    return text, ""


class _Reader:
    def __init__(self, api: Api) -> None:
        self._api = api
        self.violations: list[Violation] = []

    def message(self, ref: str, value: Json, path: str, depth: int) -> Json:
        schema = self._api.schemas[ref]
        return self._object(schema, value, path, depth)

    def _object(self, schema: Json, value: Json, path: str, depth: int) -> Json:
        if depth > _DEPTH:
            self.violations.append((path, f"{_PAYLOAD}Nesting too deep."))
            return {}
        properties, rest = schema.get("properties", {}), schema.get("additionalProperties")
        read: Json = {}
        for given, each in value.items():
            name = given if given in properties else camel_case(given)
            if name in properties:
                spec = properties[name]
                if each is not None and not (_output_only(spec) and name not in _KEPT):
                    read[name] = self.value(spec, each, _join(path, name), depth + 1)
            elif rest is not None:
                read[given] = self.value(rest, each, _join(path, given), depth + 1)
            elif name not in _UNDOCUMENTED:
                where = f" at '{path}'" if path else ""
                self.violations.append((path, f'{_PAYLOAD}Unknown name "{given}"{where}: Cannot find field.'))
        return read

    def value(self, schema: Json, value: Any, path: str, depth: int) -> Any:
        if "$ref" in schema:
            if isinstance(value, dict):
                return self.message(schema["$ref"], value, path, depth)
            return self._wrong(path, schema["$ref"], value)
        kind = schema.get("type")
        if kind == "array":
            if not isinstance(value, list):
                return self._wrong(path, "a list", value)
            return [self.value(schema["items"], each, f"{path}[{i}]", depth) for i, each in enumerate(value)]
        if kind == "object":
            if not isinstance(value, dict):
                return self._wrong(path, "a map", value)
            if "properties" in schema or "additionalProperties" in schema:
                return self._object(schema, value, path, depth)
            return value
        return self._scalar(schema, kind, value, path)

    def _scalar(self, schema: Json, kind: str | None, value: Any, path: str) -> Any:
        form = schema.get("format", "")
        if kind == "boolean":
            return value if isinstance(value, bool) else self._wrong(path, "TYPE_BOOL", value)
        if form in _RANGES:
            return self._whole(form, kind, value, path)
        if kind in ("number", "integer"):
            good = isinstance(value, (int, float)) and not isinstance(value, bool)
            return value if good else self._wrong(path, f"TYPE_{(form or kind or '').upper()}", value)
        if kind == "string":
            return self._text(schema, form, value, path)
        return value  # any

    def _whole(self, form: str, kind: str | None, value: Any, path: str) -> Any:
        number = _integer(value)
        low, high = _RANGES[form]
        if number is None or not low <= number <= high:
            return self._wrong(path, f"TYPE_{form.upper()}", value)
        return str(number) if kind == "string" else number

    def _text(self, schema: Json, form: str, value: Any, path: str) -> Any:
        if "enum" in schema:
            return self._choice(schema["enum"], value, path)
        if not isinstance(value, str):
            return self._wrong(path, "TYPE_STRING", value)
        if not _well_formed(form, value):
            return self._wrong(path, f"TYPE_{form.upper().replace('-', '_')}", value)
        return value

    def _choice(self, values: list[str], value: Any, path: str) -> Any:
        """Read the name of an enum's value, or its number, as generated clients send it.

        Documents give no numbers: a number is taken for the place in the list, which is right where none was skipped.
        """
        if isinstance(value, int) and not isinstance(value, bool):
            named = {_NUMBERS.get(name, place): name for place, name in enumerate(values)}
            return named[value] if value in named else self._wrong(path, "TYPE_ENUM", value)
        if value == "" or value in values:
            return value
        allowed = ", ".join(each for each in values if not each.endswith("_UNSPECIFIED"))
        return self._wrong(path, "TYPE_ENUM", value, f"; allowed: {allowed}")

    def _wrong(self, path: str, kind: str, value: Any, more: str = "") -> None:
        shown = f'"{value}"' if isinstance(value, str) else str(value)
        self.violations.append((path, f"Invalid value at '{path}' ({kind}), {shown[:200]}{more}"))


def output_only(api: Api, ref: str) -> Iterator[str]:
    """Yield the properties of a schema that only the API writes."""
    for name, spec in api.schemas[ref].get("properties", {}).items():
        if _output_only(spec) and name not in _KEPT:
            yield name


def _output_only(spec: Json) -> bool:
    return bool(spec.get("readOnly")) or bool(_OUTPUT_ONLY.match(spec.get("description", "")))


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value):
        return int(value)
    return None


def _well_formed(form: str, value: str) -> bool:
    if form == "google-duration":
        return bool(_DURATION.fullmatch(value))
    if form in ("google-datetime", "date-time"):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return False
    if form == "byte":
        try:
            base64.b64decode(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4), validate=True)
        except (binascii.Error, ValueError):
            return False
    return True


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
