from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_platform.resources.scope import Scope, account_id, jobs_account_email, jobs_account_id, short_name, slug

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
