from modules.tenancy.cluster_access import CONNECT_ROLE, ClusterConnect, ClusterConnectArgs
from training_platform.checks.planning.recorder import record
from training_platform.resources.scope import Scope

SCOPE = Scope(environment="dev", team="vision", project="example-vision", labels={}, deletion_protection=False)
MEMBERS = ("group:vision@example.com", "user:vision@example.com")


def test_members_may_connect_in_the_project_of_the_clusters() -> None:
    args = ClusterConnectArgs(scope=SCOPE, project="example-train", members=MEMBERS)
    plan = record(lambda: ClusterConnect("connect", args), project="training-platform", stack_name="dev-vision")

    grants = plan.of("gcp:projects/iAMMember:IAMMember")
    assert [grant.inputs for grant in grants] == [
        {"project": "example-train", "role": CONNECT_ROLE, "member": member} for member in MEMBERS
    ]
    assert len({grant.name for grant in grants}) == 2
    assert all(grant.options["retainOnDelete"] for grant in grants)
