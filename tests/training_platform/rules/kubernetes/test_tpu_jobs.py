"""TPU jobs beside their machines: v5e has VMs of 1, 4 and 8 chips, and slices of several hosts from those of 4."""

from __future__ import annotations

import pytest

from tests.training_platform.rules.objects import JOB, job, wrong


@pytest.mark.parametrize(
    ("topology", "chips", "pods", "path"),
    [
        ("4x8", 4, 4 * 8 // 4, None),
        ("4x8", 8, 4, "template.spec.containers"),
        ("4x8", 4, 7, "parallelism"),
        ("4x8", 4, 2 * 8, None),  # two slices
        ("2x4", 8, 1, None),
        ("2x4", 4, 2, None),
        ("2x2", 8, 1, "template.spec.containers"),
        ("1x1", 1, 3, None),
        ("Not a topology", 8, 3, None),
    ],
)
def test_pods_ask_for_the_chips_of_their_machines(topology: str, chips: int, pods: int, path: str | None) -> None:
    selector = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice", "cloud.google.com/gke-tpu-topology": topology,
    }  # fmt: skip
    container = {"name": "train", "resources": {"limits": {"google.com/tpu": str(chips)}}}
    spec = {**job([container], nodeSelector=selector), "parallelism": float(pods)}

    assert wrong("tpu-job-chips", JOB, spec=spec) == [f"spec.{path}"] * bool(path)


def test_a_pod_without_selectors_is_of_no_machine() -> None:
    spec = job([{"name": "train", "resources": {"limits": {"google.com/tpu": "64"}}}])

    assert wrong("tpu-job-chips", JOB, spec=spec) == []
