"""What holds for every stack in ``stacks/``: inventories, order, labels, providers."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.stacks.every_field import ENVIRONMENT, TEAM, planned
from tests.support.inventory import inventory
from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack, planned_demand, planned_stacks
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.resources.stack_plan import plannable
from training_platform.resources.stack_resource import UNKNOWN, StackResource

NAMES = sorted(path.stem.removeprefix("Pulumi.") for path in (ORGANISATION / "stacks").glob("Pulumi.*.yaml"))
PROVIDER = "pulumi:providers:kubernetes"
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


def test_no_two_stacks_make_the_same_object_in_one_cluster(plans: dict[str, tuple[Stack, PlannedStack]]) -> None:
    objects_by_place = Counter[tuple[object, ...]]()
    for name, (_, plan) in plans.items():
        clusters = {provider.name: provider.inputs["clusterIdentifier"] for provider in plan.of(PROVIDER)}
        for resource in plan.resources:
            about = resource.inputs.get("metadata") or resource.inputs
            if resource.type.startswith("kubernetes:") and about["name"] is not UNKNOWN:
                namespace = about.get("namespace")
                if namespace is UNKNOWN:  # that of the stack's team
                    namespace = name
                place = (clusters[resource.options["provider"]], resource.type, namespace, about["name"])
                objects_by_place[place] += 1

    assert len(objects_by_place) > 100
    assert [place for place, count in objects_by_place.items() if count > 1] == []


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


UNCOUNTED = {
    "artifactregistry/repository:Repository",
    "artifactregistry/repositoryIamMember:RepositoryIamMember",
    "backupdisasterrecovery/backupPlan:BackupPlan",
    "backupdisasterrecovery/backupPlanAssociation:BackupPlanAssociation",
    "backupdisasterrecovery/backupVault:BackupVault",
    "billing/budget:Budget",
    "cloudquota/sQuotaPreference:SQuotaPreference",
    "compute/disk:Disk",
    "compute/globalAddress:GlobalAddress",
    "compute/networkAttachment:NetworkAttachment",
    "dns/managedZone:ManagedZone",
    "dns/recordSet:RecordSet",
    "kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
    "logging/logView:LogView",
    "logging/logViewIamMember:LogViewIamMember",
    "logging/projectBucketConfig:ProjectBucketConfig",
    "logging/projectSink:ProjectSink",
    "monitoring/alertPolicy:AlertPolicy",
    "monitoring/dashboard:Dashboard",
    "monitoring/notificationChannel:NotificationChannel",
    "projects/iAMMember:IAMMember",
    "projects/service:Service",
    "projects/serviceIdentity:ServiceIdentity",
    "secretmanager/secret:Secret",
    "secretmanager/secretIamMember:SecretIamMember",
    "serviceaccount/account:Account",
    "serviceaccount/iAMMember:IAMMember",
    "servicenetworking/connection:Connection",
    "storage/bucket:Bucket",
    "storage/bucketIAMMember:BucketIAMMember",
    "vertex/aiTensorboard:AiTensorboard",
}
"""Types that no quota is charged for; docs/reference/quota-counts.md names the kinds among them."""


@pytest.fixture(scope="module")
def resources() -> list[StackResource]:
    both = [resource for stack in ("env", "team") for resource in planned(ENVIRONMENT, TEAM, stack).resources]
    return [resource for resource in both if resource.type.startswith("gcp:")]


def test_what_no_quota_is_charged_for_is_named(resources: list[StackResource]) -> None:
    uncounted = {resource.type for resource in resources} - {
        resource.type for resource in resources if planned_demand([resource])
    }

    assert {kind.removeprefix("gcp:") for kind in uncounted} == UNCOUNTED
