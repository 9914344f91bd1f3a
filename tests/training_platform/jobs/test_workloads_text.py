from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from training_platform.config.reading.source import parse_source
from training_platform.jobs.render import json_text, yaml_text

texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.from_regex(r"[-+]?[0-9a-fx_.:eE-]{1,8}", fullmatch=True)
keys = texts.filter(lambda key: key != "<<")  # what merges one mapping into another is read as no key, quoted or not
values = st.recursive(
    texts | st.integers(-(10**6), 10**6) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "text",
    [
        "1e3",
        "y",
        "N",
        "on",
        "off",
        "null",
        "~",
        "",
        "0x1F",
        "1_000",
        "12:30",
        "2026-11-21",
        ".5",
        "1.30",
        "-",
        "a: b",
        "a:",
    ],
)
def test_a_text_that_some_reader_takes_for_something_else_is_quoted(text: str) -> None:
    assert yaml_text({"value": text}) == f'value: "{text}"\n'


@pytest.mark.parametrize(
    "text",
    ["training", "registry.example.com/train:1", "gs://bucket/job", "us-central1", "JOB_INDEX", "google.com/tpu"],
)
def test_a_plain_text_stays_plain(text: str) -> None:
    assert yaml_text({"value": text}) == f"value: {text}\n"


@given(values)
def test_every_value_is_read_back_by_a_reader_of_yaml(value: Any) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


@given(st.dictionaries(keys, values, max_size=3))
def test_no_text_is_read_in_two_ways(value: dict[str, Any]) -> None:
    source = parse_source(yaml_text(value), "job.yaml")

    assert source.value == value
    assert source.findings == []


def test_a_key_that_merges_is_no_key_of_ours_at_any_depth() -> None:
    source = parse_source(yaml_text({"a": {"<<": "x"}}), "job.yaml")

    assert [finding.path for finding in source.findings] == ["a.<<"]


def test_the_order_of_keys_is_kept_and_nothing_is_an_alias() -> None:
    shared = {"b": "x"}

    assert yaml_text({"z": shared, "a": shared}) == "z:\n  b: x\na:\n  b: x\n"


def test_a_long_text_stays_on_its_line() -> None:
    assert yaml_text({"a": "--flag=" + "word " * 60}).count("\n") == 1


def test_json_ends_its_line_and_keeps_the_order_of_keys() -> None:
    assert json_text({"z": ["a"], "a": "é"}) == '{\n  "z": [\n    "a"\n  ],\n  "a": "\\u00e9"\n}\n'
    assert json.loads(json_text({"a": "é"})) == {"a": "é"}
