"""Refuses requests from web pages, and bodies that are too long, too deep, or not JSON that Google accepts.

Any web page in a browser on this machine can reach the loopback interface. A page that knows the port could send
requests, which are recognised by their ``Origin`` header or by the content type of a form. A page whose host name
resolves to 127.0.0.1 could also read responses; such requests are recognised by this name in the ``Host`` header.
Programs other than browsers send neither.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from local_google_cloud.requests.errors import Refusal

VERBS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_CONTENT: Final = frozenset({"application/gzip", "application/json", "multipart/related"})
MOST_BYTES: Final = 16 * 2**20
DEEPEST: Final = 100  # nested messages, as in Google's JSON parsers
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')


class Guard:
    """ASGI middleware that passes requests of local programs to ``app`` and refuses requests of web pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        if scope["type"] != "http":
            return
        refusal = _refusal(scope["method"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send)
            return
        service = scope["path"].split("/")[1]
        await JSONResponse(refusal.body(service), refusal.code)(scope, receive, send)


def _refusal(verb: str, headers: Headers) -> Refusal | None:
    host = headers.get("host", "")
    if host.removesuffix(":" + host.rpartition(":")[2]) not in _HOSTS and host not in _HOSTS:
        return Refusal(403, f"The local cloud answers to 127.0.0.1 and localhost, not to '{host}'.")
    if headers.get("origin", f"http://{host}") != f"http://{host}" or headers.get("sec-fetch-site") == "cross-site":
        return Refusal(403, "The local cloud refuses requests from web pages.")
    if verb not in VERBS:
        return Refusal(405, f"Method not allowed: {verb}; allowed: {', '.join(VERBS)}.")
    content = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if content not in _CONTENT and has_body:
        return Refusal(415, f"Content type '{content}' is not supported; allowed: {', '.join(sorted(_CONTENT))}.")
    return None


async def read_bytes(request: Request) -> bytes:
    """Return the body of a request. Raises Refusal as soon as it exceeds ``MOST_BYTES``."""
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > MOST_BYTES:
            raise Refusal(413, "Request payload size exceeds the limit: 16777216 bytes.")
    return bytes(read)


async def read_json(request: Request) -> Any:
    """Return the parsed JSON of a body, or None if it is empty. Raises Refusal."""
    raw = await read_bytes(request)
    return parse_json(raw) if raw else None


def parse_json(raw: bytes) -> Any:
    """Parse JSON. Raises Refusal for values that JSON or Google does not allow.

    Python's parser accepts NaN, Infinity, numbers too large for a double, and lone surrogates, which a response could
    not repeat.
    """
    if _depth(raw) > DEEPEST:
        raise _bad_json("Message too deep. Max recursion depth reached.")
    try:
        value = json.loads(raw, parse_constant=_no_constant, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _bad_json("Invalid Unicode: a surrogate without its other half.") from error
    except (ValueError, RecursionError) as error:
        raise _bad_json(f"Parse error: {error}") from error
    return value


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for bracket in re.finditer(rb"[\[\]{}]", _STRING.sub(b"", raw)):
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


def _bad_json(message: str) -> Refusal:
    return Refusal(400, f"Invalid JSON payload received. {message}", reason="parseError")
