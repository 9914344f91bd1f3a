"""The life of an environment and a team under the released plugin, while Kueue's controller and webhooks run.

Kueue's release has its CRDs alone, first those of the version before: its controller runs beside the API server, and
changes with the release. ``TRAINING_PLATFORM_KUEUE_BEFORE`` and the same with ``_DEFINITIONS`` name that version.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kube.api_servers import ApiServer, wait_until_ready
from tests.kube.clusters import SCHEMAS, folder_of, needed_binaries
from tests.kube.controller_programs import run_controllers
from tests.kube.labs import TEAM, Lab, running_lab
from tests.kube.tied_process import TiedProcess
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.engine, pytest.mark.timeout(3000)]

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
LOCAL_QUEUES = f"{KUEUE}/namespaces/vision/localqueues"
QUEUE = f"{KUEUE}/clusterqueues/vision"
WORKLOADS = f"{KUEUE}/namespaces/vision/workloads"
BEFORE = "TRAINING_PLATFORM_KUEUE_BEFORE"
SECONDS = 120.0


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if BEFORE not in os.environ:
        pytest.skip(f"{BEFORE} names no other Kueue")
    with running_lab(tmp_path) as started:
        yield started


@contextmanager
def kueue(lab: Lab, folder: Path, binary: Path) -> Iterator[None]:
    """Run a version of Kueue, whose definitions its release has installed."""
    with run_controllers(lab.server, {"kueue": binary}, folder, [], configuration([])):
        yield


def set_definitions(chart: Path, definitions: Path) -> None:
    """Let a chart have the CRDs of a folder."""
    shutil.rmtree(chart / "templates")
    shutil.copytree(definitions, chart / "templates")


def test_a_team_lives_through_changes_an_upgrade_and_a_dead_api_server(
    lab: Lab, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    chart = tmp_path / "kueue"
    set_definitions(chart, folder_of(f"{BEFORE}_DEFINITIONS"))
    up(lab, "lab", *lab.options)
    with kueue(lab, tmp_path / "before", Path(os.environ[BEFORE])):
        up(lab, "lab-vision")
        nothing_changes(lab)
        run_a_job(lab.server)
        changes_of_a_file_reach_the_queue(lab)
        what_somebody_deleted_or_edited_returns(lab)
    set_definitions(chart, SCHEMAS / "kueue")
    assert changed(lab, "lab") == {"main-kueue-release"}
    with kueue(lab, tmp_path / "now", needed_binaries(["kueue"])["kueue"]):
        wait_until(lambda: condition(lab.server, QUEUE, "Active"))
        assert reserved(lab.server) == ["True"]
        nothing_changes(lab)
        an_update_goes_on_after_the_api_server_died(lab, tmp_path, request.addfinalizer)
        refused = lab.sandbox("destroy", "lab", "--lift-protection")
        assert "lab-vision is still up in lab" in refused.stderr
        for stack in ("lab-vision", "lab"):  # the team with its job
            destroyed = lab.sandbox("destroy", stack, "--lift-protection")
            assert destroyed.returncode == 0, destroyed.stdout + destroyed.stderr


def up(lab: Lab, stack: str, *options: str) -> None:
    ran = lab.sandbox("up", stack, *options)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def changed(lab: Lab, stack: str, command: str = "up") -> set[str]:
    """Run a command that must succeed, and return the resources that it changed."""
    return {name for name, steps in lab.sandbox.steps(command, stack).items() if not steps <= {"same", "read"}}


def nothing_changes(lab: Lab) -> None:
    """Assert that neither a second update nor one after a refresh has a change."""
    for stack in ("lab", "lab-vision"):
        assert changed(lab, stack) == set()
        lab.sandbox.steps("refresh", stack)
        assert changed(lab, stack, "preview") == set()


def run_a_job(server: ApiServer) -> None:
    """Submit a job, and wait until Kueue has reserved quota for it."""
    queue = server.call("GET", LOCAL_QUEUES)["items"][0]["metadata"]["name"]
    resources = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    container = {"name": "a", "image": "registry.example.com/a:1", "resources": {"limits": resources}}
    spec = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    labels = {"kueue.x-k8s.io/queue-name": queue}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "labels": labels}, "spec": spec}
    server.call("POST", "/apis/batch/v1/namespaces/vision/jobs", json=body)
    wait_until(lambda: reserved(server) == ["True"])


def reserved(server: ApiServer) -> list[str]:
    """Return whether each workload has its quota."""
    statuses = []
    for workload in server.call("GET", WORKLOADS)["items"]:
        conditions = workload.get("status", {}).get("conditions", ())
        statuses += [row["status"] for row in conditions if row["type"] == "QuotaReserved"]
    return statuses


def condition(server: ApiServer, path: str, name: str) -> bool:
    conditions = server.call("GET", path).get("status", {}).get("conditions", ())
    return any(row["type"] == name and row["status"] == "True" for row in conditions)


def nominal_quota(server: ApiServer) -> str:
    """Return the team's share of GPUs, which is of one flavor."""
    flavors = [flavor for group in server.call("GET", QUEUE)["spec"]["resourceGroups"] for flavor in group["flavors"]]
    quotas = [{row["name"]: row["nominalQuota"] for row in flavor["resources"]} for flavor in flavors]
    (quota,) = (row["nvidia.com/gpu"] for row in quotas if "nvidia.com/gpu" in row)
    return str(quota)


