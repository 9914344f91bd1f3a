"""Property values survive the wire, and reading them never trips over a secret or an unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime import rpc
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from training_platform.checks.planning.wire import SECRET, SIGNATURE, UNKNOWNS, readable
from training_platform.resources.planned import UNKNOWN
from training_platform.sandbox.kubernetes.values import Json, dig, from_struct, pruned, put, to_struct, with_secrets
from training_platform.views.inputs import holds_unknown

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
trees = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def secret(value: Any) -> Json:
    return {SIGNATURE: SECRET, "value": value}


def test_the_markers_are_those_of_the_sdk() -> None:
    assert rpc._special_sig_key == SIGNATURE
    assert rpc._special_secret_sig == SECRET
    assert rpc.UNKNOWN == UNKNOWN_ON_WIRE
    assert UNKNOWN_ON_WIRE in UNKNOWNS


@given(st.dictionaries(st.text(), trees))
def test_values_come_back_from_the_wire_as_they_went(value: Json) -> None:
    assert from_struct(to_struct(value)) == value


def test_whole_numbers_come_back_as_integers_at_any_depth() -> None:
    read = from_struct(to_struct({"a": [{"b": 3}], "c": 0.5}))

    assert isinstance(read["a"][0]["b"], int)
    assert read["c"] == 0.5


@given(trees)
def test_reading_twice_changes_nothing_more(value: Any) -> None:
    assert readable(readable(value)) == readable(value)


@pytest.mark.parametrize("sentinel", sorted(UNKNOWNS))
def test_every_kind_of_unknown_is_read_as_unknown_inside_a_secret_too(sentinel: str) -> None:
    read = readable({"plain": sentinel, "hidden": secret([sentinel])})

    assert read == {"plain": UNKNOWN, "hidden": [UNKNOWN]}
    assert holds_unknown(read)
    assert not holds_unknown({"plain": ["a"], "other": None})


def test_a_foreign_object_is_read_as_unknown() -> None:
    assert readable([object()]) == [UNKNOWN]


def test_digging_below_an_unknown_finds_an_unknown_and_below_nothing_finds_nothing() -> None:
    assert dig({"metadata": UNKNOWN}, "metadata", "name") is UNKNOWN
    assert dig({"metadata": "text"}, "metadata", "name") is None
    assert dig({}, "metadata", "name") is None


def test_putting_reaches_into_secrets_and_leaves_the_original_alone() -> None:
    value = {"metadata": secret({"labels": {"a": "b"}})}

    assert put(value, ("metadata", "name"), "x") == {"metadata": secret({"labels": {"a": "b"}, "name": "x"})}
    assert value == {"metadata": secret({"labels": {"a": "b"}})}


def test_putting_below_an_unknown_changes_nothing() -> None:
    assert put({"metadata": UNKNOWN_ON_WIRE}, ("metadata", "name"), "x") == {"metadata": UNKNOWN_ON_WIRE}


def test_pruning_keeps_what_was_set_with_its_live_value() -> None:
    live = {"spec": {"replicas": 5, "filled": True}, "status": {}}

    assert pruned(live, {"spec": {"replicas": 2}}) == {"spec": {"replicas": 5}}


def test_secrets_are_marked_where_they_were() -> None:
    like = {"data": {"a": secret("x"), "b": "y"}, "items": [secret("z")]}

    marked = with_secrets({"data": {"a": "1", "b": "2"}, "items": ["3", "4"], "uid": "u"}, like)

    assert marked == {"data": {"a": secret("1"), "b": "2"}, "items": [secret("3"), "4"], "uid": "u"}
