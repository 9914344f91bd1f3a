"""Serves the local cloud on the loopback interface."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from training_platform.sandbox.cloud.http.app import TRANSPORT, make_app
from training_platform.sandbox.cloud.local_cloud import LocalCloud


class _Protocol(H11Protocol):
    """Gives the app its connection, to be closed where an answer is to be lost."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, TRANSPORT: transport}


@contextmanager
def serve(cloud: LocalCloud, port: int = 0) -> Iterator[int]:
    """Serve for as long as the block runs; gives the port it bound. Nothing but this machine can reach it."""
    bound = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(make_app(cloud), http=_Protocol, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="local-cloud", daemon=True)
    thread.start()
    try:
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        bound.close()
