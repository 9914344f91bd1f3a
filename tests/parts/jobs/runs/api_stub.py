"""An API server that answers from a table and records its requests, for answers that no real one gives on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]


class Answering(Protocol):
    """The answers of the server to its requests."""

    def answer(self, method: str, url: str, body: Json | None) -> tuple[int, Any]: ...


class ApiStub:
    """``lists`` are the objects below a path, ``texts`` the answers of other paths.

    ``refusals`` are answered instead, by method and end of the path.
    """

    def __init__(self) -> None:
        self.lists: dict[str, list[Json]] = {}
        self.texts: dict[str, str] = {}
        self.refusals: dict[tuple[str, str], tuple[int, str]] = {}
        self.requests: list[str] = []
        self.created: list[Json] = []

    def answer(self, method: str, url: str, body: Json | None) -> tuple[int, Any]:
        path = urlsplit(url).path
        query = parse_qs(urlsplit(url).query)
        self.requests.append(f"{method} {path}")
        for (verb, end), (status, message) in self.refusals.items():
            if verb in (method, "*") and path.endswith(end) and not (verb == "POST" and "dryRun" in query):
                return status, {"kind": "Status", "message": message} if message else "<html>"
        if method == "POST" and path.endswith("/selfsubjectreviews"):
            return 201, {"status": {"userInfo": {"username": "ada@example.com"}}}
        if method == "POST":
            if "dryRun" not in query:
                self.created.append(body or {})
            return 201, body
        if method == "DELETE":
            return 200, {}
        if path in self.texts:
            return 200, self.texts[path]
        if path in self.lists:
            return self._page(self.lists[path], query)
        parent, _, name = path.rpartition("/")
        matching = [
            kube_object for kube_object in self.lists.get(parent, ()) if kube_object["metadata"]["name"] == name
        ]
        return (200, matching[0]) if matching else (404, {"kind": "Status", "message": f"{name} not found"})

    def _page(self, items: list[Json], query: dict[str, list[str]]) -> tuple[int, Json]:
        start = int(query.get("continue", ["0"])[0])
        size = int(query["limit"][0])
        more = {"continue": str(start + size)} if start + size < len(items) else {}
        return 200, {"items": items[start : start + size], "metadata": more}


@contextmanager
def served(stub: Answering) -> Iterator[str]:
    """Serve on the loopback interface; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, answer = stub.answer(self.command, self.path, body)
            data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 # as the base class names them

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_kubeconfig(path: Path, server: str, context: str) -> Path:
    """Write a kubeconfig with one context."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "users": [{"name": "a", "user": {"token": "invented"}}],
        "contexts": [{"name": context, "context": {"cluster": "a", "user": "a"}}],
        "current-context": context,
    }
    path.write_text(json.dumps(config))
    return path
