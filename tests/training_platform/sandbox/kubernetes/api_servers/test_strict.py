"""The plugin with CRDs at hand: custom objects are judged before anything is made."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from tests.training_platform.sandbox.kubernetes.client import CallRefused, Client
from training_platform.sandbox.kubernetes.store import ObjectStore
from training_platform.sandbox.kubernetes.values import Json

CLUSTER_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
FLAVOR = "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
LOCAL_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"


def custom(kind: str, **spec: Any) -> Json:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def test_a_right_object_is_made(strict: Client) -> None:
    inputs = custom("ResourceFlavor", nodeLabels={"cloud.google.com/gke-tpu-topology": "2x4"})

    assert strict.check(FLAVOR, "f", inputs) == (inputs, {})
    assert strict.create(FLAVOR, "f", inputs)[0] == "x"


def test_a_wrong_field_is_refused_by_path_and_reason(strict: Client) -> None:
    _, failures = strict.check(CLUSTER_QUEUE, "q", custom("ClusterQueue", cohort="c", stopPolicy="Never"))

    assert failures["spec.cohort"].startswith("spec has no cohort; allowed: ")
    assert failures["spec.cohort"].endswith("; nearest: 'cohortName'")
    assert failures["spec.stopPolicy"].startswith("stopPolicy does not take 'Never'; allowed: ")
    assert len(failures) == 2


def test_a_preview_with_unknowns_is_judged_as_far_as_it_is_known(strict: Client) -> None:
    group = {"coveredResources": ["cpu"], "flavors": [{"name": UNKNOWN_ON_WIRE, "resources": UNKNOWN_ON_WIRE}]}

    _, right = strict.check(CLUSTER_QUEUE, "q", custom("ClusterQueue", resourceGroups=[group]))
    _, wrong = strict.check(CLUSTER_QUEUE, "q", custom("ClusterQueue", resourceGroups=[{**group, "x": 1}]))

    assert right == {}
    assert list(wrong) == ["spec.resourceGroups[0].x"]


def test_a_namespace_is_by_the_definitions_scope(strict: Client) -> None:
    assert strict.create(LOCAL_QUEUE, "l", custom("LocalQueue", clusterQueue="q"))[0] == "default/x"
    queue = custom("ClusterQueue")
    queue["metadata"]["namespace"] = "nowhere"
    assert strict.create(CLUSTER_QUEUE, "q", queue)[0] == "x"


@pytest.mark.parametrize("preview", [True, False])
def test_an_update_that_a_server_refuses_is_refused_in_its_preview_too(
    strict: Client, store: ObjectStore, preview: bool
) -> None:
    pytest.importorskip("cel", reason="no CEL library: the package common-expression-language is not installed")
    strict.create(LOCAL_QUEUE, "l", custom("LocalQueue", clusterQueue="a"))
    before = [store.read("tests", key) for key in store.keys("tests")]

    with pytest.raises(CallRefused, match=r'LocalQueue "x" is invalid: spec\.clusterQueue: field is immutable'):
        strict.update(LOCAL_QUEUE, "l", "default/x", custom("LocalQueue", clusterQueue="b"), preview=preview)
    assert [store.read("tests", key) for key in store.keys("tests")] == before
