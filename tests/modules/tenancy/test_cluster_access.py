import dataclasses

from modules.tenancy import CONNECT_ROLE, ClusterConnect, ClusterConnectArgs
from training_platform.checks.planning.recorder import record
from training_platform.resources.planned import Planned
from training_platform.resources.scope import Scope

SCOPE = Scope(environment="dev", team="vision", project="example-vision", labels={}, deletion_protection=False)
MEMBERS = ("group:vision@example.com", "user:vision@example.com")


def test_members_may_connect_in_the_project_of_the_clusters() -> None:
    args = ClusterConnectArgs(scope=SCOPE, project="example-train", members=MEMBERS)
    plan = record(lambda: ClusterConnect("connect", args), project="training-platform", stack_name="dev-vision")

    grants = plan.of("gcp:projects/iAMMember:IAMMember")
    assert [(grant.inputs["project"], grant.inputs["role"], grant.inputs["member"]) for grant in grants] == [
        ("example-train", CONNECT_ROLE, member) for member in MEMBERS
    ]
    assert len({grant.name for grant in grants}) == 2


def grant(scope: Scope) -> Planned:
    args = ClusterConnectArgs(scope=scope, project="example-train", members=MEMBERS[:1])
    plan = record(lambda: ClusterConnect("connect", args), project="training-platform", stack_name=scope.prefix)
    return plan.one("gcp:projects/iAMMember:IAMMember")


def test_a_member_who_leaves_one_team_loses_its_grant_and_keeps_the_others() -> None:
    vision, nlp = grant(SCOPE), grant(dataclasses.replace(SCOPE, team="nlp"))

    # IAM tells bindings of one role apart by their conditions.
    assert vision.inputs["condition"] != nlp.inputs["condition"]
    assert "dev-vision" in vision.inputs["condition"]["title"]
    assert not any(each.options.get("retainOnDelete") for each in (vision, nlp))
