"""Serves the local cloud over HTTP on the loopback interface.

The first segment of a path is the short name of the service: ``/container/v1/projects/...``.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from local_google_cloud.http import control
from local_google_cloud.http.guard import VERBS, Guard, read_json
from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.requests.errors import Refusal
from local_google_cloud.state.authorization import caller_of

LOG: Final = logging.getLogger("local_google_cloud")
_TRANSPORT: Final = "transport"
"""The key under which the state of a request contains its connection."""

Endpoint = Callable[[Request], Awaitable[Response]]


@contextmanager
def serve(cloud: LocalCloud, port: int = 0) -> Iterator[int]:
    """Serve while the ``with`` block runs, and yield the port. Only this machine can reach it."""
    listener = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(make_app(cloud), http=_Protocol, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="local-cloud", daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()


class _Protocol(H11Protocol):
    """Gives the app access to each connection. The app simulates a lost response by closing the connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Store the connection in the state of its requests."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, _TRANSPORT: transport}


def make_app(cloud: LocalCloud) -> ASGIApp:
    """Return the ASGI app of a local cloud."""
    app = Starlette(
        routes=[
            *control.routes(cloud),
            Route("/storage/upload/storage/v1/b/{bucket}/o", _upload(cloud), methods=["POST"]),
            Route("/upload/storage/v1/b/{bucket}/o", _upload(cloud), methods=["POST"]),  # the gcp provider's
            Route("/{service}/{path:path}", _endpoint(cloud), methods=VERBS),
            Route("/{path:path}", _no_service, methods=VERBS),
        ],
        exception_handlers={Refusal: _refused},
    )
    return Guard(app)


def _endpoint(cloud: LocalCloud) -> Endpoint:
    async def answer(request: Request) -> Response:
        service = request.path_params["service"]
        verb = request.method
        raw = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1").partition("?")[0]
        path = raw.removeprefix(f"/{service}/")
        body = await read_json(request)
        query = request.query_params.multi_items()
        code, content = cloud.handle(service, verb, path, query, body, caller=caller_of(request.headers))
        message = "" if code == 200 else content.get("error", {}).get("message", "")
        LOG.info("%s /%s/%s %d %s", verb, service, path, code, message)
        kind = f"{service}.{path.rstrip('/').rpartition('/')[2]}"
        if code == 200 and verb == "POST" and cloud.faults.hits("lost-response", kind, f"POST /{service}/{path}"):
            return await _lost(request, service)
        if code == 200 and verb == "DELETE" and service == "storage":
            return Response(status_code=204)
        return JSONResponse(content, code)

    return answer


def _upload(cloud: LocalCloud) -> Endpoint:
    """Return the endpoint that accepts an object of any size in an existing bucket, and keeps only its size."""

    async def answer(request: Request) -> Response:
        bucket = request.path_params["bucket"]
        size = 0
        async for part in request.stream():
            size += len(part)
        query = request.query_params.multi_items()
        caller = caller_of(request.headers)
        code, answer = cloud.handle("storage", "POST", f"v1/b/{bucket}/o", query, None, caller=caller)
        if code == 200:
            answer["size"] = str(size)
        return JSONResponse(answer, code)

    return answer


async def _lost(request: Request, service: str) -> Response:
    """Close the connection, so that no response arrives. If the connection is not accessible, return 503."""
    transport = getattr(request.state, _TRANSPORT, None)
    if transport is not None:
        transport.abort()
        while not await request.is_disconnected():
            await asyncio.sleep(0)
    error = Refusal(503, "The service is currently unavailable.")
    return JSONResponse(error.body(service), error.code)


async def _refused(request: Request, error: Exception) -> Response:
    """Return an error response in the format of the request's service."""
    if not isinstance(error, Refusal):
        raise error
    return JSONResponse(error.body(request.path_params.get("service", "")), error.code)


async def _no_service(request: Request) -> Response:
    error = Refusal(404, f"The requested URL {request.url.path} was not found: no such service.")
    return JSONResponse(error.body(""), error.code)
