"""Labels and taints of every family: those that GKE sets are selected and tolerated, and none of them is written.

GKE labels nodes of TPUs and GPUs by their model, and slices by their shape; it taints TPUs always, GPUs only beside
pools without GPUs, and nodes of Arm. Sources: GKE docs, TPUs in GKE and GPUs in Standard; GKE cluster-autoscaler
7d25050, system_labels.go; compute-class-api 8067eae, architectureTaintBehavior; read 2026-11-21.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.test_pools_in_depth import NODE_POOL, plan_of, stack_of
from training_platform.catalog import ACCELERATORS
from training_platform.checks.planning.recorder import Plan

FLAVOR = "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
TPU, GPU, ARM = "google.com/tpu", "nvidia.com/gpu", "kubernetes.io/arch"
OURS = ("training-platform/", "cloud.google.com/gke-queued", "cloud.google.com/compute-class")
# Family in the catalogue: the model as GKE labels it, and a machine with the shape of its one-host slice.
TPUS = {
    "tpu-7x": ("tpu7x", "tpu7x-standard-4t", "2x2x1"),
    "tpu-v4": ("tpu-v4-podslice", "ct4p-hightpu-4t", "2x2x1"),
    "tpu-v5e": ("tpu-v5-lite-podslice", "ct5lp-hightpu-8t", "2x4"),
    "tpu-v5e-device": ("tpu-v5-lite-device", "ct5l-hightpu-8t", "2x4"),
    "tpu-v5p": ("tpu-v5p-slice", "ct5p-hightpu-4t", "2x2x1"),
    "tpu-v6e": ("tpu-v6e-slice", "ct6e-standard-8t", "2x4"),
}
GPUS = {
    "a100-40": ("nvidia-tesla-a100", "a2-highgpu-1g"),
    "a100-80": ("nvidia-a100-80gb", "a2-ultragpu-1g"),
    "b200": ("nvidia-b200", "a4-highgpu-8g"),
    "gb200": ("nvidia-gb200", "a4x-highgpu-4g"),
    "h100": ("nvidia-h100-80gb", "a3-highgpu-8g"),
    "h100-mega": ("nvidia-h100-mega-80gb", "a3-megagpu-8g"),
    "h200": ("nvidia-h200-141gb", "a3-ultragpu-8g"),
    "l4": ("nvidia-l4", "g2-standard-4"),
    "rtx-pro-6000": ("nvidia-rtx-pro-6000", "g4-standard-48"),
    "t4": ("nvidia-tesla-t4", "n1-standard-8"),
    "v100": ("nvidia-tesla-v100", "n1-standard-8"),
}


def planned(machine_type: str, **fields: Any) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """Return the nodes of a pool, what its flavor selects, and what that tolerates."""
    plan: Plan = plan_of(stack_of({"machine_type": machine_type, "zone": "us-central1-a", **fields}))
    (pool,) = [each for each in plan.of(NODE_POOL) if "train" in each.name]
    (flavor,) = plan.of(FLAVOR)
    spec = flavor.inputs["spec"]
    return pool.inputs["nodeConfig"], spec["nodeLabels"], spec.get("tolerations", [])


def tolerates(tolerations: list[dict[str, Any]], key: str, value: str) -> bool:
    """Whether pods may run on nodes with the taint ``key=value:NoSchedule``."""
    return any(
        each["key"] == key
        and each.get("effect", "NoSchedule") == "NoSchedule"
        and (each.get("operator") == "Exists" or each.get("value") == value)
        for each in tolerations
    )


def test_every_family_of_the_catalogue_is_here() -> None:
    assert {*TPUS, *GPUS} == ACCELERATORS.keys()


@pytest.mark.parametrize("family", TPUS)
def test_a_flavor_of_tpus_selects_model_and_shape_and_tolerates_what_gke_puts_on_them(family: str) -> None:
    label, machine, topology = TPUS[family]
    node, selected, tolerations = planned(machine, topology=topology)

    assert selected["cloud.google.com/gke-tpu-accelerator"] == label
    assert selected["cloud.google.com/gke-tpu-topology"] == topology
    assert tolerates(tolerations, TPU, "present")
    assert not tolerates(tolerations, ARM, "arm64")
    assert "taints" not in node  # GKE's own is always there
    assert all(key.startswith(OURS) for key in node["labels"])


@pytest.mark.parametrize("family", GPUS)
def test_a_flavor_of_gpus_selects_the_model_and_tolerates_the_taint_that_their_pool_writes(family: str) -> None:
    label, machine = GPUS[family]
    attached = {"accelerator": family, "accelerator_count": 1} if machine.startswith("n1-") else {}
    node, selected, tolerations = planned(machine, **attached)

    assert selected["cloud.google.com/gke-accelerator"] == label
    assert [each["type"] for each in node["guestAccelerators"]] == [label]
    assert node["taints"] == [{"key": GPU, "value": "present", "effect": "NO_SCHEDULE"}]
    assert tolerates(tolerations, GPU, "present")
    assert tolerates(tolerations, ARM, "arm64") is (family == "gb200")
    assert all(key.startswith(OURS) for key in node["labels"])


@pytest.mark.parametrize(
    ("capacity", "label"),
    [("spot", "cloud.google.com/gke-spot"), ("flex-start", "cloud.google.com/gke-flex-start")],
)
def test_a_flavor_selects_how_its_vms_are_had_as_gke_labels_it(capacity: str, label: str) -> None:
    node, selected, _ = planned("a2-highgpu-1g", capacity=capacity)

    assert selected[label] == "true"
    assert label not in node["labels"]
