"""Rules about any node pool: machine and zone, GPUs, how the VMs are had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]
T4 = {"accelerator_type": "nvidia-tesla-t4"}


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


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({}, None),
        ({"accelerator_count": 7}, "section.machine_type"),
        ({"accelerator_count": 9}, "section.machine_type"),
        ({"accelerator_count": None}, "section.machine_type"),
        ({"accelerator_type": None}, "section.machine_type"),
        ({"accelerator_type": "nvidia-tesla-a100"}, "section.machine_type"),
        ({"machine_type": "e2-standard-4"}, "section.accelerator"),
        ({"machine_type": "e2-standard-4", "accelerator_type": None}, None),
        ({"machine_type": "ct5lp-hightpu-4t"}, "section.machine_type"),
    ],
)
def test_gpus_are_those_of_the_machine(check: Check, gpu_pool: Make, changes: dict[str, Any], path: str | None) -> None:
    found = check("gpu-fixed-pair", gpu_pool(**changes))

    assert [finding.path for finding in found] == ([path] if path else [])


@pytest.mark.parametrize(
    ("machine", "count", "nearest"),
    [
        ("n1-standard-8", 1, []),
        ("n1-standard-8", 3, ["2"]),
        ("n1-standard-8", 4, []),
        ("n1-standard-96", 1, ["4"]),
        ("n2-standard-8", 1, [None]),
    ],
)
def test_gpus_are_attached_in_numbers_that_the_machine_takes(
    check: Check, gpu_pool: Make, machine: str, count: int, nearest: list[str | None]
) -> None:
    pool = gpu_pool(machine_type=machine, accelerator_type="nvidia-tesla-t4", accelerator_count=count)

    assert [finding.nearest for finding in check("gpu-fixed-pair", pool)] == nearest


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ((), 0),
        (("spot",), 0),
        (("flex_start", "queued"), 0),
        (("spot", "flex_start"), 1),
        (("spot", "queued"), 1),
    ],
)
def test_vms_are_had_in_one_way(check: Check, gpu_pool: Make, asked: tuple[str, ...], count: int) -> None:
    found = check("one-provisioning-model", gpu_pool(**dict.fromkeys(asked, True)))

    assert [finding.path for finding in found] == ["section.capacity"] * count


@pytest.mark.parametrize("asked", ["flex_start", "queued"])
@pytest.mark.parametrize(
    ("affinity", "count"), [("NO_RESERVATION", 0), (None, 1), ("ANY_RESERVATION", 1), ("SPECIFIC_RESERVATION", 1)]
)
def test_flex_start_takes_no_reservation(
    check: Check, gpu_pool: Make, asked: str, affinity: str | None, count: int
) -> None:
    pool = gpu_pool(**{asked: True, "consume_reservation": affinity})

    assert [finding.severity for finding in check("no-reservation-affinity", pool)] == ["error"] * count


@pytest.mark.parametrize(
    ("affinity", "severity"),
    [("NO_RESERVATION", None), (None, None), ("ANY_RESERVATION", "warning"), ("SPECIFIC_RESERVATION", "error")],
)
def test_spot_takes_no_reservation_that_is_asked_for(
    check: Check, gpu_pool: Make, affinity: str | None, severity: str | None
) -> None:
    found = check("no-reservation-affinity", gpu_pool(spot=True, consume_reservation=affinity))

    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_on_demand_may_take_reservations(check: Check, gpu_pool: Make) -> None:
    assert check("no-reservation-affinity", gpu_pool(consume_reservation=None)) == []


@pytest.mark.parametrize(
    ("affinity", "count"), [("ANY_RESERVATION", 1), ("SPECIFIC_RESERVATION", 0), ("NO_RESERVATION", 0), (None, 0)]
)
def test_tpus_take_a_reservation_by_its_name(
    check: Check, slice_pool: Make, gpu_pool: Make, affinity: str | None, count: int
) -> None:
    found = check("tpu-reservation-name", slice_pool(consume_reservation=affinity))

    assert [(each.severity, each.path) for each in found] == [("warning", "section.reservation")] * count
    assert check("tpu-reservation-name", gpu_pool(consume_reservation=affinity)) == []


@pytest.mark.parametrize(("name", "count"), [("h100-training", 0), (None, 1)])
def test_specific_reservation_is_named(check: Check, gpu_pool: Make, name: str | None, count: int) -> None:
    pool = gpu_pool(consume_reservation="SPECIFIC_RESERVATION", reservation=name)

    assert len(check("reservation-named", pool)) == count


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({}, None),
        ({"max_nodes": None}, "section.max_nodes"),
        ({"max_nodes": None, "total_max_nodes": 4}, None),
        ({"initial_nodes": 1}, "section"),
        ({"node_count": 1}, "section"),
        ({"min_nodes": 1}, "section.min_nodes"),
        ({"total_min_nodes": 1}, "section.min_nodes"),
    ],
)
def test_flex_start_scales_from_zero(check: Check, flex_pool: Make, changes: dict[str, Any], path: str | None) -> None:
    found = check("flex-start-scaling", flex_pool(**changes))

    assert [finding.path for finding in found] == ([path] if path else [])


def test_on_demand_may_start_with_nodes(check: Check, gpu_pool: Make) -> None:
    assert check("flex-start-scaling", gpu_pool(initial_nodes=2, min_nodes=2)) == []


def test_flex_start_is_not_repaired(check: Check, flex_pool: Make, gpu_pool: Make) -> None:
    assert check("flex-start-repair", flex_pool()) == []
    assert len(check("flex-start-repair", flex_pool(auto_repair=True))) == 1
    assert check("flex-start-repair", gpu_pool()) == []


@pytest.mark.parametrize(
    ("flex", "seconds", "nearest"),
    [
        (True, None, None),
        (True, 599, "max_run_hours 1"),
        (True, 600, None),
        (True, 7 * 24 * 3600, None),
        (True, 7 * 24 * 3600 + 1, "max_run_hours 168"),
        (True, -1, "max_run_hours 1"),
        (False, 29, "max_run_hours 1"),
        (False, 30, None),
        (False, 10_368_000, None),
        (False, 10_368_001, "max_run_hours 2880"),
    ],
)
def test_longest_life_is_within_its_way_of_being_had(
    check: Check, gpu_pool: Make, flex: bool, seconds: int | None, nearest: str | None
) -> None:
    found = check("max-run-duration", gpu_pool(flex_start=flex, max_run_seconds=seconds))

    assert [finding.nearest for finding in found] == ([nearest] if nearest else [])


def test_queued_vms_take_no_longest_life(check: Check, gpu_pool: Make) -> None:
    assert len(check("max-run-duration", gpu_pool(queued=True, max_run_seconds=3600))) == 1
    assert check("max-run-duration", gpu_pool(queued=True, flex_start=True, max_run_seconds=3600)) == []


@pytest.mark.parametrize(
    ("machine", "changes", "count"),
    [
        ("a3-highgpu-8g", {}, 0),
        ("a3-highgpu-1g", {}, 1),
        ("a3-highgpu-1g", {"spot": True}, 0),
        ("a3-highgpu-1g", {"flex_start": True}, 0),
        ("ct4p-hightpu-4t", {"spot": True}, 0),
        ("ct4p-hightpu-4t", {"flex_start": True}, 1),
        ("ct4p-hightpu-4t", {"queued": True}, 1),
        ("ct4p-hightpu-4t", {"consume_reservation": "SPECIFIC_RESERVATION"}, 0),
        ("n1-standard-8", {**T4, "accelerator_count": 4, "flex_start": True}, 0),
        ("n1-standard-8", {**T4, "accelerator_count": 3, "flex_start": True}, 0),  # the pair is what is wrong
        ("n1-standard-8", {"accelerator_type": None, "accelerator_count": None, "flex_start": True}, 1),
    ],
)
def test_machine_can_be_had_in_the_way_that_is_asked(
    check: Check, gpu_pool: Make, machine: str, changes: dict[str, Any], count: int
) -> None:
    found = check("capacity-offered", gpu_pool(machine_type=machine, **changes))

    assert [finding.path for finding in found] == ["section.capacity"] * count


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"spot": True}, 0),
        ({"spot": True, "location_policy": "BALANCED"}, 1),
        ({"flex_start": True, "location_policy": None}, 1),
        ({"location_policy": "BALANCED"}, 0),
        ({"spot": True, "location_policy": "BALANCED", "machine_type": "e2-standard-4"}, 0),
    ],
)
def test_scarce_vms_are_taken_where_they_are(check: Check, gpu_pool: Make, changes: dict[str, Any], count: int) -> None:
    found = check("location-policy-any", gpu_pool(**changes))

    assert [finding.severity for finding in found] == ["warning"] * count
