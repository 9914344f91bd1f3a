from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from training_platform.resources.rights import (
    PolicyGrant,
    Requirement,
    Rights,
    UnsupportedCondition,
    condition_holds,
    lacking,
    requirements,
    resource_named,
)

PROJECT = "projects/p"
ADA = "user:ada@example.com"
TEAM = "group:vision@example.com"
ACCOUNT = "projects/p/serviceAccounts/jobs@p.iam.gserviceaccount.com"
POOL = "iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/github"
NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


def rights(*grants: PolicyGrant, **groups: list[str]) -> Rights:
    members = {f"{name}@example.com": addresses for name, addresses in groups.items()}
    return Rights(grants=grants, groups=members, project_of=lambda bucket: "p" if bucket == "data" else "other")


def may(who: Rights, principal: str, permission: str, resource: str, **context: Any) -> bool:
    return who.grant_of(principal, permission, resource, **context) is not None


def test_a_role_on_a_bucket_holds_for_its_objects_and_for_no_other_bucket() -> None:
    held = rights(PolicyGrant(ADA, "roles/storage.objectViewer", "buckets/data"))

    assert may(held, ADA, "storage.objects.get", "buckets/data/objects/a/b")
    assert not may(held, ADA, "storage.objects.get", "buckets/data2/objects/a")
    assert not may(held, ADA, "storage.objects.create", "buckets/data/objects/a")
    assert not may(held, "user:eve@example.com", "storage.objects.get", "buckets/data/objects/a")


def test_a_role_in_a_project_holds_for_its_buckets_and_for_no_other_projects() -> None:
    held = rights(PolicyGrant(ADA, "roles/storage.objectViewer", PROJECT))

    assert may(held, ADA, "storage.objects.get", "buckets/data/objects/a")
    assert not may(held, ADA, "storage.objects.get", "buckets/foreign/objects/a")
    assert not may(held, ADA, "storage.objects.get", "projects/p2")


def test_a_role_is_inherited_through_nested_groups() -> None:
    held = rights(
        PolicyGrant("group:all@example.com", "roles/container.clusterViewer", PROJECT),
        all=[TEAM], vision=[ADA],
    )  # fmt: skip

    assert may(held, ADA, "container.clusters.get", f"{PROJECT}/locations/l/clusters/c")
    assert may(held, TEAM, "container.clusters.get", PROJECT)
    assert not may(held, "user:eve@example.com", "container.clusters.get", PROJECT)


def test_groups_that_contain_each_other_end() -> None:
    held = rights(a=["group:b@example.com", ADA], b=["group:a@example.com"])

    assert {"group:a@example.com", "group:b@example.com"} <= held.identities(ADA)


def test_a_domain_holds_for_its_addresses() -> None:
    held = rights(PolicyGrant("domain:example.com", "roles/storage.objectViewer", PROJECT))

    assert may(held, ADA, "storage.objects.get", PROJECT)
    assert not may(held, "user:ada@example.org", "storage.objects.get", PROJECT)


def test_a_pod_acts_as_the_account_that_lets_it() -> None:
    pod = "serviceAccount:p.svc.id.goog[vision/jobs]"
    held = rights(
        PolicyGrant(pod, "roles/iam.workloadIdentityUser", ACCOUNT),
        PolicyGrant("serviceAccount:jobs@p.iam.gserviceaccount.com", "roles/storage.objectUser", "buckets/data"),
    )

    assert may(held, pod, "storage.objects.create", "buckets/data")
    assert not may(held, "serviceAccount:p.svc.id.goog[nlp/jobs]", "storage.objects.create", "buckets/data")


def test_a_pipeline_is_in_the_sets_of_its_attributes() -> None:
    grant = PolicyGrant(f"principalSet://{POOL}/attribute.environment/prod", "roles/iam.workloadIdentityUser", ACCOUNT)
    held = rights(grant, PolicyGrant("serviceAccount:jobs@p.iam.gserviceaccount.com", "roles/editor", PROJECT))
    pipeline = f"principal://{POOL}/subject/main?attribute.environment="

    assert may(held, f"{pipeline}prod", "compute.networks.create", PROJECT)
    assert not may(held, f"{pipeline}dev", "compute.networks.create", PROJECT)


def test_a_custom_role_holds_its_permissions() -> None:
    held = rights(PolicyGrant(ADA, "projects/p/roles/attach", PROJECT, permissions={"compute.networks.get"}))

    assert may(held, ADA, "compute.networks.get", PROJECT)
    assert not may(held, ADA, "compute.networks.create", PROJECT)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("", True),
        ('request.time >= timestamp("2020-01-01T00:00:00Z")', True),
        ('request.time < timestamp("2026-11-24T12:00:00Z")', False),
        ('resource.name == "projects/p/secrets/s"', True),
        ('resource.name.startsWith("projects/p/secrets/t")', False),
        ('resource.name.endsWith("/s") && request.time < timestamp("2027-01-01T00:00:00Z")', True),
        ('resource.name == "no" || resource.name.endsWith("/s")', True),
        ("api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly(['roles/a', 'roles/b'])", True),
        ("api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly(['roles/b'])", False),
    ],
)
def test_conditions_are_evaluated(expression: str, holds: bool) -> None:
    assert condition_holds(expression, "projects/p/secrets/s", NOON, {"roles/a"}) is holds


