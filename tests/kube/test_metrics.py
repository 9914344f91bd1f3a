"""The metrics that alerts and dashboards ask of Kueue are those that its controller gives, with their labels."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.kube.clusters import KueueCluster, kueue_cluster
from tests.kube.queues import Queues, until
from tests.modules.monitoring.promql import OF_HISTOGRAMS, metrics
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

SAMPLE = re.compile(r"^(kueue_\w+)\{(.*)\} ", re.MULTILINE)
OF_SCRAPES = {"cluster", "location", "project_id", "job", "instance"}  # which managed Prometheus adds
NEVER_HERE = {"kueue_admission_checks_wait_time_seconds"}  # nobody provisions VMs


def labels(cluster: KueueCluster) -> dict[str, set[str]]:
    """Return the labels of each metric that Kueue gives now, by the name without a histogram's endings."""
    found: dict[str, set[str]] = {}
    for name, given in SAMPLE.findall(cluster.client.get(cluster.metrics_url).raise_for_status().text):
        base = next((name.removesuffix(end) for end in OF_HISTOGRAMS if name.endswith(end)), name)
        found[base] = set(re.findall(r'(\w+)="', given)) - {"le"}
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KueueCluster]:
    settings = configuration(["reservation"])
    with kueue_cluster(tmp_path_factory.mktemp("metrics"), settings, needed=["kueue"]) as cluster:
        yield cluster


def test_kueue_gives_every_metric_that_is_asked_for_with_its_labels(cluster: KueueCluster) -> None:
    queues, source = Queues(cluster.client), metrics()["kueue"]
    asked = {name: {*source["labels"], *own} for name, own in source["metrics"].items() if name.startswith("kueue_")}
    shares = {"main": {"h100-reservation": {"nominal_quota": 8}}}
    queues.deploy({"vision": {"shares": shares}, "nlp": {"shares": shares}}, lend_unpromised=True)
    queues.submit("vision", "low", 8, priority="low")
    queues.runs("vision", "low")
    queues.submit("nlp", "all", 56)
    queues.runs("nlp", "all")
    queues.submit("vision", "high", 8, priority="high")  # which stops a job
    queues.runs("vision", "high")

    given = until(lambda: labels(cluster), lambda now: asked.keys() - NEVER_HERE <= now.keys())

    wrong = {name: given[name] for name in asked.keys() & given.keys() if given[name] | OF_SCRAPES != asked[name]}
    assert wrong == {}
