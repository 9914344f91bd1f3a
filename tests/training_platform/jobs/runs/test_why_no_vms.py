"""What is said of an admitted run's pools: how many VMs they have at most, GKE's own words, and their quota."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.training_platform.jobs.conftest import TODAY
from training_platform.clients.google_api import GoogleError
from training_platform.config.workspace import read_workspace
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.runs.why_on_gke import vm_sentences

Json = dict[str, Any]
Take = Callable[..., ResolvedJob]
GPUS = "gke: {cluster: gpus, flavor: h100, nodes: 2}"
SLICES = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2}"
POOL = "Pool h100 has at most 8 VMs of a3-highgpu-8g in us-central1-a, on-demand"
LIMIT = """
  compute.googleapis.com:
    GPUS-PER-GPU-FAMILY-per-project-region:
      - {limit: 16, region: us-central1, gpu_family: NVIDIA_H100}
"""
OTHER_LIMIT = """
  compute.googleapis.com:
    INSTANCES-per-project-region:
      - {limit: 200, region: us-central1}
"""


def sentences(job: ResolvedJob, states: Mapping[str, Json]) -> list[str]:
    return list(vm_sentences(job, lambda: states, TODAY))


def test_a_pool_that_is_well_is_said_with_its_most(take: Take) -> None:
    assert sentences(take(GPUS), {"h100": {"status": "RUNNING"}}) == [f"{POOL}."]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"status": "ERROR", "statusMessage": "No quota."}, 'Node pool h100 is ERROR: "No quota".'),
        ({"status": "PROVISIONING"}, "Node pool h100 is PROVISIONING."),
        (
            {"status": "RUNNING", "conditions": [{"code": "GCE_STOCKOUT", "message": "out of\n a3"}]},
            'Node pool h100 has the condition GCE_STOCKOUT: "out of a3".',
        ),
        (
            {"conditions": [{"canonicalCode": "UNAVAILABLE", "code": "UNKNOWN"}]},
            "Node pool h100 has the condition UNAVAILABLE.",
        ),
    ],
)
def test_gkes_own_words_about_a_pool_are_said(take: Take, state: Json, said: str) -> None:
    assert sentences(take(GPUS), {"h100": state})[1:] == [said]


def test_slices_with_the_same_trouble_are_one_sentence(take: Take) -> None:
    job = take(SLICES)
    well: dict[str, Json] = {"slices-0": {}, "slices-1": {}}

    first, *rest = sentences(job, {**well, "slices-2": {"status": "ERROR"}, "slices-3": {"status": "ERROR"}})

    assert first.startswith("Pool slices has at most 32 VMs of ct5lp-hightpu-4t in us-west4-a, on-demand")
    assert rest == ["Node pool slices-2 (and 1 more) is ERROR."]
    assert sentences(job, well)[1:] == ["Node pool slices-2 (and 1 more) is not there."]


def test_node_pools_that_nobody_shows_are_one_sentence(take: Take) -> None:
    def refused() -> dict[str, Json]:
        raise GoogleError("GKE does not let you in projects/p: no.")

    assert list(vm_sentences(take(GPUS), refused, TODAY))[1:] == [
        "GKE does not show its node pools: GKE does not let you in projects/p: no."
    ]


QUOTA = "GPUS-PER-GPU-FAMILY-per-project-region (NVIDIA_H100) in us-central1"


@pytest.mark.parametrize(
    ("limits", "said"),
    [(LIMIT, f"; quota {QUOTA}: limit 16 as of 2026-11-01"), (OTHER_LIMIT, "")],
)
def test_the_quota_of_a_pools_accelerators_is_said_with_the_day_of_its_snapshot(
    take: Take, new_lab: Callable[..., Path], limits: str, said: str
) -> None:
    root = new_lab()
    file = root / "stacks" / "quotas" / "example-lab.yaml"
    file.write_text(file.read_text().rstrip() + limits)

    job = take(GPUS, workspace=read_workspace(root))

    assert sentences(job, {"h100": {}}) == [f"{POOL}{said}."]
