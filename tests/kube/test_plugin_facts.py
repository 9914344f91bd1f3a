"""How Pulumi's released Kubernetes plugin treats an API server, and how its substitute in the sandbox does.

Each fact of docs/development/local-cloud.md is one test, for both; a difference on purpose is named in its test.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from local_google_cloud.kubernetes import Key, ObjectStore, serve
from tests.kube.api_servers import ApiServer, ControlPlanes
from tests.kube.clusters import SCHEMAS
from tests.kube.controller_programs import run_controllers
from tests.kube.released_plugin import PLUGIN, URN, released_plugin
from tests.local_google_cloud.kubernetes.client import CallRefused, Client, connect
from training_platform.catalog.types import Json
from training_platform.rules.documents.definitions import read_definitions

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
DEVICE_CLASS = "kubernetes:resource.k8s.io/v1beta1:DeviceClass"
CLUSTER = "tests"
KEY = Key("kueue.x-k8s.io", "ClusterQueue", "", "team")
PATH = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/team"
HELD_SECONDS = 2.0  # by a finalizer, in a test of deletion


class Provider(NamedTuple):
    """One of the two, the cluster behind it as somebody else sees it, and the messages that an engine would print."""

    client: Client
    released: bool
    read: Callable[[], Json | None]
    set_quota: Callable[[str], None]
    set_finalizers: Callable[[list[str]], None]
    messages: list[str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("api-servers")
    programs = Path(os.environ["KUBEBUILDER_ASSETS"])
    manager = {"controller_manager": programs / "kube-controller-manager"}  # its garbage collector ends deletions
    if not manager["controller_manager"].exists():
        pytest.skip("not in KUBEBUILDER_ASSETS: kube-controller-manager")
    with ControlPlanes(programs, folder) as planes:
        api_server = planes.server("main")
        with run_controllers(api_server, manager, folder / "controllers", read_definitions(SCHEMAS / "kueue"), {}):
            yield api_server


@pytest.fixture(params=[pytest.param("released", marks=pytest.mark.kube), "substitute"])
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    if not SCHEMAS.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    if request.param == "released":
        if shutil.which(PLUGIN) is None:
            pytest.skip(f"not on PATH: {PLUGIN}")
        with released(request.getfixturevalue("server")) as plugin:
            yield plugin
    else:
        with substitute() as plugin:
            yield plugin


@contextmanager
def released(server: ApiServer, **settings: str) -> Iterator[Provider]:
    """Run the plugin as our providers configure it, for an API server."""

    def set_quota(quota: str) -> None:
        server.merge(PATH, {"spec": queue(quota)["spec"]}, "kubectl-edit")

    def set_finalizers(names: list[str]) -> None:
        server.merge(PATH, {"metadata": {"finalizers": names}})

    with released_plugin() as plugin, connect(plugin.port) as client:
        ours = {"kubeconfig": server.kubeconfig(), "enableServerSideApply": "true", "enablePatchForce": "true"}
        client.set(URN, ours | settings)
        yield Provider(client, True, lambda: server.read(PATH), set_quota, set_finalizers, plugin.messages)
    server.delete(PATH)


@contextmanager
def substitute() -> Iterator[Provider]:
    """Serve the sandbox's substitute, whose cluster is a store of objects."""
    store = ObjectStore()

    def set_quota(quota: str) -> None:
        store.update(CLUSTER, KEY, queue(quota), "clusterqueues.kueue.x-k8s.io")

    with serve(store=store, crds=[SCHEMAS]) as port, connect(port) as client:
        client.set(URN, {"clusterIdentifier": CLUSTER, "enablePatchForce": "true"})
        yield Provider(client, False, lambda: store.read(CLUSTER, KEY), set_quota, lambda _names: None, [])


def queue(quota: str, **spec: str) -> Json:
    """Return a ClusterQueue."""
    flavor = {"name": "l4", "resources": [{"name": "cpu", "nominalQuota": quota}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "team"},
        "spec": {"namespaceSelector": {}, "resourceGroups": groups, **spec},
    }  # fmt: skip


def quota_of(obj: Json | None) -> str:
    """Return the nominal quota of a ClusterQueue."""
    assert obj is not None
    quota: str = obj["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"]
    return quota


def test_create_refuses_an_object_that_exists_and_a_preview_does_not(provider: Provider) -> None:
    provider.client.create(QUEUE, "team", queue("4"))

    assert provider.client.create(QUEUE, "team", queue("6"), preview=True)[0] == ""
    with pytest.raises(CallRefused) as refused:
        provider.client.create(QUEUE, "team", queue("6"))

    first_line = str(refused.value).splitlines()[0]
    assert first_line == (
        f'resource "urn:pulumi:dev::p::{QUEUE}::team" was not successfully created by the Kubernetes API server: '
        'clusterqueues.kueue.x-k8s.io "team" already exists'
    )
    assert quota_of(provider.read()) == "4"


def test_update_takes_away_a_field_that_the_program_no_longer_sets(provider: Provider) -> None:
    identity, outputs = provider.client.create(QUEUE, "team", queue("4", cohortName="research"))

    provider.client.update(QUEUE, "team", identity, queue("4"), outputs)

    live = provider.read()
    assert live is not None
    assert "cohortName" not in live["spec"]


def test_update_refuses_an_object_that_somebody_deleted(provider: Provider) -> None:
    identity, outputs = provider.client.create(QUEUE, "team", queue("4"))
    provider.client.delete(QUEUE, "team", identity, outputs)

    for preview in (True, False):
        missing = f'update of resource "urn:pulumi:dev::p::{QUEUE}::team" failed: clusterqueues.kueue.x-k8s.io "team"'
        with pytest.raises(CallRefused, match=f"{missing} not found"):
            provider.client.update(QUEUE, "team", identity, queue("6"), outputs, preview=preview)


