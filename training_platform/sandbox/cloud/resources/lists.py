"""Pages of a list, and which of its items a filter leaves."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from training_platform.catalog.types import Json
from training_platform.resources.spelling import camel_case
from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources.model import Call

_PAGE_SIZE: Final = 500


def page(call: Call, items: Sequence[Json], schema: str) -> Json:
    """Return the page that a list method asks for. Raises ApiError for a filter or a token that cannot be read."""
    terms = read_filter(call.parameters.get("filter") or "")
    found = [each for each in items if all(term.fits(each) for term in terms)]
    size = call.parameters.get("pageSize") or call.parameters.get("maxResults") or _PAGE_SIZE
    if size < 0:
        raise ApiError(400, f"Invalid page size: {size}")
    start = _page_start(call.parameters.get("pageToken", ""))
    paged = "pageToken" in call.method.parameters
    shown = found[start : start + size] if paged else found
    body: Json = {items_field(call, schema): shown} if shown else {}
    if paged and start + size < len(found):
        body["nextPageToken"] = base64.urlsafe_b64encode(f"from-{start + size}".encode()).decode()
    if call.service in ("compute", "storage"):
        kind = call.api.schemas[call.method.response or ""]["properties"].get("kind", {}).get("default")
        body |= {"kind": kind} if kind else {}
        body |= (
            {"id": call.path, "selfLink": f"https://www.googleapis.com/compute/v1/{call.path}"}
            if call.service == "compute"
            else {}
        )
    return body


def items_field(call: Call, schema: str) -> str:
    """Return the field of a list's answer that holds the resources."""
    properties = call.api.schemas[call.method.response or ""]["properties"]
    return next(
        (name for name, spec in properties.items() if spec.get("items", {}).get("$ref") == call.api.schema(schema)),
        "items",
    )


def _page_start(token: str) -> int:
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(token).decode().removeprefix("from-"))
    except (binascii.Error, ValueError, UnicodeDecodeError) as error:
        raise ApiError(400, "Invalid value for field 'pageToken'") from error


MOST_CHARACTERS: Final = 2_000
_FILTER_TOKEN: Final = re.compile(r"""\s+|"[^"]*"|'[^']*'|!=|[=:()]|[^\s()=:!"']+|.""")
_OPERATORS: Final = frozenset({"=", "!=", ":", "eq", "ne"})


@dataclass(frozen=True)
class Term:
    """One comparison: a path into a resource, the operator, and the value or pattern."""

    path: str
    operator: str
    value: str

    def fits(self, item: Any) -> bool:
        """Whether a resource is left by it."""
        for part in self.path.split("."):
            # Vertex AI's filters say display_name.
            item = item.get(part, item.get(camel_case(part))) if isinstance(item, dict) else None
        text = str(item).lower() if isinstance(item, bool) else str(item)
        same = matches(self.value, text) if self.operator in ("eq", "ne") else self.value in (text, "*")
        return same is not (self.operator in ("!=", "ne"))


def read_filter(text: str) -> list[Term]:
    """Return the terms of a filter, all of which a resource must fit. Raises ApiError for what cannot be read."""
    if len(text) > MOST_CHARACTERS:
        raise ApiError(400, f"Invalid list filter expression: longer than {MOST_CHARACTERS} characters")
    tokens = [each for each in _FILTER_TOKEN.findall(text) if each.strip() and each not in ("(", ")", "AND")]
    terms = [Term(path, operator, _unquoted(value)) for path, operator, value in zip(*[iter(tokens)] * 3, strict=False)]
    unbalanced = text.count("(") != text.count(")")
    if unbalanced or len(tokens) % 3 or any(each.operator not in _OPERATORS for each in terms):
        raise ApiError(400, f"Invalid list filter expression: {text}")
    for each in terms:
        if each.operator in ("eq", "ne"):
            _pieces(each.value)
    return terms


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern fits all of a text; what stands between two ``.*`` is looked for once, from left to right."""
    pieces = _pieces(pattern)
    if len(pieces) == 1:
        return bool(pieces[0].fullmatch(text))
    first, last = pieces[0].match(text), re.compile(rf"(?:{pieces[-1].pattern})\Z", re.DOTALL).search(text)
    if first is None or last is None or first.end() > last.start():
        return False
    at = first.end()
    for piece in pieces[1:-1]:
        found = piece.search(text, at, last.start())
        if found is None:
            return False
        at = found.end()
    return True


def _pieces(pattern: str) -> list[re.Pattern[str]]:
    """Split a pattern at its ``.*``; no piece can repeat anything. Raises ApiError for what a pattern may not hold."""
    pieces = [""]
    for part in re.findall(r"\\.|\.\*|.", pattern, re.DOTALL):
        if part in (".*", "*"):
            pieces.append("")
        elif part in "^$+?{}[]|()\\":
            raise ApiError(400, f"Invalid list filter expression: '{part}' in '{pattern}' is not supported here")
        else:
            pieces[-1] += part if part == "." else re.escape(part[-1])
    return [re.compile(each, re.DOTALL) for each in pieces]


def _unquoted(value: str) -> str:
    return value[1:-1] if value[:1] in ("'", '"') and value[-1:] == value[:1] else value
