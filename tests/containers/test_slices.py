"""JAX on the two hosts of a slice: two nodes of four TPUs as far as Kubernetes knows; JAX computes on CPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.containers.buckets import BUCKET, DRIVER, MOUNTS, Buckets
from tests.containers.names import names
from tests.containers.nodes import bridge, libraries, node, outfit, python_image
from tests.containers.pods import log
from tests.kube.clusters import KINDS, NEEDED, kueue_cluster
from tests.parts.jobs.runs.gke_cluster import Cluster, Command, create_queues
from tests.support.lab import ENVIRONMENT, VISION, write_lab
from training_platform.config.workspace import read_workspace
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(400)]

TPUS = "tpus"
FLAVOR = "tpu-v5e-2x4-spot"
HOSTS = ("gke-slice-0", "gke-slice-1")
POOL = "          pair: {machine_type: ct5lp-hightpu-4t, zone: us-west4-a, topology: 2x4, slices: 1, capacity: spot}\n"
FLEX_START = "        tpu-v5e-2x4-flex-start: {nominal_quota: 16}\n"  # which needs GKE to provision VMs
GATHERS = """\
import os
import jax
from jax.experimental import multihost_utils
jax.config.update("jax_cpu_collectives_implementation", "gloo")
rank, hosts = int(os.environ["NODE_RANK"]), int(os.environ["NUM_NODES"])
first = os.environ["NODE_NAMES"].split(",")[0]  # on TPUs JAX reads GKE's own variables
jax.distributed.initialize(first + ":8476", hosts, rank)
gathered = multihost_utils.process_allgather(jax.numpy.array([rank + 1]))
print("gathered", gathered.ravel().tolist(), jax.device_count())
"""


@pytest.fixture
def cluster_name() -> str:
    return TPUS


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    next_pool = "          one: {"
    lab = ENVIRONMENT.replace(next_pool, POOL + next_pool, 1)
    team = VISION.replace(FLEX_START, f"        {FLAVOR}: {{nominal_quota: 8}}\n")
    return write_lab(tmp_path_factory.mktemp("slices") / "lab", lab=lab, lab_vision=team)


@pytest.fixture(scope="module")
def cluster(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    image = python_image()
    programs = Path(os.environ["TRAINING_PLATFORM_CONTAINERS"])
    folder = tmp_path_factory.mktemp("tpus")
    buckets = tmp_path_factory.mktemp("buckets")
    settings = configuration(["spot"])
    with ExitStack() as stack:
        stack.enter_context(libraries(buckets / BUCKET / "packages"))
        kueue = stack.enter_context(kueue_cluster(folder, settings, KINDS, (*NEEDED, "jobset"), kubelets=True))
        tpus = Cluster(kueue.server)
        stack.callback(tpus.client.close)
        create_queues(tpus, root, TPUS)
        tpus.post("/apis/storage.k8s.io/v1/csidrivers", DRIVER)
        stack.enter_context(bridge())
        stack.enter_context(names(kueue.client))
        flavor = read_workspace(root).flavors("lab", TPUS)[FLAVOR]
        labels = {**flavor.node_labels, "cloud.google.com/gke-nodepool": "pair"}
        for name in HOSTS:
            kubelet = stack.enter_context(node(kueue.server, name, image, programs=programs, logs=folder / name))
            stack.enter_context(Buckets(name, buckets).served(kubelet))
            outfit(kueue.server, name, labels, {"google.com/tpu": 4})
        yield tpus


def test_jax_on_the_two_hosts_of_a_slice_gathers_what_both_have(
    cluster: Cluster, submit: Callable[..., str], job: Command
) -> None:
    run = submit(
        GATHERS,
        gke={"cluster": TPUS, "flavor": FLAVOR, "slices": 1},
        mounts=MOUNTS,
        env={"PYTHONPATH": f"/gcs/{BUCKET}/packages", "JAX_PLATFORMS": "cpu"},
        retries=0,
    )

    assert job("wait", run, "--timeout", "4").exit_code == 0, job("why", run).stdout
    pods = cluster.pods(run)
    assert {pod["spec"]["nodeName"] for pod in pods} == set(HOSTS)
    for pod in pods:
        assert "gathered [1, 2] 2" in log(cluster, pod)
