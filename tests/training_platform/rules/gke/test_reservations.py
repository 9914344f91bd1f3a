"""Rules about reservations: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_across_resources_names_the_nearest_that_passes,
    test_rule_finds_what_does_not_go_together,
)
from tests.training_platform.rules.tables import Together, TogetherNearest
from training_platform.config.reading.finding import Finding
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]
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
