from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.places import ORGANISATION
from tests.support.stack_files import cluster, shares, workspace_of
from training_platform.config.workspace import read_workspace
from training_platform.resources.grants import Grant, plan_grants
from training_platform.resources.plan import Plan, Resource, awaited
from training_platform.resources.stack_plan import stack_plan

PROJECT = "example-train"
ENVIRONMENT = {"project": PROJECT, "images": {"location": "us-central1"}}
TEAM = {"environment": "dev", "name": "vision", "members": ["group:vision@example.com"]}
JOBS = f"serviceAccount:dev-vision-jobs@{PROJECT}.iam.gserviceaccount.com"
KEY = "projects/example-keys/locations/us-central1/keyRings/training/cryptoKeys/data"


def granted(name: str, **changes: Mapping[str, Any]) -> list[Grant]:
    files = {
        "dev": {"environment": {**ENVIRONMENT, **changes.get("environment", {})}},
        "dev-vision": {"team": {**TEAM, **changes.get("team", {})}},
    }
    workspace = workspace_of(files)
    plan = stack_plan(workspace.stacks[name], workspace)
    assert plan is not None
    return plan_grants(plan)


def rights(grants: list[Grant], member: str) -> set[tuple[str, str]]:
    return {(grant.role, grant.resource) for grant in grants if grant.principal == member}


def test_no_stack_deletes_a_role_that_another_stack_needs() -> None:
    """Google merges equal grants, so the first stack that deletes one deletes it for all."""
    workspace = read_workspace(ORGANISATION)
    owners: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for stack in workspace.stacks.values():
        plan = stack_plan(stack, workspace)
        assert plan is not None
        for grant in plan_grants(plan):
            title = grant.planned_as.inputs.get("condition", {}).get("title", "")
            if not grant.planned_as.options.retain_on_delete:
                owners[grant.principal, grant.role, grant.resource, title].add(stack.name)

    assert owners
    assert [grant for grant, stacks in owners.items() if len(stacks) > 1] == []


def test_an_account_of_the_plan_is_named_as_iam_will_name_it() -> None:
    grants = granted("dev-vision", team={"buckets": {"data": {"location": "us-central1"}}})

    repository = f"projects/{PROJECT}/locations/us-central1/repositories/dev-images"

    assert {
        ("roles/storage.objectUser", f"buckets/{PROJECT}-dev-vision-data"),
        ("roles/artifactregistry.reader", repository),
    } <= rights(grants, JOBS)


def test_members_act_as_the_account_that_iam_will_name() -> None:
    account = f"projects/{PROJECT}/serviceAccounts/dev-vision-jobs@{PROJECT}.iam.gserviceaccount.com"

    assert ("roles/iam.serviceAccountUser", account) in rights(granted("dev-vision"), "group:vision@example.com")


def test_an_agent_is_named_by_the_id_of_its_project_in_place_of_the_number() -> None:
    agent = f"serviceAccount:service-{{{PROJECT}}}@compute-system.iam.gserviceaccount.com"
    grants = granted("dev", environment={"encryption": {"keys": [KEY]}})

    assert rights(grants, agent) == {("roles/cloudkms.cryptoKeyEncrypterDecrypter", KEY)}


def test_a_custom_role_has_its_permissions() -> None:
    grants = granted("dev-vision", team={"vertex": {"tensorboards": ["us-central1"]}})
    (role,) = (grant for grant in grants if grant.role == f"projects/{PROJECT}/roles/training_platform_tensorboard")

    assert role.principal == JOBS
    assert "aiplatform.tensorboardRuns.write" in (role.permissions or ())


def agent(project: str) -> str:
    return f"serviceAccount:service-{{{project}}}@gcp-sa-aiplatform.iam.gserviceaccount.com"


ATTACHMENTS = {"network_attachments": {"us-central1": "10.30.0.0/24"}}
ATTACHMENT_ROLE = (f"projects/{PROJECT}/roles/training_platform_vertex_network", f"projects/{PROJECT}")


