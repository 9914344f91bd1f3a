"""No rule calls an error what its owner deploys: a corpus from public repositories, each entry with its source."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.training_platform.rules.corpus import FOLDER, Entry, accepted, judged, load
from training_platform.resources import resource_types

CORPUS = accepted()
SOURCES: dict[str, dict[str, Any]] = load(FOLDER / "sources.yaml")


def _values(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in _values(part)]
    if isinstance(value, list):
        return [text for part in value for text in _values(part)]
    return [value] if isinstance(value, str) else []


def _resources(entry: Entry) -> dict[str, Any]:
    resources: dict[str, Any] = entry.get("resources", {})
    return resources


def _pools(entry: Entry) -> list[str]:
    return [name for name, row in _resources(entry).items() if row["type"] == resource_types.NODE_POOL]


@pytest.mark.parametrize("name", CORPUS)
def test_no_rule_calls_an_error_what_its_owner_deploys(name: str) -> None:
    errors = [finding for finding in judged(CORPUS[name]) if finding.severity == "error"]

    assert [f"{error.rule}: {error.resource} {error.path} {error.message}" for error in errors] == []


def test_every_configuration_names_where_it_was_read() -> None:
    for name, entry in CORPUS.items():
        assert entry.keys() >= {"source", "path"}, name
        assert entry["source"] in SOURCES, name
    assert {entry["source"] for entry in CORPUS.values()} == SOURCES.keys()
    for source in SOURCES.values():
        assert re.fullmatch(r"[0-9a-f]{40}", source["commit"])
        assert source["read"]
        assert source["repository"]


def test_names_of_the_corpus_are_ours() -> None:
    texts = [text for entry in CORPUS.values() for text in _values({**entry, "path": None})]

    assert [text for text in texts if re.search(r"\w@\w|\n|tf-test|\$\{", text)] == []
    assert {match[1] for text in texts for match in re.finditer(r"(?<!gcp:)projects/([^/]+)", text)} <= {
        "example-train"
    }


@pytest.mark.parametrize("name", [name for name, entry in CORPUS.items() if _pools(entry)])
def test_a_fault_in_a_node_pool_of_the_corpus_is_found(name: str) -> None:
    """A corpus that no rule reads would be clean too."""
    fault = {"autoscaling": {"minNodeCount": 9, "maxNodeCount": 8}}
    rows = _resources(CORPUS[name])
    spoiled = {pool: {**rows[pool], "inputs": {**rows[pool]["inputs"], **fault}} for pool in _pools(CORPUS[name])}
    bounds = {
        finding.resource for finding in judged({"resources": {**rows, **spoiled}}) if finding.rule == "pool-bounds"
    }

    assert bounds == {f"{resource_types.NODE_POOL} {pool}" for pool in spoiled}
