"""Edits of YAML that leave every other line unchanged, or are refused."""

from __future__ import annotations

import pytest
import yaml

from training_platform.config.reading.editing import with_entry, with_number, without_entry
from training_platform.config.reading.finding import UserError

ENTRY = ["b: {size: 2}"]
BLOCK = """\
top:
  # of pools
  pools: # scarce
    # of a
    a:
      size: 1
      text: |
        lines

        more
# b: {size: 3}
    # the last of pools

  after: true
"""


def edited(text: str) -> str:
    return with_entry(text, "f.yaml", ("top", "pools"), ENTRY)


def test_a_key_comes_at_the_end_of_its_mapping_and_no_line_changes() -> None:
    rows = BLOCK.splitlines(keepends=True)
    position = BLOCK.splitlines().index("    # the last of pools") + 1

    assert edited(BLOCK) == "".join([*rows[:position], "    b: {size: 2}\n", *rows[position:]])


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("top:\n  pools: {a: {size: 1}} # c\n", "top:\n  pools: {b: {size: 2}, a: {size: 1}} # c\n"),
        ("top:\n  pools: {} # c\n", "top:\n  pools: {b: {size: 2}} # c\n"),
        ("top: {pools: {a: 1}}\n", "top: {pools: {b: {size: 2}, a: 1}}\n"),
        ("top:\n  pools:\n  z: 1\n", "top:\n  pools:\n    b: {size: 2}\n  z: 1\n"),
        ("top:\n  z: 1\n\n# end\n", "top:\n  z: 1\n  pools:\n    b: {size: 2}\n\n# end\n"),
        ("top:\n  z: 1\n      \nend: 1\n", "top:\n  z: 1\n  pools:\n    b: {size: 2}\n      \nend: 1\n"),
        ("top:\n    z: 1", "top:\n    z: 1\n    pools:\n      b: {size: 2}\n"),
        ("top:\r\n  z: 1\r\n", "top:\r\n  z: 1\r\n  pools:\r\n    b: {size: 2}\r\n"),
    ],
)  # fmt: skip
def test_each_layout_has_a_place_for_it(text: str, written: str) -> None:
    assert edited(text) == written


@pytest.mark.parametrize(
    "text",
    ["top:\n  pools: &p {a: 1}\n", "top:\n  pools:\n    b: 1\n", "top: {z: 1}\n", "top:\n  pools: ~\n",
     "base: &p\n  a: 1\ntop:\n  pools: *p\n"],
)  # fmt: skip
def test_a_layout_without_a_place_is_refused_with_the_line_to_write_by_hand(text: str) -> None:
    with pytest.raises(
        UserError, match=r"^f\.yaml:\d: has a layout in which no line of pools can be written: .*:\n  b: "
    ):
        edited(text)


def test_a_number_changes_and_nothing_around_it() -> None:
    text = "a: {size: -1, value: 60} # 60\nvalue: 60\n"

    assert with_number(text, "f.yaml", ("a", "value"), 64) == "a: {size: -1, value: 64} # 60\nvalue: 60\n"
    assert yaml.safe_load(with_number(text, "f.yaml", ("a", "size"), 8))["a"]["size"] == 8


def test_a_number_that_an_anchor_shares_is_refused() -> None:
    with pytest.raises(UserError, match="has a layout in which no line of size can be written"):
        with_number("a: &x {size: 1}\nb: *x\n", "f.yaml", ("b", "size"), 2)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("top:\n  pools:\n    a: 1\n    b: 2 # c\n  z: 1\n", "top:\n  pools:\n    a: 1\n  z: 1\n"),
        ("top:\n  pools:\n    b:\n      c: 1\n\n    # of z\n    z: 1\n", "top:\n  pools:\n\n    # of z\n    z: 1\n"),
        ("top:\n  pools:\n    b: 2\n  z: 1\n", "top:\n  z: 1\n"),
        ("top:\n  z: 1\n  pools:\n    b: 2\n\n# end\n", "top:\n  z: 1\n\n# end\n"),
        ("top:\n  pools: {a: 1, b: 2} # c\n", "top:\n  pools: {a: 1} # c\n"),
        ("top:\n  pools: {b: 2, a: 1}\n", "top:\n  pools: {a: 1}\n"),
        ("top:\n  pools: {b: 2}\n  z: 1\n", "top:\n  z: 1\n"),
        ("top:\r\n  z: 1\r\n  pools: {b: 2}\r\n", "top:\r\n  z: 1\r\n"),
    ],
)  # fmt: skip
def test_a_key_is_deleted_with_a_parent_that_held_nothing_else(text: str, written: str) -> None:
    assert without_entry(text, "f.yaml", ("top", "pools", "b")) == written


@pytest.mark.parametrize(
    "text",
    [
        "top: {z: 1, pools: {b: 2}}\n",
        "base: &p {a: 1, b: 2}\ntop:\n  pools: *p\n",
        "top:\n  pools: {b: {c: 2}, a: 1}\n",
    ],
)
def test_a_key_that_cannot_be_deleted_by_itself_is_left(text: str) -> None:
    with pytest.raises(UserError, match=r"f\.yaml:\d+: has a layout in which no line of b can be deleted: .* by hand"):
        without_entry(text, "f.yaml", ("top", "pools", "b"))
