"""Every kind of resource that a stack makes is charged to a quota, or docs/quota.md says that it is not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.demand_of_model import planned_demand
from tests.places import ROOT
from tests.stacks.test_reach import ENVIRONMENT, TEAM, planned
from training_platform.resources.planned import Planned

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
    "monitoring/alertPolicy:AlertPolicy": "alert policies",
    "monitoring/dashboard:Dashboard": "dashboards",
    "monitoring/notificationChannel:NotificationChannel": "notification channels",
    "projects/iAMCustomRole:IAMCustomRole": "custom roles",
    "projects/iAMMember:IAMMember": "bindings of a project",
    "secretmanager/secret:Secret": "secrets",
    "serviceaccount/account:Account": "service accounts",
    "storage/bucket:Bucket": "buckets",
    "vertex/aiMetadataStore:AiMetadataStore": "metadata stores",
    "vertex/aiTensorboard:AiTensorboard": "TensorBoards",
}
"""What docs/quota.md calls a kind that no quota is charged for."""
PARTS = {
    "artifactregistry/repositoryIamMember:RepositoryIamMember",
    "backupdisasterrecovery/backupPlanAssociation:BackupPlanAssociation",
    "dns/recordSet:RecordSet",
    "kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
    "projects/service:Service",
    "projects/serviceIdentity:ServiceIdentity",
    "secretmanager/secretIamMember:SecretIamMember",
    "serviceaccount/iAMMember:IAMMember",
    "servicenetworking/connection:Connection",
    "storage/bucketIAMMember:BucketIAMMember",
}
"""Entries of something else, which count in no project."""


@pytest.fixture(scope="module")
def resources() -> list[Planned]:
    both = [each for stack in ("env", "team") for each in planned(ENVIRONMENT, TEAM, stack).resources]
    return [each for each in both if each.type.startswith("gcp:")]


def test_what_no_quota_is_charged_for_is_named(resources: list[Planned]) -> None:
    uncounted = {each.type for each in resources} - {each.type for each in resources if planned_demand([each])}

    assert {kind.removeprefix("gcp:") for kind in uncounted} == {*NAMED, *PARTS}


def test_the_page_says_why_it_is_not_counted() -> None:
    page = (ROOT / "docs" / "quota.md").read_text(encoding="utf-8").partition("## What is not counted")[2]

    assert [name for name in NAMED.values() if name not in page.replace("\n", " ")] == []
