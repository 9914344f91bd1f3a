"""Pages of a list, and which of its items a filter leaves."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.requests.filters import read_filter
from training_platform.sandbox.cloud.resources.model import Call, Json

_DEFAULT: Final = 500


def page(call: Call, items: Sequence[Json], schema: str) -> Json:
    """Return the page that a list method asks for. Raises ApiError for a filter or a token that cannot be read."""
    terms = read_filter(call.parameters.get("filter") or "")
    found = [each for each in items if all(term.fits(each) for term in terms)]
    size = call.parameters.get("pageSize") or call.parameters.get("maxResults") or _DEFAULT
    if size < 0:
        raise ApiError(400, f"Invalid page size: {size}")
    start = _start(call.parameters.get("pageToken", ""))
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


def _start(token: str) -> int:
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(token).decode().removeprefix("from-"))
    except (binascii.Error, ValueError, UnicodeDecodeError) as error:
        raise ApiError(400, "Invalid value for field 'pageToken'") from error
