"""Flavors of every family, as GKE labels and taints the nodes of their pools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.pools import NODE_POOL, plan_of, stack_of
from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.config.expansion import NETWORK_DRIVER_LABEL

FLAVOR = "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
GPU = "nvidia.com/gpu"
ARM = "kubernetes.io/arch"
OURS = ("training-platform/", "cloud.google.com/gke-queued", "cloud.google.com/compute-class")
# A machine of every family, of TPUs one with a slice of one host.
FAMILIES = {
    machine.accelerator.name: machine
    for machine in MACHINE_TYPES.values()
    if machine.accelerator and (machine.kind == "gpu" or machine.single_host)
}


def planned(machine_type: str, **fields: Any) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """Return the nodes of a pool, what its flavor selects, and what that tolerates."""
    plan = plan_of(stack_of({"machine_type": machine_type, "zone": "us-central1-a", **fields}))
    (pool,) = [node_pool for node_pool in plan.of(NODE_POOL) if "train" in node_pool.name]
    (flavor,) = plan.of(FLAVOR)
    spec = flavor.inputs["spec"]
    return pool.inputs["nodeConfig"], spec["nodeLabels"], spec.get("tolerations", [])


def tolerates(tolerations: list[dict[str, Any]], key: str, value: str) -> bool:
    """Whether pods may run on nodes with the taint ``key=value:NoSchedule``."""
    return any(
        toleration["key"] == key
        and toleration.get("effect", "NoSchedule") == "NoSchedule"
        and (toleration.get("operator") == "Exists" or toleration.get("value") == value)
        for toleration in tolerations
    )


@pytest.mark.parametrize("family", [name for name, machine in FAMILIES.items() if machine.kind == "gpu"])
def test_a_flavor_of_gpus_selects_the_model_and_tolerates_the_taint_that_their_pool_writes(family: str) -> None:
    node, selected, tolerations = planned(FAMILIES[family].name)

    assert selected["cloud.google.com/gke-accelerator"] == ACCELERATORS[family].gke_label
    assert node["taints"] == [{"key": GPU, "value": "present", "effect": "NO_SCHEDULE"}]
    assert tolerates(tolerations, GPU, "present")
    assert tolerates(tolerations, ARM, "arm64") is (FAMILIES[family].architecture == "arm64")
    assert all(key.startswith(OURS) for key in node["labels"].keys() - {NETWORK_DRIVER_LABEL})
