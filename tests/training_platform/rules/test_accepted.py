"""Configurations that Google Cloud takes, as their owners deploy them: no rule may call one an error.

Each is a change of the program in ``foreign``; what is doubtful about one may be a warning. Where no source is named,
the configuration is known as deployed and its owner's text was not read here (unverified).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from tests.training_platform.rules.foreign import DROP, found


class Accepted(NamedTuple):
    """One configuration, the rule that once refused it, and where it was read."""

    name: str
    rule: str
    changes: Mapping[str, Any]
    source: str | None = None


NODE = "gpu.nodeConfig"
POOLS = "cluster.nodePools"
NO_GPUS = {f"{NODE}.guestAccelerators": DROP, f"{NODE}.taints": DROP}
MACHINE = f"{NODE}.machineType"
TRILLIUM = {
    "slice.nodeConfig.machineType": "ct6e-standard-4t", "slice.placementPolicy.tpuTopology": "2x2",
    "slice.nodeConfig.bootDisk.diskType": "hyperdisk-balanced", "flavor": DROP, "queue": DROP,
}  # fmt: skip
IRONWOOD = {
    **TRILLIUM,
    "slice.nodeConfig.machineType": "tpu7x-standard-4t",
    "slice.placementPolicy.tpuTopology": "2x2x1",
}
TOOLKIT = "Cluster Toolkit, daily tests at 104708037"
WITHOUT_LIMITS = {"cluster.clusterAutoscaling": DROP}
VERTEX = "tuning.resourcePools.0"
ON_N1 = {f"{VERTEX}.machineSpec.machineType": "n1-standard-8"}
MANAGED = {"key": "components.gke.io/gke-managed-components", "value": "true", "effect": "NO_SCHEDULE"}
FLEX = {f"{NODE}.flexStart": True, "gpu.management": DROP, "gpu.upgradeSettings": DROP}
RESERVED = {f"{NODE}.reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["training"]}}
ULTRA = {
    MACHINE: "a2-ultragpu-8g",
    f"{NODE}.guestAccelerators": [{"type": "nvidia-a100-80gb", "count": 8.0}],
}
ACCEPTED = (
    Accepted("v6e 2x2 with a topology", "tpu-single-host-placement", TRILLIUM, TOOLKIT),
    Accepted("7x 2x2x1 with a topology", "tpu-single-host-placement", IRONWOOD, TOOLKIT),
    Accepted("a system pool for GKE's own components", "system-pool", {
        **WITHOUT_LIMITS, "system.nodeConfig.taints": [MANAGED],
    }),
    Accepted("a system pool that pods rather avoid", "system-pool", {
        **WITHOUT_LIMITS, "system.nodeConfig.taints": [{"key": "own", "value": "a", "effect": "PREFER_NO_SCHEDULE"}],
    }),
    Accepted("a system pool from nothing with auto-provisioning", "system-pool", {
        "system.autoscaling.totalMinNodeCount": 0.0,
    }),
    Accepted("a CPU family outside the catalogue", "machine-type-known", {**NO_GPUS, MACHINE: "c3-standard-8"}),
    Accepted("a size of a CPU family outside the catalogue", "machine-type-known", {**NO_GPUS, MACHINE: "e2-medium"}),
    Accepted("a TPU family outside the catalogue", "machine-type-known", {**NO_GPUS, MACHINE: "ct9z-standard-4t"}),
    Accepted("spot without an affinity", "no-reservation-affinity", {
        f"{NODE}.spot": True, f"{NODE}.reservationAffinity": DROP,
    }),
    Accepted("a2-ultragpu without a block of local SSD", "local-ssd-count", ULTRA),
    Accepted("a2-ultragpu whose node config is ignored", "local-ssd-count", {
        **ULTRA, "gpu.options": {"ignoreChanges": ["nodeConfig"], "deleteBeforeReplace": True},
    }),
    Accepted("a persistent resource without a disk", "vertex-boot-disk-written", {f"{VERTEX}.diskSpec": DROP}),
    Accepted("g2 with pd-standard", "boot-disk-type", {
        MACHINE: "g2-standard-4", f"{NODE}.guestAccelerators": [{"type": "nvidia-l4", "count": 1.0}],
        f"{NODE}.bootDisk.diskType": "pd-standard",
    }, "terraform-google-kubernetes-engine at bb176b213, golden answer, node_pool pool-02"),
    Accepted("n2d with Hyperdisk", "boot-disk-type", {
        **NO_GPUS, MACHINE: "n2d-standard-8", f"{NODE}.bootDisk.diskType": "hyperdisk-balanced",
    }),
    Accepted("P100 on n1", "gpu-fixed-pair", {
        MACHINE: "n1-standard-8", f"{NODE}.guestAccelerators": [{"type": "nvidia-tesla-p100", "count": 1.0}],
    }),
    Accepted("no GPUs by a count of 0", "gpu-fixed-pair", {
        MACHINE: "n1-standard-8", f"{NODE}.guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 0.0}],
    }),
    Accepted("GPUs of a machine that comes with them, not named", "gpu-fixed-pair", {
        f"{NODE}.guestAccelerators": DROP,
    }, "terraform-docs-samples 77df39c, gke/standard/zonal/dws/main.tf"),
    *(
        Accepted(f"{count} of {kind} on n1 of Vertex AI", "vertex-accelerator", {
            **ON_N1, f"{VERTEX}.machineSpec.acceleratorType": kind, f"{VERTEX}.machineSpec.acceleratorCount": count,
        }, "Vertex AI docs, configure compute, read 2026-08-22")
        for kind, count in (("NVIDIA_TESLA_T4", 1.0), ("NVIDIA_TESLA_V100", 1.0), ("NVIDIA_TESLA_P100", 1.0))
    ),
    Accepted("a range of pods below an autoscaler's maximum", "pod-range", {"gpu.autoscaling.maxNodeCount": 5_000.0}),
    Accepted("flex-start without a word on repair", "flex-start-repair", FLEX),
    Accepted("n1 by flex-start", "capacity-offered", {**FLEX, **NO_GPUS, MACHINE: "n1-standard-8"}),
    Accepted("a reservation below an autoscaler's maximum", "reservation-room", {
        **RESERVED, "reserved.specificReservation.count": 2.0,
    }),
    Accepted("the default pool written inside and removed", "default-pool", {
        POOLS: [{"name": "default-pool", "initialNodeCount": 1.0}], "cluster.initialNodeCount": DROP,
    }),
    Accepted("an empty pool inside a cluster with pools beside", "inline-pools", {POOLS: [{}]}),
    Accepted("a class of a machine that comes by reservation", "compute-class-capacity", {
        "order.spec.priorities.1": {"machineType": "a4-highgpu-8g", "gpu": {"type": "nvidia-b200", "count": 8.0}},
    }),
    Accepted("7,500 IOPS per TiB at the bound", "filestore-iops", {
        "files.fileShares.capacityGb": 10_240.0, "files.performanceConfig.iopsPerTb.maxIopsPerTb": 7_500.0,
    }, "Filestore CSI driver 2edb466, utils.go"),
)  # fmt: skip


@pytest.mark.parametrize("accepted", ACCEPTED, ids=[row.name for row in ACCEPTED])
def test_what_google_cloud_takes_is_no_error(accepted: Accepted) -> None:
    errors = [finding for finding in found(accepted.changes) if finding.severity == "error"]

    assert [finding for finding in errors if finding.rule == accepted.rule] == []


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("local-ssd-count", {**ULTRA, f"{NODE}.ephemeralStorageLocalSsdConfig": {"localSsdCount": 4.0}}),
        ("gpu-fixed-pair", {f"{NODE}.guestAccelerators.0.count": 0.0}),
        ("gpu-fixed-pair", {**NO_GPUS, MACHINE: "e2-standard-4", f"{NODE}.guestAccelerators": [{
            "type": "nvidia-tesla-p100", "count": 1.0,
        }]}),
        ("pod-range", {"gpu.autoscaling": DROP, "gpu.nodeCount": 5_000.0}),
        ("machine-type-known", {MACHINE: "a2-highgpu-3g"}),
        ("capacity-offered", {MACHINE: "a3-ultragpu-8g", f"{NODE}.guestAccelerators": DROP}),
        ("system-pool", {**WITHOUT_LIMITS, "system.nodeConfig.machineType": "a2-highgpu-1g"}),
        ("compute-class-capacity", {"order.spec.priorities.1": {
            "machineType": "a4-highgpu-8g", "gpu": {"type": "nvidia-b200", "count": 8.0},
            "reservations": {"affinity": "None"},
        }}),
    ],
)  # fmt: skip
def test_what_is_next_to_it_and_refused_still_is(rule: str, changes: Mapping[str, Any]) -> None:
    assert "error" in {finding.severity for finding in found(changes, rule=rule)}