def test_the_name_of_a_bucket_in_conditions_has_the_project_of_all_buckets() -> None:
    expression = 'resource.name.startsWith("projects/_/buckets/data/objects/runs/")'

    assert condition_holds(expression, "buckets/data/objects/runs/1", NOON, ())
    assert not condition_holds(expression, "buckets/data/objects/source/1", NOON, ())


def test_a_condition_that_is_not_understood_gives_nothing() -> None:
    expression = 'resource.matchTag("1/env", "prod")'
    held = rights(PolicyGrant(ADA, "roles/owner", PROJECT, expression))

    assert not may(held, ADA, "compute.networks.create", PROJECT)
    with pytest.raises(UnsupportedCondition, match="matchTag"):
        condition_holds(expression, PROJECT, NOON, ())


def test_a_change_of_a_policy_is_limited_to_the_roles_of_a_condition() -> None:
    only = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly(['roles/storage.objectUser'])"
    held = rights(PolicyGrant(ADA, "roles/resourcemanager.projectIamAdmin", PROJECT, only))
    permission = "resourcemanager.projects.setIamPolicy"

    assert may(held, ADA, permission, PROJECT, modified_roles={"roles/storage.objectUser"})
    assert not may(held, ADA, permission, PROJECT, modified_roles={"roles/owner"})


JOB = "aiplatform.projects.locations.customJobs.create"


def test_a_job_requires_the_account_that_it_runs_as_and_the_agents_rights() -> None:
    body = {
        "jobSpec": {
            "serviceAccount": "jobs@p.iam.gserviceaccount.com",
            "workerPoolSpecs": [
                {"containerSpec": {"imageUri": "us-docker.pkg.dev/images/train/vit:1"}},
                {"containerSpec": {"imageUri": "python:3.13"}},
            ],
            "pscInterfaceConfig": {"networkAttachment": "projects/host/regions/r/networkAttachments/a"},
        }
    }
    attachment = "projects/host/regions/r/networkAttachments/a"
    images = "projects/images/locations/us/repositories/train"

    assert list(requirements(JOB, f"{PROJECT}/locations/r/customJobs", body)) == [
        Requirement("aiplatform.customJobs.create", f"{PROJECT}/locations/r/customJobs"),
        Requirement("iam.serviceAccounts.actAs", ACCOUNT),
        Requirement("artifactregistry.repositories.downloadArtifacts", images, "aiplatform"),
        Requirement("compute.networkAttachments.get", attachment, "aiplatform"),
        Requirement("compute.networkAttachments.update", attachment, "aiplatform"),
        Requirement("compute.regionOperations.get", attachment, "aiplatform"),
    ]  # fmt: skip


def test_a_peered_zone_requires_rights_in_the_project_that_it_is_in() -> None:
    peering = {"pscInterfaceConfig": {"dnsPeeringConfigs": [{"targetProject": "host"}]}}

    assert Requirement("dns.networks.targetWithPeeringZone", "projects/host", "aiplatform") in list(
        requirements(JOB, f"{PROJECT}/locations/r/customJobs", {"jobSpec": peering})
    )


def test_a_list_of_entries_requires_the_right_to_its_view_or_to_all_of_its_project() -> None:
    view = "projects/p/locations/global/buckets/prod-vision/views/jobs"

    assert list(requirements("logging.entries.list", "", {"resourceNames": [view, PROJECT]})) == [
        Requirement("logging.logEntries.list", PROJECT),
        Requirement("logging.views.access", view),
    ]


def test_a_field_that_is_not_set_requires_nothing() -> None:
    assert len(list(requirements(JOB, f"{PROJECT}/locations/r/customJobs", {"jobSpec": {}}))) == 1


def test_only_a_subnet_of_another_project_requires_rights_there() -> None:
    method = "container.projects.locations.clusters.create"

    def foreign(subnet: str) -> list[str]:
        body = {"cluster": {"subnetwork": subnet}}
        needs = requirements(method, f"{PROJECT}/locations/l/clusters", body)
        return [f"{need.agent} {need.permission}" for need in needs if need.agent]

    assert foreign("projects/p/regions/r/subnetworks/s") == []
    assert foreign("projects/host/regions/r/subnetworks/s") == [
        "container compute.subnetworks.use",
        "container container.hostServiceAgent.use",
        "cloudservices compute.subnetworks.use",
    ]


@pytest.mark.parametrize(
    ("value", "resource"),
    [
        ("https://www.googleapis.com/compute/v1/projects/q/global/networks/n", "projects/q/global/networks/n"),
        ("us-docker.pkg.dev/q/r/image@sha256:0", "projects/q/locations/us/repositories/r"),
        ("gs://data/runs/1", "buckets/data/objects/runs/1"),
        ("1-x@developer.gserviceaccount.com", "projects/p/serviceAccounts/1-x@developer.gserviceaccount.com"),
        ("default", ""),
        ("docker.io/library/python:3.13", ""),
    ],
)  # fmt: skip
def test_fields_name_resources_in_several_ways(value: str, resource: str) -> None:
    assert resource_named(value, "p") == resource


def test_who_lacks_what_is_told_of_the_caller_and_of_the_agent() -> None:
    needs = [Requirement("compute.networks.get", PROJECT), Requirement("compute.networks.get", PROJECT, "container")]
    held = rights(PolicyGrant(ADA, "roles/compute.networkUser", PROJECT))

    assert list(lacking(held, ADA, needs, lambda name: f"serviceAccount:{name}@google")) == [
        ("serviceAccount:container@google", needs[1])
    ]
