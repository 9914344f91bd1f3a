"""Compute classes and auto-provisioning in a stack file: one flavor for a class, and what GKE may add to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.pools import auto_provisioned_chips, cluster_pools, flavors, pool_labels

H100 = {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a"}
POOLS = {
    "paid": {**H100, "capacity": "reservation", "reservation": "h100", "max_nodes": 2},
    "cheap": {**H100, "capacity": "spot", "max_nodes": 3},
    "other": {**H100, "max_nodes": 1},
}
CLASS = {"priorities": [{"node_pools": ["paid"]}, {"machine_type": "a3-megagpu-8g", "capacity": "flex-start"}]}
LIMITS = {"cpu": 5000, "memory_gb": 50_000, "accelerators": {"nvidia-h100-80gb": 64, "nvidia-h100-mega-80gb": 32}}


def cluster(**fields: Any) -> ClusterSpec:
    subnet = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}
    whole = {"location": "us-central1", "subnet": subnet, "node_pools": POOLS, **fields}
    return ClusterSpec.model_validate_json(json.dumps(whole))


def test_the_pools_of_a_class_are_one_flavor_of_its_label() -> None:
    found = flavors("main", cluster(compute_classes={"h": {"priorities": [{"node_pools": ["cheap", "paid"]}]}}))

    assert set(found) == {"class-h", "h100"}
    assert found["class-h"].capacity_chips == (2 + 3) * 8
    assert found["class-h"].node_labels == {"cloud.google.com/compute-class": "h"}
    assert [pool.name for pool in found["class-h"].pools] == ["cheap", "paid"]
    assert found["class-h"].capacity == "spot"


def test_nodes_of_a_class_carry_its_label_and_others_do_not() -> None:
    labels = {pool.name: pool_labels(pool) for pool in cluster_pools("main", cluster(compute_classes={"h": CLASS}))}

    assert labels["paid"]["cloud.google.com/compute-class"] == "h"
    assert "cloud.google.com/compute-class" not in labels["other"]


def test_a_class_may_grow_by_what_the_limit_of_its_own_accelerator_leaves() -> None:
    found = flavors("main", cluster(compute_classes={"h": CLASS}, auto_provisioning=LIMITS))

    assert found["class-h"].capacity_chips == 2 * 8 + 32


def test_the_clusters_own_pools_use_up_a_limit() -> None:
    assert auto_provisioned_chips("main", cluster(auto_provisioning=LIMITS)) == {
        "nvidia-h100-80gb": 64 - (2 + 3 + 1) * 8,
        "nvidia-h100-mega-80gb": 32,
    }


def test_a_limit_below_the_clusters_own_pools_adds_nothing() -> None:
    low = {**LIMITS, "accelerators": {"nvidia-h100-80gb": 40}}

    assert auto_provisioned_chips("main", cluster(auto_provisioning=low)) == {"nvidia-h100-80gb": 0}


@pytest.mark.parametrize(
    ("accelerators", "disk"),
    [
        ({"nvidia-h100-80gb": 8}, "pd-balanced"),
        ({"tpu-v6e-slice": 8}, "hyperdisk-balanced"),
        ({"nvidia-h100-80gb": 8, "tpu-v6e-slice": 8}, "hyperdisk-balanced"),
        ({"nvidia-l4": 8, "tpu-v6e-slice": 0}, "pd-balanced"),
    ],
)
def test_new_pools_have_a_disk_that_machines_of_every_limit_take(accelerators: dict[str, int], disk: str) -> None:
    spec = cluster(auto_provisioning={**LIMITS, "accelerators": accelerators}).auto_provisioning

    assert spec is not None
    assert spec.boot_disk_type == disk


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ({"h": {"priorities": [{"node_pools": ["payed"]}]}}, "is not a node pool of this cluster"),
        ({"h": CLASS, "i": {"priorities": [{"node_pools": ["paid"]}]}}, "is in compute class h already"),
        (
            {"h": {"priorities": [{"node_pools": ["paid"]}, {"machine_type": "a2-highgpu-4g"}]}},
            "look different to a job",
        ),
        (
            {"h": {"priorities": [{"node_pools": ["paid"], "machine_type": "a3-highgpu-8g"}]}},
            "either node pools or a machine type",
        ),
        ({"h": {"priorities": [{"node_pools": ["paid"], "capacity": "spot"}]}}, "either node pools or a machine type"),
        ({"h": {"priorities": [{}]}}, "either node pools or a machine type"),
        ({"h": {"priorities": [{"machine_type": "ct5lp-hightpu-4t"}]}}, "is missing: ct5lp-hightpu-4t has TPUs"),
        (
            {"h": {"priorities": [{"machine_type": "a3-highgpu-8g", "capacity": "reservation"}]}},
            "the field reservation is missing",
        ),
    ],
)
def test_a_class_that_no_job_could_use_is_refused(classes: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        cluster(compute_classes=classes)


def test_the_nearest_name_is_given_for_a_limit_that_gke_does_not_know() -> None:
    with pytest.raises(ValidationError) as refused:
        cluster(auto_provisioning={**LIMITS, "accelerators": {"nvidia-h100-80g": 8}})

    (error,) = refused.value.errors()
    assert error["ctx"]["nearest"] == "nvidia-h100-80gb"
