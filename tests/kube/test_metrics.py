"""Kueue's metrics that alerts and dashboards query, and Google's adapter, which answers autoscalers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest

from tests.alerts.promtool import program
from tests.kube.api_servers import ApiServer, ControlPlanes, free_port
from tests.kube.clusters import KueueCluster, kueue_cluster
from tests.kube.metrics_api import SAMPLE
from tests.kube.model_servers import ADAPTER_PATHS, adapter_objects, team
from tests.kube.queues import Json, Queues, planned, stacks, until
from tests.kube.tied_process import TiedProcess
from tests.support.promql import OF_HISTOGRAMS, metrics
from training_platform.quota.chip_hours import question
from training_platform.resources.kueue import configuration
from training_platform.resources.metrics_adapter import GROUP, NAME, NAMESPACE, adapter_deployment
from training_platform.resources.scope import Scope

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

OF_SCRAPES = set(metrics()["kueue"]["labels"])  # which managed Prometheus adds


def labels(cluster: KueueCluster) -> dict[str, set[str]]:
    """Return the labels of each metric that Kueue gives now, by the name without a histogram's endings."""
    labels_of: dict[str, set[str]] = {}
    for name, sample in SAMPLE.findall(cluster.client.get(cluster.metrics_url).raise_for_status().text):
        base = next((name.removesuffix(end) for end in OF_HISTOGRAMS if name.endswith(end)), name)
        labels_of[base] = set(re.findall(r'(\w+)="', sample)) - {"le"}
    return labels_of


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KueueCluster]:
    settings = configuration(["reservation"])
    with kueue_cluster(tmp_path_factory.mktemp("metrics"), settings, needed=["kueue"]) as cluster:
        yield cluster


def test_kueue_gives_every_metric_that_is_asked_for_with_its_labels(cluster: KueueCluster) -> None:
    queues = Queues(cluster.client)
    source = metrics()["kueue"]
    expected = {
        name: {*source["labels"], *labels_of_metric}
        for name, labels_of_metric in source["metrics"].items()
        if name != "up"
    }
    shares = {"main": {"h100-reservation": {"nominal_quota": 8}}}
    queues.deploy({"vision": {"shares": shares}, "nlp": {"shares": shares}}, lend_unpromised=True)
    # Its counters come with the first job they count: no alert can wait for them to rise from 0.
    assert not {"kueue_admitted_workloads_total", "kueue_evicted_workloads_total"} & labels(cluster).keys()
    queues.submit("vision", "low", 8, priority="low")
    queues.runs("vision", "low")
    queues.submit("nlp", "all", 56)
    queues.runs("nlp", "all")
    queues.submit("vision", "high", 8, priority="high")  # which stops a job
    queues.runs("vision", "high")

    labels_of = until(lambda: labels(cluster), lambda now: expected.keys() <= now.keys())

    wrong = {
        name: labels_of[name]
        for name in expected.keys() & labels_of.keys()
        if labels_of[name] | OF_SCRAPES != expected[name]
    }
    assert wrong == {}


def held(cluster: KueueCluster) -> dict[str, str]:
    """Return the series of held quota with their values, as managed Prometheus keeps this scrape."""
    name = "kueue_cluster_queue_resource_usage"
    lines = cluster.client.get(cluster.metrics_url).raise_for_status().text.splitlines()
    rows = (line.rpartition(" ") for line in lines if line.startswith(f"{name}{{"))
    return {text.replace("{", '{cluster="lab-main",pod="kueue-0",', 1): value for text, _, value in rows}


def test_chip_hours_are_what_queues_held_and_a_deleted_job_keeps_its_own(cluster: KueueCluster, tmp_path: Path) -> None:
    if program() is None:
        pytest.skip("promtool is not here")
    queues = Queues(cluster.client)
    queues.clear()
    workspace = stacks({}, {"vision": {"shares": {"main": {"h100-reservation": {"nominal_quota": 32}}}}})
    queues.deploy_all(planned(workspace))
    queues.submit("vision", "one", 8)
    queues.submit("vision", "four", 8, pods=3)
    queues.runs("vision", "one")
    queues.runs("vision", "four")
    both = until(lambda: held(cluster), lambda now: "32" in now.values())
    queues.delete("/apis/batch/v1/namespaces/vision/jobs/four")
    first = until(lambda: held(cluster), lambda now: "8" in now.values())
    queues.delete("/apis/batch/v1/namespaces/vision/jobs/one")
    none = until(lambda: held(cluster), lambda now: set(now.values()) == {"0"})
    # Two hours with both, three with the first alone, and nothing until the month's tenth hour; a sample each minute.
    samples = {key: f"{both[key]}+0x120 {first[key]}+0x179 {none[key]}+0x300" for key in both}
    home = workspace.stacks["lab"].environment
    assert home is not None
    month_query = question(home, "lab", "1970-01", datetime(1970, 1, 1, 10, tzinfo=UTC))
    assert month_query is not None

    rows = [{"series": series, "values": values} for series, values in samples.items()]
    sum_of_all = 2 * 32 + 3 * 8
    labels = '{cluster="lab-main",cluster_queue="vision",flavor="h100-reservation"}'
    expected = {"expr": month_query.expr, "eval_time": "10h", "exp_samples": [{"labels": labels, "value": sum_of_all}]}
    tests = {"tests": [{"interval": "1m", "input_series": rows, "promql_expr_test": [expected]}]}
    (tmp_path / "tests.yaml").write_text(json.dumps(tests))
    played = subprocess.run(
        [str(program()), "test", "rules", tmp_path / "tests.yaml"], capture_output=True, text=True, check=False
    )
    assert played.returncode == 0, played.stdout + played.stderr


