from __future__ import annotations

import pytest

from training_platform.rules.gke.versions import below, floor_of, parse

FLOOR = "1.34.0-gke.2201000"
FLOORS = ("1.29.15-gke.2467000", "1.28.15-gke.3163000")


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("1.34.1-gke.2541000", (1, 34, 1, 2541000)),
        ("1.34.1", (1, 34, 1)),
        ("1.34", (1, 34)),
        ("1.34.", (1, 34)),
        ("latest", None),
        ("-", None),
        (None, None),
    ],
)
def test_version_is_read_as_numbers(version: str | None, numbers: tuple[int, ...] | None) -> None:
    assert parse(version) == numbers


@pytest.mark.parametrize(
    ("version", "severity"),
    [
        ("1.34.0-gke.2201000", None),
        ("1.34.0-gke.2200999", "error"),
        ("1.34.0-gke.10000000", None),  # as text it would come first
        ("1.9.9-gke.9999999", "error"),
        ("1.34.0", None),
        ("1.34", None),
        ("1.33", "warning"),
        ("1.33.9", "warning"),
        ("1.35", None),
        ("latest", None),
        (None, None),
    ],
)
def test_version_below_a_floor_is_an_error_only_where_it_is_written_out(
    version: str | None, severity: str | None
) -> None:
    assert below(version, FLOOR) == severity


@pytest.mark.parametrize(
    ("version", "floor"),
    [("1.27.1-gke.1", FLOORS[1]), ("1.28.15-gke.1", FLOORS[1]), ("1.29", FLOORS[0]), ("1.30", None), (None, None)],
)
def test_each_minor_version_has_its_own_floor_and_later_ones_none(version: str | None, floor: str | None) -> None:
    assert floor_of(FLOORS, version) == floor


def test_nothing_has_no_floor() -> None:
    assert floor_of((), "1.30") is None
