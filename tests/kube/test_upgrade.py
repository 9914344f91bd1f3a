"""A controller gives way to its next version: what runs, waits or was preempted goes on.

Kueue goes from an older version to ours and on to a newer one, JobSet from an older one to ours.
``TRAINING_PLATFORM_KUEUE_BEFORE``, ``TRAINING_PLATFORM_KUEUE_NEXT`` and ``TRAINING_PLATFORM_JOBSET_BEFORE`` name the
other versions' controllers, the same with ``_DEFINITIONS`` the folders of their CustomResourceDefinitions
(``config/components/crd/bases`` of their sources).
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.kube.api_servers import ApiServer, ControlPlanes
from tests.kube.clusters import NEEDED, folder_of, needed_binaries
from tests.kube.controller_programs import run_controllers
from tests.kube.heads import JOBSETS, Heads
from tests.kube.jobs_on_nodes import case, lab, node
from tests.kube.queues import KUEUE, Queues, planned, until
from training_platform.catalog.types import Json
from training_platform.parts.jobs.gke.gke_job import on_gke
from training_platform.parts.jobs.gke.jobset import jobset as rendered
from training_platform.parts.jobs.naming import as_run
from training_platform.resources.kueue import configuration
from training_platform.rules.documents.definitions import read_definitions

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

SETTINGS = configuration(["reservation", "queued-provisioning"])
QUEUED = "h100-queued-provisioning"
OWN = {"borrowing_limit": 0}
SHARES = {"main": {"h100-reservation": {"nominal_quota": 16, **OWN}, QUEUED: {"nominal_quota": 8, **OWN}}}
TEAMS: dict[str, dict[str, Any]] = {
    "vision": {"shares": SHARES, "cohort": "robots"},
    "nlp": {"shares": SHARES, "cohort": "research", "hold": {"main": "Hold"}},
}
COHORTS = {"research": {"weight": 2}, "robots": {"parent": "research"}}
PRIORITIES = {"low": 10, "high": 20}
When = Literal["before", "now", "next"]


class Releases:
    """One cluster, and the versions of one controller that run in it in turn; ``now`` is ours."""

    def __init__(self, name: str, server: ApiServer, binaries: Mapping[str, Path], folder: Path) -> None:
        self._name = name
        self._server = server
        self._binaries = binaries
        self._folder = folder

    @contextmanager
    def run(self, when: When) -> Iterator[None]:
        """Run a version, with its own definitions in place of those of the version before."""
        binaries = dict(self._binaries)
        definitions = self._name
        if when != "now":
            variable = variable_of(self._name, when)
            binaries[self._name] = Path(os.environ[variable])
            definitions = f"{variable}_DEFINITIONS"
        definitions_of_version = [
            definition for kind in (definitions, "autoscaler") for definition in read_definitions(folder_of(kind))
        ]
        with run_controllers(self._server, binaries, self._folder / when, definitions_of_version, SETTINGS):
            yield

    def version(self, when: When) -> str:
        """Return the version that the controller says of itself in its log."""
        (log,) = (self._folder / when).glob(f"{self._name}*.log")
        version = re.search(r'"gitVersion": ?"([^"]+)"', log.read_text(encoding="utf-8"))
        assert version is not None
        return version[1]


def variable_of(name: str, when: When) -> str:
    """Return the variable that names another version of a controller."""
    return f"TRAINING_PLATFORM_{name}_{when}".upper()


@contextmanager
def api_server(name: str, folder: Path, *other_versions: When) -> Iterator[ApiServer]:
    """Run an API server; the test is skipped where one of the other versions is not named."""
    for variable in (variable_of(name, when) for when in other_versions):
        if variable not in os.environ:
            pytest.skip(f"{variable} names no other {name}")
    with ControlPlanes(Path(os.environ["KUBEBUILDER_ASSETS"]), folder) as planes:
        yield planes.server("main")


@pytest.fixture
def releases(tmp_path: Path) -> Iterator[tuple[Releases, Queues, ApiServer]]:
    """Kueue's releases, with which all other controllers come and go."""
    with api_server("kueue", tmp_path, "before", "next") as server, server.client() as client:
        yield Releases("kueue", server, needed_binaries(), tmp_path), Queues(client), server


@pytest.fixture
def jobsets(tmp_path: Path) -> Iterator[tuple[Releases, Heads]]:
    """JobSet's releases, in a cluster whose other controllers go on while it restarts."""
    binaries = needed_binaries((*NEEDED, "jobset"))
    with api_server("jobset", tmp_path, "before") as server, server.client() as client:
        folders = map(folder_of, ("kueue", "autoscaler", f"{variable_of('jobset', 'before')}_DEFINITIONS"))
        definitions = [definition for folder in folders for definition in read_definitions(folder)]
        jobset = {"jobset": binaries.pop("jobset")}
        with run_controllers(server, binaries, tmp_path / "others", definitions, SETTINGS):
            yield Releases("jobset", server, jobset, tmp_path), Heads(client)


