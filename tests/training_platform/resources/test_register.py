"""The register of resource types: it has every fact of every type that a stack plans or a rule judges."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from pathlib import Path

import pytest
import yaml

from training_platform.catalog import replacements
from training_platform.resources import register
from training_platform.resources.register import KUBERNETES, REGISTER, ResourceType, api_of
from training_platform.views.access import LabelledView
from training_platform.views.adapters import VIEWS, VIEWS_OF

ROOT = Path(__file__).resolve().parents[3]
TOKEN = re.compile(r"\b(gcp|kubernetes):[a-z0-9.-]+/[A-Za-z0-9]+:[A-Za-z]+\b")
PLANNED = sorted(
    {
        resource_type
        for path in (ROOT / "tests" / "organisation" / "inventories").glob("*.yaml")
        for resource_type in yaml.safe_load(path.read_text(encoding="utf-8"))["counts"]
    }
)
OURS = [each for each in PLANNED if each.startswith("gcp:")]


@pytest.mark.parametrize("resource_type", OURS)
def test_a_type_of_google_cloud_that_a_stack_plans_has_every_fact(resource_type: str) -> None:
    row = REGISTER.get(resource_type)

    assert row is not None, f"{resource_type} is not in the register"
    assert missing(resource_type, row) == [], resource_type


def missing(resource_type: str, row: ResourceType) -> list[str]:
    """Return what the register lacks of a type."""
    facts = {
        "kind": row.kind,
        "API": api_of(resource_type) or resource_type == register.SERVICE,
        "how a create that was cut off is found": row.import_id or row.listed_under or row.adds,
        "what replaces it": replacements.known(resource_type),
    }
    return [name for name, known in facts.items() if not known]


def test_a_type_that_lacks_a_fact_is_named_with_it() -> None:
    row = ResourceType(kind="queue")

    assert missing("gcp:artifactregistry/nothing:Nothing", row) == [
        "how a create that was cut off is found", "what replaces it",
    ]  # fmt: skip


def test_what_rules_judge_is_in_the_register() -> None:
    assert set(VIEWS_OF) <= set(REGISTER)
    assert all(view.TYPES for view in VIEWS)


def test_what_a_stack_plans_and_labels_is_judged_by_its_labels() -> None:
    labelled = {token for token, row in REGISTER.items() if row.labels}

    assert {token for token, views in VIEWS_OF.items() if LabelledView in views} == labelled


def test_every_token_of_the_register_has_a_row_and_every_row_a_name() -> None:
    tokens = {
        value for name, value in vars(register).items() if name.isupper() and isinstance(value, str) and name[0] != "_"
    }

    assert tokens - {KUBERNETES} == set(REGISTER)


def test_no_file_but_the_register_spells_a_resource_type() -> None:
    folders = ["training_platform", "modules", "policies", "benchmarks", "__main__.py"]
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, check=True, capture_output=True, text=True)
    files = [name for name in listed.stdout.split() if name.endswith(".py") and not name.endswith("register.py")]

    assert [f"{name}: {found}" for name in files if (ROOT / name).exists() for found in spelled(ROOT / name)] == []


def spelled(path: Path) -> list[str]:
    """Return the types that a file spells in code; those of docstrings and comments are examples."""
    text = path.read_text(encoding="utf-8")
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    strings = [token.string for token in tokens if token.type == tokenize.STRING and '"""' not in token.string]
    return [match[0] for string in strings for match in TOKEN.finditer(string)]
