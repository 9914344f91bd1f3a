"""Rules of Vertex AI: persistent resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import Planned
from training_platform.resources.resource_types import PERSISTENT_RESOURCE
from training_platform.rules import View
from training_platform.views.vertex import PersistentPoolView

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


@pytest.mark.parametrize(
    ("machine", "gpus", "found"),
    [
        ("n1-standard-8", ("NVIDIA_TESLA_T4", 1), []),
        ("n1-standard-96", ("NVIDIA_TESLA_T4", 4), []),
        ("n1-standard-32", ("NVIDIA_TESLA_T4", 1), [("accelerator_count", "2, 4", "2")]),  # which GKE would take
        ("n1-standard-8", ("NVIDIA_TESLA_T4", 3), [("accelerator_count", "1, 2, 4", "2")]),
        ("n1-standard-16", ("NVIDIA_TESLA_V100", 2), []),
        ("n1-standard-16", ("NVIDIA_TESLA_V100", 1), [("accelerator_count", "2, 4, 8", "2")]),
        ("n2-standard-8", ("NVIDIA_TESLA_T4", 1), [("accelerator", "none", None)]),
        ("n1-standard-8", ("NVIDIA_TESLA_P100", 1), []),  # outside the catalogue nothing is known
    ],
)
def test_attached_gpus_are_those_that_vertex_gives_the_machine(
    check: Check, persistent_pool: Make, machine: str, gpus: tuple[str, int], found: list[tuple[str, str, str | None]]
) -> None:
    kind, count = gpus
    pool = persistent_pool(machine_type=machine, accelerator_type=kind, accelerator_count=count)

    assert [(each.path, each.allowed, each.nearest) for each in check("vertex-accelerator", pool)] == [
        (f"section.{path}", allowed, nearest) for path, allowed, nearest in found
    ]


@pytest.mark.parametrize(("region", "count"), [("us-central1", 0), ("us-east1", 1), ("europe-west4", 0)])
def test_a_region_without_the_attached_gpu_is_a_warning(
    check: Check, persistent_pool: Make, region: str, count: int
) -> None:
    attached = {"machine_type": "n1-standard-8", "accelerator_type": "NVIDIA_TESLA_V100", "accelerator_count": 1}

    assert [each.severity for each in check("vertex-region", persistent_pool(region=region, **attached))] == [
        "warning"
    ] * count


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


@pytest.mark.parametrize(
    ("attachment", "count"),
    [
        (None, 0),
        ("projects/p/regions/us-central1/networkAttachments/vertex", 0),
        ("projects/p/regions/us-east1/networkAttachments/vertex", 1),
    ],
)
def test_a_network_attachment_is_of_the_same_region(
    check: Check, persistent_pool: Make, attachment: str | None, count: int
) -> None:
    assert (
        len(check("persistent-network", persistent_pool(region="us-central1", network_attachment=attachment))) == count
    )


def test_a_finding_of_a_further_pool_stands_at_that_pool_and_of_the_region_at_the_resource() -> None:
    origin = ("vertex", "persistent_resources", "tuning")
    pools = [{"id": "machines"}, {"id": "servers", "machineSpec": {"machineType": "ct5lp-hightpu-4t"}}]
    inputs = {"location": "us-central1", "resourcePools": pools}
    planned = Planned(stack="prod-vision", type=PERSISTENT_RESOURCE, name="vertex-tuning", inputs=inputs)
    first, further = PersistentPoolView.of(planned, origin)

    assert first.path("machine_type") == (*origin, "machine_type")
    assert further.path("machine_type") == (*origin, "more_pools", "servers", "machine_type")
    assert further.path("region") == (*origin, "region")
