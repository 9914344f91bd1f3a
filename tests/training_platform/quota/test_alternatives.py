"""Ways out of a shortage, from the same snapshot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.training_platform.quota.conftest import UNLIMITED
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import project_ledgers
from training_platform.quota.ledger_findings import quota_findings
from training_platform.quota.snapshot import Snapshots

Build = Callable[..., Workspace]
Limits = Callable[[str], Snapshots]
H100 = "node_pools: {h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 4}}"
SLICE = "node_pools: {v5e: {machine_type: ct5lp-hightpu-4t, zone: us-central1-a, topology: %s, slices: %d}}"
LISTED = (
    UNLIMITED
    + """\
      SSD-TOTAL-GB-per-project-region: [{limit: -1}]
      LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region: [{limit: -1}]
      GPUS-ALL-REGIONS-per-project: [{limit: %(all)s}]
      GPUS-PER-GPU-FAMILY-per-project-region:
        - {limit: %(here)s, region: us-central1, gpu_family: NVIDIA_H100}
        - {limit: %(there)s, region: us-east4, gpu_family: NVIDIA_H100}
        - {limit: 1000, region: us-east4, gpu_family: NVIDIA_H200}
        - {limit: 1000, region: us-south1, gpu_family: NVIDIA_H100}
      PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region: [{limit: %(spot)s, region: us-central1}]
      TPU-LITE-PODSLICE-V5-per-project-region: [{limit: %(tpu)s, region: us-central1}]
      PREEMPTIBLE-TPU-LITE-PODSLICE-V5-per-project-region: [{limit: 0}]
"""
)
PLENTY = {"all": 1000, "here": 1000, "there": 0, "spot": 0, "tpu": 1000}


def nearest(build: Build, limits: Limits, stack: str, **short: int) -> list[str]:
    workspace = build(dev=stack)
    ledgers = project_ledgers(workspace_demand(workspace), limits(LISTED % {**PLENTY, **short}))
    found: list[Finding] = quota_findings(ledgers.values(), workspace)
    return [part for finding in found for part in (finding.nearest or "").split("; or ")]


def test_enough_quota_is_no_finding(build: Build, limits: Limits) -> None:
    assert nearest(build, limits, H100) == []


def test_limit_to_ask_for_is_what_all_holders_need(build: Build, limits: Limits) -> None:
    assert nearest(build, limits, H100, here=31) == [
        "max_nodes 3 for h100",
        f"request {4 * 8} GPUs (training-platform quota plan)",
    ]
    assert nearest(build, limits, H100, all=31) == [
        "max_nodes 3 for h100",
        f"request {4 * 8} GPUs (training-platform quota plan)",
    ]


@pytest.mark.parametrize(("spot", "named"), [(4 * 8, True), (4 * 8 - 1, False)])
def test_other_capacity_is_named_where_its_quota_holds_the_pool(
    build: Build, limits: Limits, spot: int, named: bool
) -> None:
    found = nearest(build, limits, H100, here=0, spot=spot)

    told = f"with {spot} of PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region left"
    wanted = [f"capacity spot, {told}", f"capacity flex-start or queued-provisioning, {told}"] if named else []
    assert [part for part in found if part.startswith("capacity")] == wanted


@pytest.mark.parametrize(
    ("there", "named"), [(4 * 8, ["zone us-east4-a, us-east4-b, us-east4-c (32 GPUs left)"]), (31, [])]
)
def test_zones_elsewhere_are_named_where_the_machine_and_quota_for_it_are(
    build: Build, limits: Limits, there: int, named: list[str]
) -> None:
    found = nearest(build, limits, H100, here=0, there=there)

    assert [part for part in found if part.startswith("zone")] == named


def test_shortage_of_all_regions_sends_nobody_to_another(build: Build, limits: Limits) -> None:
    assert nearest(build, limits, H100, all=0, there=1000, spot=1000) == [
        "request 32 GPUs (training-platform quota plan)"
    ]


@pytest.mark.parametrize(
    ("asked", "tpu", "smaller"),
    [
        (("8x8", 1), 63, ["4x8"]),
        (("8x8", 1), 31, ["4x4"]),
        (("8x8", 2), 63, ["4x4"]),
        (("8x8", 2), 64, []),
        (("8x8", 1), 7, ["2x2"]),
    ],
)
def test_smaller_slice_is_named_where_the_pools_own_does_not_fit_once(
    build: Build, limits: Limits, asked: tuple[str, int], tpu: int, smaller: list[str]
) -> None:
    found = nearest(build, limits, SLICE % asked, tpu=tpu)

    assert [part for part in found if part.startswith("topology")] == [f"topology {each} for v5e" for each in smaller]
