"""Rules of provisioning models and reservations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_across_resources_names_the_nearest_that_passes,
    test_rule_finds_what_does_not_go_together,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, Together, TogetherNearest
from training_platform.config.reading.finding import Finding
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]
T4 = {"accelerator_type": "nvidia-tesla-t4"}
IRONWOOD = {"machine_type": "tpu7x-standard-4t", "tpu_topology": "4x4x4"}


ALONE: list[Alone] = [
    ("one-provisioning-model", "gpu_pool", {"spot": True, "spot_twice": True}, 1),
    ("one-provisioning-model", "gpu_pool", {"spot": True, "flex_start": True, "spot_twice": True}, 2),
    ("capacity-on-request", "slice_pool", {"spot": True}, 0),
    ("capacity-on-request", "slice_pool", {**IRONWOOD, "spot": True}, 1),
    ("capacity-on-request", "slice_pool", {**IRONWOOD, "consume_reservation": "SPECIFIC_RESERVATION"}, 0),
    ("flex-start-upgrades", "gpu_pool", {"flex_start": True}, 1),
    ("flex-start-upgrades", "gpu_pool", {"queued": True}, 1),
    ("flex-start-upgrades", "gpu_pool", {"flex_start": True, "upgrades": False}, 0),
    ("flex-start-upgrades", "gpu_pool", {"flex_start": True, "ignored": ("upgradeSettings",)}, 0),
    ("flex-start-upgrades", "gpu_pool", {}, 0),
    ("queued-label", "gpu_pool", {}, 0),
    ("queued-label", "gpu_pool", {"queued": True}, 1),
    ("queued-label", "gpu_pool", {"queued": True, "node_labels": {"cloud.google.com/gke-queued": "true"}}, 0),
    ("reservation-block", "gpu_pool", {"reservation_path": "r"}, 0),
    ("reservation-block", "gpu_pool", {"reservation_path": "r/reservationBlocks/b"}, 0),
    ("reservation-block", "gpu_pool", {"reservation_path": "r/reservationBlocks/b", "zones": ()}, 1),
    ("reservation-block", "gpu_pool", {"reservation_path": "r/reservationBlocks/b/reservationSubBlocks/s"}, 0),
    ("reservation-block", "gpu_pool", {"reservation_path": "r/reservationSubBlocks/s"}, 1),
    ("host-maintenance", "gpu_pool", {"maintenance": "PERIODIC"}, 1),
    ("host-maintenance", "gpu_pool", {"maintenance": "AS_NEEDED"}, 0),
    (
        "host-maintenance",
        "gpu_pool",
        {"maintenance": "PERIODIC", "consume_reservation": "SPECIFIC_RESERVATION"},
        0,
    ),
    ("location-policy-any", "gpu_pool", {"zones": ("us-central1-a", "us-central1-b")}, 0),
    ("location-policy-any", "gpu_pool", {"spot": True, "location_policy": None, "max_nodes": None}, 0),
    ("location-policy-any", "gpu_pool", {"spot": True, "location_policy": None, "total_max_nodes": 4}, 1),
    (
        "location-policy-any",
        "gpu_pool",
        {"zones": ("us-central1-a", "us-central1-b"), "location_policy": "BALANCED"},
        1,
    ),
]


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


RESERVED = {"consume_reservation": "SPECIFIC_RESERVATION", "reservation": "training", "reservation_path": "training"}
ON_N1 = {
    "machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1,
    "local_ssd_count": None,
}  # fmt: skip
OF_N1 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}
NO_GPUS = {"accelerator_type": None, "accelerator_count": None}


TOGETHER: list[Together] = [
    ("reservation-fits", {}, (), 0),
    ("reservation-fits", {"gpu_pool": RESERVED}, (), 0),
    ("reservation-fits", {"gpu_pool": {**RESERVED, "zones": ("us-central1-b",)}}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, "machine_type": "a3-megagpu-8g"}}, (), 1),
    ("reservation-fits", {"gpu_pool": RESERVED, "reservation": {"specific": False}}, (), 1),
    ("reservation-fits", {"gpu_pool": RESERVED, "reservation": {"min_cpu_platform": "Intel Skylake"}}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, "min_cpu_platform": "Intel Skylake"}}, (), 1),
    ("reservation-fits", {"gpu_pool": RESERVED, "reservation": {"local_ssds": 16}}, (), 0),
    ("reservation-fits", {"gpu_pool": RESERVED, "reservation": {"local_ssds": 15}}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, **ON_N1}, "reservation": OF_N1}, (), 0),
    ("reservation-fits", {"gpu_pool": {**RESERVED, **ON_N1, "accelerator_count": 2}, "reservation": OF_N1}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, **ON_N1}, "reservation": {**OF_N1, **NO_GPUS}}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, **ON_N1, "local_ssd_count": 1}, "reservation": OF_N1}, (), 1),
    ("reservation-fits", {"gpu_pool": RESERVED, "reservation": {**OF_N1, "machine_type": None}}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, "reservation_path": "x"}, "reservation": {"zone": "z"}}, (), 0),
    (
        "reservation-fits",
        {
            "gpu_pool": {**RESERVED, "reservation_path": "projects/p/reservations/training/reservationBlocks/b"},
            "reservation": {"zone": "us-central1-b"},
        },
        (),
        1,
    ),
    ("reservation-room", {"gpu_pool": {**RESERVED, "max_nodes": 4}}, (), 0),
    ("reservation-room", {"gpu_pool": {**RESERVED, "max_nodes": 5}}, (), 1),
    ("reservation-room", {"gpu_pool": {**RESERVED, "max_surge": 1}}, (), 1),
    ("reservation-room", {"gpu_pool": {**RESERVED, "upgrades": False}}, (), 1),
    ("reservation-room", {"gpu_pool": {**RESERVED, "max_nodes": 3, "max_surge": 1}}, (), 0),
]


NEAREST_TOGETHER: list[TogetherNearest] = [
    ("reservation-room", {"gpu_pool": {**RESERVED, "max_nodes": 5}}, "4"),
]


@pytest.mark.parametrize(
    ("machine", "path", "findings"),
    [
        ("a3-highgpu-8g", "one/reservationBlocks/b1", 0),
        ("a2-highgpu-8g", "one/reservationBlocks/b1", 1),
        ("a2-highgpu-8g", "one", 0),
        ("a2-highgpu-8g", None, 0),
    ],
)
def test_blocks_are_of_machines_that_have_some(
    check: Check, gpu_pool: Make, machine: str, path: str | None, findings: int
) -> None:
    found = check("reservation-blocks", gpu_pool(machine_type=machine, reservation_path=path))

    assert [finding.severity for finding in found] == ["warning"] * findings


@pytest.mark.parametrize(
    ("opens", "counts", "findings"),
    [
        ("2026-12-01", {"min_nodes": 1}, 1),
        ("2026-12-01", {"min_nodes": 0}, 0),
        ("2026-12-01", {"min_nodes": None, "total_min_nodes": 1}, 1),
        (None, {"min_nodes": 1}, 0),
    ],
)
def test_nothing_is_there_at_once_from_a_future_reservation(
    check: Check, gpu_pool: Make, opens: str | None, counts: dict[str, Any], findings: int
) -> None:
    labels = {"training-platform/reserved-from": opens} if opens else {}

    assert len(check("reservation-ahead", gpu_pool(node_labels=labels, **counts))) == findings
