"""What holds for every stack in ``stacks/``: inventories, order, labels, providers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.stacks.every_field import ENVIRONMENT, TEAM, planned
from tests.support.inventory import inventory
from tests.support.places import ORGANISATION, ROOT
from tests.support.plans import PlannedStack, planned_demand, planned_stacks
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.resources.resource_types import api_of
from training_platform.resources.stack_plan import plannable
from training_platform.resources.stack_resource import StackResource

NAMES = sorted(path.stem.removeprefix("Pulumi.") for path in (ORGANISATION / "stacks").glob("Pulumi.*.yaml"))
every_stack = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    return read_workspace(ORGANISATION)


@pytest.fixture(scope="module")
def plans(workspace: Workspace) -> dict[str, tuple[Stack, PlannedStack]]:
    stacks = plannable(workspace, workspace.stacks)
    return {stack.name: (stack, plan) for stack, plan in planned_stacks(workspace, stacks)}


@every_stack
def test_the_inventory_is_current(name: str, plans: dict[str, tuple[Stack, PlannedStack]]) -> None:
    kept = (ORGANISATION / "inventories" / f"{name}.yaml").read_text(encoding="utf-8")

    assert inventory(plans[name][1]) == kept, "run `make inventories` and look at the difference"


@every_stack
def test_every_google_cloud_resource_comes_after_its_api(
    name: str, plans: dict[str, tuple[Stack, PlannedStack]]
) -> None:
    _, plan = plans[name]
    apis = {service.name: service.inputs["service"] for service in plan.of("gcp:projects/service:Service")}
    for resource in plan.resources:
        if resource.type.startswith("gcp:") and resource.type != "gcp:projects/service:Service":
            api = api_of(resource.type)
            after = {apis[other] for _, other in resource.options["dependsOn"] if other in apis}
            assert api in after, f"{resource.type} {resource.name} does not wait for {api}"


@every_stack
def test_apis_stay_enabled_when_a_stack_goes(name: str, plans: dict[str, tuple[Stack, PlannedStack]]) -> None:
    services = plans[name][1].of("gcp:projects/service:Service")

    assert services
    assert all(service.inputs["disableOnDestroy"] is False for service in services)


@every_stack
def test_every_kubernetes_object_is_made_through_a_cluster_s_own_provider(
    name: str, plans: dict[str, tuple[Stack, PlannedStack]]
) -> None:
    _, plan = plans[name]
    providers = {provider.name for provider in plan.of("pulumi:providers:kubernetes")}
    objects = [resource for resource in plan.resources if resource.type.startswith("kubernetes:")]

    assert objects
    assert {resource.options.get("provider") for resource in objects} <= providers


@every_stack
def test_every_resource_of_google_cloud_names_its_project(
    name: str, plans: dict[str, tuple[Stack, PlannedStack]]
) -> None:
    for resource in plans[name][1].resources:
        within = resource.type in {
            "gcp:storage/bucketIAMMember:BucketIAMMember",
            "gcp:serviceaccount/iAMMember:IAMMember",
            "gcp:logging/logView:LogView",  # by its parent
            "gcp:logging/logViewIamMember:LogViewIamMember",
        }
        if resource.type.startswith("gcp:") and not within:
            assert resource.inputs.get("project"), f"{resource.type} {resource.name}"


@every_stack
def test_every_part_of_a_plan_is_traced_to_a_section(name: str, plans: dict[str, tuple[Stack, PlannedStack]]) -> None:
    stack, plan = plans[name]
    assert stack.section is not None
    locator = Locator(stack.section)
    shared = {"apis", "agents", "network", "nodes", "access", "account", "connect", "team", "tensorboard"}
    for resource in plan.resources:
        if resource.name.split("-")[0] not in shared:
            assert locator.path(resource.name), f"{resource.type} {resource.name}"


def test_production_is_protected_and_development_is_not(plans: dict[str, tuple[Stack, PlannedStack]]) -> None:
    cluster = "gcp:container/cluster:Cluster"
    filestore = "gcp:filestore/instance:Instance"
    for name, protected in (("prod", True), ("dev", False)):
        plan = plans[name][1]
        assert {resource.inputs["deletionProtection"] for resource in plan.of(cluster)} == {protected}
        assert {resource.inputs["deletionProtectionEnabled"] for resource in plan.of(filestore)} == {protected}
        assert {resource.options.get("protect", False) for resource in plan.of(cluster)} == {protected}


NAMED: Mapping[str, str] = {
    "artifactregistry/repository:Repository": "repositories",
    "backupdisasterrecovery/backupPlan:BackupPlan": "backup plans",
    "backupdisasterrecovery/backupVault:BackupVault": "vaults",
    "billing/budget:Budget": "budgets",
    "cloudquota/sQuotaPreference:SQuotaPreference": "quota preferences",
    "compute/disk:Disk": "Hyperdisk ML volumes",
    "compute/globalAddress:GlobalAddress": "ranges for private services",
    "compute/networkAttachment:NetworkAttachment": "network attachments",
    "dns/managedZone:ManagedZone": "DNS zones",
    "logging/projectBucketConfig:ProjectBucketConfig": "log buckets",
    "logging/projectSink:ProjectSink": "sinks",
    "monitoring/alertPolicy:AlertPolicy": "alert policies",
    "monitoring/dashboard:Dashboard": "dashboards",
    "monitoring/notificationChannel:NotificationChannel": "notification channels",
    "projects/iAMMember:IAMMember": "bindings of a project",
    "secretmanager/secret:Secret": "secrets",
    "serviceaccount/account:Account": "service accounts",
    "storage/bucket:Bucket": "buckets",
    "vertex/aiTensorboard:AiTensorboard": "TensorBoards",
}
"""What docs/reference/quota-counts.md calls a kind that no quota is charged for."""
PARTS = {
    "artifactregistry/repositoryIamMember:RepositoryIamMember",
    "backupdisasterrecovery/backupPlanAssociation:BackupPlanAssociation",
    "dns/recordSet:RecordSet",
    "kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
    "logging/logView:LogView",
    "logging/logViewIamMember:LogViewIamMember",
    "projects/service:Service",
    "projects/serviceIdentity:ServiceIdentity",
    "secretmanager/secretIamMember:SecretIamMember",
    "serviceaccount/iAMMember:IAMMember",
    "servicenetworking/connection:Connection",
    "storage/bucketIAMMember:BucketIAMMember",
}
"""Entries of something else, which count in no project."""


@pytest.fixture(scope="module")
def resources() -> list[StackResource]:
    both = [resource for stack in ("env", "team") for resource in planned(ENVIRONMENT, TEAM, stack).resources]
    return [resource for resource in both if resource.type.startswith("gcp:")]


def test_what_no_quota_is_charged_for_is_named(resources: list[StackResource]) -> None:
    uncounted = {resource.type for resource in resources} - {
        resource.type for resource in resources if planned_demand([resource])
    }

    assert {kind.removeprefix("gcp:") for kind in uncounted} == {*NAMED, *PARTS}


def test_the_page_says_why_it_is_not_counted() -> None:
    page = (
        (ROOT / "docs" / "reference" / "quota-counts.md")
        .read_text(encoding="utf-8")
        .partition("## What is not counted")[2]
    )

    assert [name for name in NAMED.values() if name not in page.replace("\n", " ")] == []
