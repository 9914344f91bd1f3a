"""What is added to the documents by hand fits every version of a type, and repeats nothing that they have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.places import ROOT
from training_platform.rules import documents
from training_platform.rules.documents.problems import BrokenConstraint
from training_platform.rules.documents.shapes import check_of

FOLDER = Path(documents.__file__).parent
GROUPS = ("exactlyOne", "atMostOne", "atLeastOne")
BOUNDS = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}


@pytest.mark.parametrize("file", ["google.json", "kubernetes.json", "gke.json", "operators.json"])
def test_every_type_with_a_document_is_judged(file: str) -> None:
    types = json.loads((FOLDER / file).read_text(encoding="utf-8"))["types"]

    assert [token for token in types if check_of(token) is None] == []


def test_what_the_provider_checks_is_not_written_by_hand_as_well() -> None:
    added = yaml.safe_load((ROOT / "tools/documents/additions.yaml").read_text(encoding="utf-8"))
    types = json.loads((FOLDER / "provider.json").read_text(encoding="utf-8"))["types"]

    for token in types.keys() & added["types"].keys():
        rows = added["types"][token]
        for path, extra in (added["parts"][rows] if isinstance(rows, str) else rows).items():
            input_facts = extra if isinstance(extra, Mapping) else added["forms"].get(extra, {})
            assert said(input_facts) & said(types[token].get(path, {})) == set(), f"{token}.{path}"


def test_bounds_that_a_document_of_googles_has_are_not_written_by_hand_as_well() -> None:
    added = yaml.safe_load((ROOT / "tools/documents/additions.yaml").read_text(encoding="utf-8"))["types"]
    google = json.loads((FOLDER / "google.json").read_text(encoding="utf-8"))

    repeated = []
    for token in added.keys() & google["types"].keys():
        if not isinstance(added[token], Mapping):
            continue
        for path, row in added[token].items():
            if not isinstance(row, Mapping) or not row or not row.keys() <= BOUNDS:
                continue
            if row.items() <= _shape(google, token, path).items():
                repeated.append(f"{token}.{path}")

    assert repeated == []


def _shape(google: Mapping[str, Any], token: str, path: str) -> Mapping[str, Any]:
    """Return the shape at a path; an empty one where the document leaves it open."""
    shape: Mapping[str, Any] = google["shapes"][google["types"][token]]
    for part in filter(None, path.split(".")):
        number = shape.get("fields", {}).get(part.removesuffix("[]").removesuffix("{}"))
        if number is None:
            return {}
        shape = google["shapes"][number]
        shape = google["shapes"][shape["of"]] if part.endswith(("[]", "{}")) else shape
    return shape


def said(row: Mapping[str, Any]) -> set[object]:
    """Return what a row says, each fact as a text, whatever the order of a list in it."""
    groups = {f"one of {sorted(names)}" for word in GROUPS for names in row.get(word, ())}
    plain = {
        f"{name} {sorted(value) if name == 'enum' else value}" for name, value in row.items() if name not in GROUPS
    }
    return groups | plain


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("gcp:container/cluster:Cluster", {"privateClusterConfig": {}}),
        ("gcp:billing/budget:Budget", {"billingAccount": "a", "amount": {}}),
    ],
)
def test_a_block_with_none_of_its_inputs_is_found_once(token: str, inputs: dict[str, Any]) -> None:
    judge = check_of(token)
    problems = list[BrokenConstraint]()
    assert judge

    judge(inputs, (), problems.append)

    assert [problem.kind for problem in problems] == ["required"]
