"""What counts as a change of inputs, and how it is named."""

from __future__ import annotations

from typing import Any

import pytest

from training_platform.resources.planned import UNKNOWN
from training_platform.sandbox.kubernetes.values import Change, changes, text


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": "update"}),
        ({"a": 1}, {}, {"a": "delete"}),
        ({}, {"a": {"b": 1}}, {"a": "add"}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, {"a.b": "update"}),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}, 4]}, {"a[1].b": "update", "a[2]": "add"}),
        ({"a": [1, 2]}, {"a": [1]}, {"a[1]": "delete"}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": "update"}),
        ({"a": 1}, {"a": True}, {"a": "update"}),
        ({"a": None}, {}, {}),
        ({"a": 4}, {"a": 4.0}, {}),
        ({"a": "x"}, {"a": UNKNOWN}, {"a": "update"}),
    ],
)
def test_changes_are_found(old: Any, new: Any, found: dict[str, str]) -> None:
    assert {str(one): one.kind for one in changes(old, new)} == found


def test_a_path_is_written_as_the_engine_writes_it() -> None:
    assert text(("metadata", "labels", "example.com/a", 0)) == 'metadata.labels["example.com/a"][0]'


@pytest.mark.parametrize(
    ("changed", "touches"),
    [
        (("spec", "selector"), True),
        (("spec", "selector", "matchLabels"), True),
        (("spec",), True),
        (("spec", "replicas"), False),
        (("metadata",), False),
    ],
)
def test_a_change_touches_a_field_at_it_below_it_and_above_it(changed: tuple[str, ...], touches: bool) -> None:
    assert Change(changed, "update").within(("spec", "selector")) is touches
