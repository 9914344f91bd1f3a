"""The next start removes everything that a killed run left, and nothing else."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.parts.jobs.runs.api_stub import served, write_kubeconfig
from training_platform.clients.google_api import GoogleApi
from training_platform.clients.kubernetes_api import ApiKind, ClusterApi, ClusterError, connect
from training_platform.clients.project_contents import project_api
from training_platform.config.reading.finding import UserError
from training_platform.parts.verify.object_record import RUN_LABEL, Maker, ObjectRecord, locked

pytestmark = pytest.mark.timeout(300)
SETTINGS = ApiKind("api/v1", "configmaps")
PATH = "/api/v1/namespaces/lab/configmaps"
CHILD = """
import sys
from pathlib import Path
from training_platform.clients.kubernetes_api import ApiKind, connect
from training_platform.clients.project_contents import project_api
from training_platform.parts.verify.object_record import ObjectRecord, Maker
api = connect("lab", contexts=["lab"], kubeconfig=sys.argv[1], log_in="")
google = lambda name, region: project_api(name, "p", region, sys.argv[3], read_only=False)
maker = Maker(ObjectRecord.begin(Path(sys.argv[2]), {}), {"lab": api}, google=google)
number = 0
while True:
    maker.make_in_project("monitoring", "", ApiKind("projects/p/alertPolicies", "alertPolicies"), {}, "userLabels")
    for part in range(3):
        number += 1
        about = {"name": maker.name(str(number)), "namespace": "lab"}
        maker.make("lab", ApiKind("api/v1", "configmaps"), {"metadata": about})
        print(number, flush=True)
    maker.remove()
