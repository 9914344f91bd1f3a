"""Every type that a stack plans or a rule judges has a row with all of its facts."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from training_platform.resources import resource_types
from training_platform.resources.resource_types import KUBERNETES, RESOURCE_TYPES, ResourceType, api_of
from training_platform.resources.scope import Scope, account_id, jobs_account_email, jobs_account_id, short_name, slug
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
OURS = [resource_type for resource_type in PLANNED if resource_type.startswith("gcp:")]


@pytest.mark.parametrize("resource_type", OURS)
def test_a_type_of_google_cloud_that_a_stack_plans_has_every_fact(resource_type: str) -> None:
    row = RESOURCE_TYPES.get(resource_type)

    assert row is not None, f"{resource_type} is not in resource_types.yaml"
    assert missing(resource_type, row) == [], resource_type


def missing(resource_type: str, row: ResourceType) -> list[str]:
    """Return the facts that are missing of a type."""
    facts = {
        "kind": row.kind,
        "API": api_of(resource_type) or resource_type == resource_types.SERVICE,
        "how a create that was cut off is found": row.import_id or row.listed_under or row.adds,
        "what replaces it": resource_types.has_known_replacements(resource_type),
    }
    return [name for name, value in facts.items() if not value]


def test_a_type_that_lacks_a_fact_is_named_with_it() -> None:
    row = ResourceType(kind="queue")

    assert missing("gcp:artifactregistry/nothing:Nothing", row) == [
        "how a create that was cut off is found", "what replaces it",
    ]  # fmt: skip


def test_what_rules_judge_is_a_resource_type_with_facts() -> None:
    assert set(VIEWS_OF) <= set(RESOURCE_TYPES)
    assert all(view.TYPES for view in VIEWS)


def test_what_a_stack_plans_and_labels_is_judged_by_its_labels() -> None:
    labelled = {token for token, row in RESOURCE_TYPES.items() if row.labels}

    assert {token for token, views in VIEWS_OF.items() if LabelledView in views} == labelled


def test_every_token_has_a_row_and_a_row_without_one_says_only_what_judges_others_programs() -> None:
    names = [name for name in vars(resource_types) if name.isupper() and not name.startswith("_")]
    values = [getattr(resource_types, name) for name in names]
    tokens = {value for value in values if isinstance(value, str)} - {KUBERNETES}
    other_rows = {token: row for token, row in RESOURCE_TYPES.items() if token not in tokens}

    assert tokens <= set(RESOURCE_TYPES)
    assert other_rows == {
        token: ResourceType(kind=row.kind, labels=row.labels, document=row.document, replacing=row.replacing)
        for token, row in other_rows.items()
    }
    assert all(row.replacing or row.document for row in other_rows.values())


def test_no_other_file_spells_a_resource_type() -> None:
    folders = ["training_platform", "policies", "benchmarks", "__main__.py"]
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, check=True, capture_output=True, text=True)
    files = [name for name in listed.stdout.split() if name.endswith(".py") and not name.endswith("resource_types.py")]

    assert [f"{name}: {token}" for name in files if (ROOT / name).exists() for token in spelled(ROOT / name)] == []


def spelled(path: Path) -> list[str]:
    """Return the types that a file spells in code; those of docstrings and comments are examples."""
    text = path.read_text(encoding="utf-8")
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    strings = [token.string for token in tokens if token.type == tokenize.STRING and '"""' not in token.string]
    return [match[0] for string in strings for match in TOKEN.finditer(string)]


ACCOUNT_ID = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
names = st.from_regex(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?", fullmatch=True)


def test_a_name_at_the_limit_stays_whole() -> None:
    assert short_name("a" * 30, 30) == "a" * 30


def test_a_name_one_over_the_limit_is_cut_to_it() -> None:
    cut = short_name("a" * 31, 30)

    assert re.fullmatch(r"a{23}-[0-9a-f]{6}", cut)


def test_names_with_the_same_beginning_stay_apart() -> None:
    assert short_name("a" * 31, 30) != short_name("a" * 32, 30)


def test_a_cut_name_is_the_same_on_every_machine() -> None:
    assert short_name("production-vision-research-jobs", 30) == "production-vision-resea-395105"


def test_a_cut_at_a_dash_leaves_one_dash() -> None:
    assert re.fullmatch(r"a{22}-[0-9a-f]{6}", short_name("a" * 22 + "-" + "b" * 20, 30))


def test_a_limit_without_room_for_a_letter_is_refused() -> None:
    assert re.fullmatch(r"a-[0-9a-f]{6}", short_name("a" * 9, 8))
    with pytest.raises(ValueError, match="limit is 7"):
        short_name("a", 7)


@given(names, names)
def test_every_service_account_has_an_id_that_google_cloud_takes(environment: str, team: str) -> None:
    assert ACCOUNT_ID.fullmatch(account_id(environment, team, "jobs"))


def test_identities_that_differ_in_a_dot_or_in_case_stay_apart() -> None:
    identities = ["group:a.b@example.com", "group:a-b@example.com", "group:A.b@example.com", "user:a.b@example.com"]

    assert slug(identities[0]) == "group-a.b-at-example.com"
    assert len({slug(identity) for identity in identities}) == 4


def test_the_address_of_a_teams_jobs_is_their_accounts_id_in_the_teams_project() -> None:
    scope = Scope(environment="prod", team="t" * 30, project="example-vision", labels={}, deletion_protection=True)

    assert ACCOUNT_ID.fullmatch(jobs_account_id(scope))
    assert jobs_account_email(scope) == f"{jobs_account_id(scope)}@example-vision.iam.gserviceaccount.com"
