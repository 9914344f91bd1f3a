"""The light store: refusals, fields that a server fills in, a restart; property values and their differences."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime import rpc
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from local_google_cloud.kubernetes.object_store import (
    BUILT_IN,
    Key,
    ObjectRefused,
    ObjectStore,
    PropertyChange,
    changes,
    from_struct,
    pruned,
    put,
    with_secrets,
)
from local_google_cloud.kubernetes.wire import UNKNOWNS, readable, wire_struct
from training_platform.catalog.types import Json
from training_platform.config.reading.secrets import SECRET, SIGNATURE
from training_platform.config.reading.unknown import UNKNOWN, holds_unknown
from training_platform.rules.documents.definitions import path_text
from training_platform.views.inputs import at

QUEUE = Key("kueue.x-k8s.io", "LocalQueue", "vision", "main")
VISION = Key("", "Namespace", "", "vision")


@pytest.fixture
def vision(store: ObjectStore) -> ObjectStore:
    store.create("a", VISION, {}, "namespaces")
    return store


def test_an_object_is_read_back_with_what_the_server_fills_in(vision: ObjectStore) -> None:
    created = vision.create("a", QUEUE, {"spec": {"clusterQueue": "q"}, "metadata": {"labels": {"x": "y"}}}, "queues")

    assert created["spec"] == {"clusterQueue": "q"}
    assert created["metadata"]["labels"] == {"x": "y"}
    assert (created["metadata"]["namespace"], created["metadata"]["name"]) == ("vision", "main")
    assert created["metadata"]["resourceVersion"] == "1"
    assert vision.read("a", QUEUE) == created


def test_what_the_server_fills_in_is_the_same_in_every_run_and_differs_by_object(vision: ObjectStore) -> None:
    again = ObjectStore()

    assert again.create("a", VISION, {}, "namespaces") == vision.read("a", VISION)
    assert again.create("b", VISION, {}, "namespaces")["metadata"]["uid"] != vision.read("a", VISION)["metadata"]["uid"]  # type: ignore[index]  # it is there


def test_a_name_is_taken_once_per_cluster_kind_and_namespace(vision: ObjectStore) -> None:
    vision.create("a", QUEUE, {}, "localqueues.kueue.x-k8s.io")

    with pytest.raises(ObjectRefused, match=r'^localqueues\.kueue\.x-k8s\.io "main" already exists$'):
        vision.create("a", QUEUE, {}, "localqueues.kueue.x-k8s.io")
    vision.create("a", QUEUE._replace(kind="Other"), {}, "others")
    vision.create("a", QUEUE._replace(namespace="default"), {}, "localqueues")
    vision.create("b", VISION, {}, "namespaces")
    vision.create("b", QUEUE, {}, "localqueues")


def test_a_namespace_must_exist(store: ObjectStore) -> None:
    with pytest.raises(ObjectRefused, match='namespaces "vision" not found'):
        store.create("a", QUEUE, {}, "localqueues")
    assert store.keys("a") == []


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_namespaces_exist_and_cannot_be_created(store: ObjectStore, name: str) -> None:
    store.create("a", QUEUE._replace(namespace=name), {}, "localqueues")

    with pytest.raises(ObjectRefused, match=f'namespaces "{name}" already exists'):
        store.create("a", Key("", "Namespace", "", name), {}, "namespaces")


def test_an_update_replaces_the_object_and_counts(vision: ObjectStore) -> None:
    vision.create("a", QUEUE, {"spec": {"old": 1}}, "queues")

    vision.update("a", QUEUE, {"spec": {"new": 1}}, "queues")
    updated = vision.update("a", QUEUE, {"spec": {"new": 2}}, "queues")

    assert updated["spec"] == {"new": 2}
    assert updated["metadata"]["resourceVersion"] == "3"


def test_an_update_of_nothing_is_refused(vision: ObjectStore) -> None:
    with pytest.raises(ObjectRefused, match='localqueues "main" not found'):
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

    stored = vision.read("a", QUEUE)
    assert stored is not None
    assert stored["spec"] == {"x": []}


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
        except ObjectRefused:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(make, range(40))) == 1


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
trees = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def secret(value: Any) -> Json:
    return {SIGNATURE: SECRET, "value": value}


def test_the_markers_are_those_of_the_sdk() -> None:
    assert rpc._special_sig_key == SIGNATURE
    assert rpc._special_secret_sig == SECRET
    assert rpc.UNKNOWN == UNKNOWN_ON_WIRE
    assert UNKNOWN_ON_WIRE in UNKNOWNS


@given(st.dictionaries(st.text(), trees))
def test_values_survive_the_wire_unchanged(value: Json) -> None:
    assert from_struct(wire_struct(value)) == value


def test_integers_stay_integers_at_any_depth() -> None:
    read = from_struct(wire_struct({"a": [{"b": 3}], "c": 0.5}))

    assert isinstance(read["a"][0]["b"], int)
    assert read["c"] == 0.5


@given(trees)
def test_reading_twice_changes_nothing_more(value: Any) -> None:
    assert readable(readable(value)) == readable(value)


@pytest.mark.parametrize("sentinel", sorted(UNKNOWNS))
def test_every_kind_of_unknown_is_read_as_unknown_inside_a_secret_too(sentinel: str) -> None:
    read = readable({"plain": sentinel, "hidden": secret([sentinel])})

    assert read == {"plain": UNKNOWN, "hidden": [UNKNOWN]}
    assert holds_unknown(read)
    assert not holds_unknown({"plain": ["a"], "other": None})


def test_a_foreign_object_is_read_as_unknown() -> None:
    assert readable([object()]) == [UNKNOWN]


def test_digging_below_an_unknown_finds_an_unknown_and_below_nothing_finds_nothing() -> None:
    assert at({"metadata": UNKNOWN}, ("metadata", "name")) is UNKNOWN
    assert at({"metadata": "text"}, ("metadata", "name")) is None
    assert at({}, ("metadata", "name")) is None


def test_putting_reaches_into_secrets_and_leaves_the_original_alone() -> None:
    value = {"metadata": secret({"labels": {"a": "b"}})}

    assert put(value, ("metadata", "name"), "x") == {"metadata": secret({"labels": {"a": "b"}, "name": "x"})}
    assert value == {"metadata": secret({"labels": {"a": "b"}})}


def test_putting_below_an_unknown_changes_nothing() -> None:
    assert put({"metadata": UNKNOWN_ON_WIRE}, ("metadata", "name"), "x") == {"metadata": UNKNOWN_ON_WIRE}


def test_pruning_keeps_what_was_set_with_its_live_value() -> None:
    live = {"spec": {"replicas": 5, "filled": True}, "status": {}}

    assert pruned(live, {"spec": {"replicas": 2}}) == {"spec": {"replicas": 5}}


def test_secrets_are_marked_where_they_were() -> None:
    like = {"data": {"a": secret("x"), "b": "y"}, "items": [secret("z")]}

    marked = with_secrets({"data": {"a": "1", "b": "2"}, "items": ["3", "4"], "uid": "u"}, like)

    assert marked == {"data": {"a": secret("1"), "b": "2"}, "items": [secret("3"), "4"], "uid": "u"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": "update"}),
        ({"a": 1}, {}, {"a": "delete"}),
        ({}, {"a": {"b": 1}}, {"a": "add"}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, {"a.b": "update"}),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}, 4]}, {"a[1].b": "update", "a[2]": "add"}),
        ({"a": [1, 2]}, {"a": [1]}, {"a[1]": "delete"}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": "update"}),
        ({"a": 1}, {"a": True}, {"a": "update"}),
        ({"a": None}, {}, {}),
        ({"a": 4}, {"a": 4.0}, {}),
        ({"a": "x"}, {"a": UNKNOWN}, {"a": "update"}),
    ],
)
def test_changes_are_found(old: Any, new: Any, expected: dict[str, str]) -> None:
    assert {str(change): change.kind for change in changes(old, new)} == expected


def test_a_path_is_written_as_the_engine_writes_it() -> None:
    assert path_text(("metadata", "labels", "example.com/a", 0)) == 'metadata.labels["example.com/a"][0]'


@pytest.mark.parametrize(
    ("changed", "touches"),
    [
        (("spec", "selector"), True),
        (("spec", "selector", "matchLabels"), True),
        (("spec",), True),
        (("spec", "replicas"), False),
        (("metadata",), False),
    ],
)
def test_a_change_touches_a_field_at_it_below_it_and_above_it(changed: tuple[str, ...], touches: bool) -> None:
    assert PropertyChange(changed, "update").within(("spec", "selector")) is touches