def test_vertex_ai_may_use_the_attachments_of_the_environment() -> None:
    (grant,) = (grant for grant in granted("dev", environment=ATTACHMENTS) if grant.role == ATTACHMENT_ROLE[0])

    assert (grant.principal, grant.resource) == (agent(PROJECT), f"projects/{PROJECT}")
    assert set(grant.permissions or ()) == {
        "compute.networkAttachments.get",
        "compute.networkAttachments.update",
        "compute.regionOperations.get",
    }
    assert not rights(granted("dev"), agent(PROJECT))


def test_vertex_ai_of_a_teams_own_project_may_use_the_attachments_of_the_environment() -> None:
    team = {"project": "example-vision"}

    assert ATTACHMENT_ROLE in rights(granted("dev-vision", environment=ATTACHMENTS, team=team), agent("example-vision"))
    assert ATTACHMENT_ROLE not in rights(granted("dev-vision", team=team), agent("example-vision"))
    assert ATTACHMENT_ROLE not in rights(granted("dev-vision", environment=ATTACHMENTS), agent(PROJECT))


def test_vertex_ai_may_use_attachments_of_a_host_project_whose_roles_the_environment_grants() -> None:
    host = {"name": "shared-vpc", "project": "example-host", "grant_roles": True}
    role = ("projects/example-host/roles/training_platform_vertex_network", "projects/example-host")

    assert role in rights(granted("dev", environment={"network": host}), agent(PROJECT))
    team_grants = granted("dev-vision", environment={"network": host}, team={"project": "example-vision"})
    assert role in rights(team_grants, agent("example-vision"))
    assert role not in rights(granted("dev", environment={"network": {**host, "grant_roles": False}}), agent(PROJECT))


MEMBER = "group:vision@example.com"
BUCKETS = {"buckets": {"data": {"location": "us-central1"}}}
BUCKET = f"buckets/{PROJECT}-dev-vision-data"


def test_members_read_and_add_objects_of_the_teams_buckets_and_overwrite_none() -> None:
    held = rights(granted("dev-vision", team=BUCKETS), MEMBER)

    assert {role for role, resource in held if resource == BUCKET} == {
        "roles/storage.objectViewer",
        "roles/storage.objectCreator",
    }


def test_members_overwrite_objects_of_a_bucket_that_says_so() -> None:
    buckets = {"buckets": {"data": {"location": "us-central1", "members_write": True}}}
    held = rights(granted("dev-vision", team=buckets), MEMBER)

    assert {role for role, resource in held if resource == BUCKET} == {"roles/storage.objectUser"}


def test_members_only_read_data_sets_and_jobs_look_at_their_buckets() -> None:
    data = {"bucket": {"name": "example-images", "location": "us-central1"}}
    grants = granted("dev-vision", environment={"data_sets": {"images": data}})

    assert {role for role, resource in rights(grants, MEMBER) if resource == "buckets/example-images"} == {
        "roles/storage.objectViewer"
    }
    assert {role for role, resource in rights(grants, JOBS) if resource == "buckets/example-images"} == {
        "roles/storage.objectViewer",
        "roles/storage.bucketViewer",
    }


def test_roles_on_a_data_set_in_the_teams_own_bucket_wait_for_it() -> None:
    """Deleted after it, they would be refused, and created before it, too."""
    data = {"bucket": {"name": f"{PROJECT}-dev-vision-data", "location": "us-central1"}}
    buckets = {"buckets": {"data": {"location": "us-central1"}}}
    grants = granted("dev-vision", environment={"data_sets": {"images": data}}, team=buckets)

    on_data_set = [grant.planned_as for grant in grants if "images-access" in grant.planned_as.name]
    assert len(on_data_set) >= 2  # its objects, and to look at the bucket
    for grant in on_data_set:
        assert "bucket-data-bucket" in {resource.name for resource in awaited(grant)}


