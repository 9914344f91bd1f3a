"""The nearest valid value in a rejection."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from training_platform.catalog.nearest import find_nearest


def test_a_misspelt_name_finds_the_one_that_was_meant() -> None:
    assert find_nearest("a3-higpu-8g", ["a2-highgpu-8g", "a3-highgpu-8g", "a3-megagpu-8g"]) == "a3-highgpu-8g"


def test_a_name_like_none_finds_none() -> None:
    assert find_nearest("zebra", ["a3-highgpu-8g", "e2-standard-4"]) is None
    assert find_nearest("a3-highgpu-8g", []) is None


def test_upper_case_and_blanks_are_overlooked_and_the_value_keeps_its_own_case() -> None:
    assert find_nearest(" PD-SSD ", ["pd-ssd", "pd-standard"]) == "pd-ssd"
    assert find_nearest("zonal", ["REGIONAL", "ZONAL"]) == "ZONAL"


@given(st.text(), st.lists(st.text()))
def test_the_answer_is_an_allowed_value_whatever_their_order(name: str, allowed: list[str]) -> None:
    nearest = find_nearest(name, allowed)

    assert nearest is None or nearest in allowed
    assert find_nearest(name, reversed(allowed)) == nearest