def active(queues: Queues) -> dict[str, tuple[str, str]]:
    """Return what Kueue says of each ClusterQueue, with the version of the object that it says it of."""
    conditions = {}
    for queue in queues.get(f"{KUEUE}/clusterqueues")["items"]:
        (condition,) = (row for row in queue["status"]["conditions"] if row["type"] == "Active")
        assert condition["observedGeneration"] == queue["metadata"]["generation"]
        conditions[queue["metadata"]["name"]] = (condition["status"], condition["reason"])
    return conditions


def without(version: str, definitions: list[Json]) -> list[Json]:
    """Return definitions that neither serve nor store a version."""
    changed = copy.deepcopy(definitions)
    for definition in changed:
        definition["spec"]["versions"] = [row for row in definition["spec"]["versions"] if row["name"] != version]
    return changed


def test_jobs_that_run_wait_or_were_preempted_go_on_under_the_next_two_versions(
    releases: tuple[Releases, Queues, ApiServer],
) -> None:
    kueue, queues, server = releases
    running = {"runs": "h100-reservation", "queued": QUEUED}

    def uids() -> dict[str, tuple[str, set[str]]]:
        """Return the Workload and the pods of each job that runs."""
        pods = {name: f"/api/v1/namespaces/vision/pods?labelSelector=job-name={name}" for name in running}
        return {
            name: (
                queues.workload("vision", name)["metadata"]["uid"],
                {pod["metadata"]["uid"] for pod in queues.get(path)["items"]},
            )
            for name, path in pods.items()
        }

    with kueue.run("before"):
        queues.deploy(TEAMS, cohorts=COHORTS, priorities=PRIORITIES)
        queues.submit("vision", "preempted", 16, priority="low")
        queues.runs("vision", "preempted")
        queues.submit("vision", "runs", 16, priority="high")
        queues.runs("vision", "runs")
        queues.submit("vision", "queued", 8, flavor=QUEUED)
        queues.says(queues.request("vision", "queued"), "Provisioned", ResizeRequestName="resize-1")
        queues.runs("vision", "queued", QUEUED)
        queues.submit("vision", "waits", 16, priority="high")
        queues.waits("vision", "waits")
        queues.submit("nlp", "held", 8)
        queues.waits("nlp", "held")
        states = active(queues)
        admitted = until(uids, lambda now: all(pods for _, pods in now.values()))

    versions = {kueue.version("before")}
    for when in ("now", "next"):
        with pytest.raises(AssertionError, match="failed calling webhook"):
            queues.submit("vision", f"meanwhile-{when}", 8)
        with kueue.run(when):
            versions.add(kueue.version(when))
            queues.deploy(TEAMS, cohorts=COHORTS, priorities=PRIORITIES)
            assert until(lambda: active(queues), lambda now: now == states)["vision"] == ("True", "Ready")
            for name, flavor in running.items():
                queues.runs("vision", name, flavor)
            assert uids() == admitted
            for team, name in (("vision", "waits"), ("vision", "preempted"), ("nlp", "held")):
                queues.waits(team, name)
            assert queues.conditions("vision", "preempted")["Preempted"]["reason"] == "InClusterQueue"
            if when == "now":
                continue

            # 0.20.0 does not know v1beta1 (its notes; this commit still does): nothing here is stored in it.
            newest = without("v1beta1", read_definitions(folder_of(f"{variable_of('kueue', when)}_DEFINITIONS")))
            server.define(newest)
            lists = [f"{KUEUE}/{definition['spec']['names']['plural']}" for definition in newest]
            until(lambda lists=lists: [server.http.get(path).is_success for path in lists], all)  # type: ignore[misc]
            queues.delete("/apis/batch/v1/namespaces/vision/jobs/runs")
            queues.runs("vision", "waits")
            queues.delete("/apis/batch/v1/namespaces/vision/jobs/waits")
            queues.runs("vision", "preempted")
            teams = {**TEAMS, "nlp": {"shares": SHARES, "cohort": "research"}}
            queues.deploy(teams, cohorts=COHORTS, priorities=PRIORITIES)
            queues.runs("nlp", "held")
    assert len(versions) == 3


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

    with jobset.run("before"):
        queues.deploy_all(planned(workspace))
        for index in range(4):
            node(queues, on_gke(job).flavor, index, "pool-0")
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

    with jobset.run("now"):
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

        queues.end("train-runs")
        until(lambda: running("train-waits"), lambda uids: len(uids) == 2)
