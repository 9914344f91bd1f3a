"""Rules about machine types and their zones: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


@pytest.mark.parametrize(
    ("machine", "nearest"), [("a3-highgpu-8g", None), ("a3-higpu-8g", "a3-highgpu-8g"), (None, None)]
)
def test_machine_type_outside_the_catalogue_is_found(
    check: Check, gpu_pool: Make, machine: str | None, nearest: str | None
) -> None:
    found = check("machine-type-known", gpu_pool(machine_type=machine))

    assert len(found) == (machine != "a3-highgpu-8g")
    assert [finding.nearest for finding in found if finding.nearest] == ([nearest] if nearest else [])


@pytest.mark.parametrize(
    ("machine", "zone", "count"),
    [
        ("a3-highgpu-8g", "us-central1-a", 0),
        ("a3-highgpu-8g", "us-central1-f", 1),
        ("ct4p-hightpu-4t", "us-central2-b", 0),
        ("ct4p-hightpu-4t", "us-central1-a", 1),
        ("e2-standard-4", "us-central1-a", 0),
        ("e2-standard-4", "us-central2-b", 1),
        ("a4x-highgpu-4g", "us-east4-b", 0),  # of which only regions are known
        ("a4x-highgpu-4g", "us-west1-a", 1),
        ("ct5l-hightpu-4t", "us-west1-a", 0),  # of which nothing is known
    ],
)
def test_zone_without_the_machine_is_a_warning_with_the_lists_date(
    check: Check, gpu_pool: Make, machine: str, zone: str, count: int
) -> None:
    found = check("machine-zone", gpu_pool(machine_type=machine, zones=(zone,)))

    assert [(finding.severity, finding.path) for finding in found] == [("warning", "section.zone")] * count
    assert all("2026" in finding.message for finding in found)


@pytest.mark.parametrize(
    ("asked", "nearest", "allowed"),
    [
        (("ct5lp-hightpu-4t", "us-west4-c"), "us-west4-a", "us-west4-a, us-west4-b; regions "),
        (("ct4p-hightpu-4t", "us-west4-a"), "us-central2-b", "regions us-central2"),
        (("ct5lp-hightpu-4t", "europe-west8-a"), "europe-north1-a", "regions asia-east1, "),
    ],
)
def test_zone_without_the_machine_has_its_regions_others_for_nearest_then_other_regions(
    check: Check, gpu_pool: Make, asked: tuple[str, str], nearest: str, allowed: str
) -> None:
    machine, zone = asked
    (finding,) = check("machine-zone", gpu_pool(machine_type=machine, zones=(zone,)))

    assert finding.nearest == nearest
    assert (finding.allowed or "").startswith(allowed)


def test_region_without_a_machine_whose_zones_nobody_lists_names_the_others(check: Check, gpu_pool: Make) -> None:
    (finding,) = check("machine-zone", gpu_pool(machine_type="a4x-highgpu-4g", zones=("us-west1-a",)))

    assert finding.allowed == "regions europe-west4, us-central1, us-east1, us-east4"
    assert finding.nearest is None


def test_zone_without_the_gpus_that_are_attached_names_them(check: Check, gpu_pool: Make) -> None:
    v100 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-v100", "accelerator_count": 1}

    (finding,) = check("machine-zone", gpu_pool(**v100, zones=("us-west4-a",)))

    assert finding.message.startswith("n1-standard-8 with nvidia-tesla-v100 is not listed in us-west4-a")
    assert check("machine-zone", gpu_pool(**v100, zones=("us-west1-a",))) == []


def test_region_without_the_machine_names_those_that_have_it(check: Check, gpu_pool: Make) -> None:
    pool = gpu_pool(machine_type="ct4p-hightpu-4t", zones=(), location="us-west4")

    (finding,) = check("pool-zone", pool)

    assert finding.allowed == "no zone of us-west4, as far as we know; regions us-central2"


def test_zonal_cluster_gives_its_zone_to_the_pool(check: Check, gpu_pool: Make) -> None:
    assert check("machine-zone", gpu_pool(zones=(), location="us-central1-a")) == []
    assert len(check("machine-zone", gpu_pool(zones=(), location="us-central1-f"))) == 1


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 0),
        ({"zones": (), "location": "us-central1-a"}, 0),
        ({"zones": ()}, 1),
        ({"zones": ("us-west4-a",)}, 1),
        ({"zones": (), "machine_type": "e2-standard-4"}, 0),
    ],
)
def test_accelerators_are_in_a_named_zone_of_the_clusters_region(
    check: Check, gpu_pool: Make, changes: dict[str, Any], count: int
) -> None:
    found = check("pool-zone", gpu_pool(**changes))

    assert [finding.nearest for finding in found] == ["us-central1-a"] * count
