"""Keeps web pages out: a browser on this machine reaches the loopback interface, whoever wrote the page it shows.

A page of another site that knows the port could send requests (they carry its ``Origin``, or a form's content type), or
read answers under a name of its own that it lets point here (they carry that name as ``Host``). Programs send neither.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from training_platform.sandbox.cloud.requests.errors import ApiError

VERBS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_CONTENT: Final = frozenset({"application/gzip", "application/json", "application/yaml"})


class Guard:
    """An app that only programs of this machine can ask; ``app`` never sees what others send."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            return
        refusal = _refusal(scope["method"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send)
            return
        service = scope["path"].split("/")[1]
        await JSONResponse(refusal.body(service), refusal.code)(scope, receive, send)


def _refusal(verb: str, headers: Headers) -> ApiError | None:
    host = headers.get("host", "")
    if host.removesuffix(":" + host.rpartition(":")[2]) not in _HOSTS and host not in _HOSTS:
        return ApiError(403, f"The local cloud answers to 127.0.0.1 and localhost, not to '{host}'.")
    if headers.get("origin", f"http://{host}") != f"http://{host}" or headers.get("sec-fetch-site") == "cross-site":
        return ApiError(403, "The local cloud refuses requests from web pages.")
    if verb not in VERBS:
        return ApiError(405, f"Method not allowed: {verb}; allowed: {', '.join(VERBS)}.")
    content = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if content not in _CONTENT and _has_body(headers):
        return ApiError(415, f"Content type '{content}' is not supported; allowed: {', '.join(sorted(_CONTENT))}.")
    return None


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
