"""Capacities that an instance cannot change to are refused before the change is deployed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training_platform.quota.test_ledger import workspace
from training_platform.checks.comparison.refusals import capacity_growth
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import read_workspace


def change(
    root: Path, before: int, after: int, *, tier: str = "ZONAL", extra: str = "", now: str | None = None
) -> list[Finding]:
    sides = []
    for name, capacity, more in (("before", before, extra), ("after", after, extra if now is None else now)):
        (root / name).mkdir()
        sides.append(workspace(root / name, capacity=capacity, one=1, other=1, tier=tier, extra=more))
    return list(capacity_growth(sides[1], sides[0]))


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


LUSTRE = "\n    private_services_range: 10.200.0.0/20\n    lustre: {scratch: {location: us-central1-a, SPEC}}\n"


def lustre(root: Path, before: str, after: str) -> list[Finding]:
    sides = []
    for name, spec in (("before", before), ("after", after)):
        (root / name).mkdir()
        workspace(root / name, capacity=1024, one=1, other=1)
        path = root / name / "stacks" / "Pulumi.env.yaml"
        path.write_text(path.read_text().rstrip() + LUSTRE.replace("SPEC", spec))
        sides.append(read_workspace(root / name))
        assert not sides[-1].stacks["env"].findings
    return list(capacity_growth(sides[1], sides[0]))


@pytest.mark.parametrize(
    ("before", "after", "nearest"),
    [
        ("18000", "9000", "18000"),
        ("1530000", "1584000", "1530000"),
        ("9000", "1530000", None),
        ("18000", "18000", None),
    ],
)
def test_managed_lustre_grows_in_its_band(tmp_path: Path, before: str, after: str, nearest: str | None) -> None:
    found = lustre(tmp_path, f"capacity_gib: {before}", f"capacity_gib: {after}")

    assert [(each.path, each.nearest) for each in found] == (
        [("lustre.scratch.capacity_gib", nearest)] if nearest else []
    )


def test_managed_lustre_of_another_throughput_is_another_instance(tmp_path: Path) -> None:
    assert lustre(tmp_path, "capacity_gib: 36000", "capacity_gib: 18000, mbps_per_tib: 500") == []


def test_another_instance_may_have_any_capacity(tmp_path: Path) -> None:
    assert change(tmp_path, 9984, 10240, extra="share: one", now="share: two") == []


def test_a_capacity_that_no_band_has_is_another_rule_s(tmp_path: Path) -> None:
    assert change(tmp_path, 9984, 9985) == []
