"""Topologies on machines: hosts, legal shapes, and the nearest legal one."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.topologies import (
    SHOWN,
    hosts,
    legal_for,
    legal_topologies,
    nearest_topology,
    topologies_text,
)
from training_platform.catalog.types import MachineType, TopologyRule, chips_in, parse_topology, render_topology

V4 = MACHINE_TYPES["ct4p-hightpu-4t"]
V5E_1, V5E_4, V5E_8 = (MACHINE_TYPES[f"ct5lp-hightpu-{chips}t"] for chips in (1, 4, 8))
V5P, V7X_1, V7X = (MACHINE_TYPES[name] for name in ("ct5p-hightpu-4t", "tpu7x-standard-1t", "tpu7x-standard-4t"))
V6E_1, V6E_4, V6E_8 = (MACHINE_TYPES[f"ct6e-standard-{chips}t"] for chips in (1, 4, 8))
TPUS = st.sampled_from([V4, V5E_1, V5E_4, V5E_8, V5P, V6E_1, V6E_4, V6E_8, V7X_1, V7X])

# Of the list of v5p, which is 7x's as well: the smallest, the largest and the longest, then two over v5p's bound.
V5P_HOSTS = {"2x2x1": 1, "2x4x4": 8, "4x4x4": 16, "4x4x244": 976, "8x8x92": 1472, "16x16x24": 1536}
BEYOND_V5P = {"12x24x24": 1728, "16x24x24": 2304}
V5E_HOSTS = {"2x2": 1, "2x4": 2, "4x4": 4, "4x8": 8, "8x8": 16, "8x16": 32, "16x16": 64}


def test_v5e_slices_of_four_chip_machines_are_the_published_list_and_no_other() -> None:
    assert {shape: hosts(V5E_4, shape) for shape in legal_topologies(V5E_4)} == V5E_HOSTS


@pytest.mark.parametrize("machine", [V5P, V7X], ids=["v5p", "7x"])
@pytest.mark.parametrize("shape", V5P_HOSTS)
def test_a_v5p_or_7x_slice_has_the_hosts_of_the_published_list(machine: MachineType, shape: str) -> None:
    assert legal_for(machine, shape)
    assert hosts(machine, shape) == V5P_HOSTS[shape]


@pytest.mark.parametrize("shape", BEYOND_V5P)
def test_slices_over_96_cubes_are_ironwood_s_alone(shape: str) -> None:
    assert not legal_for(V5P, shape)
    assert legal_for(V7X, shape)
    assert hosts(V7X, shape) == BEYOND_V5P[shape]


@pytest.mark.parametrize(
    ("machine", "largest", "one_more"), [(V5P, "4x4x384", "4x4x388"), (V7X, "4x4x576", "4x4x580")], ids=["v5p", "7x"]
)
def test_a_family_takes_as_many_cubes_as_its_bound_and_not_one_more(
    machine: MachineType, largest: str, one_more: str
) -> None:
    assert legal_for(machine, largest)
    assert not legal_for(machine, one_more)


@pytest.mark.parametrize("machine", [V5P, V7X], ids=["v5p", "7x"])
@pytest.mark.parametrize(
    ("wrong", "nearest"), [("8x4x4", "4x4x8"), ("4x2x2", "2x2x4"), ("4x4x6", "4x4x8"), ("2x2", "2x2x1")]
)
def test_sides_rise_in_v5p_and_7x(machine: MachineType, wrong: str, nearest: str) -> None:
    assert not legal_for(machine, wrong)
    assert nearest_topology(machine, wrong) == nearest


def test_v6e_makes_the_slices_of_v5e() -> None:
    assert {shape: hosts(V6E_4, shape) for shape in legal_topologies(V6E_4)} == V5E_HOSTS
    assert [list(legal_topologies(machine)) for machine in (V6E_1, V6E_8)] == [["1x1"], ["2x4"]]
    assert list(legal_topologies(V7X_1)) == ["1x1x1"]
    assert not legal_for(V7X, "1x1x1")


def test_a_shape_that_is_legal_on_a_sibling_is_not_legal_here() -> None:
    assert not legal_for(V5E_8, "4x4")  # 16 / 8 = 2 hosts, but -8t is single-host
    assert not legal_for(V5E_1, "2x2")
    assert not legal_for(V5E_4, "1x1")
    assert hosts(V5E_8, "4x4") == 16 // 8


def test_a_machine_without_a_one_host_slice_makes_larger_ones_only() -> None:
    multi_host_only = replace(V4, single_host=None)

    assert not legal_for(multi_host_only, "2x2x1")
    assert legal_for(multi_host_only, "2x2x2")
    assert nearest_topology(multi_host_only, "2x2x1") == "2x2x2"


@pytest.mark.parametrize("shape", ["1x1", "3x3", "abc", "", "0x4"])
def test_chips_that_fill_no_whole_machine_have_no_hosts(shape: str) -> None:
    assert hosts(V5E_4, shape) is None


@pytest.mark.parametrize("name", ["a3-highgpu-8g", "e2-standard-4"])
def test_a_machine_without_topologies_has_neither_hosts_nor_shapes(name: str) -> None:
    machine = MACHINE_TYPES[name]

    assert hosts(machine, "4x4") is None
    assert not legal_for(machine, "4x4")
    assert list(legal_topologies(machine)) == []
    assert nearest_topology(machine, "4x4") is None


def test_v4_takes_64_cubes_in_any_order_and_not_one_more() -> None:
    assert legal_for(V4, "4x4x256")  # 1 * 1 * 64 cubes
    assert legal_for(V4, "16x4x64")  # 4 * 1 * 16
    assert not legal_for(V4, "4x4x260")  # 65
    assert not legal_for(V4, "8x12x44")  # 2 * 3 * 11 = 66


@pytest.mark.parametrize(
    ("shape", "nearest"),
    [
        ("4x2", "2x4"),  # the same sides, rising
        ("3x4", "4x4"),  # 12 chips: 16 are the fewest that are enough
        ("4x4x4", "8x8"),  # 64 chips in a family of two dimensions
        ("1x1", "2x2"),
        ("32x32", "16x16"),  # more than there is
        ("4X8", "4x8"),
        ("4x8 ", "4x8"),
        ("nonsense", None),
    ],
)
def test_the_nearest_v5e_shape_is_the_one_that_was_probably_meant(shape: str, nearest: str | None) -> None:
    assert nearest_topology(V5E_4, shape) == nearest


@pytest.mark.parametrize(
    ("shape", "nearest"),
    [
        ("4x2x2", "2x2x4"),
        ("8x4x4", "8x4x4"),  # legal as it is: v4 asks for no order
        ("2x2", "2x2x1"),
        ("5x5x5", "4x4x8"),  # 125 chips -> 128, of which 4x4x8 is the only box
        ("16x16", "4x8x8"),  # 256 chips: the compact box before 4x4x16
        ("999x999x999", "16x16x16"),
    ],
)
def test_the_nearest_v4_shape_is_compact(shape: str, nearest: str) -> None:
    assert nearest_topology(V4, shape) == nearest


@given(TPUS, st.lists(st.integers(1, 400), min_size=2, max_size=3))
def test_the_nearest_shape_is_legal_and_large_enough_or_the_largest(machine: MachineType, sides: list[int]) -> None:
    rendered = render_topology(tuple(sides))
    nearest = nearest_topology(machine, rendered)
    largest = max(chips_in(shape) or 0 for shape in legal_topologies(machine))

    assert nearest is not None
    assert legal_for(machine, nearest)
    assert (chips_in(nearest) or 0) >= min(chips_in(rendered) or 0, largest)
    assert nearest_topology(machine, nearest) == nearest


@given(TPUS, st.text(max_size=20))
def test_no_text_makes_the_nearest_shape_illegal(machine: MachineType, text: str) -> None:
    nearest = nearest_topology(machine, text)

    assert nearest is None or legal_for(machine, nearest)


@given(TPUS)
def test_every_legal_shape_fills_whole_hosts(machine: MachineType) -> None:
    for shape in legal_topologies(machine):
        count = hosts(machine, shape)
        assert count is not None
        assert count * machine.chips == chips_in(shape)


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


def test_a_rule_without_cubes_has_only_its_list() -> None:
    rule = TopologyRule(dims=2, shapes=("2x4", "1x1", "16x16", "2x2"))

    assert list(rule.legal_shapes()) == ["1x1", "2x2", "2x4", "16x16"]
    assert not rule.legal("4x2")


@given(RULES)
def test_the_list_of_a_rule_is_every_rising_legal_shape_in_order_of_chips(rule: TopologyRule) -> None:
    listed = list(rule.legal_shapes())
    longest = (rule.cube_side or 1) * max(rule.max_cubes, 1)
    sides = range(1, longest + 1) if rule.dims == 2 else range(rule.cube_side or 1, longest + 1, rule.cube_side or 1)
    rising = {render_topology(box) for box in product(sides, repeat=rule.dims) if list(box) == sorted(box)}

    assert set(listed) == {*rule.shapes, *filter(rule.legal, rising)}
    assert [chips_in(shape) for shape in listed] == sorted(chips_in(shape) or 0 for shape in listed)
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize(("machine", "has_more"), [(V5E_8, False), (V5P, True)], ids=["v5e", "v5p"])
def test_the_first_shapes_of_a_machine_are_one_line(machine: MachineType, has_more: bool) -> None:
    first = ", ".join(list(legal_topologies(machine))[:SHOWN])

    assert topologies_text(machine) == (f"{first} and larger ones" if has_more else first)
