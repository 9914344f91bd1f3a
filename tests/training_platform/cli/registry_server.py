"""A registry of charts and images on the loopback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """The server's answer to one path."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}


class Registry:
    """A server on the loopback with an answer for each path, which keeps a list of its requests."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[tuple[str, str]] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                token = self.headers.get("Authorization", "")
                registry.requests.append((self.path, token))
                answer = registry.answers.get(self.path, Answer("nothing", 404))
                if answer.status == 401 and token == "Bearer for-anybody":
                    answer = Answer(answer.body)
                body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            do_HEAD = do_GET  # noqa: N815 # as the base class names it

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self.server.server_address[1]}"
