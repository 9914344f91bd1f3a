"""Filters of lists: what they leave, and that none can keep the server busy."""

from __future__ import annotations

import re

import pytest

from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources.lists import MOST_CHARACTERS, matches, read_filter


@pytest.mark.parametrize(
    "pattern", ["abc", "a.c", ".*", "*", "a.*", ".*c", "a.*c", "a.*b.*c", ".*b.*", "abc.*bc", "ab.*bc", r"a\.c", "..."]
)
@pytest.mark.parametrize("text", ["abc", "a.c", "", "abbc", "abcbc", "a\nc", "xabc"])
def test_a_pattern_fits_what_its_regular_expression_fits(pattern: str, text: str) -> None:
    meant = re.fullmatch(pattern if pattern != "*" else ".*", text, re.DOTALL)

    assert matches(pattern, text) is bool(meant)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*)*b", "a{9}{9}", "[a-z]+x"])
def test_what_could_run_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(ApiError, match="Invalid list filter expression"):
        read_filter(f'name eq "{pattern}"')


@pytest.mark.timeout(5)
def test_the_worst_pattern_on_a_long_text_takes_no_time() -> None:
    assert not matches(".*".join(["a" * 100] * 9) + "b", "a" * 1_000_000)
    with pytest.raises(ApiError, match=f"longer than {MOST_CHARACTERS}"):
        read_filter("(" + " " * 60_000)


def test_a_resource_fits_where_all_terms_do() -> None:
    item = {"name": "one", "labels": {"team": "a b"}, "enabled": True}

    def fits(text: str) -> bool:
        return all(term.fits(item) for term in read_filter(text))

    assert fits("")
    assert fits('name = "one"')
    assert fits("name=one AND labels.team != b")
    assert fits("(name eq o.*) (enabled = true)")
    assert fits("labels.team = 'a b'")
    assert not fits("name ne o.*")
    assert not fits("name:two")


@pytest.mark.parametrize("text", ["((", "name", "name =", "name ~ x", "= x name", "(name = a"])
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(ApiError, match="Invalid list filter expression"):
        read_filter(text)
