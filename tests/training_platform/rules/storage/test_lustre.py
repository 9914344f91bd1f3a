"""Rules about Managed Lustre: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_names_the_nearest_that_passes,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest
from training_platform.config.reading.finding import Finding
from training_platform.rules import View
from training_platform.views.network import ServicesRangeView

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


def _size(mbps: int, gib: int, found: int) -> Alone:
    return ("lustre-capacity", "lustre", {"mbps_per_tib": mbps, "capacity_gib": gib}, found)


ALONE: list[Alone] = [
    _size(1000, 9_000, 0),
    _size(1000, 8_999, 1),
    _size(1000, 18_000, 0),
    _size(1000, 13_500, 1),
    _size(1000, 1_530_000, 0),
    _size(1000, 1_539_000, 1),
    _size(1000, 1_584_000, 0),
    _size(1000, 10_008_000, 0),
    _size(500, 9_000, 1),
    _size(500, 18_000, 0),
    _size(500, 20_016_000, 0),
    _size(250, 18_000, 1),
    _size(250, 36_000, 0),
    _size(250, 40_032_000, 0),
    _size(125, 36_000, 1),
    _size(125, 72_000, 0),
    _size(125, 12_240_000, 0),
    _size(333, 72_000, 1),
    ("lustre-location", "lustre", {}, 0),
    ("lustre-location", "lustre", {"location": "us-central1"}, 1),
]
NEAREST: list[AloneNearest] = [
    ("lustre-capacity", "lustre", {"capacity_gib": 10_000}, "18000"),
    ("lustre-capacity", "lustre", {"capacity_gib": 1}, "9000"),
    ("lustre-location", "lustre", {"location": "us-central1"}, "us-central1-a"),
]


def test_more_than_the_largest_is_a_warning_since_pages_differ(lustre: Make, check: Check) -> None:
    (finding,) = check("lustre-capacity", lustre(mbps_per_tib=125, capacity_gib=20_448_000))

    assert (finding.severity, finding.nearest) == ("warning", "12240000")


@pytest.mark.parametrize(("prefix", "instances", "found"), [(23, 1, 0), (24, 1, 1), (22, 2, 0), (22, 3, 1)])
def test_every_instance_takes_a_block_of_512_addresses(
    lustre: Make, check: Check, prefix: int, instances: int, found: int
) -> None:
    views = [lustre(name=f"lustre-{index}") for index in range(instances)]
    addresses = ServicesRangeView(
        stack="dev", type="ServicesRangeView", name="private", origin=(), purpose="VPC_PEERING", prefix=prefix
    )

    assert len(check("lustre-addresses", addresses, *views)) == found
    assert check("lustre-addresses", *views) == []  # a range that another program made


def test_an_instance_where_no_cluster_is_is_found(lustre: Make, cluster: Make, check: Check) -> None:
    assert check("lustre-region", lustre(), cluster()) == []
    (finding,) = check("lustre-region", lustre(location="europe-west4-a"), cluster())

    assert finding.nearest == "us-central1"
