"""Kueue's metrics that alerts and dashboards query, and Google's adapter, which answers autoscalers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.alerts.promtool import program
from tests.kube.api_servers import ApiServer, ControlPlanes
from tests.kube.clusters import KueueCluster, kueue_cluster
from tests.kube.metrics_adapter import CLUSTER, METRIC, Cloud, adapter_program, running_adapter
from tests.kube.metrics_api import SAMPLE
from tests.kube.model_servers import ADAPTER_PATHS, adapter_objects, team
from tests.kube.queues import Json, Queues, planned, stacks, until
from tests.support.promql import OF_HISTOGRAMS, metrics
from training_platform.quota.chip_hours import question
from training_platform.resources.kueue import configuration
from training_platform.resources.metrics_adapter import GROUP
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


WAITING = {"chat-a": 3.0, "chat-b": 4.0, "other": 100.0}  # requests, by pod


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[ApiServer]:
    adapter_program()
    with ControlPlanes(Path(os.environ["KUBEBUILDER_ASSETS"]), tmp_path) as planes:
        yield planes.server("main")


def pod(name: str, labels: Any) -> Json:
    spec = {"containers": [{"name": "a", "image": "example.com/a:1"}]}
    return {"metadata": {"name": name, "namespace": "vision", "labels": labels}, "spec": spec}


def test_the_adapter_says_of_each_pod_what_the_autoscaler_asks(
    api_server: ApiServer, tmp_path: Path, scope: Scope
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

    with Cloud(WAITING) as cloud, running_adapter(api_server, cloud, tmp_path) as port:
        headers = {"Authorization": f"Bearer {api_server.token}"}
        url = f"https://127.0.0.1:{port}"
        with httpx.Client(base_url=url, verify=False, headers=headers, trust_env=False) as adapter:  # noqa: S501 # its own
            name = quote(metric["pods"]["metric"]["name"], safe="")
            selector = ",".join(f"{key}={value}" for key, value in labels.items())
            path = f"/apis/{GROUP}/v1beta2/namespaces/vision/pods/*/{name}"
            answer = adapter.get(path, params={"labelSelector": selector})

    assert answer.is_success, answer.text
    values = {row["describedObject"]["name"]: row["value"] for row in answer.json()["items"]}
    assert values == {"chat-a": "3", "chat-b": "4"}
    (monitoring_filter,) = cloud.filters
    for part in (f'metric.type = "{METRIC}"', 'resource.type = "prometheus_target"', f'cluster = "{CLUSTER}"'):
        assert part in monitoring_filter
