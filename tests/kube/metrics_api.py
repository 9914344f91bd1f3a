"""A stub of the API of custom metrics, on the loopback, that an API server hands requests of its group on to."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from tests.kube.api_servers import ApiServer
from tests.kube.server import Json
from training_platform.resources.metrics_adapter import GROUP, NAME, NAMESPACE, VERSIONS, api_service

SAMPLE = re.compile(r"^((?:kueue|controller_runtime_webhook)_\w+)\{(.*)\} ", re.MULTILINE)


class MetricsApi:
    """Says of every pod of a namespace its part of ``load``; ``asked`` are the metrics that somebody asked for."""

    def __init__(self, api_server: ApiServer, pods: Callable[[str], list[str]]) -> None:
        self.load = 0
        self.asked: set[str] = set()
        self._api_server = api_server
        self._pods = pods

    def __enter__(self) -> Self:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = api.answer(urlsplit(self.path).path)
                self.send_response(404 if answer is None else 200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(answer or {}).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate = self._api_server.certificate
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        Thread(target=self._server.serve_forever, daemon=True).start()
        self._register(self._server.server_address[1])
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _register(self, port: int) -> None:
        """Give the API server the adapter's APIServices, whose Service is this process."""
        with self._api_server.client() as client:
            client.post("/api/v1/namespaces", json={"metadata": {"name": NAMESPACE}}).raise_for_status()
            service = {"metadata": {"name": NAME}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
            client.post(f"/api/v1/namespaces/{NAMESPACE}/services", json=service).raise_for_status()
            for version in VERSIONS:
                spec = api_service(version)
                spec["service"] = {**spec["service"], "port": port}
                body = {"metadata": {"name": f"{version}.{GROUP}"}, "spec": spec}
                client.post("/apis/apiregistration.k8s.io/v1/apiservices", json=body).raise_for_status()

    def answer(self, path: str) -> Json | None:
        """Return what the API says at a path, None where it has nothing."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[:2] != ["apis", GROUP] or len(parts) not in (3, 8):
            return None
        version = f"{GROUP}/{parts[2]}"
        if len(parts) == 3:
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [_RESOURCE]}
        namespace = parts[4]
        metric = parts[7]
        self.asked.add(metric)
        names = self._pods(namespace)
        values = [_value(namespace, name, metric, self.load, len(names)) for name in names]
        return {"kind": "MetricValueList", "apiVersion": version, "metadata": {}, "items": values}


_RESOURCE = {"name": "pods/any", "singularName": "", "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}


def _value(namespace: str, name: str, metric: str, load: int, pods: int) -> dict[str, Any]:
    return {
        "describedObject": {"kind": "Pod", "apiVersion": "/v1", "namespace": namespace, "name": name},
        "metric": {"name": metric},
        "timestamp": "2026-11-22T00:00:00Z",
        "value": f"{load * 1000 // pods}m",
    }
