"""Reads bodies, and gives up on one as soon as it is too long, too deep, or holds what no answer could hold."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from starlette.requests import Request

from training_platform.sandbox.cloud.requests.errors import ApiError

MOST_BYTES: Final = 16 * 2**20
DEEPEST: Final = 100  # messages inside messages, as Google's JSON readers have it
_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_PAYLOAD: Final = "Invalid JSON payload received. "


async def read_bytes(request: Request) -> bytes:
    """Return a body. Raises ApiError once it has more than ``MOST_BYTES``; what follows is not read."""
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > MOST_BYTES:
            raise ApiError(413, "Request payload size exceeds the limit: 16777216 bytes.")
    return bytes(read)


async def read_json(request: Request) -> Any:
    """Return a body as JSON, None where there is none. Raises ApiError."""
    raw = await read_bytes(request)
    return parse_json(raw) if raw else None


def parse_json(raw: bytes) -> Any:
    """Return what a text of JSON says. Raises ApiError for what JSON or Google does not take.

    Python's reader takes NaN, Infinity, numbers beyond every double, and halves of characters; none can be answered.
    """
    if _depth(raw) > DEEPEST:
        raise _refused("Message too deep. Max recursion depth reached.")
    try:
        value = json.loads(raw, parse_constant=_no_constant, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _refused("Invalid Unicode: a surrogate without its other half.") from error
    except (ValueError, RecursionError) as error:
        raise _refused(f"Parse error: {error}") from error
    return value


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for bracket in re.finditer(rb"[\[\]{}]", _TEXT.sub(b"", raw)):
        depth += 1 if bracket[0] in b"[{" else -1
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            break
    return deepest


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is out of range")
    return number


def _refused(message: str) -> ApiError:
    return ApiError(400, _PAYLOAD + message, reason="parseError")
