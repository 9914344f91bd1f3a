"""Topologies as text and as a rule."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_platform.catalog.shapes import TopologyRule, chips_in, parse_topology, render_topology

BOXES = TopologyRule(dims=3, shapes=("2x2x1", "2x2x2"), cube_side=4, max_cubes=64)
RULES = st.builds(
    TopologyRule,
    dims=st.sampled_from([2, 3]),
    shapes=st.just(("1x1", "1x1x2")),
    cube_side=st.sampled_from([None, 1, 2, 4]),
    max_cubes=st.integers(0, 12),
    ascending=st.booleans(),
)


@pytest.mark.parametrize(
    "text", ["", "4", "4x", "x4", "4x4x4x4", "0x4", "4X4", "4 x4", "-4x4", "4.0x4", "٤x4", "4x100000"]
)
def test_what_is_no_topology_has_no_chips(text: str) -> None:
    assert parse_topology(text) is None
    assert chips_in(text) is None


def test_the_chips_of_a_topology_are_the_product_of_its_sides() -> None:
    assert chips_in("4x8") == 4 * 8
    assert chips_in("8x16x16") == 8 * 16 * 16


@pytest.mark.parametrize("shape", ["2x2x1", "4x4x4", "8x4x4", "4x8x4", "16x16x16", "4x4x256", "256x4x4"])
def test_a_listed_shape_and_a_box_of_cubes_in_any_order_are_legal(shape: str) -> None:
    assert BOXES.legal(shape)


@pytest.mark.parametrize(
    "shape", ["1x2x2", "4x4", "4x4x6", "4x4x260", "16x16x20", "04x4x4", "4x4x4x4", "4x4x", "2x2x8", "0x4x4"]
)
def test_any_other_shape_is_not(shape: str) -> None:
    assert not BOXES.legal(shape)


def test_sides_must_rise_where_the_rule_says_so() -> None:
    rising = TopologyRule(dims=3, shapes=(), cube_side=4, max_cubes=64, ascending=True)

    assert rising.legal("4x4x8")
    assert not rising.legal("4x8x4")


def test_a_rule_without_cubes_has_its_list_alone() -> None:
    rule = TopologyRule(dims=2, shapes=("2x4", "1x1", "16x16", "2x2"))

    assert list(rule.legal_shapes()) == ["1x1", "2x2", "2x4", "16x16"]
    assert not rule.legal("4x2")


@given(RULES)
def test_the_list_of_a_rule_is_every_rising_legal_shape_in_order_of_chips(rule: TopologyRule) -> None:
    listed = list(rule.legal_shapes())
    longest = (rule.cube_side or 1) * max(rule.max_cubes, 1)
    sides = range(1, longest + 1) if rule.dims == 2 else range(rule.cube_side or 1, longest + 1, rule.cube_side or 1)
    found = {render_topology(box) for box in product(sides, repeat=rule.dims) if list(box) == sorted(box)}

    assert set(listed) == {*rule.shapes, *filter(rule.legal, found)}
    assert [chips_in(shape) for shape in listed] == sorted(chips_in(shape) or 0 for shape in listed)
    assert len(set(listed)) == len(listed)


@given(st.lists(st.integers(1, 99_999), min_size=2, max_size=3))
def test_a_topology_reads_as_it_was_written(sides: list[int]) -> None:
    assert parse_topology(render_topology(tuple(sides))) == tuple(sides)
    assert chips_in(render_topology(tuple(sides))) == prod(sides)


@given(RULES, st.text(alphabet="x0123456789 ", max_size=12))
def test_no_text_makes_a_rule_fail(rule: TopologyRule, text: str) -> None:
    assert rule.legal(text) in {True, False}
