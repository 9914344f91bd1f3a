"""Google's metrics adapter on the loopback interface, with stubs of the metadata server and Cloud Monitoring.

``TRAINING_PLATFORM_METRICS_ADAPTER`` names the program of custom-metrics-stackdriver-adapter.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.kube.api_servers import ApiServer, free_port, wait_until_ready
from tests.kube.tied_process import TiedProcess
from training_platform.resources.metrics_adapter import NAME, NAMESPACE, adapter_deployment

Json = dict[str, Any]
PROJECT = "example-lab"
CLUSTER = "lab-main"
LOCATION = "us-central1-a"
METRIC = "prometheus.googleapis.com/vllm:num_requests_waiting/gauge"
_PROGRAM = "TRAINING_PLATFORM_METRICS_ADAPTER"
_BEARER = {"access_token": "a", "expires_in": 3600, "token_type": "Bearer"}
METADATA = {
    "project/project-id": PROJECT, "instance/attributes/cluster-name": CLUSTER, "instance/hostname": "node",
    "instance/attributes/cluster-location": LOCATION,
    "instance/service-accounts/default/token": json.dumps(_BEARER),
}  # fmt: skip


def adapter_program() -> Path:
    """Return the adapter; skips the test where none is named."""
    if _PROGRAM not in os.environ:
        pytest.skip(f"{_PROGRAM} names no adapter")
    return Path(os.environ[_PROGRAM])


class Cloud(ThreadingHTTPServer):
    """The metadata server and Cloud Monitoring, as far as the adapter asks; ``filters`` are those of its queries.

    ``waiting`` are the last samples of the metric, by pod.
    """

    def __init__(self, waiting: Mapping[str, float]) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.filters: list[str] = []
        self._waiting = waiting

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, query: dict[str, list[str]]) -> str:
        """Return what is at a path."""
        if path.startswith("/computeMetadata/v1/"):
            return METADATA[path.removeprefix("/computeMetadata/v1/")]
        if path.endswith(METRIC):
            return json.dumps({"type": METRIC, "metricKind": "GAUGE", "valueType": "DOUBLE"})
        if path.endswith("/timeSeries"):
            self.filters += query["filter"]
            named = set(re.findall(r'"([^"]*)"', query["filter"][0]))
            samples = dict(self._waiting)
            return json.dumps({"timeSeries": [_series(pod, samples[pod]) for pod in named & samples.keys()]})
        return "{}"


class _Answers(BaseHTTPRequestHandler):
    server: Cloud

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        text = self.server.answer(url.path, parse_qs(url.query))
        self.send_response(200)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _series(pod: str, value: float) -> Json:
    """Return what Managed Prometheus writes of a pod."""
    labels = {"project_id": PROJECT, "location": LOCATION, "cluster": CLUSTER, "namespace": "vision"}
    interval = {"startTime": "2026-11-22T10:00:00Z", "endTime": "2026-11-22T10:01:00Z"}
    return {
        "metric": {"type": METRIC, "labels": {"pod": pod}},
        "resource": {"type": "prometheus_target", "labels": labels},
        "metricKind": "GAUGE",
        "valueType": "DOUBLE",
        "points": [{"interval": interval, "value": {"doubleValue": value}}],
    }


@contextmanager
def running_adapter(server: ApiServer, cloud: Cloud, folder: Path) -> Iterator[int]:
    """Run the adapter as its service account, with the flags of its Deployment, and yield its port."""
    program = adapter_program()
    config = json.loads(server.kubeconfig(account=f"system:serviceaccount:{NAMESPACE}:{NAME}"))
    for user in config["users"]:
        del user["user"]["as-groups"]  # only what the deployment grants
    path = folder / "kubeconfig"
    port = free_port()
    path.write_text(json.dumps(config), encoding="utf-8")
    (container,) = adapter_deployment()["template"]["spec"]["containers"]
    here = {
        "secure-port": port, "bind-address": "127.0.0.1", "cert-dir": folder,
        "stackdriver-endpoint": f"http://{cloud.address}/",
        **{f"{role}-kubeconfig": path for role in ("lister", "authentication", "authorization")},
    }  # fmt: skip
    flags = [*container["command"][1:], *(f"--{name}={value}" for name, value in here.items())]
    variables = [f"GCE_METADATA_HOST={cloud.address}", f"HOME={folder}"]
    process = TiedProcess(["env", *variables, str(program), *flags], folder / "adapter.log")
    with closing(process), httpx.Client(verify=False, trust_env=False) as http:  # noqa: S501 # it signs its own
        wait_until_ready(process, http, f"https://127.0.0.1:{port}/healthz")
        yield port