PROGRAM = "TRAINING_PLATFORM_METRICS_ADAPTER"
PROJECT = "example-lab"
CLUSTER = "lab-main"
LOCATION = "us-central1-a"
METRIC = "prometheus.googleapis.com/vllm:num_requests_waiting/gauge"
_BEARER = {"access_token": "a", "expires_in": 3600, "token_type": "Bearer"}
METADATA = {
    "project/project-id": PROJECT, "instance/attributes/cluster-name": CLUSTER, "instance/hostname": "node",
    "instance/attributes/cluster-location": LOCATION,
    "instance/service-accounts/default/token": json.dumps(_BEARER),
}  # fmt: skip
WAITING = {"chat-a": 3, "chat-b": 4, "other": 100}  # requests, by pod


class Cloud(ThreadingHTTPServer):
    """The metadata server and Cloud Monitoring, as far as the adapter asks; ``filters`` are those of its queries."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.filters: list[str] = []

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
            return json.dumps({"timeSeries": [series(pod) for pod in re.findall(r'"(chat-.)"', query["filter"][0])]})
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


def series(pod: str) -> Json:
    """Return what Managed Prometheus writes of a pod."""
    labels = {"project_id": PROJECT, "location": LOCATION, "cluster": CLUSTER, "namespace": "vision"}
    interval = {"startTime": "2026-11-22T10:00:00Z", "endTime": "2026-11-22T10:01:00Z"}
    return {
        "metric": {"type": METRIC, "labels": {"pod": pod}},
        "resource": {"type": "prometheus_target", "labels": labels},
        "metricKind": "GAUGE",
        "valueType": "DOUBLE",
        "points": [{"interval": interval, "value": {"doubleValue": WAITING[pod]}}],
    }


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as cloud:
        Thread(target=cloud.serve_forever, daemon=True).start()
        yield cloud
        cloud.shutdown()


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[ApiServer]:
    if PROGRAM not in os.environ:
        pytest.skip(f"{PROGRAM} names no adapter")
    with ControlPlanes(Path(os.environ["KUBEBUILDER_ASSETS"]), tmp_path) as planes:
        yield planes.server("main")


def run(server: ApiServer, cloud: Cloud, folder: Path) -> tuple[TiedProcess, str]:
    """Start the adapter as its service account, and return where it answers."""
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
    process = TiedProcess(["env", *variables, os.environ[PROGRAM], *flags], folder / "adapter.log")
    return process, f"https://127.0.0.1:{port}"


def ready(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").is_success
    except httpx.TransportError:
        return False


def pod(name: str, labels: Any) -> Json:
    spec = {"containers": [{"name": "a", "image": "example.com/a:1"}]}
    return {"metadata": {"name": name, "namespace": "vision", "labels": labels}, "spec": spec}


def test_the_adapter_says_of_each_pod_what_the_autoscaler_asks(
    api_server: ApiServer, cloud: Cloud, tmp_path: Path, scope: Scope
) -> None:
    bodies = {body["kind"]: body for body in planned(stacks({}, team(16, 2)))}
    (metric,) = bodies["HorizontalPodAutoscaler"]["spec"]["metrics"]
    labels = bodies["Deployment"]["spec"]["selector"]["matchLabels"]
    with api_server.client() as client:
        cluster = Queues(client)
        for body in adapter_objects(scope):
            if body["kind"] not in ("Deployment", "Service", "APIService"):
                cluster.apply(body, ADAPTER_PATHS)
        cluster.create("/api/v1/namespaces", {"metadata": {"name": "vision"}})
        for name in WAITING:
            cluster.create("/api/v1/namespaces/vision/pods", pod(name, labels if name.startswith("chat") else {}))

    process, url = run(api_server, cloud, tmp_path)
    try:
        headers = {"Authorization": f"Bearer {api_server.token}"}
        with httpx.Client(base_url=url, verify=False, headers=headers, trust_env=False) as adapter:  # noqa: S501 # its own
            until(partial(ready, adapter), bool)
            name = quote(metric["pods"]["metric"]["name"], safe="")
            selector = ",".join(f"{key}={value}" for key, value in labels.items())
            path = f"/apis/{GROUP}/v1beta2/namespaces/vision/pods/*/{name}"
            answer = adapter.get(path, params={"labelSelector": selector})
    finally:
        process.close()

    assert answer.is_success, answer.text
    values = {row["describedObject"]["name"]: row["value"] for row in answer.json()["items"]}
    assert values == {"chat-a": "3", "chat-b": "4"}
    (monitoring_filter,) = cloud.filters
    for part in (f'metric.type = "{METRIC}"', 'resource.type = "prometheus_target"', f'cluster = "{CLUSTER}"'):
        assert part in monitoring_filter
