"""What is added to the documents by hand: it fits every version of a type, and repeats nothing that is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from training_platform.rules import documents
from training_platform.rules.documents.problems import Problem
from training_platform.rules.documents.shapes import check_of

FOLDER = Path(documents.__file__).parent


@pytest.mark.parametrize("file", ["google.json", "kubernetes.json", "gke.json", "operators.json"])
def test_every_type_with_a_document_is_judged(file: str) -> None:
    types = json.loads((FOLDER / file).read_text(encoding="utf-8"))["types"]

    assert [token for token in types if check_of(token) is None] == []


def test_what_the_provider_checks_is_not_written_by_hand_as_well() -> None:
    added = yaml.safe_load((FOLDER / "additions.yaml").read_text(encoding="utf-8"))
    types = json.loads((FOLDER / "provider.json").read_text(encoding="utf-8"))["types"]

    for token in types.keys() & added["types"].keys():
        rows = added["types"][token]
        for path, extra in (added["parts"][rows] if isinstance(rows, str) else rows).items():
            own = extra if isinstance(extra, Mapping) else added["forms"].get(extra, {})
            assert said(own) & said(types[token].get(path, {})) == set(), f"{token}.{path}"


def said(row: Mapping[str, Any]) -> set[object]:
    """Return what a row says, each fact as a text, whatever the order of a list in it."""
    groups = {f"one of {sorted(group['of'])}" for group in row.get("groups", ())}
    plain = {f"{name} {sorted(value) if name == 'enum' else value}" for name, value in row.items() if name != "groups"}
    return groups | plain


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("gcp:container/cluster:Cluster", {"privateClusterConfig": {}}),
        ("gcp:billing/budget:Budget", {"billingAccount": "a", "amount": {}}),
    ],
)
def test_a_block_with_none_of_its_inputs_is_found_once(token: str, inputs: dict[str, Any]) -> None:
    judge, found = check_of(token), list[Problem]()
    assert judge

    judge(inputs, (), found.append)

    assert [problem.kind for problem in found] == ["required"]
