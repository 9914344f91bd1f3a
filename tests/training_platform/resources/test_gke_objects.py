"""Objects of kinds that GKE itself brings: only fields that their published types have, with values that these take.

GKE publishes the Go types of these kinds, and no CRD of ComputeClass. What the tests hold of them is said in a table:
the path of each field that we may write, and what its value is. Networks are held to the documents of their CRDs too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.stacks.test_pools_in_depth import NATURES, NODE_POOL, PARAMETERS, plan_of, stack_of
from training_platform.catalog import ACCELERATORS
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.pools import cluster_pools
from training_platform.resources.compute_classes import compute_class
from training_platform.resources.planned import Planned
from training_platform.rules.documents.problems import Problem
from training_platform.rules.documents.shapes import check_of

Takes = Callable[[Any], bool]
RANGES = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}
POOLS = {
    "slices": {"machine_type": "ct5lp-hightpu-4t", "zone": "us-west4-a", "topology": "4x8", "slices": 2},
    "h100": {"machine_type": "a3-highgpu-8g", "zone": "us-west4-a"},
}
V5E = {"machine_type": "ct5lp-hightpu-4t", "topology": "4x8", "zones": ("us-west4-a",)}
H100 = {"machine_type": "a3-highgpu-8g", "zones": ("us-west4-a",)}
RESERVATION = {"name": "h100", "project": "example-shared", "block": "b1", "sub_block": "s1"}


def text(value: object) -> bool:
    """Whether a value is a text that says something."""
    return isinstance(value, str) and value != ""


def flag(value: object) -> bool:
    """Whether a value is a truth value."""
    return isinstance(value, bool)


def one_of(*names: str) -> Takes:
    """Return what takes these texts alone."""
    return lambda value: value in names


def whole(least: int, most: int | None = None) -> Takes:
    """Return what takes whole numbers in a range."""
    return lambda value: type(value) is int and value >= least and (most is None or value <= most)


# GoogleCloudPlatform/compute-class-api 8067eae (2026-08-21), api/cloud.google.com/v1/types.go, read 2026-11-21.
COMPUTE_CLASS: Mapping[str, Takes] = {
    "activeMigration.optimizeRulePriority": flag,
    "autoscalingPolicy.consolidationDelayMinutes": whole(1, 1440),
    "nodePoolAutoCreation.enabled": flag,
    "nodePoolConfig.imageStreaming.enabled": flag,
    "nodePoolConfig.serviceAccount": text,
    "whenUnsatisfiable": one_of("ScaleUpAnyway", "DoNotScaleUp"),
    "priorities[].capacityCheckWaitTimeSeconds": whole(1, 86_400),
    "priorities[].flexStart.enabled": flag,
    "priorities[].gpu.count": whole(0),
    "priorities[].gpu.driverVersion": one_of("default", "latest", "autoinstall-disabled"),
    "priorities[].gpu.type": text,
    "priorities[].location.zones[]": text,
    "priorities[].machineType": lambda value: text(value) and len(value) <= 100,
    "priorities[].maxRunDurationSeconds": whole(0),
    "priorities[].nodepools[]": text,
    "priorities[].reservations.affinity": one_of("Specific", "AnyBestEffort", "None", "AnyThenFail"),
    "priorities[].reservations.specific[].name": text,
    "priorities[].reservations.specific[].project": text,
    "priorities[].reservations.specific[].reservationBlock.name": text,
    "priorities[].reservations.specific[].reservationBlock.reservationSubBlock.name": text,
    "priorities[].reservations.specific[].zones[]": text,
    "priorities[].spot": flag,
    "priorities[].storage.bootDiskKMSKey": text,
    "priorities[].storage.bootDiskSize": whole(10),
    "priorities[].storage.bootDiskType": one_of("pd-balanced", "pd-standard", "pd-ssd", "hyperdisk-balanced"),
    "priorities[].tpu.count": whole(0),
    "priorities[].tpu.topology": text,
    "priorities[].tpu.type": text,
}
# GoogleCloudPlatform/gke-networking-api 34c617f (2025-12-12), apis/network/v1, read 2026-11-21.
PARAM_SET: Mapping[str, Takes] = {
    "deviceMode": one_of("DPDK-VFIO", "NetDevice", "RDMA"), "vpc": text, "vpcSubnet": text,
}  # fmt: skip
NETWORK: Mapping[str, Takes] = {
    "parametersRef.group": one_of("networking.gke.io"),
    "parametersRef.kind": one_of("GKENetworkParamSet"),
    "parametersRef.name": text,
    "type": one_of("L2", "L3", "Device"),
}

CLASSES: dict[str, tuple[dict[str, Any], ...]] = {
    "pools": ({"node_pools": ("slices", "h100")[:1]},),
    "spot slices": ({**V5E, "capacity": "spot", "max_run_hours": 24, "max_wait_minutes": 30},),
    "flex-start": ({**H100, "capacity": "flex-start", "max_run_hours": 24, "max_wait_minutes": 1440},),
    "on demand": (H100,),
    "a reservation": ({**H100, "capacity": "reservation", "reservation": RESERVATION},),
    "any reservation": ({**H100, "capacity": "reservation", "reservation": "any"},),
}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path of every plain value, ``[]`` for a place in a list."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path, value


def judged(one: Planned) -> list[Problem]:
    """Return what the document of an object's kind refuses."""
    check = check_of(one.type)
    assert check is not None
    found: list[Problem] = []
    check(one.inputs, (), found.append)
    return found


