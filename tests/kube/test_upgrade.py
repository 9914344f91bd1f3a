"""Kueue or JobSet of an older version, and then this one in its place: what runs and waits goes on.

``TRAINING_PLATFORM_KUEUE_BEFORE`` and ``TRAINING_PLATFORM_JOBSET_BEFORE`` name the older controllers, the same with
``_DEFINITIONS`` the folders of their CustomResourceDefinitions (``config/components/crd/bases`` of their sources).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.kube.clusters import NEEDED, folder_of, needed_binaries
from tests.kube.queues import KUEUE, Queues, planned, until
from tests.kube.test_jobs_admitted import case, lab, node
from tests.kube.test_pathways import JOBSETS, Heads
from training_platform.jobs.gke.jobset import jobset as rendered
from training_platform.jobs.naming import as_run
from training_platform.resources.kueue import configuration
from training_platform.sandbox.kubernetes.api_servers import ApiServer, ControlPlanes
from training_platform.sandbox.kubernetes.controllers import run_controllers
from training_platform.sandbox.kubernetes.definitions import read_definitions

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

BEFORE = "TRAINING_PLATFORM_{}_BEFORE"
SETTINGS = configuration(["reservation", "queued-provisioning"])
QUEUED = "h100-queued-provisioning"
SHARES = {"main": {"h100-reservation": {"nominal_quota": 16}, QUEUED: {"nominal_quota": 8}}}
TEAMS: dict[str, dict[str, Any]] = {
    "vision": {"shares": SHARES, "cohort": "robots"},
    "nlp": {"shares": SHARES, "cohort": "research", "hold": {"main": "Hold"}},
}
COHORTS = {"research": {"weight": 2}, "robots": {"parent": "research"}}


class Releases:
    """One cluster, and what runs in it of a controller: nothing, the older version, or this one."""

    def __init__(self, name: str, server: ApiServer, binaries: Mapping[str, Path], folder: Path) -> None:
        self._name = name
        self._server = server
        self._binaries = binaries
        self._folder = folder

    @contextmanager
    def before(self) -> Iterator[None]:
        """Run the older version, with its own definitions."""
        variable = BEFORE.format(self._name.upper())
        old = {**self._binaries, self._name: Path(os.environ[variable])}
        with self._release("before", old, f"{variable}_DEFINITIONS"):
            yield

    @contextmanager
    def now(self) -> Iterator[None]:
        """Run this version, with its definitions in place of the older ones."""
        with self._release("now", self._binaries, self._name):
            yield

    @contextmanager
    def _release(self, when: str, binaries: Mapping[str, Path], definitions: str) -> Iterator[None]:
        found = [one for each in (definitions, "autoscaler") for one in read_definitions(folder_of(each))]
        with run_controllers(self._server, binaries, self._folder / when, found, SETTINGS):
            yield

    def version(self, when: str) -> str:
        """Return the version that the controller says of itself in its log."""
        (log,) = (self._folder / when).glob(f"{self._name}*.log")
        said = re.search(r'"gitVersion": ?"([^"]+)"', log.read_text(encoding="utf-8"))
        assert said is not None
        return said[1]


@contextmanager
def api_server(name: str, folder: Path) -> Iterator[ApiServer]:
    """Run an API server; the test is skipped where no older version is named."""
    if BEFORE.format(name.upper()) not in os.environ:
        pytest.skip(f"{BEFORE.format(name.upper())} names no older {name}")
    with ControlPlanes(Path(os.environ["KUBEBUILDER_ASSETS"]), folder) as planes:
        yield planes.server("main")


@pytest.fixture
def releases(tmp_path: Path) -> Iterator[tuple[Releases, Queues]]:
    """Kueue's releases, with which all other controllers come and go."""
    with api_server("kueue", tmp_path) as server, server.client() as client:
        yield Releases("kueue", server, needed_binaries(), tmp_path), Queues(client)


@pytest.fixture
def jobsets(tmp_path: Path) -> Iterator[tuple[Releases, Heads]]:
    """JobSet's releases, in a cluster whose other controllers go on while it restarts."""
    binaries = needed_binaries((*NEEDED, "jobset"))
    with api_server("jobset", tmp_path) as server, server.client() as client:
        folders = map(folder_of, ("kueue", "autoscaler", f"{BEFORE.format('JOBSET')}_DEFINITIONS"))
        definitions = [one for folder in folders for one in read_definitions(folder)]
        jobset = {"jobset": binaries.pop("jobset")}
        with run_controllers(server, binaries, tmp_path / "others", definitions, SETTINGS):
            yield Releases("jobset", server, jobset, tmp_path), Heads(client)


