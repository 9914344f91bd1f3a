from __future__ import annotations

from typing import Any

from tests.support.plans import PlannedStack, composed
from training_platform.resources.custom_roles import custom_permissions
from training_platform.resources.plan import Component
from training_platform.resources.scope import Scope
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.resources.team_account import (
    KubernetesAccount,
    TeamAccount,
    team_account,
)

ACCOUNT = "gcp:serviceaccount/account:Account"
ACCOUNT_GRANT = "gcp:serviceaccount/iAMMember:IAMMember"
BUCKET_GRANT = "gcp:storage/bucketIAMMember:BucketIAMMember"
PROJECT_GRANT = "gcp:projects/iAMMember:IAMMember"
MEMBERS = ("group:vision@example.com", "user:someone@example.com")


def deploy(team: str = "vision", **fields: Any) -> PlannedStack:
    scope = Scope(
        environment="prod", team=team, project="example-vision", labels={"team": team}, deletion_protection=True
    )
    settings = {"buckets": {}, "members": MEMBERS, **fields}

    def compose(into: Component) -> Any:
        account = team_account(into, TeamAccount(scope=scope, **settings))
        return {"email": account.output("email"), "member": account.output("member")}

    return composed(compose, "jobs")


def granted(plan: PlannedStack, resource_type: str) -> dict[str, tuple[object, object]]:
    return {grant.name: (grant.inputs["role"], grant.inputs["member"]) for grant in plan.of(resource_type)}


def test_jobs_of_a_team_run_as_an_account_of_their_own() -> None:
    plan = deploy()

    assert plan.one(ACCOUNT, "jobs-account").inputs == {
        "accountId": "prod-vision-jobs",
        "project": "example-vision",
        "displayName": "Jobs of prod-vision",
    }
    assert plan.outputs["value"] == {"email": UNKNOWN, "member": UNKNOWN}


def test_an_account_id_of_30_characters_stays_whole_and_one_more_is_cut() -> None:
    whole = "t" * (30 - len("prod-") - len("-jobs"))

    assert deploy(team=whole).one(ACCOUNT).inputs["accountId"] == f"prod-{whole}-jobs"
    assert len(deploy(team=whole + "t").one(ACCOUNT).inputs["accountId"]) == 30


def test_jobs_have_these_roles_in_the_teams_project_and_no_others() -> None:
    plan = deploy()

    assert granted(plan, PROJECT_GRANT) == {"jobs-logging-logWriter": ("roles/logging.logWriter", UNKNOWN)}
    assert granted(deploy(metrics=True), PROJECT_GRANT) == {
        "jobs-logging-logWriter": ("roles/logging.logWriter", UNKNOWN),
        "jobs-monitoring-metricWriter": ("roles/monitoring.metricWriter", UNKNOWN),
    }
    assert {grant.inputs["project"] for grant in plan.of(PROJECT_GRANT)} == {"example-vision"}


def test_a_team_with_a_tensorboard_writes_to_it_and_starts_nothing_in_vertex_ai() -> None:
    role = "projects/example-vision/roles/training_platform_tensorboard"
    grant = deploy(tensorboard=True).one(PROJECT_GRANT, "jobs-tensorboard").inputs
    permissions = custom_permissions(role) or ()

    assert (grant["role"], grant["project"]) == (role, "example-vision")
    assert {permission.split(".")[1] for permission in permissions} == {
        "tensorboards", "tensorboardExperiments", "tensorboardRuns", "tensorboardTimeSeries",
    }  # fmt: skip
    assert "aiplatform.tensorboardRuns.write" in permissions
    assert not any(grant.name == "jobs-tensorboard" for grant in deploy().of(PROJECT_GRANT))


def test_jobs_read_and_write_the_teams_buckets_and_none_else() -> None:
    plan = deploy(buckets={"checkpoints": "example-checkpoints", "datasets": "example-datasets"})

    assert granted(plan, BUCKET_GRANT) == {
        "jobs-bucket-checkpoints": ("roles/storage.objectUser", UNKNOWN),
        "jobs-bucket-checkpoints-viewer": ("roles/storage.bucketViewer", UNKNOWN),
        "jobs-bucket-datasets": ("roles/storage.objectUser", UNKNOWN),
        "jobs-bucket-datasets-viewer": ("roles/storage.bucketViewer", UNKNOWN),
    }
    assert {grant.inputs["bucket"] for grant in plan.of(BUCKET_GRANT)} == {"example-checkpoints", "example-datasets"}
    assert deploy().of(BUCKET_GRANT) == []


def test_a_member_that_is_written_twice_is_granted_once() -> None:
    assert len(deploy(members=(MEMBERS[0], MEMBERS[0])).of(ACCOUNT_GRANT)) == 1


def test_pods_are_the_account_by_the_pool_of_the_clusters_project() -> None:
    account = KubernetesAccount(project="example-train-prod", namespace="vision", name="training")
    grants = granted(deploy(members=(), kubernetes=account), ACCOUNT_GRANT)

    assert grants == {
        "jobs-workload": (
            "roles/iam.workloadIdentityUser",
            "serviceAccount:example-train-prod.svc.id.goog[vision/training]",
        )
    }


def test_every_grant_on_the_account_is_made_after_it() -> None:
    account = KubernetesAccount(project="example-train-prod", namespace="vision", name="training")
    plan = deploy(kubernetes=account, buckets={"checkpoints": "example-checkpoints"})
    grants = [resource for resource in plan.resources if resource.custom and resource.type != ACCOUNT]

    assert len(grants) == 1 + 2 + 2 + 1
    for grant in grants:
        assert (ACCOUNT, "jobs-account") in grant.options["dependsOn"]


def test_a_team_that_registers_models_reads_data_sets_and_starts_nothing_in_vertex_ai() -> None:
    role = "projects/example-vision/roles/training_platform_registry"
    grant = deploy(registry=True).one(PROJECT_GRANT, "jobs-registry").inputs
    permissions = custom_permissions(role) or ()

    assert (grant["role"], grant["project"]) == (role, "example-vision")
    assert {"aiplatform.models.upload", "aiplatform.datasets.get"} <= set(permissions)
    assert not [
        permission for permission in permissions if permission.endswith((".create", ".delete", ".deploy", ".export"))
    ]
