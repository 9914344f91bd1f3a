"""Helm releases over gRPC."""

from __future__ import annotations

import pytest
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from local_google_cloud.kubernetes.object_store import Key, ObjectStore
from tests.local_google_cloud.kubernetes.client import CallRefused, Client
from training_platform.catalog.types import Json
from training_platform.config.reading.secrets import SECRET, SIGNATURE

RELEASE = "kubernetes:helm.sh/v3:Release"
CHART = "oci://registry.example.com/charts/kueue"
KUEUE = Key("helm.sh", "Release", "kueue-system", "kueue")


def release(**fields: object) -> Json:
    return {
        "chart": CHART,
        "version": "0.19.2",
        "name": "kueue",
        "namespace": "kueue-system",
        "createNamespace": True,
        "values": {"replicas": 2},
        **fields,
    }


def test_a_release_is_deployed_with_its_namespace(cluster: Client, store: ObjectStore) -> None:
    inputs, failures = cluster.check(RELEASE, "kueue", release())
    identity, created = cluster.create(RELEASE, "kueue", inputs)

    assert failures == {}
    assert identity == "kueue-system/kueue"
    assert created["status"] == {
        "name": "kueue",
        "namespace": "kueue-system",
        "revision": 1,
        "status": "deployed",
        "chart": "kueue",
        "version": "0.19.2",
    }
    assert created["values"] == {"replicas": 2}
    assert store.keys("tests") == [Key("", "Namespace", "", "kueue-system"), KUEUE]


def test_a_preview_knows_no_status(cluster: Client, store: ObjectStore) -> None:
    identity, created = cluster.create(RELEASE, "kueue", release(), preview=True)

    assert (identity, created["status"], created["chart"]) == ("", UNKNOWN_ON_WIRE, CHART)
    assert store.keys("tests") == []


def test_the_provider_fills_in_name_namespace_and_time_out(cluster: Client) -> None:
    first, _ = cluster.check(RELEASE, "kueue", {"chart": CHART}, randomSeed=b"one")
    again, _ = cluster.check(RELEASE, "kueue", {"chart": CHART, "skipAwait": True}, olds=first, randomSeed=b"two")

    assert first["name"].startswith("kueue-")
    assert (first["namespace"], first["timeout"]) == ("default", 300)
    assert again["name"] == first["name"]
    assert "timeout" not in again


def test_a_release_needs_a_chart(cluster: Client) -> None:
    assert cluster.check(RELEASE, "kueue", {"name": "x"})[1] == {"chart": "required, but missing"}


def test_a_release_needs_a_namespace_to_be_in(cluster: Client, store: ObjectStore) -> None:
    with pytest.raises(CallRefused, match='namespaces "kueue-system" not found'):
        cluster.create(RELEASE, "kueue", release(createNamespace=False))
    assert store.keys("tests") == []


def test_a_name_is_used_once(cluster: Client) -> None:
    cluster.create(RELEASE, "kueue", release())

    with pytest.raises(CallRefused, match="already exists"):
        cluster.create(RELEASE, "other", release())


def test_an_upgrade_counts_revisions_and_a_preview_does_not(cluster: Client, store: ObjectStore) -> None:
    cluster.create(RELEASE, "kueue", release())

    cluster.update(RELEASE, "kueue", "kueue-system/kueue", release(version="0.20.0"), preview=True)
    updated = cluster.update(RELEASE, "kueue", "kueue-system/kueue", release(version="0.20.0"))

    assert (updated["status"]["revision"], updated["status"]["version"]) == (2, "0.20.0")
    deployed = store.read("tests", KUEUE)
    assert deployed is not None
    assert deployed["version"] == "0.20.0"


def test_an_upgrade_of_nothing_is_refused(cluster: Client) -> None:
    with pytest.raises(CallRefused, match='release "kueue" not found'):
        cluster.update(RELEASE, "kueue", "kueue-system/kueue", release())


@pytest.mark.parametrize(
    ("new", "replaces"),
    [
        (release(version="0.20.0"), []),
        (release(values={"replicas": 3}), []),
        (release(name="other"), ["name"]),
        (release(namespace="other"), ["namespace"]),
    ],
)
def test_another_name_or_namespace_is_another_release(cluster: Client, new: Json, replaces: list[str]) -> None:
    difference = cluster.diff(RELEASE, "kueue", release(), new)

    assert (difference.changes, difference.replaces, difference.delete_first) == (True, replaces, False)


def test_a_release_is_read_with_its_secrets(cluster: Client) -> None:
    inputs = release(values={"token": {SIGNATURE: SECRET, "value": "hush"}})
    _, created = cluster.create(RELEASE, "kueue", inputs)

    assert cluster.read(RELEASE, "kueue", "kueue-system/kueue", inputs) == ("kueue-system/kueue", created, inputs)
    assert cluster.read(RELEASE, "kueue", "kueue-system/other", inputs) == ("", {}, {})


def test_an_import_reads_all_that_was_asked_for(cluster: Client) -> None:
    cluster.create(RELEASE, "kueue", release())

    assert cluster.read(RELEASE, "kueue", "kueue-system/kueue")[2] == release()


def test_uninstalling_leaves_the_namespace(cluster: Client, store: ObjectStore) -> None:
    cluster.create(RELEASE, "kueue", release())

    cluster.delete(RELEASE, "kueue", "kueue-system/kueue")

    assert store.keys("tests") == [Key("", "Namespace", "", "kueue-system")]
