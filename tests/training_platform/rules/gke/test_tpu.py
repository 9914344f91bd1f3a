"""Rules about TPU slices: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


@pytest.mark.parametrize(
    ("machine", "topology", "nearest"),
    [
        ("ct5lp-hightpu-4t", "4x8", None),
        ("ct5lp-hightpu-4t", "16x16", None),
        ("ct5lp-hightpu-4t", "8x4", "4x8"),
        ("ct5lp-hightpu-4t", "3x4", "4x4"),
        ("ct5lp-hightpu-4t", "16x32", "16x16"),
        ("ct5lp-hightpu-8t", "4x4", "2x4; or machine type ct5lp-hightpu-4t for 4x4"),
        ("ct4p-hightpu-4t", "2x2x4", None),
        ("ct4p-hightpu-4t", "8x4x4", None),
        ("ct4p-hightpu-4t", "16x16x16", None),
        ("ct4p-hightpu-4t", "16x16x20", "16x16x16"),
        ("ct4p-hightpu-4t", "4x2x2", "2x2x4"),
        ("ct4p-hightpu-4t", "4x8", "2x4x4"),
    ],
)
def test_topology_is_one_that_the_machine_makes(
    check: Check, slice_pool: Make, machine: str, topology: str, nearest: str | None
) -> None:
    found = check("tpu-topology", slice_pool(machine_type=machine, tpu_topology=topology))

    assert [finding.nearest for finding in found] == ([nearest] if nearest else [])
    assert {finding.path for finding in found} <= {"section.topology"}


def test_topology_on_gpus_is_found(check: Check, gpu_pool: Make) -> None:
    assert len(check("tpu-topology", gpu_pool(tpu_topology="2x4"))) == 1


@pytest.mark.parametrize(("topology", "count"), [(None, 0), ("2x4", 1)])
def test_one_host_slice_has_no_placement(check: Check, host_pool: Make, topology: str | None, count: int) -> None:
    assert len(check("tpu-single-host-placement", host_pool(tpu_topology=topology))) == count


def test_two_hosts_with_the_topology_of_one_larger_host_are_a_slice(check: Check, slice_pool: Make) -> None:
    assert check("tpu-single-host-placement", slice_pool(tpu_topology="2x4", max_nodes=2)) == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"max_nodes": 8, "min_nodes": 8, "initial_nodes": 8}, None),
        ({"node_count": 0, "max_nodes": None, "min_nodes": None}, None),
        ({"node_count": 8, "max_nodes": None, "min_nodes": None}, None),
        ({"node_count": 16}, "section"),
        ({"initial_nodes": 7}, "section"),
        ({"min_nodes": 1}, "section.min_slices"),
        ({"max_nodes": 7}, "section.slices"),
        ({"max_nodes": 9}, "section.slices"),
        ({"max_nodes": 16}, "section.slices"),
        ({"total_max_nodes": 8}, "section.slices"),
        ({"total_min_nodes": 0}, "section.min_slices"),
    ],
)
def test_pool_of_a_slice_has_all_of_its_hosts_or_none(
    check: Check, slice_pool: Make, changes: dict[str, int | None], path: str | None
) -> None:
    found = check("tpu-slice-nodes", slice_pool(**changes))

    assert [finding.path for finding in found] == ([path] if path else [])


def test_one_host_slices_may_be_any_number(check: Check, host_pool: Make) -> None:
    assert check("tpu-slice-nodes", host_pool(max_nodes=7, min_nodes=3, total_max_nodes=9)) == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({}, None),
        ({"zones": (), "location": "us-central1-a"}, None),
        ({"zones": ()}, "section.zone"),
        ({"zones": ("us-central1-a", "us-central1-b")}, "section.zone"),
        ({"upgrade_strategy": "BLUE_GREEN"}, "section.upgrades.strategy"),
        ({"zones": (), "placement_type": None}, None),
    ],
)
def test_compact_placement_is_in_one_zone(
    check: Check, slice_pool: Make, changes: dict[str, object], path: str | None
) -> None:
    found = check("placement-one-zone", slice_pool(**changes))

    assert [finding.path for finding in found] == ([path] if path else [])
