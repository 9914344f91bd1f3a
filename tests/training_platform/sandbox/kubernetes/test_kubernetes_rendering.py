"""Objects of the stand-in as files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from training_platform.sandbox.kubernetes.rendering import file_name, write_objects
from training_platform.sandbox.kubernetes.store import Key, Store

CLUSTER = "projects/p/locations/l/clusters/dev-a"
NAMESPACE = Key("", "Namespace", "", "vision")
QUEUE = Key("kueue.x-k8s.io", "LocalQueue", "vision", "default")


@pytest.fixture
def filled(store: Store) -> Store:
    store.ensure_namespace(CLUSTER, "vision")
    obj = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "default"},
        "spec": {"a": 1},
    }
    store.create(CLUSTER, QUEUE, obj, "localqueues")
    store.create(CLUSTER, Key("helm.sh", "Release", "vision", "kueue"), {"chart": "kueue"}, "releases")
    return store


def test_each_object_is_a_file_in_its_clusters_folder_and_a_release_is_none(filled: Store, tmp_path: Path) -> None:
    assert write_objects(filled, [CLUSTER], tmp_path) == 2

    assert sorted(path.name for path in (tmp_path / "dev-a").iterdir()) == [
        "localqueue.kueue.x-k8s.io_vision_default.yaml",
        "namespace_vision.yaml",
    ]


def test_a_file_has_what_the_program_said_and_nothing_that_a_server_filled_in(filled: Store, tmp_path: Path) -> None:
    write_objects(filled, [CLUSTER], tmp_path)

    assert yaml.safe_load((tmp_path / "dev-a" / file_name(QUEUE)).read_text()) == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "default", "namespace": "vision"},
        "spec": {"a": 1},
    }


def test_a_second_run_takes_away_what_is_gone_and_leaves_what_people_put_there(filled: Store, tmp_path: Path) -> None:
    write_objects(filled, [CLUSTER], tmp_path)
    before = (tmp_path / "dev-a" / file_name(NAMESPACE)).read_bytes()
    own = tmp_path / "dev-a" / "kustomization.yaml"
    own.write_text("resources: []\n")
    filled.delete(CLUSTER, QUEUE)

    write_objects(filled, [CLUSTER], tmp_path)

    assert {path.name for path in (tmp_path / "dev-a").iterdir()} == {file_name(NAMESPACE), own.name}
    assert (tmp_path / "dev-a" / file_name(NAMESPACE)).read_bytes() == before


def test_names_of_two_objects_are_never_one_file() -> None:
    keys = [Key("", "Secret", "a-b", "c"), Key("", "Secret", "a", "b-c"), Key("", "Secret", "", "a-b-c")]

    assert len({file_name(key) for key in keys}) == len(keys)
    assert file_name(Key("rbac.authorization.k8s.io", "ClusterRole", "", "system:x")).endswith("_system%3Ax.yaml")
