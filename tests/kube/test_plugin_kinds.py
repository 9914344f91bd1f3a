"""A change of each kind of object that the samples plan, by Pulumi's released Kubernetes plugin in an API server."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.kube.api_servers import ApiServer, ControlPlanes
from tests.kube.clusters import folder_of
from tests.kube.released_plugin import PLUGIN, URN, released_plugin
from tests.kube.rendered_objects import ApiServer as Kinds
from tests.kube.rendered_objects import rendered
from tests.local_google_cloud.kubernetes.client import Client, connect
from tests.support.places import ORGANISATION
from tests.support.plans import planned_stacks
from training_platform.catalog.types import Json
from training_platform.config.workspace import read_workspace
from training_platform.resources.resource_types import KUBERNETES
from training_platform.rules.documents.definitions import read_definitions

pytestmark = [pytest.mark.kube, pytest.mark.engine, pytest.mark.timeout(300)]

DEFINITIONS = ("kueue", "gmp", "TRAINING_PLATFORM_GKE_DEFINITIONS")
STACKS = ("prod", "prod-vision", "prod-nlp")
LABELLED: Json = {"metadata": {"labels": {"changed": "yes"}}}
# Fields of each kind and their new values; a label where an object has no other field that may change.
CHANGES: dict[str, Json] = {
    "ClusterPodMonitoring": {"spec": {"targetLabels": {"metadata": ["pod"]}}},
    "ClusterQueue": {"spec": {"stopPolicy": "Hold"}},
    "ClusterRoleBinding": {"subjects": [{"kind": "ServiceAccount", "name": "other", "namespace": "default"}]},
    "DaemonSet": {"spec": {"minReadySeconds": 7}},
    "GKENetworkParamSet": LABELLED,
    "Job": {"spec": {"suspend": True}},
    "LimitRange": {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "9"}}]}},
    "LocalQueue": {"spec": {"stopPolicy": "Hold"}},
    "Namespace": LABELLED,
    "Network": LABELLED,
    "NetworkPolicy": {"spec": {"podSelector": {"matchLabels": {"changed": "yes"}}}},
    "PersistentVolume": {"spec": {"persistentVolumeReclaimPolicy": "Delete"}},
    "PersistentVolumeClaim": LABELLED,
    "PriorityClass": {"description": "changed"},
    "ResourceFlavor": {"spec": {"nodeLabels": {"changed": "yes"}}},
    "ResourceQuota": {"spec": {"hard": {"pods": "7"}}},
    "Role": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "RoleBinding": {"subjects": [{"kind": "ServiceAccount", "name": "other", "namespace": "default"}]},
    "Secret": LABELLED,
    "ServiceAccount": {"imagePullSecrets": [{"name": "changed"}]},
    "StorageClass": LABELLED,
    "ValidatingAdmissionPolicy": {"spec": {"failurePolicy": "Ignore"}},
    "ValidatingAdmissionPolicyBinding": {"spec": {"validationActions": ["Warn"]}},
    "WorkloadPriorityClass": {"description": "changed"},
}


class Cluster(NamedTuple):
    """The plugin, and the API server behind it, without Kubernetes' controllers."""

    client: Client
    server: ApiServer
    kinds: Kinds


@pytest.fixture(scope="module")
def objects() -> dict[str, Json]:
    """The first planned object of each kind."""
    workspace = read_workspace(ORGANISATION)
    first: dict[str, Json] = {}
    for stack, plan in planned_stacks(workspace, [workspace.stacks[name] for name in STACKS]):
        for planned in rendered("prod", stack.name, plan):
            first.setdefault(planned.body["kind"], planned.body)
    return first


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, objects: dict[str, Json]) -> Iterator[Cluster]:
    if shutil.which(PLUGIN) is None:
        pytest.skip(f"not on PATH: {PLUGIN}")
    definitions = [definition for name in DEFINITIONS for definition in read_definitions(folder_of(name))]
    folder = tmp_path_factory.mktemp("kinds")
    with ControlPlanes(Path(os.environ["KUBEBUILDER_ASSETS"]), folder) as planes, released_plugin() as plugin:
        server = planes.server("main")
        server.define(definitions)
        names = {body["metadata"]["namespace"] for body in objects.values() if "namespace" in body["metadata"]}
        for name in names - {"default", "kube-system"}:
            server.call("POST", "/api/v1/namespaces", json={"metadata": {"name": name}})
        with connect(plugin.port) as client, server.client() as http:
            settings = {"kubeconfig": server.kubeconfig(), "enableServerSideApply": "true", "enablePatchForce": "true"}
            client.set(URN, settings)
            yield Cluster(client, server, Kinds(http))


def changed(body: Json, change: Json) -> Json:
    """Return an object with other values, whose mappings are merged."""
    merged = copy.deepcopy(body)
    for key, value in change.items():
        is_merged = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = changed(merged[key], value) if is_merged else value
    return merged


def has(live: object, change: object) -> bool:
    """Whether a live object has the values of a change."""
    if isinstance(change, dict):
        return isinstance(live, dict) and all(has(live.get(key), value) for key, value in change.items())
    if isinstance(change, list):
        return isinstance(live, list) and all(map(has, live, change)) and len(live) == len(change)
    return live == change


def test_each_planned_kind_has_a_change(objects: dict[str, Json]) -> None:
    assert set(objects) == set(CHANGES)


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_of_a_planned_object_is_deployed_and_leaves_no_difference(
    cluster: Cluster, objects: dict[str, Json], kind: str
) -> None:
    body = changed(objects[kind], {"metadata": {"annotations": {"pulumi.com/skipAwait": "true"}}})
    if kind == "Namespace":
        body["metadata"]["name"] = "changed"  # other objects are in the planned ones
    version = body["apiVersion"] if "/" in body["apiVersion"] else f"core/{body['apiVersion']}"
    token = f"{KUBERNETES}{version}:{kind}"
    inputs, refused = cluster.client.check(token, "object", body)
    assert refused == {}
    identity, outputs = cluster.client.create(token, "object", inputs)
    news = changed(inputs, CHANGES[kind])

    difference = cluster.client.diff(token, "object", inputs, news, outputs=outputs)
    outputs = cluster.client.update(token, "object", identity, news, outputs)

    assert (difference.changes, difference.replaces) == (True, [])
    named = cluster.kinds.kinds[body["apiVersion"], kind]
    space = f"/namespaces/{body['metadata']['namespace']}" if named.namespaced else ""
    root = "apis" if "/" in body["apiVersion"] else "api"
    live = cluster.server.read(f"/{root}/{body['apiVersion']}{space}/{named.plural}/{body['metadata']['name']}")
    assert has(live, CHANGES[kind])
    _, state, refreshed = cluster.client.read(token, "object", identity, news, outputs)
    assert not cluster.client.diff(token, "object", refreshed, news, outputs=state).changes
