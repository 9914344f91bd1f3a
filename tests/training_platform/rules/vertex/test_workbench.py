"""Rules about Workbench instances: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]
NONE = {"accelerator_type": None, "accelerator_count": None}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, None),
        ({"accelerator_count": None}, None),  # one is meant
        ({"accelerator_count": 2}, None),
        ({"accelerator_count": 3}, ("1, 2, 4", "2")),
        ({"machine_type": "n1-standard-64", "accelerator_count": 4}, None),
        ({"machine_type": "n1-standard-64", "accelerator_count": 2}, ("4", "4")),  # more vCPUs than 2 T4 take
        ({"machine_type": "n2-standard-8"}, ("none, or an N1 machine", None)),
        ({"machine_type": "n2-standard-8", **NONE}, None),
        ({"accelerator_type": "NVIDIA_TESLA_P4"}, None),  # not in the catalogue
        ({"machine_type": "n2-standard-8", "accelerator_type": "NVIDIA_TESLA_P4"}, ("none, or an N1 machine", None)),
        ({"machine_type": "g2-standard-24", "accelerator_type": "NVIDIA_L4", "accelerator_count": 2}, None),
        ({"machine_type": "g2-standard-24", "accelerator_type": "NVIDIA_L4"}, ("2 of NVIDIA_L4", None)),
        ({"machine_type": "g2-standard-24"}, ("2 of NVIDIA_L4", None)),
        ({"machine_type": "g2-standard-24", **NONE}, ("2 of NVIDIA_L4", None)),
        ({"machine_type": "a9-standard-1"}, None),  # nothing is known of it
    ],
)
def test_gpus_go_with_their_machine(
    check: Check, workbench: Make, changes: dict[str, object], found: tuple[str, str | None] | None
) -> None:
    findings = check("workbench-gpus", workbench(**changes))

    assert [(each.allowed, each.nearest) for each in findings] == ([found] if found else [])


@pytest.mark.parametrize(
    ("changes", "nearest"),
    [
        ({}, None),
        ({"zone": "us-central1-b"}, None),
        ({"zone": "us-east1-b"}, None),
        ({"zone": "us-east4-z"}, "us-east4-a"),
        ({"zone": "us-west4-c"}, "us-west4-a"),
    ],
)
def test_the_zone_has_the_gpus(check: Check, workbench: Make, changes: dict[str, object], nearest: str | None) -> None:
    findings = check("workbench-zone", workbench(**changes))

    assert [each.nearest for each in findings] == ([nearest] if nearest else [])
    assert {each.severity for each in findings} <= {"warning"}  # lists of zones age