def share(lab: Lab, quota: int) -> None:
    """Change the team's share in its file."""
    lab.sandbox.write("lab-vision", {**TEAM, "shares": {"main": {"l4": {"nominal_quota": quota}}}})


def changes_of_a_file_reach_the_queue(lab: Lab) -> None:
    share(lab, 1)
    assert changed(lab, "lab-vision") != set()
    assert nominal_quota(lab.server) == "1"


def what_somebody_deleted_or_edited_returns(lab: Lab) -> None:
    queue = lab.server.call("GET", LOCAL_QUEUES)["items"][-1]["metadata"]["name"]  # the job is in the first
    lab.server.delete(f"{LOCAL_QUEUES}/{queue}")
    lab.server.merge(QUEUE, {"spec": {"cohortName": "theirs"}}, "kubectl-edit")
    assert lab.server.call("GET", QUEUE)["spec"]["cohortName"] == "theirs"

    lab.sandbox("refresh", "lab-vision")
    assert len(changed(lab, "lab-vision")) == 2

    assert lab.server.read(f"{LOCAL_QUEUES}/{queue}") is not None
    assert lab.server.call("GET", QUEUE)["spec"]["cohortName"] != "theirs"


def an_update_goes_on_after_the_api_server_died(
    lab: Lab, folder: Path, at_end: Callable[[Callable[[], None]], None]
) -> None:
    """Kill the API server once an update has begun; the next one finishes it."""
    share(lab, 2)
    (pid, command) = next(
        (int(path.parent.name), path.read_bytes().decode().split("\0")[:-1])
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if f"--secure-port={lab.server.url.rpartition(':')[2]}" in path.read_text()
        and "kube-apiserver" in path.read_bytes().decode().split("\0")[0]
    )
    with ThreadPoolExecutor() as thread:
        running = thread.submit(lab.sandbox, "up", "lab-vision")
        wait_until(lambda: bool(lab.sandbox.folder.pending("lab-vision")))
        os.kill(pid, signal.SIGKILL)
        failed = running.result()
    server = TiedProcess(command, folder / "kube-apiserver-again.log")
    at_end(server.close)
    wait_until_ready(server, lab.server.http, "/readyz")
    resumed = lab.sandbox("up", "lab-vision", "--resume")

    assert failed.returncode == 1
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert nominal_quota(lab.server) == "2"
    nothing_changes(lab)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)
