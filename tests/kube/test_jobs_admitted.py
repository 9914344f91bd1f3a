"""Every kind of job for GKE, as it is rendered, under the real JobSet and Kueue: admitted, and its pods get nodes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, get_args

import pytest

from tests.kube.clusters import KINDS, NEEDED, kueue_cluster
from tests.kube.conftest import JOBS_ON_GKE
from tests.kube.jobs_on_nodes import TEAM, case, lab, left, node
from tests.kube.queues import KUEUE, Json, Queues, planned, until
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.topologies import hosts, legal_topologies
from training_platform.config.model.capacity import Capacity
from training_platform.config.reading.source import read_source
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.common_rules import job_findings
from training_platform.parts.jobs.gke.gke_job import on_gke
from training_platform.parts.jobs.gke.gpu_direct import usable_pools
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.naming import as_run
from training_platform.parts.jobs.resolve import ResolvedJob, parse_job
from training_platform.resources.kueue import configuration
from training_platform.resources.network_devices import DEVICE_CLASSES

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

RUN: Final = "train-bcdfg"
LARGEST = {machine.accelerator.name: machine for machine in MACHINE_TYPES.values() if machine.accelerator}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queues]:
    settings = configuration(get_args(Capacity), claims=True)
    needed = (*NEEDED, "jobset")
    with kueue_cluster(tmp_path_factory.mktemp("jobs"), settings, KINDS, needed) as cluster:
        queues = Queues(cluster.client)
        for device_class in DEVICE_CLASSES:
            queues.device_class(device_class)
        yield queues


@pytest.fixture
def queues(cluster: Queues) -> Iterator[Queues]:
    yield cluster
    for namespace in ("vision", "nlp"):
        cluster.delete(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets")
        until(partial(left, cluster, namespace), lambda pods: not pods)
    cluster.clear()
    flavors = f"{KUEUE}/resourceflavors"  # of one name in two organisations; one that has a topology keeps it
    cluster.delete(flavors)
    until(lambda: cluster.get(flavors)["items"], lambda items: not items)


def gpus() -> Iterator[tuple[str, tuple[Json, Json]]]:
    for name, machine in LARGEST.items():
        if machine.kind != "gpu":
            continue
        for nodes in (1, 2):
            yield f"{name} {nodes} VMs", case(machine, {"nodes": nodes}, max_nodes=2)


def tpus() -> Iterator[tuple[str, tuple[Json, Json]]]:
    """Yield a slice of one VM, one of several, and two of several, of each machine type that has them."""
    for name, machine in MACHINE_TYPES.items():
        if machine.kind != "tpu" or machine.accelerator is None or machine.accelerator.topologies is None:
            continue
        if machine.single_host:
            yield f"{name} one VM", case(machine, {"slices": 1}, topology=machine.single_host, slices=2)
        several = (topology for topology in legal_topologies(machine) if (hosts(machine, topology) or 1) > 1)
        whole = min(several, key=lambda topology: hosts(machine, topology) or 0, default=None)
        if not machine.multi_host or not whole:
            continue
        for slices in (1, 2):
            yield f"{name} {slices} slices", case(machine, {"slices": slices}, topology=whole, slices=2)


H100 = "a3-highgpu-8g"
MEGA = "a3-megagpu-8g"
V5E = "ct5lp-hightpu-4t"
PLACED = {"topology_aware": True, "max_nodes": 4}
OTHERS = {
    **{f"h100 {capacity}": case(H100, {"nodes": 2}, capacity=capacity, max_nodes=2) for capacity in get_args(Capacity)},
    "a part of the VMs of a flavor": case("a2-highgpu-1g", {"nodes": 3}, max_nodes=4),
    "blocks, as near as it goes": case(MEGA, {"nodes": 2}, **PLACED),
    "blocks, one preferred": case(MEGA, {"nodes": 2, "placement": {"level": "block"}}, **PLACED),
    "blocks, one required": case(MEGA, {"nodes": 4, "placement": {"level": "block", "required": True}}, **PLACED),
    "subblocks, one required": case(MEGA, {"nodes": 2, "placement": {"level": "subblock", "required": True}}, **PLACED),
    "network devices on VMs that Kueue picks": case("a3-ultragpu-8g", {"nodes": 2}, **PLACED),
    "slices that Kueue picks": case(V5E, {"slices": 2}, topology="2x4", slices=2, min_slices=2, topology_aware=True),
    "the host's network": case(H100, {"nodes": 2, "host_network": True}, max_nodes=2),
}
CASES = {**dict(gpus()), **dict(tpus()), **OTHERS}


def test_every_accelerator_of_the_catalogue_is_here() -> None:
    used = (MACHINE_TYPES[pool["machine_type"]].accelerator for pool, _ in CASES.values())

    assert {accelerator.name for accelerator in used if accelerator} == LARGEST.keys()
    assert {pool["capacity"] for pool, _ in CASES.values()} == set(get_args(Capacity))


@pytest.mark.parametrize("name", CASES)
def test_a_job_of_each_kind_is_admitted_and_gets_its_nodes(queues: Queues, name: str) -> None:
    workspace, job = lab(*CASES[name])
    queues.deploy_all(planned(workspace))

    runs(queues, job)


@pytest.mark.parametrize(
    ("machine", "target", "pool"),
    [
        (MEGA, {"nodes": 1}, PLACED),
        (MEGA, {"nodes": 2}, PLACED),
        (V5E, {"slices": 1}, {"topology": "2x4", "slices": 2, "min_slices": 2, "topology_aware": True}),
    ],
)
def test_a_flavor_with_a_topology_is_had_beside_one_without(
    queues: Queues, machine: str, target: Json, pool: Json
) -> None:
    """Kueue implies a wish for a topology only where every flavor of a queue has one."""
    first, _ = case(machine, target, **pool)
    workspace, job = lab(
        first, target, {"machine_type": H100, "zone": first["zone"], "max_nodes": 2, "capacity": "spot"}
    )
    queues.deploy_all(planned(workspace))

    runs(queues, job)


# Each program tells the first one its rank, over the address in its variables; the first prints all of them.
MEET = """\
import os, socket, time
rank, nodes = int(os.environ["NODE_RANK"]), int(os.environ["NUM_NODES"])
master = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server, seen = socket.create_server(master), [0]
    while len(seen) < nodes:
        seen.append(int(server.accept()[0].makefile().readline()))
    print(*sorted(seen), os.environ["NODE_NAMES"].split(",")[rank] == os.environ["MASTER_ADDR"])
else:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(master).sendall(f"{rank}\\n".encode())
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
"""


@pytest.mark.parametrize(
    ("machine", "target", "pool", "ranks"),
    [
        (H100, {"nodes": 2}, {"max_nodes": 2}, "0 1"),
        (V5E, {"slices": 2}, {"topology": "2x4", "slices": 2, "min_slices": 2}, "0 1 2 3"),
    ],
    ids=["two VMs", "two slices"],
)
def test_programs_of_the_pods_find_each_other_by_their_variables_alone(
    queues: Queues, machine: str, target: Json, pool: Json, ranks: str
) -> None:
    workspace, job = lab(*case(machine, target, **pool), command=["python3", "-c", MEET])
    queues.deploy_all(planned(workspace))

    runs(queues, job)

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    first = f"{RUN}-slice-0-0.{RUN}"  # this machine is every pod's
    programs = []
    for pod in queues.get(f"/api/v1/namespaces/{TEAM}/pods")["items"]:
        env = {"PATH": os.environ["PATH"], **variables(pod)}
        assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == (first, "29500")
        env = {name: value.replace(first, "127.0.0.1").replace("29500", port) for name, value in env.items()}
        (container,) = pod["spec"]["containers"]
        programs.append(subprocess.Popen(command(container), env=env, stdout=subprocess.PIPE, text=True))
    outputs = [program.communicate(timeout=60)[0] for program in programs]

    assert "".join(outputs) == f"{ranks} True\n"
    assert [program.returncode for program in programs] == [0] * len(programs)


@pytest.mark.parametrize("pool", [{}, {"topology_aware": True}], ids=["the scheduler packs", "Kueue packs"])
def test_a_job_of_one_gpu_is_packed_beside_seven_others(queues: Queues, pool: Json) -> None:
    workspace, job = lab(*case(MEGA, {"nodes": 1, "gpus": 1}, max_nodes=1, **pool))
    queues.deploy_all(planned(workspace))
    node(queues, on_gke(job).flavor, 0, "pool-0")

    for letter in "bcdfghjkl":
        body = jobset(as_run(job, f"train-bcdf{letter}"))
        queues.create(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{TEAM}/jobsets", body)

    placed = until(
        lambda: [pod["spec"].get("nodeName") for pod in queues.get(f"/api/v1/namespaces/{TEAM}/pods")["items"]],
        lambda nodes: len(nodes) == 8 and all(nodes),
    )
    assert set(placed) == {"vm-0"}
    waiting = f"train-bcdf{'bcdfghjkl'[8]}"
    until(lambda: queues.flavor(TEAM, waiting), lambda now: now is None)


def test_a_job_without_accelerators_runs_on_the_pool_that_it_names_and_on_no_other(queues: Queues) -> None:
    pool, _ = case("a2-highgpu-1g", {"nodes": 1}, max_nodes=1)
    target = {"pool": "general", "flavor": None, "nodes": 2}
    workspace, job = lab(pool, target, cpu=None, cpu_pools={"general": {"max_nodes": 2}, "other": {"max_nodes": 2}})
    queues.deploy_all(planned(workspace))
    for name in ("other", "general"):
        queues.node(f"{name}-0", {"cloud.google.com/gke-nodepool": name}, "example.com/none", 1)
    path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{TEAM}/jobsets"

    queues.create(path, jobset(as_run(job, RUN)))

    placed = until(
        lambda: [pod["spec"].get("nodeName") for pod in queues.get(f"/api/v1/namespaces/{TEAM}/pods")["items"]],
        lambda nodes: len(nodes) == 2 and all(nodes),
    )
    assert set(placed) == {"general-0"}
    assert queues.conditions(TEAM, RUN)["Admitted"]["status"] == "True"
    queues.change(f"{KUEUE}/clusterqueues/{TEAM}", {"spec": {"stopPolicy": "Hold"}})
    queues.create(path, jobset(as_run(job, "train-late")))
    queues.waits(TEAM, "train-late")  # it is a run of the queue, which a hold stops


def variables(pod: Json) -> dict[str, str]:
    """Return the variables of a pod's container as its kubelet would set them."""
    about = pod["metadata"]
    values = {}
    for variable in pod["spec"]["containers"][0]["env"]:
        path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        kind, _, key = path.removeprefix("metadata.").partition("['")
        values[variable["name"]] = about[kind][key.removesuffix("']")] if path else variable["value"]
    return values


