"""A cluster of the invented organisation: a real API server with Kueue's and JobSet's controllers, nodes as objects."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from click.testing import CliRunner, Result

from tests.kube.api_servers import ControlPlanes
from tests.kube.clusters import KINDS, NEEDED, folder_of, needed_binaries
from tests.kube.controller_programs import run_controllers
from tests.parts.jobs.runs.gke_cluster import (
    CLUSTER,
    JOB,
    PODS,
    TEAM,
    Cluster,
    Command,
    create_nodes,
    create_queues,
    until,
)
from tests.support.lab import write_lab
from training_platform.cli.main import app
from training_platform.resources.kueue import configuration
from training_platform.rules.documents.definitions import read_definitions


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The organisation's repository with one job, ``jobs/vision/train.yaml``."""
    root = write_lab(tmp_path_factory.mktemp("runs") / "lab")
    (root / "jobs" / TEAM / "train.yaml").write_text(JOB)
    return root


@pytest.fixture(scope="module")
def cluster(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster with controllers, flavors, queues of team vision, and 8 nodes of 8 H100."""
    folder = Path(os.environ["KUBEBUILDER_ASSETS"])
    binaries = needed_binaries((*NEEDED, "jobset"))
    definitions = [definition for name in KINDS for definition in read_definitions(folder_of(name))]
    place = tmp_path_factory.mktemp("cluster")
    with ControlPlanes(folder, place) as planes:
        server = planes.server(CLUSTER)
        with run_controllers(server, binaries, place / "controllers", definitions, configuration(["on-demand"])):
            cluster = Cluster(server)
            create_queues(cluster, root)
            create_nodes(cluster, root)
            ended = Event()
            kubelets = Thread(target=cluster.reap, args=(ended,))
            kubelets.start()
            yield cluster
            ended.set()
            kubelets.join()
            cluster.client.close()


@pytest.fixture(scope="module")
def kubeconfig(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a kubeconfig with the cluster under the name that commands look for."""
    config = json.loads(cluster.server.kubeconfig())
    config["contexts"][0]["name"] = config["current-context"] = f"lab-{CLUSTER}"
    path = tmp_path_factory.mktemp("config") / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture
def job(root: Path, kubeconfig: Path) -> Command:
    """Return a function that runs ``training-platform job``."""

    def run(command: str, *arguments: str) -> Result:
        nobody = "http://127.0.0.1:9"  # what Google would be asked
        where = ["--root", str(root), "--kubeconfig", str(kubeconfig), "--local-cloud", nobody]
        return CliRunner().invoke(app, ["job", command, *arguments, *where])

    return run


@pytest.fixture
def submit(root: Path, job: Command, cluster: Cluster) -> Iterator[Callable[..., str]]:
    """Return a function that submits the job and returns its run; every run is gone after the test."""

    def submitted(*arguments: str, file: str = "train.yaml") -> str:
        result = job("submit", str(root / "jobs" / TEAM / file), *arguments)
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    yield submitted
    path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{TEAM}/jobsets"
    cluster.client.delete(path, params={"propagationPolicy": "Background"})
    until(lambda: cluster.items(path) + cluster.items(PODS), lambda items: not items)
