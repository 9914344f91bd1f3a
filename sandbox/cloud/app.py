"""The local cloud over HTTP: an ASGI app, every service below a path of its own, ``/container/v1/projects/...``."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox.cloud import control
from sandbox.cloud.cloud import Cloud
from sandbox.cloud.errors import ApiError
from sandbox.cloud.faults import Faults

LOG: Final = logging.getLogger("sandbox.cloud")
_VERBS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_MOST_BYTES: Final = 16 * 2**20

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(cloud: Cloud) -> Starlette:
    """Return the app of a local cloud."""
    faults = Faults()
    return Starlette(
        routes=[
            *control.routes(cloud, faults),
            Route("/{service}/{path:path}", _endpoint(cloud, faults), methods=_VERBS),
            Route("/{path:path}", _unknown, methods=_VERBS),
        ]
    )


def _endpoint(cloud: Cloud, faults: Faults) -> Endpoint:
    async def answer(request: Request) -> Response:
        service = request.path_params["service"]
        raw = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1").partition("?")[0]
        path = raw.removeprefix(f"/{service}/")
        try:
            body = await _body(request)
        except ApiError as error:
            return JSONResponse(error.body(service), error.code)
        fault = await faults.before(request.method, service, path)
        if fault is not None:
            return JSONResponse(fault.body(service), fault.code)
        code, content = cloud.handle(service, request.method, path, request.query_params.multi_items(), body)
        LOG.info(
            "%s /%s/%s %d %s",
            request.method,
            service,
            path,
            code,
            content.get("error", {}).get("message", "") if code != 200 else "",
        )
        fault = await faults.after(request.method, service, path)
        if fault is not None:
            return JSONResponse(fault.body(service), fault.code)
        if code == 200 and request.method == "DELETE" and service == "storage":
            return Response(status_code=204)
        return JSONResponse(content, code)

    return answer


async def _body(request: Request) -> object:
    raw = await request.body()
    if len(raw) > _MOST_BYTES:
        raise ApiError(413, "Request payload size exceeds the limit", status="INVALID_ARGUMENT")
    if not raw:
        return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "Invalid JSON payload received. Parse error.", reason="parseError") from error


async def _unknown(request: Request) -> Response:
    error = ApiError(404, f"The requested URL {request.url.path} was not found: no such service.")
    return JSONResponse(error.body(""), error.code)