def command(container: Json) -> list[str]:
    """Return the command of a container, with this Python for its own."""
    parts = [*container["command"], *container.get("args", ())]
    return [sys.executable if part == "python3" else part for part in parts]


def runs(queues: Queues, job: ResolvedJob) -> None:
    """Submit a run of a job, give it the nodes that it would get, and wait until each of its pods has one."""
    gke_job = on_gke(job)
    flavor = gke_job.flavor
    count = gke_job.slices * gke_job.hosts
    team = job.team.name
    body = jobset(as_run(job, RUN))
    pool = usable_pools(flavor, gke_job.hosts)[0]
    for index in range(count):
        node(queues, flavor, index, f"{pool.name}-{index // pool.hosts if flavor.topology else 0}")
    queues.create(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{team}/jobsets", body)
    if flavor.by_request:
        queues.says(queues.request(team, RUN), "Provisioned", ResizeRequestName="resize-1")

    until(lambda: queues.flavor(team, RUN), lambda now: now == flavor.name)
    pods = f"/api/v1/namespaces/{team}/pods?labelSelector=jobset.sigs.k8s.io/jobset-name={RUN}"
    placed = until(
        lambda: [pod["spec"].get("nodeName") for pod in queues.get(pods)["items"]],
        lambda nodes: len(nodes) == count and all(nodes),
    )
    assert len(set(placed)) == count  # a VM each


@pytest.mark.parametrize("file", JOBS_ON_GKE)
def test_every_sample_and_example_is_admitted_and_gets_its_nodes(queues: Queues, organisation: Path, file: str) -> None:
    workspace = read_workspace(organisation)
    job, findings = parse_job(read_source(organisation / file, file), workspace)
    assert job is not None, [str(finding) for finding in findings]
    assert [str(finding) for finding in job_findings(job)] == []
    queues.deploy_all(planned(workspace, job.spec.environment, on_gke(job).gke.cluster))
    for directory in job.team.directories:
        queues.claim(job.team.name, directory)

    runs(queues, job)