"""


POLICIES = ApiKind("projects/p/alertPolicies", "alertPolicies")
GOOGLE = "/monitoring/v3/"


class Cluster:
    """Objects by path, with unique UIDs; a deletion with a UID deletes only that object.

    Below ``GOOGLE`` are resources of Google Cloud, which get names that are never given twice.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.deleted: list[str] = []
        self.is_late = False  # somebody else deletes resources of Google Cloud just before each deletion
        self._count = 0
        self._lock = threading.Lock()

    def answer(self, method: str, url: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        path = urlsplit(url).path
        with self._lock:
            if path.startswith(GOOGLE):
                return self._answer_as_google(method, path, body)
            if method == "POST":
                return 201, self.put(f"{path}/{(body or {})['metadata']['name']}", body or {})
            if path not in self.objects:
                return 404, {"message": "not found"}
            if method == "DELETE":
                uid = self.objects[path]["metadata"]["uid"]
                if ((body or {}).get("preconditions") or {}).get("uid", uid) != uid:
                    return 409, {"message": "the UID is another"}
                self.deleted.append(path)
                return 200, self.objects.pop(path)
            return 200, self.objects[path]

    def _answer_as_google(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        if method == "POST":
            return 200, self.put_policy(body or {})
        if method == "GET" and path.endswith("/alertPolicies"):
            return 200, {
                "alertPolicies": [
                    row for object_path, row in self.objects.items() if object_path.startswith(f"{path}/")
                ]
            }
        if path not in self.objects:
            return 404, {"error": {"message": "not found"}}
        if method == "DELETE":
            self.deleted.append(path)
            self.objects.pop(path)
            return (404, {"error": {"message": "not found"}}) if self.is_late else (200, {})
        return 200, self.objects[path]

    def put_policy(self, body: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        name = f"projects/p/alertPolicies/{self._count}"
        self.objects[f"{GOOGLE}{name}"] = {**body, "name": name}
        return self.objects[f"{GOOGLE}{name}"]

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        self.objects[path] = {**body, "metadata": {**body["metadata"], "uid": f"uid-{self._count}"}}
        return self.objects[path]


@contextmanager
def reached(folder: Path) -> Iterator[tuple[Cluster, ClusterApi, str]]:
    cluster = Cluster()
    with served(cluster) as address:
        kubeconfig = str(write_kubeconfig(folder / "kubeconfig", address, "lab"))
        yield cluster, connect("lab", contexts=["lab"], kubeconfig=kubeconfig, log_in=""), address


def begun(folder: Path, api: ClusterApi) -> Maker:
    return Maker(ObjectRecord.begin(folder, {}), {"lab": api})


def in_project(folder: Path, address: str) -> Maker:
    return Maker(ObjectRecord.begin(folder, {}), {}, google=partial(google_api_at, address))


def google_api_at(address: str, name: str, region: str) -> GoogleApi:
    return project_api(name, "p", region, address, read_only=False)


def reread(maker: Maker) -> Maker:
    """Return the maker of the next start."""
    return Maker(ObjectRecord.read(maker.object_record.path), maker.clusters, google=maker.google)


def test_a_run_killed_at_any_moment_leaves_nothing_and_touches_nothing_else(tmp_path: Path) -> None:
    chance = random.Random(27)
    kept = set[str]()
    with reached(tmp_path) as (cluster, api, address):
        for number in range(5):
            folder = tmp_path / str(number)
            folder.mkdir()
            child = subprocess.Popen(
                [sys.executable, "-c", CHILD, str(tmp_path / "kubeconfig"), str(folder), address],
                stdout=subprocess.PIPE,
            )
            assert child.stdout is not None
            child.stdout.readline()  # the first object is there
            time.sleep(chance.random() * 0.2)
            child.kill()
            child.wait()
            child.stdout.close()
            record = ObjectRecord.latest(folder)
            assert record is not None
            labels = {"labels": {RUN_LABEL: record.run}}
            planted = {f"{PATH}/planted-{number}", f"{PATH}/verify-{record.run}-999999"}
            for path in planted:
                cluster.put(path, {"metadata": {"name": path.rpartition("/")[2], **labels}})
            policy = cluster.put_policy({"userLabels": {"verify-run": record.run}})
            planted.add(f"{GOOGLE}{policy['name']}")
            other_objects = planted | kept
            cluster.deleted.clear()

            Maker(record, {"lab": api}, google=partial(google_api_at, address)).remove()

            assert cluster.objects.keys() == other_objects
            kept = other_objects
            assert ObjectRecord.read(record.path).open == {}


def test_an_object_whose_answer_was_lost_is_known_by_its_number(tmp_path: Path) -> None:
    with reached(tmp_path) as (cluster, api, _):
        maker = begun(tmp_path, api)
        maker.make("lab", SETTINGS, {"metadata": {"name": "a", "namespace": "lab"}})
        lines = maker.object_record.path.read_text().splitlines()
        maker.object_record.path.write_text("\n".join([*lines[:-1], lines[-1][:9]]))  # killed while it wrote the UID

        reread(maker).remove()

        assert cluster.objects == {}


@pytest.mark.parametrize("with_uid", [True, False])
def test_another_object_of_the_same_name_and_label_stays(tmp_path: Path, with_uid: bool) -> None:
    with reached(tmp_path) as (cluster, api, _):
        maker = begun(tmp_path, api)
        created = maker.make("lab", SETTINGS, {"metadata": {"name": "a", "namespace": "lab"}})
        if not with_uid:
            lines = maker.object_record.path.read_text().splitlines()
            maker.object_record.path.write_text("\n".join([*lines[:-1], ""]))
        about = {"name": "a", "labels": created["metadata"]["labels"]}
        cluster.put(f"{PATH}/a", {"metadata": about})  # somebody deleted it, and created it again

        again = reread(maker)
        again.remove()

        assert f"{PATH}/a" in cluster.objects
        assert len(again.kept) == 1
        assert cluster.deleted == []


@pytest.mark.parametrize("lost", [False, True])
def test_a_resource_of_google_cloud_is_known_by_its_name_or_its_number(tmp_path: Path, lost: bool) -> None:
    with reached(tmp_path) as (cluster, _, address):
        maker = in_project(tmp_path, address)
        created = maker.make_in_project("monitoring", "", POLICIES, {"displayName": "a"}, "userLabels")
        other = cluster.put_policy({"userLabels": {"verify-run": maker.object_record.run}})
        if lost:
            lines = maker.object_record.path.read_text().splitlines()
            maker.object_record.path.write_text("\n".join([*lines[:-1], ""]))  # killed before the answer came

        reread(maker).remove()

        assert created["displayName"] == "a"
        assert cluster.objects.keys() == {f"{GOOGLE}{other['name']}"}


def test_a_resource_whose_labels_somebody_changed_stays(tmp_path: Path) -> None:
    with reached(tmp_path) as (cluster, _, address):
        maker = in_project(tmp_path, address)
        created = maker.make_in_project("monitoring", "", POLICIES, {}, "userLabels")
        cluster.objects[f"{GOOGLE}{created['name']}"]["userLabels"] = {"verify-run": maker.object_record.run}

        maker.remove()

        assert len(cluster.objects) == len(maker.kept) == 1


def test_a_resource_that_somebody_deletes_first_is_gone_as_well(tmp_path: Path) -> None:
    with reached(tmp_path) as (cluster, _, address):
        maker = in_project(tmp_path, address)
        maker.make_in_project("monitoring", "", POLICIES, {}, "userLabels")
        cluster.is_late = True

        maker.remove()

        assert cluster.objects == {}
        assert maker.kept == []


def test_an_object_without_the_label_stays(tmp_path: Path) -> None:
    with reached(tmp_path) as (cluster, api, _):
        maker = begun(tmp_path, api)
        maker.make("lab", SETTINGS, {"metadata": {"name": "a", "namespace": "lab"}})
        cluster.objects[f"{PATH}/a"]["metadata"]["labels"] = {}

        maker.remove()

        assert f"{PATH}/a" in cluster.objects


def test_an_unreachable_cluster_keeps_the_record_open(tmp_path: Path) -> None:
    with reached(tmp_path) as (_, api, _):
        maker = begun(tmp_path, api)
        maker.make("lab", SETTINGS, {"metadata": {"name": "a", "namespace": "lab"}})
        other = Maker(ObjectRecord.read(maker.object_record.path), {})

        with pytest.raises(ClusterError, match="cannot be reached"):
            other.remove()

        assert len(ObjectRecord.read(maker.object_record.path).open) == 1


def test_a_record_that_cannot_be_read_deletes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("no json\n")

    with pytest.raises(UserError, match="Nothing was deleted"):
        ObjectRecord.latest(tmp_path)


def test_two_runs_of_an_environment_do_not_meet(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(UserError, match="is running"), locked(tmp_path):
        pytest.fail("both run")
