from __future__ import annotations

import pulumi

from modules.storage import Secret, SecretArgs
from training_platform.checks.planning.recorder import Plan, record
from training_platform.resources.scope import Scope

SECRET = "gcp:secretmanager/secret:Secret"
MEMBER = "gcp:secretmanager/secretIamMember:SecretIamMember"
LABELS = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}


def deploy(*, protected: bool = True) -> Plan:
    scope = Scope(
        environment="prod",
        team="vision",
        project="example-train-prod",
        labels=LABELS,
        deletion_protection=protected,
    )

    def program() -> None:
        Secret("secret-token", SecretArgs(scope=scope, key="token", reader="serviceAccount:jobs@example.com"))
        pulumi.export("done", "yes")

    return record(program, project="training-platform", stack_name="prod-vision")


def test_a_secret_has_a_name_by_which_jobs_find_it_and_no_value() -> None:
    assert deploy().one(SECRET, "secret-token-secret").inputs == {
        "secretId": "prod-vision-token",
        "project": "example-train-prod",
        "replication": {"auto": {}},
        "labels": LABELS,
    }


def test_the_jobs_of_the_team_read_it_and_nobody_else() -> None:
    (member,) = [each for each in deploy().resources if each.type == MEMBER]

    assert (member.inputs["role"], member.inputs["member"]) == (
        "roles/secretmanager.secretAccessor",
        "serviceAccount:jobs@example.com",
    )
    assert member.inputs["secretId"] == "prod-vision-token"


def test_versions_are_protected_where_data_is() -> None:
    assert deploy().one(SECRET, "secret-token-secret").options["protect"] is True
    assert "protect" not in deploy(protected=False).one(SECRET, "secret-token-secret").options
