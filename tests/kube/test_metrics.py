"""The metrics that alerts and dashboards ask of Kueue are those that its controller gives, with their labels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.kube.conftest import SCHEMAS
from tests.kube.controllers import Binaries, Controllers
from tests.kube.queues import Queues, until
from tests.modules.monitoring.promql import OF_HISTOGRAMS, metrics
from training_platform.resources.kueue.configuration import configuration
from training_platform.sandbox.kubernetes.api_servers.control_plane import ControlPlanes

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

SAMPLE = re.compile(r"^(kueue_\w+)\{(.*)\} ", re.MULTILINE)
OF_SCRAPES = {"cluster", "location", "project_id", "job", "instance"}  # which managed Prometheus adds
NEVER_HERE = {"kueue_admission_checks_wait_time_seconds"}  # nobody provisions VMs


class Cluster(NamedTuple):
    """Queues, and what tells of them."""

    queues: Queues
    client: httpx.Client
    url: str

    def labels(self) -> dict[str, set[str]]:
        """Return the labels of each metric that Kueue gives now, by the name without a histogram's endings."""
        found: dict[str, set[str]] = {}
        for name, labels in SAMPLE.findall(self.client.get(self.url).raise_for_status().text):
            base = next((name.removesuffix(end) for end in OF_HISTOGRAMS if name.endswith(end)), name)
            found[base] = set(re.findall(r'(\w+)="', labels)) - {"le"}
        return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = Path(os.environ["KUBEBUILDER_ASSETS"])
    binaries = Binaries.of_settings(folder)._replace(jobset=None)
    if binaries.kueue is None or not SCHEMAS.is_dir():
        pytest.skip("Kueue, or ../shared/schemas, is not there")
    definitions = [file for name in ("jobset", "kueue", "autoscaler") for file in (SCHEMAS / name).glob("*.yaml")]
    place = tmp_path_factory.mktemp("metrics")
    with ControlPlanes(folder, place) as planes:
        access = planes.access("main")
        controllers = Controllers(access, binaries, place / "controllers", definitions, configuration(["reservation"]))
        with controllers, access.client() as client:
            yield Cluster(Queues(client), client, controllers.metrics_url)


def test_kueue_gives_every_metric_that_is_asked_for_with_its_labels(cluster: Cluster) -> None:
    queues, source = cluster.queues, metrics()["kueue"]
    asked = {name: {*source["labels"], *own} for name, own in source["metrics"].items() if name.startswith("kueue_")}
    shares = {"main": {"h100-reservation": {"nominal_quota": 8}}}
    queues.deploy({"vision": {"shares": shares}, "nlp": {"shares": shares}}, lend_unpromised=True)
    queues.submit("vision", "low", 8, priority="low")
    queues.runs("vision", "low")
    queues.submit("nlp", "all", 56)
    queues.runs("nlp", "all")
    queues.submit("vision", "high", 8, priority="high")  # which stops a job
    queues.runs("vision", "high")

    given = until(cluster.labels, lambda now: asked.keys() - NEVER_HERE <= now.keys())

    wrong = {name: given[name] for name in asked.keys() & given.keys() if given[name] | OF_SCRAPES != asked[name]}
    assert wrong == {}
