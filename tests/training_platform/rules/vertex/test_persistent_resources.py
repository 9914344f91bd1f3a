"""Rules about persistent resources: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


@pytest.mark.parametrize(
    ("machine", "count"),
    [
        ("a2-highgpu-1g", 0),
        ("n2-standard-8", 0),
        ("a2-higpu-1g", 1),
        ("e2-standard-2", 1),
        ("ct5lp-hightpu-4t", 1),
        ("ct4p-hightpu-4t", 1),
        (None, 1),
    ],
)
def test_pool_is_of_machines_that_vertex_starts(
    check: Check, persistent_pool: Make, machine: str | None, count: int
) -> None:
    assert len(check("vertex-machine-type", persistent_pool(machine_type=machine))) == count


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 0),
        ({"accelerator_count": 2}, 1),
        ({"accelerator_count": None}, 1),
        ({"accelerator_type": None}, 1),
        ({"accelerator_type": "NVIDIA_L4"}, 1),
        ({"machine_type": "a2-highgpu-2g", "accelerator_count": 2}, 0),
        ({"machine_type": "a2-highgpu-2g", "accelerator_count": 1}, 1),
        ({"machine_type": "n2-standard-8"}, 1),
        ({"machine_type": "n2-standard-8", "accelerator_type": None, "accelerator_count": None}, 0),
        ({"machine_type": "a3-highgpu-8g", "accelerator_type": "NVIDIA_H100_80GB", "accelerator_count": 8}, 0),
    ],
)
def test_gpus_of_vertex_are_those_of_the_machine(
    check: Check, persistent_pool: Make, changes: dict[str, Any], count: int
) -> None:
    found = check("vertex-accelerator", persistent_pool(**changes))

    assert [finding.path for finding in found] == ["section.machine_type"] * count


@pytest.mark.parametrize(("region", "count"), [("us-central1", 0), ("europe-north1", 1)])
def test_region_without_the_gpu_is_a_warning(check: Check, persistent_pool: Make, region: str, count: int) -> None:
    found = check("vertex-region", persistent_pool(region=region))

    assert [finding.severity for finding in found] == ["warning"] * count


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ((1, None, None), []),
        ((0, None, None), [("replicas", "1")]),
        ((1, 1, 2), []),
        ((2, 1, 2), []),
        ((3, 1, 2), [("replicas", "2")]),
        ((1, 2, 4), [("replicas", "2")]),
        ((1, 1, 1), [("max_replicas", "2")]),
        ((2, 2, 1), [("max_replicas", "3")]),
        ((1, 0, 2), [("replicas", "1")]),
        ((None, 1, 2), []),
        ((1, 1, None), [("replicas", None)]),
        ((1, None, 2), [("max_replicas", None)]),
    ],
)
def test_replicas_are_in_order(
    check: Check, persistent_pool: Make, counts: tuple[int | None, ...], found: list[tuple[str, str | None]]
) -> None:
    count, least, most = counts
    pool = persistent_pool(replica_count=count, min_replicas=least, max_replicas=most)

    assert [(each.path, each.nearest) for each in check("persistent-replicas", pool)] == [
        (f"section.{path}", nearest) for path, nearest in found
    ]


@pytest.mark.parametrize(
    ("name", "count"),
    [("tuning", 0), ("a" * 63, 0), ("a" * 64, 1), ("Tuning", 1), ("1tuning", 1), ("tuning-", 1), ("a_b", 1), (None, 0)],
)
def test_id_is_one_that_vertex_takes(check: Check, persistent_pool: Make, name: str | None, count: int) -> None:
    assert len(check("persistent-resource-name", persistent_pool(resource_id=name))) == count
