from __future__ import annotations

import pulumi

from modules.team_account import RepositoryRef, grant_bucket, grant_repository
from training_platform.checks.planning.recorder import record

REPOSITORY = RepositoryRef(project="example-train-prod", location="us-central1", repository_id="prod-images")
MEMBER = "group:vision@example.com"


def test_a_grant_on_a_bucket_adds_one_member_to_one_role() -> None:
    plan = record(
        lambda: grant_bucket("readers", "data", "roles/storage.objectViewer", MEMBER, pulumi.ResourceOptions()),
        project="training-platform",
        stack_name="prod-vision",
    )

    (grant,) = plan.resources
    assert grant.key == ("gcp:storage/bucketIAMMember:BucketIAMMember", "readers")
    assert grant.inputs == {"bucket": "data", "role": "roles/storage.objectViewer", "member": MEMBER}


def test_a_grant_on_a_repository_names_its_project_and_place() -> None:
    plan = record(
        lambda: grant_repository(
            "writers", REPOSITORY, "roles/artifactregistry.writer", MEMBER, pulumi.ResourceOptions()
        ),
        project="training-platform",
        stack_name="prod-vision",
    )

    (grant,) = plan.resources
    assert grant.key == ("gcp:artifactregistry/repositoryIamMember:RepositoryIamMember", "writers")
    assert grant.inputs == {
        "project": "example-train-prod",
        "location": "us-central1",
        "repository": "prod-images",
        "role": "roles/artifactregistry.writer",
        "member": MEMBER,
    }
