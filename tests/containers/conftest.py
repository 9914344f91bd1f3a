"""The invented organisation's cluster ``gpus`` with one real node, of 64 GPUs as far as Kubernetes knows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from tests.containers.buckets import DRIVER, Buckets
from tests.containers.nodes import IMAGE, bridge, node, outfit, python_image
from tests.kube.clusters import KINDS, NEEDED, kueue_cluster
from tests.parts.jobs.runs.gke_cluster import CLUSTER, PODS, TEAM, Cluster, Command, create_queues, until
from tests.support.lab import ENVIRONMENT, VISION, write_lab
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace
from training_platform.resources.kueue import configuration

NODE = "gke-h100-0"
GPUS = "nvidia.com/gpu"
ROOMS = {"gke-blocks-0": 8, "gke-blocks-1": 16}  # GPUs by node; each node is a sub-block
# VMs that Kueue picks by their blocks; GPUDirect needs images and devices that no node here has.
PLACED = "h100-reservation"
BLOCKS = """\
          blocks: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: reservation, reservation: h100,
                   min_nodes: 4, max_nodes: 4, gpu_direct: false}
"""
SHARE = "        h100: {nominal_quota: 32, borrowing_limit: 8}\n"
JOBSETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{TEAM}/jobsets"


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The organisation's repository; tests add their jobs."""
    team = VISION.replace(SHARE, f"{SHARE}        {PLACED}: {{nominal_quota: 32}}\n")
    return write_lab(tmp_path_factory.mktemp("containers") / "lab", lab=ENVIRONMENT + BLOCKS, lab_vision=team)


@pytest.fixture(scope="session")
def buckets(tmp_path_factory: pytest.TempPathFactory) -> Buckets:
    return Buckets(NODE, tmp_path_factory.mktemp("buckets"))


@pytest.fixture(scope="session")
def cluster(root: Path, buckets: Buckets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    image = python_image()
    programs = Path(os.environ["TRAINING_PLATFORM_CONTAINERS"])
    folder = tmp_path_factory.mktemp("node")
    settings = configuration(["on-demand"])
    with ExitStack() as stack:
        kueue = stack.enter_context(kueue_cluster(folder, settings, KINDS, (*NEEDED, "jobset"), kubelets=True))
        cluster = Cluster(kueue.server)
        stack.callback(cluster.client.close)
        create_queues(cluster, root)
        cluster.post("/apis/storage.k8s.io/v1/csidrivers", DRIVER)
        stack.enter_context(bridge())
        kubelet = stack.enter_context(node(kueue.server, NODE, image, programs=programs, logs=folder / NODE))
        stack.enter_context(buckets.served(kubelet))
        flavor = read_workspace(root).flavors("lab", CLUSTER)["h100"]
        outfit(kueue.server, NODE, flavor.node_labels, {GPUS: 64})
        yield cluster


@pytest.fixture(scope="session")
def blocks(cluster: Cluster, buckets: Buckets, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two nodes that Kueue picks by their sub-blocks."""
    image = python_image()
    programs = Path(os.environ["TRAINING_PLATFORM_CONTAINERS"])
    flavor = read_workspace(root).flavors("lab", CLUSTER)[PLACED]
    with ExitStack() as stack:
        for name, gpus in ROOMS.items():
            logs = tmp_path_factory.mktemp("blocks") / name
            kubelet = stack.enter_context(node(cluster.server, name, image, programs=programs, logs=logs))
            stack.enter_context(Buckets(name, buckets.folder).served(kubelet))
            places = {level: f"{name}-{index}" for index, level in enumerate(flavor.topology_levels[:-1])}
            outfit(cluster.server, name, {**flavor.node_labels, **places}, {GPUS: gpus})
        yield


@pytest.fixture(autouse=True)
def _ended(cluster: Cluster) -> Iterator[None]:
    """Delete a test's runs, and wait for the end of their pods."""
    yield
    cluster.client.delete(JOBSETS, params={"propagationPolicy": "Background"})
    for pod in cluster.items(PODS):
        cluster.client.delete(f"{PODS}/{pod['metadata']['name']}", params={"gracePeriodSeconds": 1})
    until(lambda: len(cluster.items(JOBSETS) + cluster.items(PODS)), lambda count: count == 0)


@pytest.fixture
def cluster_name() -> str:
    """The cluster's name in the organisation."""
    return CLUSTER


@pytest.fixture
def job(root: Path, cluster: Cluster, cluster_name: str, tmp_path: Path) -> Command:
    """Return a function that runs ``training-platform job``."""
    config = json.loads(cluster.server.kubeconfig())
    config["contexts"][0]["name"] = config["current-context"] = f"lab-{cluster_name}"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))

    def run(command: str, *arguments: str) -> Result:
        nobody = "http://127.0.0.1:9"  # what Google would be asked
        where = ["--root", str(root), "--kubeconfig", str(kubeconfig), "--local-cloud", nobody]
        return CliRunner().invoke(app, ["job", command, *where, *arguments])

    return run


@pytest.fixture
def submit(root: Path, job: Command) -> Callable[..., str]:
    """Return a function that submits a job of one VM with a program in Python, and returns its run."""

    def submitted(program: str, **fields: object) -> str:
        text = {
            "environment": "lab", "image": IMAGE, "command": ["python3", "-u", "-c", program],
            "gke": {"cluster": CLUSTER, "flavor": "h100", "nodes": 1}, **fields,
        }  # fmt: skip
        file = root / "jobs" / TEAM / "train.yaml"
        file.write_text(json.dumps(text))
        result = job("submit", str(file))
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    return submitted


class Seen(NamedTuple):
    """What `job status` and `job why` say of a run."""

    state: str
    restarts: int
    interruptions: int
    why: str


@pytest.fixture
def seen(job: Command) -> Callable[[str], Seen]:
    def read(run: str) -> Seen:
        (row,) = json.loads(job("status", run, "--format", "json").stdout)
        return Seen(row["state"], row["restarts"], row["interruptions"], job("why", run).stdout)

    return read
