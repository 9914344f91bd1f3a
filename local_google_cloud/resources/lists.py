"""Pages and filters of lists. Filters such as ``name = a AND labels.team != "b"`` are supported, but no patterns."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from local_google_cloud.requests.errors import Refusal
from local_google_cloud.requests.validation import camel_case
from local_google_cloud.resources.resource_kinds import Call
from local_google_cloud.state.operation import COMPUTE_LINK
from training_platform.catalog.types import Json

MOST_CHARACTERS: Final = 2_000
_PAGE_SIZE: Final = 500
_TOKEN: Final = re.compile(r"""\s+|"[^"]*"|'[^']*'|!=|[=:()]|[^\s()=:!"']+|.""")
_OPERATORS: Final = frozenset({"=", "!=", ":"})


def page(call: Call, items: Sequence[Json], schema: str) -> Json:
    """Return the requested page of a list. Raises Refusal for an invalid filter or page token."""
    terms = read_filter(call.parameters.get("filter") or "")
    items = [item for item in items if all(term.matches(item) for term in terms)]
    size = call.parameters.get("pageSize") or call.parameters.get("maxResults") or _PAGE_SIZE
    if size < 0:
        raise Refusal(400, f"Invalid page size: {size}")
    end = _page_start(call.parameters.get("pageToken", "")) + size
    has_next_page = False
    if "pageToken" in call.method.parameters:
        has_next_page = end < len(items)
        items = items[end - size : end]
    properties = call.api.schemas[call.method.response or ""]["properties"]
    body: Json = {}
    if items:
        ref = call.api.schema(schema)
        lists = (name for name, spec in properties.items() if spec.get("items", {}).get("$ref") == ref)
        body[next(lists, "items")] = items
    if has_next_page:
        body["nextPageToken"] = base64.urlsafe_b64encode(f"from-{end}".encode()).decode()
    if call.service in ("compute", "storage") and (kind := properties.get("kind", {}).get("default")):
        body["kind"] = kind
    if call.service == "compute":
        body |= {"id": call.path, "selfLink": COMPUTE_LINK + call.path}
    return body


def _page_start(token: str) -> int:
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(token).decode().removeprefix("from-"))
    except (binascii.Error, ValueError, UnicodeDecodeError) as error:
        raise Refusal(400, "Invalid value for field 'pageToken'") from error


@dataclass(frozen=True)
class Term:
    """One comparison in a filter: the path of a field, the operator, and the value, which may be ``*``."""

    path: str
    operator: str
    value: str

    def matches(self, item: Any) -> bool:
        """Return True if a resource matches the comparison."""
        for part in self.path.split("."):
            # Vertex AI's filters say display_name.
            item = item.get(part, item.get(camel_case(part))) if isinstance(item, dict) else None
        text = str(item).lower() if isinstance(item, bool) else str(item)
        return (self.value in (text, "*")) is not (self.operator == "!=")


def read_filter(text: str) -> list[Term]:
    """Return the terms of a filter. A resource must match all of them. Raises Refusal for an invalid filter."""
    if len(text) > MOST_CHARACTERS:
        raise Refusal(400, f"Invalid list filter expression: longer than {MOST_CHARACTERS} characters")
    tokens = [token for token in _TOKEN.findall(text) if token.strip() and token not in ("(", ")", "AND")]
    triples = zip(*[iter(tokens)] * 3, strict=False)
    terms = [Term(path, operator, value=_unquoted(value)) for path, operator, value in triples]
    unbalanced = text.count("(") != text.count(")")
    if unbalanced or len(tokens) % 3 or any(term.operator not in _OPERATORS for term in terms):
        raise Refusal(400, f"Invalid list filter expression: {text}")
    return terms


def _unquoted(value: str) -> str:
    return value[1:-1] if value[:1] in ("'", '"') and value[-1:] == value[:1] else value
