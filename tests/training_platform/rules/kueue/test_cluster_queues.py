"""Rules about ClusterQueues: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import Planned
from training_platform.rules import View
from training_platform.views.adapters import views_of_plan
from training_platform.views.kueue import FlavorQuotaView

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


def test_a_check_without_flavors_holds_all_of_a_queue() -> None:
    rows = [{"name": name, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "8"}]} for name in ("a", "b")]
    checks = [{"name": "all"}, {"name": "of-b", "onFlavors": ["b"]}]
    inputs = {
        "metadata": {"name": "vision"},
        "spec": {
            "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": rows}],
            "admissionChecksStrategy": {"admissionChecks": checks},
        },
    }
    kind = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
    found = views_of_plan([Planned(stack="dev", type=kind, name="vision", inputs=inputs)])

    assert {view.flavor: view.checks for view in found if isinstance(view, FlavorQuotaView)} == {
        "a": ("all",),
        "b": ("all", "of-b"),
    }


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"cohort": None}, ["borrowing_limit", "lending_limit"]),
        ({"cohort": None, "lending_limit": None}, ["borrowing_limit"]),
        ({"cohort": None, "borrowing_limit": 0, "lending_limit": None}, ["borrowing_limit"]),
        ({"cohort": None, "borrowing_limit": None, "lending_limit": None}, []),
        ({}, []),
    ],
)
def test_limits_need_a_cohort(check: Check, flavor_quota: Make, changes: dict[str, Any], paths: list[str]) -> None:
    found = check("kueue-limits-need-cohort", flavor_quota(**changes))

    assert [finding.path for finding in found] == [f"section.tpu-v5e-4x8.{path}" for path in paths]


@pytest.mark.parametrize(("lent", "count"), [(None, 0), (0, 0), (64, 0), (65, 1)])
def test_team_lends_at_most_what_it_has(check: Check, flavor_quota: Make, lent: int | None, count: int) -> None:
    found = check("kueue-lending-limit", flavor_quota(lending_limit=lent))

    assert [finding.nearest for finding in found] == ["64"] * count


@pytest.mark.parametrize("field", ["nominal_quota", "borrowing_limit", "lending_limit"])
@pytest.mark.parametrize(("amount", "count"), [(0, 0), (-1, 1)])
def test_no_quantity_is_negative(check: Check, flavor_quota: Make, field: str, amount: int, count: int) -> None:
    assert len(check("kueue-quantities", flavor_quota(**{field: amount}))) == count