def test_members_add_values_to_the_teams_secrets_and_read_none() -> None:
    held = rights(granted("dev-vision", team={"secrets": ["token"]}), MEMBER)

    assert {role for role, resource in held if resource == f"projects/{PROJECT}/secrets/dev-vision-token"} == {
        "roles/secretmanager.secretVersionAdder"
    }


def test_members_may_have_the_projects_of_team_and_environment_as_quota_project() -> None:
    held = rights(granted("dev-vision", team={"project": "example-vision"}), MEMBER)

    assert {resource for role, resource in held if role == "roles/serviceusage.serviceUsageConsumer"} == {
        "projects/example-vision",
        f"projects/{PROJECT}",
    }


def test_a_role_that_two_teams_grant_in_one_project_is_each_teams_own() -> None:
    (grant,) = (grant for grant in granted("dev-vision") if grant.role == "roles/serviceusage.serviceUsageConsumer")

    assert grant.condition
    assert grant.planned_as.inputs["condition"]["title"] == "team dev-vision"


def test_members_look_up_images_of_the_environment() -> None:
    repository = f"projects/{PROJECT}/locations/us-central1/repositories/dev-images"

    assert ("roles/artifactregistry.reader", repository) in rights(granted("dev-vision"), MEMBER)


TEAM_REPOSITORY = f"projects/{PROJECT}/locations/us-central1/repositories/dev-vision-images"


def test_members_push_to_the_teams_repository_alone() -> None:
    held = rights(granted("dev-vision"), MEMBER)

    assert {resource for role, resource in held if role == "roles/artifactregistry.writer"} == {TEAM_REPOSITORY}
    assert ("roles/artifactregistry.reader", TEAM_REPOSITORY) in rights(granted("dev-vision"), JOBS)
    assert not {
        resource
        for role, resource in rights(granted("dev-vision", environment={"images": None}), MEMBER)
        if role.startswith("roles/artifactregistry.")
    }


def test_jobs_and_the_teams_notebooks_read_packages_of_the_environments_repository() -> None:
    grants = granted("dev-vision", environment={"python_repository": "us"})

    readers = {grant.principal for grant in grants if grant.resource.endswith("/us/repositories/dev-python")}
    assert readers == {JOBS}
    assert ("roles/artifactregistry.reader", f"projects/{PROJECT}/locations/us/repositories/dev-python") in rights(
        grants, JOBS
    )


def test_vertex_ai_of_a_teams_own_project_pulls_images_of_environment_and_team() -> None:
    held = rights(granted("dev-vision", team={"project": "example-vision"}), agent("example-vision"))

    assert {resource for role, resource in held if role == "roles/artifactregistry.reader"} == {
        TEAM_REPOSITORY,
        f"projects/{PROJECT}/locations/us-central1/repositories/dev-images",
    }


CLUSTER = cluster(node_pools={"h100": {"machine_type": "a3-highgpu-8g", "max_nodes": 4}})
SHARES = {"shares": shares(h100=8)}
VIEW = f"projects/{PROJECT}/locations/global/buckets/dev-vision/views/jobs"


def test_members_read_what_pods_of_the_team_wrote() -> None:
    clusters = {"clusters": {"main": CLUSTER}}
    role = ("roles/logging.viewAccessor", VIEW)

    assert role in rights(granted("dev-vision", environment=clusters, team=SHARES), MEMBER)
    without = {**clusters, "team_logs_days": None}
    assert role not in rights(granted("dev-vision", environment=without, team=SHARES), MEMBER)
    assert role not in rights(granted("dev-vision", environment=clusters), MEMBER)  # no share, and so no pods


