"""Rules about who mounts a Filestore share, and its snapshots, at the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.rules import View
from training_platform.views.storage import Export, SnapshotView

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


def export(*ranges: str, squashed: bool = False) -> Export:
    """Return an entry of these ranges."""
    return Export(ranges=ranges, squashed=squashed)


@pytest.mark.parametrize(
    ("exports", "messages"),
    [
        ((), []),
        (tuple(export(f"10.{number}.0.0/24") for number in range(10)), []),
        (tuple(export(f"10.{number}.0.0/24") for number in range(11)), ["has 11 entries"]),
        ((export(*(f"10.0.{number}.0/24" for number in range(64))),), []),
        ((export(*(f"10.0.{number}.0/24" for number in range(65))),), ["has 65 ranges"]),
        ((export("10.0.0.0/24"), export("10.0.1.0/24")), []),
        ((export("10.0.0.0/23"), export("10.0.1.0/24")), ["10.0.1.0/24 overlaps 10.0.0.0/23 of another entry"]),
        ((export("10.0.0.0/23", "10.0.1.0/24"),), []),
        ((export("10.0.0.0/33"), export("a host")), []),
    ],
)
def test_exports_are_few_and_do_not_overlap(
    check: Check, filestore: Make, exports: tuple[Export, ...], messages: list[str]
) -> None:
    assert [each.message for each in check("filestore-exports", filestore(exports=exports))] == messages


@pytest.mark.parametrize(
    ("labels", "squashed", "findings"),
    [
        ({"environment": "dev"}, True, 1),
        ({"environment": "dev"}, False, 0),
        ({"environment": "dev", "team": "vision"}, True, 0),
        (None, True, 1),
    ],
)
def test_root_makes_the_folders_of_several_teams(
    check: Check, filestore: Make, labels: dict[str, str] | None, squashed: bool, findings: int
) -> None:
    shared = filestore(labels=labels, exports=(export("10.0.0.0/24", squashed=squashed),))

    assert [each.nearest for each in check("filestore-squashed-root", shared)] == ["none"] * findings


@pytest.mark.parametrize(("tier", "findings"), [("ZONAL", 0), ("BASIC_HDD", 1), ("no-such-tier", 0)])
def test_snapshots_are_of_tiers_that_have_them(check: Check, filestore: Make, tier: str, findings: int) -> None:
    more: dict[str, Any] = {"stack": "dev", "type": "SnapshotView", "name": "nightly", "instance": "shared"}

    found = check("filestore-snapshot", filestore(name="shared", tier=tier), SnapshotView(**more))

    assert len(found) == findings
