"""The local cloud over HTTP: an ASGI app, every service below a path of its own, ``/container/v1/projects/...``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from training_platform.sandbox.cloud.faults.requests import Answer, Asked, after_effect, before_effect, unavailable
from training_platform.sandbox.cloud.http import control
from training_platform.sandbox.cloud.http.bodies import read_json
from training_platform.sandbox.cloud.http.guard import VERBS, Guard
from training_platform.sandbox.cloud.local_cloud import LocalCloud
from training_platform.sandbox.cloud.requests.errors import ApiError

LOG: Final = logging.getLogger("training_platform.sandbox.cloud")
TRANSPORT: Final = "transport"
"""What the server calls a request's connection in its state."""

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(cloud: LocalCloud) -> ASGIApp:
    """Return the app of a local cloud."""
    app = Starlette(
        routes=[
            *control.routes(cloud),
            Route("/storage/upload/storage/v1/b/{bucket}/o", _upload(cloud), methods=["POST"]),
            Route("/{service}/{path:path}", _endpoint(cloud), methods=VERBS),
            Route("/{path:path}", _unknown, methods=VERBS),
        ],
        exception_handlers={ApiError: _refused},
    )
    return Guard(app)


def _endpoint(cloud: LocalCloud) -> Endpoint:
    async def answer(request: Request) -> Response:
        service = request.path_params["service"]
        raw = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1").partition("?")[0]
        path = raw.removeprefix(f"/{service}/")
        body = await read_json(request)
        query = request.query_params.multi_items()
        project = cloud.project_named(path, dict(query))
        asked = Asked(verb=request.method, service=service, path=path, project=project)
        fault = before_effect(cloud.faults, asked)
        if fault is not None:
            return await _faulty(request, service, fault)
        code, content = cloud.handle(service, request.method, path, query, body)
        LOG.info(
            "%s /%s/%s %d %s",
            request.method,
            service,
            path,
            code,
            content.get("error", {}).get("message", "") if code != 200 else "",
        )
        fault = after_effect(cloud.faults, asked) if code == 200 else None
        if fault is not None:
            return await _faulty(request, service, fault)
        if code == 200 and request.method == "DELETE" and service == "storage":
            return Response(status_code=204)
        return JSONResponse(content, code)

    return answer


def _upload(cloud: LocalCloud) -> Endpoint:
    """Take an object of a bucket that is there, and keep nothing of it."""

    async def answer(request: Request) -> Response:
        bucket = request.path_params["bucket"]
        code, found = cloud.handle("storage", "GET", f"v1/b/{bucket}", [], None)
        if code != 200:
            return JSONResponse(found, code)
        name, size = request.query_params.get("name", ""), len(await request.body())
        return JSONResponse({"kind": "storage#object", "bucket": bucket, "name": name, "size": str(size)})

    return answer


async def _faulty(request: Request, service: str, fault: Answer) -> Response:
    """Return what a fault answers. One that answers nothing closes the connection, where the server gives it away."""
    transport = getattr(request.state, TRANSPORT, None)
    if fault.error is None and transport is not None:
        transport.abort()
        while not await request.is_disconnected():
            await asyncio.sleep(0)
    error = fault.error or unavailable()
    return JSONResponse(error.body(service), error.code, fault.headers)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer a refusal in its service's form."""
    if not isinstance(error, ApiError):
        raise error
    return JSONResponse(error.body(request.path_params.get("service", "")), error.code)


async def _unknown(request: Request) -> Response:
    error = ApiError(404, f"The requested URL {request.url.path} was not found: no such service.")
    return JSONResponse(error.body(""), error.code)