def refused(spec: Mapping[str, Any], known: Mapping[str, Takes]) -> list[str]:
    """Return what of an object its type does not have, or not so."""
    return [f"{path}: {value!r}" for path, value in leaves(spec) if path not in known or not known[path](value)]


@pytest.mark.parametrize("name", CLASSES)
def test_a_compute_class_has_only_fields_that_its_type_has(name: str) -> None:
    said = {"consolidation_delay_minutes": 10, "active_migration": True, "priorities": CLASSES[name]}
    cluster = ClusterSpec.model_validate(
        {"location": "us-west4", "subnet": RANGES, "node_pools": POOLS, "compute_classes": {"best": said}}
    )
    pools = {pool.name: pool for pool in cluster_pools("west", cluster)}
    spec = compute_class(cluster.compute_classes["best"], pools, "nodes@example.com")

    assert refused(spec, COMPUTE_CLASS) == []
    assert spec["priorities"]


def test_zones_of_a_reservation_by_name_stand_beside_its_name_and_nowhere_else() -> None:
    said = {"priorities": CLASSES["a reservation"]}
    cluster = ClusterSpec.model_validate({"location": "us-west4", "subnet": RANGES, "compute_classes": {"best": said}})
    (priority,) = compute_class(cluster.compute_classes["best"], {}, "nodes@example.com")["priorities"]

    (specific,) = priority["reservations"]["specific"]
    assert specific["zones"] == ["us-west4-a"]
    assert "location" not in priority


@pytest.mark.parametrize("nature", ["GPUDirect-TCPX", "GPUDirect-TCPXO", "RDMA"])
def test_networks_have_only_fields_that_their_types_have(nature: str) -> None:
    plan = plan_of(stack_of(NATURES[nature]))
    networks = plan.of("kubernetes:networking.gke.io/v1:Network")
    parameters = plan.of(PARAMETERS)

    assert networks
    assert [each for one in networks for each in refused(one.inputs["spec"], NETWORK)] == []
    assert [each for one in parameters for each in refused(one.inputs["spec"], PARAM_SET)] == []
    assert [each for one in (*networks, *parameters) for each in judged(one)] == []
    assert len({one.inputs["spec"]["vpcSubnet"] for one in parameters}) == len(parameters) == len(networks)
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", one.inputs["metadata"]["name"]) for one in networks)


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
    "gb300": ("nvidia-gb300", "a4x-maxgpu-4g-metal"),
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
    plan = plan_of(stack_of({"machine_type": machine_type, "zone": "us-central1-a", **fields}))
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
    assert tolerates(tolerations, ARM, "arm64") is (family in ("gb200", "gb300"))
    assert all(key.startswith(OURS) for key in node["labels"])


@pytest.mark.parametrize(
    ("capacity", "label"),
    [("spot", "cloud.google.com/gke-spot"), ("flex-start", "cloud.google.com/gke-flex-start")],
)
def test_a_flavor_selects_how_its_vms_are_had_as_gke_labels_it(capacity: str, label: str) -> None:
    node, selected, _ = planned("a2-highgpu-1g", capacity=capacity)

    assert selected[label] == "true"
    assert label not in node["labels"]