def test_conflict_is_won_by_the_program_also_in_a_preview(provider: Provider) -> None:
    identity, outputs = provider.client.create(QUEUE, "team", queue("4"))
    outputs = provider.client.update(QUEUE, "team", identity, queue("6"), outputs)
    provider.set_quota("9")

    _, outputs, inputs = provider.client.read(QUEUE, "team", identity, queue("6"), outputs)
    provider.client.update(QUEUE, "team", identity, queue("6"), outputs, preview=True)
    previewed = quota_of(provider.read())
    provider.client.update(QUEUE, "team", identity, queue("6"), outputs)

    assert (quota_of(inputs), previewed, quota_of(provider.read())) == ("9", "9", "6")


@pytest.mark.kube
@pytest.mark.skipif(shutil.which(PLUGIN) is None, reason=f"not on PATH: {PLUGIN}")
def test_conflict_stops_the_plugin_without_patch_force(server: ApiServer) -> None:
    with released(server, enablePatchForce="false") as provider:
        identity, outputs = provider.client.create(QUEUE, "team", queue("4"))
        outputs = provider.client.update(QUEUE, "team", identity, queue("6"), outputs)
        provider.set_quota("9")
        conflict = r'conflict with "kubectl-edit" using kueue.x-k8s.io/v1beta2: \.spec\.resourceGroups'

        with pytest.raises(CallRefused, match=conflict):
            provider.client.update(QUEUE, "team", identity, queue("6"), outputs, preview=True)


def test_an_unknown_field_is_dropped_by_a_create_and_refused_by_the_substitute(provider: Provider) -> None:
    unknown = queue("4", newer="x")

    _, failures = provider.client.check(QUEUE, "team", unknown)
    if not provider.released:
        assert failures.keys() == {"spec.newer"}
        return
    identity, outputs = provider.client.create(QUEUE, "team", unknown)
    _, _, inputs = provider.client.read(QUEUE, "team", identity, unknown, outputs)

    assert failures == {}
    assert "newer" not in inputs["spec"]
    assert provider.messages == []
    with pytest.raises(CallRefused, match=r"\.spec\.newer: field not declared in schema"):
        provider.client.update(QUEUE, "team", identity, queue("6", newer="x"), outputs, preview=True)


def test_an_unknown_field_of_a_built_in_kind_is_dropped_by_a_check_and_refused_by_the_substitute(
    provider: Provider,
) -> None:
    inputs, failures = provider.client.check(CONFIG_MAP, "c", {**config_map(), "newer": "x"})

    if provider.released:
        assert (inputs.get("newer"), failures) == (None, {})
    else:
        assert failures.keys() == {"newer"}


def test_a_delete_waits_for_finalizers_of_which_the_substitute_knows_none(provider: Provider) -> None:
    identity, outputs = provider.client.create(QUEUE, "team", queue("4"))
    provider.set_finalizers(["example.com/in-use"])
    controller = threading.Timer(HELD_SECONDS, provider.set_finalizers, [[]])
    controller.start()
    began = time.monotonic()

    provider.client.delete(QUEUE, "team", identity, outputs)

    waited = time.monotonic() - began
    controller.join()
    assert provider.read() is None
    assert (waited >= HELD_SECONDS) is provider.released
    provider.client.delete(QUEUE, "team", identity, outputs)  # a second delete finds nothing to do


def test_an_import_reads_a_custom_object_whose_inputs_are_its_name_alone(provider: Provider) -> None:
    identity, _ = provider.client.create(QUEUE, "team", queue("4"))

    imported, outputs, inputs = provider.client.read(QUEUE, "team", identity)

    assert (imported, quota_of(outputs)) == ("team", "4")
    assert inputs == {name: queue("4")[name] for name in ("apiVersion", "kind", "metadata")}


def test_a_read_finds_no_object_that_is_gone(provider: Provider) -> None:
    identity, outputs = provider.client.create(QUEUE, "team", queue("4"))
    provider.client.delete(QUEUE, "team", identity, outputs)

    assert provider.client.read(QUEUE, "team", identity, queue("4"), outputs) == ("", {}, {})


def test_a_dry_run_refuses_a_value_and_changes_nothing(provider: Provider) -> None:
    wrong = queue("4", queueingStrategy="Fastest")

    with pytest.raises(CallRefused, match=r'queueingStrategy.*"Fastest"') if provider.released else nullcontext():
        provider.client.create(QUEUE, "team", wrong, preview=True)
    _, failures = provider.client.check(QUEUE, "team", wrong)

    assert (failures == {}) is provider.released  # the substitute refuses it before
    assert provider.client.create(QUEUE, "team", queue("4"), preview=True)[0] == ""
    assert provider.read() is None


def test_a_preview_bears_a_namespace_or_kind_that_is_created_later(provider: Provider) -> None:
    later = {**config_map(), "metadata": {"name": "c", "namespace": "later"}}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}}

    assert provider.client.create(CONFIG_MAP, "c", later, preview=True)[0] == ""
    assert provider.client.create("kubernetes:example.com/v1:Widget", "w", widget, preview=True)[0] == ""


def test_warnings_are_of_old_versions_and_classes_and_the_substitute_has_none(provider: Provider) -> None:
    about = {"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {"name": "d"}, "spec": {}}
    provider.client.check(DEVICE_CLASS, "d", about)
    provider.client.create(DEVICE_CLASS, "d", about, preview=True)

    warned = [message for message in provider.messages if "deprecated by resource.k8s.io/v1beta2" in message]
    assert len(warned) == provider.released


def config_map() -> Json:
    about = {"name": "c", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"a": "1"}}
