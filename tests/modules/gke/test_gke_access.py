"""Administrators of clusters: each a resource of its own, named after nobody else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from modules.gke import ClusterAccess, ClusterAccessArgs, member_key
from training_platform.checks.planning.recorder import Plan
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
MEMBER = "gcp:projects/iAMMember:IAMMember"
PLATFORM, ONCALL = "group:ml-platform@example.com", "user:on.call@example.com"


def names(scope: Scope, deploy: Deploy, *admins: str) -> dict[str, str]:
    plan = deploy(lambda: ClusterAccess("access", ClusterAccessArgs(scope=scope, admins=admins)))
    return {member.inputs["member"]: member.name for member in plan.of(MEMBER)}


def test_an_administrator_administers_the_clusters_of_the_project(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(lambda: ClusterAccess("access", ClusterAccessArgs(scope=scope, admins=(PLATFORM,))))

    assert plan.one(MEMBER).inputs == {
        "project": "example-train-prod",
        "role": "roles/container.admin",
        "member": PLATFORM,
    }


def test_a_new_administrator_moves_no_other(scope: Scope, deploy: Deploy) -> None:
    before, after = names(scope, deploy, PLATFORM), names(scope, deploy, ONCALL, PLATFORM)

    assert after[PLATFORM] == before[PLATFORM]
    assert after.keys() == {PLATFORM, ONCALL}
    assert len(set(after.values())) == 2


def test_an_administrator_who_is_named_twice_counts_once(scope: Scope, deploy: Deploy) -> None:
    assert list(names(scope, deploy, PLATFORM, PLATFORM)) == [PLATFORM]


def test_without_administrators_there_is_no_grant(scope: Scope, deploy: Deploy) -> None:
    assert names(scope, deploy) == {}


@pytest.mark.parametrize(
    ("member", "start"),
    [(PLATFORM, "ml-platform-"), (ONCALL, "on-call-"), ("domain:example.com", "example-com-")],
)
def test_a_members_key_can_be_read(member: str, start: str) -> None:
    assert member_key(member).startswith(start)


def test_members_that_read_alike_have_different_keys() -> None:
    alike = ["user:a.b@example.com", "user:a-b@example.com", "group:a.b@example.com", "user:a.b@example.org"]

    assert len({member_key(member) for member in alike}) == len(alike)