def test_administrators_read_the_project_and_have_it_as_quota_project() -> None:
    admin = "group:ml-platform@example.com"

    repository = f"projects/{PROJECT}/locations/us-central1/repositories/dev-images"
    roles = (
        "roles/container.admin",
        "roles/viewer",
        "roles/serviceusage.serviceUsageConsumer",
        "roles/logging.viewAccessor",
    )

    assert rights(granted("dev", environment={"admins": [admin]}), admin) == {
        *((role, f"projects/{PROJECT}") for role in roles),
        ("roles/artifactregistry.writer", repository),
    }


def test_grants_on_a_repository_wait_for_it() -> None:
    admins = {"admins": ["group:ml-platform@example.com"]}
    for name, kind in (("dev", "dev-images"), ("dev-vision", "dev-vision-images")):
        on_it = [grant for grant in granted(name, environment=admins) if grant.resource.endswith(f"/{kind}")]

        assert on_it
        for grant in on_it:
            waited_for = {resource.type for resource in awaited(grant.planned_as)}
            assert "gcp:artifactregistry/repository:Repository" in waited_for, grant.planned_as.name


@pytest.mark.parametrize("token", ["gcp:projects/iAMMember:IAMMember", "gcp:storage/bucketIAMBinding:BucketIAMBinding"])
def test_an_own_grant_that_lacks_inputs_is_of_something_unknown(token: str) -> None:
    plan = Plan("own")
    account = plan.add(Resource(type="gcp:serviceaccount/account:Account", name="account", inputs={}))
    role = plan.add(Resource(type="gcp:projects/iAMCustomRole:IAMCustomRole", name="role", inputs={}))
    member = account.output("member")
    members = {"members": [member]} if "Binding" in token else {"member": member}
    inputs = {"role": role.output("name"), **members}
    plan.add(Resource(type=token, name="grant", inputs=inputs))

    (grant,) = plan_grants(plan)

    assert grant.principal == "serviceAccount:?@?.iam.gserviceaccount.com"
    assert (grant.role, grant.resource.endswith("/?")) == ("projects/?/roles/?", True)


def test_members_read_what_jobs_on_vertex_ai_wrote_in_a_project_of_their_own() -> None:
    own_project = {"project": "example-vision", "vertex": {"members_submit": True}}
    grants = granted("dev-vision", team=own_project)
    view = "projects/example-vision/locations/global/buckets/_Default/views/dev-vision-vertex-jobs"

    assert ("roles/logging.viewAccessor", view) in rights(grants, MEMBER)
    assert not [grant for grant in granted("dev-vision") if grant.resource == view]
    planned = [grant.planned_as for grant in grants if grant.resource == view]
    assert [resource.inputs["bucket"] for resource in planned] == ["_Default"]


@pytest.mark.parametrize(
    ("stack", "project"), [("dev", PROJECT), ("dev-vision", "example-vision")], ids=lambda text: text
)
def test_a_submitter_reads_what_jobs_wrote_by_a_view_of_each_project(stack: str, project: str) -> None:
    submitter = "serviceAccount:submit@example-ci.iam.gserviceaccount.com"
    changes: dict[str, dict[str, Any]] = {
        "environment": {"vertex_submitters": [submitter]},
        "team": {"project": project},
    }
    view = f"projects/{project}/locations/global/buckets/_Default/views/{stack}-vertex-jobs"

    views = {
        resource
        for name in ("dev", "dev-vision")
        for role, resource in rights(granted(name, **changes), submitter)
        if role == "roles/logging.viewAccessor"
    }

    assert view in views
    assert rights(granted("dev-vision", **changes), MEMBER) & {("roles/logging.viewAccessor", view)} == set()


def test_members_see_the_states_of_jobs_that_a_pipeline_submits() -> None:
    submitters = {"vertex_submitters": ["serviceAccount:submit@example-ci.iam.gserviceaccount.com"]}
    role = f"projects/{PROJECT}/roles/training_platform_job_states"

    assert role in {name for name, _ in rights(granted("dev-vision", environment=submitters), MEMBER)}
    assert role not in {name for name, _ in rights(granted("dev-vision"), MEMBER)}
