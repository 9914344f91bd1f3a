"""A real API server takes every object of our stacks and jobs, although it refuses unknown fields."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_google_cloud.kubernetes import Key, ObjectRefused, serve
from tests.kube.api_servers import ControlPlanes
from tests.kube.api_store import ApiStore
from tests.kube.clusters import SCHEMAS
from tests.local_google_cloud.kubernetes.client import CallRefused, Client, connect
from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack, planned_stacks
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_checks import job_files
from training_platform.parts.jobs.render import render_job
from training_platform.resources.stack_plan import plannable
from training_platform.resources.stack_resource import UNKNOWN, StackResource

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

STACKS = read_workspace(ORGANISATION).stacks
CLUSTER = "projects/example/locations/us-central1/clusters/tests"
NAMESPACE = "kubernetes:core/v1:Namespace"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
PLAUSIBLE = {"namespace": "deployed", "ip": "10.0.0.2"}
"""What a deployment would tell, by the name of the field; any other is its own name."""


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiStore]:
    if not SCHEMAS.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    folder = tmp_path_factory.mktemp("api-servers")
    with ControlPlanes(Path(os.environ["KUBEBUILDER_ASSETS"]), folder) as planes, ApiStore(planes, [SCHEMAS]) as store:
        yield store


@pytest.fixture(scope="module")
def provider(objects: ApiStore) -> Iterator[Client]:
    with serve(objects=objects) as port, connect(port) as client:
        client.configure(clusterIdentifier=CLUSTER)
        objects.ensure_namespace(CLUSTER, PLAUSIBLE["namespace"])
        yield client


@pytest.fixture(scope="module")
def plans() -> dict[str, PlannedStack]:
    repository = read_workspace(ORGANISATION)
    return {stack.name: plan for stack, plan in planned_stacks(repository, plannable(repository, repository.stacks))}


def planned_objects(plan: PlannedStack) -> list[StackResource]:
    releases = "kubernetes:helm.sh/"
    return [
        resource
        for resource in plan.resources
        if resource.type.startswith("kubernetes:") and not resource.type.startswith(releases)
    ]


@pytest.mark.parametrize("stack", STACKS)
def test_the_server_takes_every_planned_object(
    stack: str, plans: dict[str, PlannedStack], provider: Client, objects: ApiStore
) -> None:
    for release in plans[stack].of("kubernetes:helm.sh/v3:Release"):
        if release.inputs["createNamespace"]:
            objects.ensure_namespace(CLUSTER, release.inputs["namespace"])
    planned = planned_objects(plans[stack])

    assert len(planned) > 10
    for cluster in {resource.options["provider"] for resource in planned}:
        created = []
        for planned_object in (resource for resource in planned if resource.options["provider"] == cluster):
            inputs = plausible_values(planned_object.inputs, planned_object.name)
            identity, outputs = provider.create(planned_object.type, planned_object.name, inputs)
            assert outputs["metadata"]["uid"], planned_object.key
            assert provider.read(planned_object.type, planned_object.name, identity, inputs)[2] == inputs, (
                planned_object.key
            )
            created.append((planned_object.type, planned_object.name, identity))
        for created_object in reversed(created):  # the next cluster has objects of the same names
            provider.delete(*created_object)
            assert provider.read(*created_object)[0] == ""


def test_the_server_takes_every_job_that_runs_on_gke(objects: ApiStore) -> None:
    taken = 0
    for path in job_files(ORGANISATION):
        rendered = render_job(path, ORGANISATION, "gke", date(2026, 11, 21))
        for obj in yaml.safe_load_all(rendered.text):
            about = obj["metadata"]
            objects.ensure_namespace(CLUSTER, about["namespace"])
            key = Key(obj["apiVersion"].partition("/")[0], obj["kind"], about["namespace"], about["name"])
            objects.create(CLUSTER, key, obj, obj["kind"])
            taken += 1
    assert taken >= 2


@pytest.mark.parametrize("preview", [False, True])
def test_a_field_that_the_definition_lacks_is_refused_by_its_name(provider: Client, preview: bool) -> None:
    wrong = {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "wrong"},
        "spec": {"namespaceSelector": {}, "cohort": "research"},
    }  # fmt: skip

    with pytest.raises(CallRefused, match=r"\.spec\.cohort: field not declared in schema"):
        provider.create(QUEUE, "wrong", wrong, preview=preview)


def test_an_update_takes_away_what_the_program_no_longer_says(provider: Client) -> None:
    identity, _ = provider.create(CONFIG_MAP, "c", config_map(a="1", b="2"))

    provider.update(CONFIG_MAP, "c", identity, config_map(a="1"))

    assert provider.read(CONFIG_MAP, "c", identity, {})[1]["data"] == {"a": "1"}


def test_a_refresh_finds_a_change_behind_its_back_and_no_difference_of_spelling(
    provider: Client, objects: ApiStore
) -> None:
    token = "kubernetes:core/v1:ResourceQuota"
    inputs = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "deployed"},
        "spec": {"hard": {"requests.memory": "1024Gi"}},
    }  # fmt: skip
    identity, _ = provider.create(token, "q", inputs)
    assert provider.read(token, "q", identity, inputs)[2] == inputs

    changed = {**inputs, "spec": {"hard": {"requests.memory": "5Gi"}}}
    server = objects.server(CLUSTER)
    server.apply(server.path("", "v1", "ResourceQuota", "deployed", "q"), changed, force=True)

    assert provider.read(token, "q", identity, inputs)[2]["spec"]["hard"] == {"requests.memory": "5Gi"}


def test_a_preview_changes_nothing_and_bears_a_namespace_that_is_still_to_be_made(
    provider: Client, objects: ApiStore
) -> None:
    inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "later"}}

    assert provider.create(CONFIG_MAP, "c", inputs, preview=True)[0] == ""
    assert not objects.has_namespace(CLUSTER, "later")


def test_a_namespace_goes_with_all_that_is_in_it(provider: Client, objects: ApiStore) -> None:
    inputs = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "brief"}}
    provider.create(NAMESPACE, "brief", inputs)
    key = Key("", "ConfigMap", "brief", "inside")
    objects.create(CLUSTER, key, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inside"}}, "")

    provider.delete(NAMESPACE, "brief", "brief")

    assert objects.read(CLUSTER, key) is None
    assert not objects.has_namespace(CLUSTER, "brief")
    provider.create(NAMESPACE, "brief", inputs)  # the name is free again


def test_a_kind_without_a_definition_is_refused_with_what_would_help(objects: ApiStore) -> None:
    obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}

    with pytest.raises(ObjectRefused, match=r'no matches for kind "Widget" in version "example\.com/v1"; --crds names'):
        objects.create(CLUSTER, Key("example.com", "Widget", "", "w"), obj, "widgets")


def test_clusters_do_not_see_each_others_objects_and_each_is_there_after_a_restart(tmp_path: Path) -> None:
    key = Key("", "Namespace", "", "vision")
    binaries = Path(os.environ["KUBEBUILDER_ASSETS"])
    with ControlPlanes(binaries, tmp_path) as planes, ApiStore(planes) as store:
        store.ensure_namespace("a", "vision")
        assert store.read("b", key) is None

    with ControlPlanes(binaries, tmp_path) as planes, ApiStore(planes) as store:
        assert store.read("a", key) is not None


def config_map(**data: str) -> dict[str, Any]:
    about = {"name": "c", "namespace": PLAUSIBLE["namespace"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": data}


def plausible_values(value: Any, name: str) -> Any:
    """Put plausible values in place of those that only a deployment knows."""
    if isinstance(value, dict):
        return {
            key: PLAUSIBLE.get(key, name) if item is UNKNOWN else plausible_values(item, name)
            for key, item in value.items()
        }
    return [plausible_values(item, name) for item in value] if isinstance(value, list) else value
