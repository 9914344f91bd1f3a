"""Rules about the GPUs of a node pool: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


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
