"""Capacities that an instance cannot change to are refused before the change is deployed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training_platform.quota.test_file_ledger import workspace
from training_platform.checks.comparison.filestore_growth import filestore_growth
from training_platform.config.reading.finding import Finding


def change(
    root: Path, before: int, after: int, *, tier: str = "ZONAL", extra: str = "", now: str | None = None
) -> list[Finding]:
    sides = []
    for name, capacity, more in (("before", before, extra), ("after", after, extra if now is None else now)):
        (root / name).mkdir()
        sides.append(workspace(root / name, capacity=capacity, one=1, other=1, tier=tier, extra=more))
    return list(filestore_growth(sides[1], sides[0]))


@pytest.mark.parametrize(
    ("tier", "before", "after", "nearest"),
    [
        ("ZONAL", 9984, 10240, "9984"),
        ("ZONAL", 10240, 9984, "10240"),
        ("REGIONAL", 1024, 12800, "9984"),
        ("BASIC_HDD", 2048, 2047, "2048"),
        ("BASIC_SSD", 4096, 2560, "4096"),
    ],
)
def test_what_the_tier_cannot_do_is_found_at_its_line(
    tmp_path: Path, tier: str, before: int, after: int, nearest: str
) -> None:
    (found,) = change(tmp_path, before, after, tier=tier)

    assert (found.rule, found.severity, found.path) == ("filestore-growth", "error", "filestore.data.capacity_gib")
    assert found.position is not None
    assert found.nearest == nearest


@pytest.mark.parametrize(
    ("tier", "before", "after"),
    [("ZONAL", 1024, 9984), ("ZONAL", 9984, 1024), ("ZONAL", 102400, 10240), ("BASIC_HDD", 2047, 2048)],
)
def test_what_it_can_do_is_not(tmp_path: Path, tier: str, before: int, after: int) -> None:
    assert change(tmp_path, before, after, tier=tier) == []


def test_another_instance_may_have_any_capacity(tmp_path: Path) -> None:
    assert change(tmp_path, 9984, 10240, extra="share: one", now="share: two") == []


def test_a_capacity_that_no_band_has_is_another_rule_s(tmp_path: Path) -> None:
    assert change(tmp_path, 9984, 9985) == []
