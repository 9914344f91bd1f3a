"""Topologies on machines: hosts, what fits, and the nearest that does."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.topologies import hosts, legal_for, legal_topologies, nearest_topology
from training_platform.catalog.types import MachineType, TopologyRule, chips_in, parse_topology, render_topology

V4 = MACHINE_TYPES["ct4p-hightpu-4t"]
V5E_1, V5E_4, V5E_8 = (MACHINE_TYPES[f"ct5lp-hightpu-{chips}t"] for chips in (1, 4, 8))
V5P, V7X_1, V7X = (MACHINE_TYPES[name] for name in ("ct5p-hightpu-4t", "tpu7x-standard-1t", "tpu7x-standard-4t"))
V6E_1, V6E_4, V6E_8 = (MACHINE_TYPES[f"ct6e-standard-{chips}t"] for chips in (1, 4, 8))
DEVICES = [MACHINE_TYPES[f"ct5l-hightpu-{chips}t"] for chips in (1, 4, 8)]
TPUS = st.sampled_from([V4, V5E_1, V5E_4, V5E_8, V5P, V6E_1, V6E_4, V6E_8, V7X_1, V7X, *DEVICES])

# VMs per slice as the list of pathways-job has them (accelerator facts, 2026-11).
V4_HOSTS = {
    "2x2x1": 1, "2x2x2": 2, "2x2x4": 4, "2x4x4": 8, "4x4x4": 16, "4x4x8": 32, "4x8x8": 64, "4x4x16": 64,
    "8x8x8": 128, "8x8x12": 192, "8x8x16": 256, "4x16x16": 256, "8x16x16": 512, "16x16x16": 1024,
}  # fmt: skip
# The default list of v5p, which is 7x's as well: the two largest, and 7x's two beyond them, are over v5p's bound.
_LIST = """
    2x2x1(1) 2x2x2(2) 2x2x4(4) 2x4x4(8) 4x4x4(16) 4x4x8(32) 4x4x12(48) 4x8x8(64) 4x4x20(80) 4x8x12(96) 4x4x28(112)
    8x8x8(128) 4x12x12(144) 4x8x20(160) 4x4x44(176) 8x8x12(192) 4x4x52(208) 4x8x28(224) 4x12x20(240) 8x8x16(256)
    4x4x68(272) 8x12x12(288) 4x4x76(304) 8x8x20(320) 4x12x28(336) 4x8x44(352) 4x4x92(368) 8x12x16(384) 4x20x20(400)
    4x8x52(416) 12x12x12(432) 8x8x28(448) 4x4x116(464) 8x12x20(480) 4x4x124(496) 8x16x16(512) 4x12x44(528) 4x8x68(544)
    4x20x28(560) 12x12x16(576) 4x4x148(592) 4x8x76(608) 4x12x52(624) 8x16x20(640) 4x4x164(656) 8x12x28(672)
    4x4x172(688) 8x8x44(704) 12x12x20(720) 4x8x92(736) 4x4x188(752) 12x16x16(768) 4x28x28(784) 8x20x20(800)
    4x12x68(816) 8x8x52(832) 4x4x212(848) 12x12x24(864) 4x20x44(880) 8x16x28(896) 4x12x76(912) 4x8x116(928)
    4x4x236(944) 12x16x20(960) 4x4x244(976) 4x8x124(992) 12x12x28(1008) 16x16x16(1024) 4x20x52(1040) 8x12x44(1056)
    8x8x68(1088) 4x12x92(1104) 8x20x28(1120) 12x16x24(1152) 4x8x148(1184) 12x20x20(1200) 8x8x76(1216) 4x28x44(1232)
    8x12x52(1248) 16x16x20(1280) 12x12x36(1296) 4x8x164(1312) 12x16x28(1344) 4x20x68(1360) 4x8x172(1376) 4x12x116(1392)
    8x16x44(1408) 12x20x24(1440) 4x28x52(1456) 8x8x92(1472) 4x12x124(1488) 4x8x188(1504) 4x20x76(1520) 16x16x24(1536)