def active(queues: Queues) -> dict[str, tuple[str, str]]:
    """Return what Kueue says of each ClusterQueue, with the version of the object that it says it of."""
    found = {}
    for each in queues.get(f"{KUEUE}/clusterqueues")["items"]:
        (condition,) = (row for row in each["status"]["conditions"] if row["type"] == "Active")
        assert condition["observedGeneration"] == each["metadata"]["generation"]
        found[each["metadata"]["name"]] = (condition["status"], condition["reason"])
    return found


def test_what_runs_and_what_waits_goes_on_under_the_next_version(releases: tuple[Releases, Queues]) -> None:
    kueue, queues = releases
    with kueue.before():
        queues.deploy(TEAMS, cohorts=COHORTS)
        queues.submit("vision", "runs", 16)
        queues.runs("vision", "runs")
        queues.submit("vision", "queued", 8, flavor=QUEUED)
        queues.says(queues.request("vision", "queued"), "Provisioned", ResizeRequestName="resize-1")
        queues.runs("vision", "queued", QUEUED)
        queues.submit("vision", "waits", 24)
        queues.waits("vision", "waits")
        queues.submit("nlp", "held", 8)
        queues.waits("nlp", "held")
        said = active(queues)
        admitted = {name: queues.workload("vision", name)["metadata"]["uid"] for name in ("runs", "queued")}

    with pytest.raises(AssertionError, match="failed calling webhook"):
        queues.submit("vision", "meanwhile", 8)

    with kueue.now():
        assert kueue.version("before") != kueue.version("now")
        queues.deploy(TEAMS, cohorts=COHORTS)
        assert until(lambda: active(queues), lambda now: now == said)["vision"] == ("True", "Ready")
        for name, uid in admitted.items():
            assert queues.workload("vision", name)["metadata"]["uid"] == uid
        queues.runs("vision", "runs")
        queues.runs("vision", "queued", QUEUED)
        queues.waits("vision", "waits")

        queues.delete("/apis/batch/v1/namespaces/vision/jobs/runs")
        queues.runs("vision", "waits")
        queues.deploy({**TEAMS, "nlp": {"shares": SHARES, "cohort": "research"}}, cohorts=COHORTS)
        queues.runs("nlp", "held")


def test_jobsets_that_run_wait_or_fail_meanwhile_go_on_under_the_next_version(jobsets: tuple[Releases, Heads]) -> None:
    jobset, queues = jobsets
    machine, target = case("a2-highgpu-1g", {"nodes": 2}, max_nodes=4)
    workspace, job = lab(machine, target)
    team = job.team.name

    def submit(run: str) -> None:
        queues.create(JOBSETS, rendered(as_run(job, run)))

    def running(run: str) -> set[str]:
        pods = (pod for pod in queues.pods(run) if pod["status"].get("phase") == "Running")
        return {pod["metadata"]["uid"] for pod in pods}

    with jobset.before():
        queues.deploy_all(planned(workspace))
        for index in range(4):
            node(queues, job, index, "pool-0")
        for run in ("train-runs", "train-fails", "train-waits"):
            submit(run)
        before = {
            run: until(partial(running, run), lambda uids: len(uids) == 2) for run in ("train-runs", "train-fails")
        }
        queues.waits(team, "train-waits")

    with pytest.raises(AssertionError, match="failed calling webhook"):
        submit("train-meanwhile")
    failed = f"/api/v1/namespaces/{team}/pods/{queues.pods('train-fails')[0]['metadata']['name']}/status"
    queues.change(failed, {"status": {"phase": "Failed"}})
    of_job = f"/apis/batch/v1/namespaces/{team}/jobs/train-fails-slice-0"
    until(lambda: queues.get(of_job)["status"].get("failed"), bool)

    with jobset.now():
        assert jobset.version("before") != jobset.version("now")

        def again() -> set[str]:
            queues.reap(team)
            return running("train-fails")

        until(again, lambda uids: len(uids) == 2 and not uids & before["train-fails"])
        assert running("train-runs") == before["train-runs"]
        assert queues.get(f"{JOBSETS}/train-runs")["status"].get("restarts", 0) == 0
        assert queues.get(f"{JOBSETS}/train-fails")["status"]["restarts"] == 1
        queues.waits(team, "train-waits")
        assert queues.pods("train-waits") == []

        queues.delete(f"{JOBSETS}/train-runs")
        queues.end("train-runs")
        until(lambda: running("train-waits"), lambda uids: len(uids) == 2)
