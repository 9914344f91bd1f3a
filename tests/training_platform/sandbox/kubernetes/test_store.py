"""The objects: what is refused, what a server fills in, and what survives a restart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from training_platform.sandbox.kubernetes.store import BUILT_IN, Key, ObjectStore, Refused

QUEUE = Key("kueue.x-k8s.io", "LocalQueue", "vision", "main")
VISION = Key("", "Namespace", "", "vision")


@pytest.fixture
def vision(store: ObjectStore) -> ObjectStore:
    store.create("a", VISION, {}, "namespaces")
    return store


def test_an_object_is_read_back_with_what_the_server_fills_in(vision: ObjectStore) -> None:
    made = vision.create("a", QUEUE, {"spec": {"clusterQueue": "q"}, "metadata": {"labels": {"x": "y"}}}, "queues")

    assert made["spec"] == {"clusterQueue": "q"}
    assert made["metadata"]["labels"] == {"x": "y"}
    assert (made["metadata"]["namespace"], made["metadata"]["name"]) == ("vision", "main")
    assert made["metadata"]["resourceVersion"] == "1"
    assert vision.read("a", QUEUE) == made


def test_what_the_server_fills_in_is_the_same_in_every_run_and_differs_by_object(vision: ObjectStore) -> None:
    again = ObjectStore()

    assert again.create("a", VISION, {}, "namespaces") == vision.read("a", VISION)
    assert again.create("b", VISION, {}, "namespaces")["metadata"]["uid"] != vision.read("a", VISION)["metadata"]["uid"]  # type: ignore[index]  # it is there


def test_a_name_is_taken_once_per_cluster_kind_and_namespace(vision: ObjectStore) -> None:
    vision.create("a", QUEUE, {}, "localqueues.kueue.x-k8s.io")

    with pytest.raises(Refused, match=r'^localqueues\.kueue\.x-k8s\.io "main" already exists$'):
        vision.create("a", QUEUE, {}, "localqueues.kueue.x-k8s.io")
    vision.create("a", QUEUE._replace(kind="Other"), {}, "others")
    vision.create("a", QUEUE._replace(namespace="default"), {}, "localqueues")
    vision.create("b", VISION, {}, "namespaces")
    vision.create("b", QUEUE, {}, "localqueues")


def test_a_namespace_must_exist(store: ObjectStore) -> None:
    with pytest.raises(Refused, match='namespaces "vision" not found'):
        store.create("a", QUEUE, {}, "localqueues")
    assert store.keys("a") == []


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_namespaces_are_there_and_cannot_be_made(store: ObjectStore, name: str) -> None:
    store.create("a", QUEUE._replace(namespace=name), {}, "localqueues")

    with pytest.raises(Refused, match=f'namespaces "{name}" already exists'):
        store.create("a", Key("", "Namespace", "", name), {}, "namespaces")


def test_an_update_replaces_the_object_and_counts(vision: ObjectStore) -> None:
    vision.create("a", QUEUE, {"spec": {"old": 1}}, "queues")

    vision.update("a", QUEUE, {"spec": {"new": 1}}, "queues")
    updated = vision.update("a", QUEUE, {"spec": {"new": 2}}, "queues")

    assert updated["spec"] == {"new": 2}
    assert updated["metadata"]["resourceVersion"] == "3"


def test_an_update_of_nothing_is_refused(vision: ObjectStore) -> None:
    with pytest.raises(Refused, match='localqueues "main" not found'):
        vision.update("a", QUEUE, {}, "localqueues")


def test_deleting_a_namespace_takes_along_what_is_in_it_and_nothing_else(vision: ObjectStore) -> None:
    elsewhere = QUEUE._replace(namespace="default")
    for key in (QUEUE, elsewhere):
        vision.create("a", key, {}, "queues")
    for key in (VISION, QUEUE):
        vision.create("b", key, {}, "queues")

    vision.delete("a", VISION)
    vision.delete("a", VISION)

    assert vision.keys("a") == [elsewhere]
    assert vision.keys("b") == [VISION, QUEUE]


def test_a_callers_copy_is_its_own(vision: ObjectStore) -> None:
    vision.create("a", QUEUE, {"spec": {"x": []}}, "queues")["spec"]["x"].append("changed")

    found = vision.read("a", QUEUE)
    assert found is not None
    assert found["spec"] == {"x": []}


def test_objects_survive_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "objects.json"
    first = ObjectStore(file)
    first.create("a", VISION, {"metadata": {"labels": {"team": "vision"}}}, "namespaces")
    first.create("a", QUEUE, {}, "queues")
    first.delete("a", QUEUE)

    second = ObjectStore(file)

    assert second.keys("a") == [VISION]
    assert second.read("a", VISION) == first.read("a", VISION)
    assert list(tmp_path.iterdir()) == [file]
    assert file.stat().st_mode & 0o077 == 0


def test_only_one_of_many_threads_makes_an_object(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path / "objects.json")

    def make(_: int) -> bool:
        try:
            store.create("a", VISION, {}, "namespaces")
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(make, range(40))) == 1