"""
V5P_LIST = _LIST.split()
BEYOND_V5P = ["12x24x24(1728)", "16x20x28(2240)", "16x16x32(2048)", "16x24x24(2304)"]
V5E_HOSTS = {"2x2": 1, "2x4": 2, "4x4": 4, "4x8": 8, "8x8": 16, "8x16": 32, "16x16": 64}


@pytest.mark.parametrize(("shape", "count"), V4_HOSTS.items())
def test_a_v4_slice_has_the_hosts_of_the_published_list(shape: str, count: int) -> None:
    assert legal_for(V4, shape)
    assert hosts(V4, shape) == count


def test_v5e_slices_of_four_chip_machines_are_the_published_list_and_no_other() -> None:
    assert {shape: hosts(V5E_4, shape) for shape in legal_topologies(V5E_4)} == V5E_HOSTS


def split(entry: str) -> tuple[str, int]:
    """Return topology and hosts of an entry such as ``4x4x4(16)``."""
    topology, _, count = entry.rstrip(")").partition("(")
    return topology, int(count)


def test_the_default_list_has_94_slices_that_v5p_takes() -> None:
    assert len(V5P_LIST) == len(set(V5P_LIST)) == 96 - 2


@pytest.mark.parametrize("machine", [V5P, V7X], ids=["v5p", "7x"])
def test_every_slice_of_the_published_list_is_legal_on_v5p_and_7x(machine: MachineType) -> None:
    slices = dict(map(split, V5P_LIST))

    assert [topology for topology in slices if not legal_for(machine, topology)] == []
    assert {topology: hosts(machine, topology) for topology in slices} == slices


@pytest.mark.parametrize("entry", BEYOND_V5P)
def test_slices_over_96_cubes_are_ironwood_s_alone(entry: str) -> None:
    topology, count = split(entry)

    assert not legal_for(V5P, topology)
    assert legal_for(V7X, topology)
    assert hosts(V7X, topology) == count


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


def test_v6e_makes_the_slices_of_v5e_and_a_device_none_over_hosts() -> None:
    assert {shape: hosts(V6E_4, shape) for shape in legal_topologies(V6E_4)} == V5E_HOSTS
    assert [list(legal_topologies(machine)) for machine in (V6E_1, V6E_8)] == [["1x1"], ["2x4"]]
    assert [list(legal_topologies(machine)) for machine in DEVICES] == [["1x1"], ["2x2"], ["2x4"]]
    assert list(legal_topologies(V7X_1)) == ["1x1x1"]
    assert not legal_for(V7X, "1x1x1")


def test_v5e_machines_of_one_and_eight_chips_make_one_slice_each() -> None:
    assert list(legal_topologies(V5E_1)) == ["1x1"]
    assert list(legal_topologies(V5E_8)) == ["2x4"]
    assert (hosts(V5E_1, "1x1"), hosts(V5E_8, "2x4")) == (1, 1)


def test_the_same_eight_chips_are_one_host_or_two() -> None:
    assert (hosts(V5E_8, "2x4"), hosts(V5E_4, "2x4")) == (1, 8 // 4)
    assert legal_for(V5E_8, "2x4")
    assert legal_for(V5E_4, "2x4")


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
    ("asked", "nearest"),
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
def test_the_nearest_v5e_shape_is_the_one_that_was_probably_meant(asked: str, nearest: str | None) -> None:
    assert nearest_topology(V5E_4, asked) == nearest


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("4x2x2", "2x2x4"),
        ("8x4x4", "8x4x4"),  # legal as it is: v4 asks for no order
        ("2x2", "2x2x1"),
        ("5x5x5", "4x4x8"),  # 125 chips -> 128, of which 4x4x8 is the only box
        ("16x16", "4x8x8"),  # 256 chips: the compact box before 4x4x16
        ("999x999x999", "16x16x16"),
    ],
)
def test_the_nearest_v4_shape_is_compact(asked: str, nearest: str) -> None:
    assert nearest_topology(V4, asked) == nearest


@given(TPUS, st.lists(st.integers(1, 400), min_size=2, max_size=3))
def test_the_nearest_shape_is_legal_and_large_enough_or_the_largest(machine: MachineType, sides: list[int]) -> None:
    asked = render_topology(tuple(sides))
    nearest = nearest_topology(machine, asked)
    largest = max(chips_in(shape) or 0 for shape in legal_topologies(machine))

    assert nearest is not None
    assert legal_for(machine, nearest)
    assert (chips_in(nearest) or 0) >= min(chips_in(asked) or 0, largest)
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
