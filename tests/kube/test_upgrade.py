"""Kueue of an older version, and then this one in its place: what runs and waits goes on.

``TRAINING_PLATFORM_KUEUE_BEFORE`` names the older controller, ``TRAINING_PLATFORM_KUEUE_BEFORE_DEFINITIONS`` the folder
of its CustomResourceDefinitions (``config/components/crd/bases`` of its source).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kube.clusters import folder_of, needed_binaries
from tests.kube.queues import KUEUE, Queues, until
from training_platform.resources.kueue.configuration import configuration
from training_platform.sandbox.kubernetes.api_servers.control_plane import Access, ControlPlanes
from training_platform.sandbox.kubernetes.controllers.controllers import Controllers
from training_platform.sandbox.kubernetes.controllers.programs import Binaries
from training_platform.sandbox.kubernetes.schemas import crds

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

BEFORE = "TRAINING_PLATFORM_KUEUE_BEFORE"
SETTINGS = configuration(["reservation", "queued-provisioning"])
QUEUED = "h100-queued-provisioning"
SHARES = {"main": {"h100-reservation": {"nominal_quota": 16}, QUEUED: {"nominal_quota": 8}}}
TEAMS: dict[str, dict[str, Any]] = {
    "vision": {"shares": SHARES, "cohort": "robots"},
    "nlp": {"shares": SHARES, "cohort": "research", "hold": {"main": "Hold"}},
}
COHORTS = {"research": {"weight": 2}, "robots": {"parent": "research"}}


class Releases:
    """One cluster, and what runs in it of Kueue: nothing, the older version, or this one."""

    def __init__(self, access: Access, binaries: Binaries, folder: Path) -> None:
        self._access = access
        self._binaries = binaries
        self._folder = folder

    @contextmanager
    def before(self) -> Iterator[None]:
        """Run the older version, with its own definitions."""
        old = self._binaries._replace(kueue=Path(os.environ[BEFORE]))
        with self._release("before", old, f"{BEFORE}_DEFINITIONS"):
            yield

    @contextmanager
    def now(self) -> Iterator[None]:
        """Run this version, with its definitions in place of the older ones."""
        with self._release("now", self._binaries, "kueue"):
            yield

    @contextmanager
    def _release(self, name: str, binaries: Binaries, definitions: str) -> Iterator[None]:
        found = [one for each in (definitions, "autoscaler") for one in crds.definitions(folder_of(each))]
        with Controllers(self._access, binaries, self._folder / name, found, SETTINGS):
            yield

    def version(self, name: str) -> str:
        """Return the version that Kueue says of itself in its log."""
        (log,) = (self._folder / name).glob("kueue*.log")
        said = log.read_text(encoding="utf-8").partition('"gitVersion":')[2]
        return said.split('"')[1]


@pytest.fixture
def releases(tmp_path: Path) -> Iterator[tuple[Releases, Queues]]:
    if BEFORE not in os.environ:
        pytest.skip(f"{BEFORE} names no older Kueue")
    with ControlPlanes(Path(os.environ["KUBEBUILDER_ASSETS"]), tmp_path) as planes:
        access = planes.access("main")
        with access.client() as client:
            yield Releases(access, needed_binaries(), tmp_path), Queues(client)


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
