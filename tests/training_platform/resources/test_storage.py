"""Managed Lustre instances of an environment, and data sets on them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stacks.every_field import ENVIRONMENT, TEAM, planned
from tests.support.plans import PlannedStack, composed
from training_platform.config.model import environment, team
from training_platform.resources.plan import Component
from training_platform.resources.resource_types import CLUSTER, FIREWALL, LUSTRE, SERVICE, SERVICE_CONNECTION
from training_platform.resources.scope import Scope, bucket_id, repository_url
from training_platform.resources.storage import ACCESSOR, image_repositories, secret_grant, team_bucket, team_secret

BUCKET = "gcp:storage/bucket:Bucket"
LABELS = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}
LEFT_UPLOADS = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}}
names = st.from_regex(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?", fullmatch=True)


def scope(environment: str = "prod", project: str = "example-train-prod", *, protected: bool = True) -> Scope:
    return Scope(environment=environment, team="vision", project=project, labels=LABELS, deletion_protection=protected)


def deploy(*, protected: bool = True, **fields: Any) -> PlannedStack:
    spec = team.BucketSpec(**{"location": "us-central1", **fields})

    bucket = team_bucket("checkpoints", spec, scope(protected=protected))
    return composed(lambda into: into.add(bucket).output("name"))


def test_a_bucket_is_closed_to_the_public_and_opened_by_iam_alone() -> None:
    plan = deploy()

    assert plan.one(BUCKET, "bucket-checkpoints-bucket").inputs == {
        "name": "example-train-prod-prod-vision-checkpoints",
        "project": "example-train-prod",
        "location": "us-central1",
        "storageClass": "STANDARD",
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": "enforced",
        "versioning": {"enabled": False},
        "lifecycleRules": [LEFT_UPLOADS],
        "labels": LABELS,
        "forceDestroy": False,
    }
    assert plan.outputs["value"] == "example-train-prod-prod-vision-checkpoints"
    assert [resource.type for resource in plan.resources if resource.custom] == [BUCKET]


@pytest.mark.parametrize(
    ("field", "value", "name", "planned"),
    [
        ("location", "us-west4", "location", "us-west4"),
        ("storage_class", "NEARLINE", "storageClass", "NEARLINE"),
        ("versioning", True, "versioning", {"enabled": True}),
        (
            "delete_after_days",
            30,
            "lifecycleRules",
            [{"action": {"type": "Delete"}, "condition": {"age": 30}}, LEFT_UPLOADS],
        ),
    ],
)
def test_every_field_reaches_the_bucket(field: str, value: Any, name: str, planned: object) -> None:
    assert deploy(**{field: value}).one(BUCKET).inputs[name] == planned


def test_a_bucket_keeps_its_objects_unless_its_stack_is_unprotected() -> None:
    kept = deploy().one(BUCKET)
    bucket = deploy(protected=False).one(BUCKET)

    assert kept.options["protect"] is True
    assert "protect" not in bucket.options
    assert bucket.inputs["forceDestroy"] is True
    assert bucket.options["deleteBeforeReplace"] is True


@given(names, names, names)
def test_every_bucket_has_a_name_that_cloud_storage_takes(environment: str, project: str, key: str) -> None:
    name = bucket_id(scope(environment=environment, project=project), key)

    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", name)


REPOSITORY = "gcp:artifactregistry/repository:Repository"
LABELS_IMAGES = {"environment": "prod", "managed-by": "training-platform"}


def deploy_images(
    location: str = "us-central1", keep_versions: int = 20, *, protected: bool = True, **more: Any
) -> PlannedStack:
    spec = environment.ImageRepositorySpec(location=location, keep_versions=keep_versions, **more)
    scope = Scope(
        environment="prod", team=None, project="example-train-prod", labels=LABELS_IMAGES, deletion_protection=protected
    )

    return composed(lambda into: image_repositories("images", spec, scope, into), "images")


def test_images_are_kept_in_one_repository_per_environment() -> None:
    plan = deploy_images()

    assert plan.one(REPOSITORY, "images-repository").inputs == {
        "repositoryId": "prod-images",
        "project": "example-train-prod",
        "location": "us-central1",
        "format": "DOCKER",
        "description": "Images of environment prod",
        "cleanupPolicies": [
            {"id": "keep-newest", "action": "KEEP", "mostRecentVersions": {"keepCount": 20}},
            {
                "id": "delete-untagged",
                "action": "DELETE",
                "condition": {"tagState": "UNTAGGED", "olderThan": f"{30 * 86400}s"},
            },
        ],
        "labels": LABELS_IMAGES,
    }
    assert [resource.type for resource in plan.resources if resource.custom] == [REPOSITORY]


def test_caches_keep_the_images_of_the_repository_in_further_locations() -> None:
    plan = deploy_images(caches=("us", "europe-west4"))
    cache = plan.one(REPOSITORY, "images-us-repository")

    assert (cache.inputs["repositoryId"], cache.inputs["location"]) == ("prod-images", "us")
    assert cache.inputs["mode"] == "REMOTE_REPOSITORY"
    upstream = "projects/example-train-prod/locations/us-central1/repositories/prod-images"
    assert cache.inputs["remoteRepositoryConfig"] == {"commonRepository": {"uri": upstream}}
    assert (REPOSITORY, "images-repository") in cache.options["dependsOn"]
    assert "protect" not in cache.options  # it fetches its images again
    assert plan.one(REPOSITORY, "images-europe-west4-repository").inputs["location"] == "europe-west4"


def test_each_location_has_a_repository_for_each_foreign_registry() -> None:
    plan = deploy_images(caches=("us",), remotes={"docker-hub": "https://registry-1.docker.io"})
    remotes = [plan.one(REPOSITORY, f"images-{place}.docker-hub-repository").inputs for place in ("us-central1", "us")]

    assert [repository["location"] for repository in remotes] == ["us-central1", "us"]
    assert {repository["repositoryId"] for repository in remotes} == {"prod-images-docker-hub"}
    for repository in remotes:
        assert repository["remoteRepositoryConfig"] == {"commonRepository": {"uri": "https://registry-1.docker.io"}}


def test_the_url_of_images_names_project_and_location() -> None:
    assert repository_url("dev-images", "example-train-dev", "us-west4") == (
        "us-west4-docker.pkg.dev/example-train-dev/dev-images"
    )


def test_deletion_protection_decides_whether_the_images_can_go() -> None:
    assert deploy_images().one(REPOSITORY).options["protect"] is True
    assert "protect" not in deploy_images(protected=False).one(REPOSITORY).options


def test_a_python_repository_keeps_what_pip_reads_from_the_public_index() -> None:
    repository = planned({**ENVIRONMENT, "python_repository": "us-west4"}, TEAM, "env").one(
        REPOSITORY, "python-repository"
    )

    assert (repository.inputs["repositoryId"], repository.inputs["location"]) == ("env-python", "us-west4")
    assert (repository.inputs["format"], repository.inputs["mode"]) == ("PYTHON", "REMOTE_REPOSITORY")
    assert repository.inputs["remoteRepositoryConfig"] == {"pythonRepository": {"publicRepository": "PYPI"}}
    assert repository.inputs["kmsKeyName"] == ENVIRONMENT["encryption"]["keys"][1]
    assert "protect" not in repository.options


SECRET = "gcp:secretmanager/secret:Secret"
MEMBER = "gcp:secretmanager/secretIamMember:SecretIamMember"
LABELS_SECRET = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}


def deploy_secret(*, protected: bool = True) -> PlannedStack:
    scope = Scope(
        environment="prod",
        team="vision",
        project="example-train-prod",
        labels=LABELS_SECRET,
        deletion_protection=protected,
    )

    def compose(into: Component) -> None:
        secret = into.add(team_secret("token", scope))
        into.add(secret_grant("secret-token-jobs", scope, secret, ACCESSOR, "serviceAccount:jobs@example.com"))

    return composed(compose)


def test_a_secret_has_a_name_by_which_jobs_find_it_and_no_value() -> None:
    assert deploy_secret().one(SECRET, "secret-token-secret").inputs == {
        "secretId": "prod-vision-token",
        "project": "example-train-prod",
        "replication": {"auto": {}},
        "labels": LABELS_SECRET,
    }


def test_the_jobs_of_the_team_read_it_and_nobody_else() -> None:
    (member,) = [resource for resource in deploy_secret().resources if resource.type == MEMBER]

    assert (member.inputs["role"], member.inputs["member"]) == (
        "roles/secretmanager.secretAccessor",
        "serviceAccount:jobs@example.com",
    )
    assert member.inputs["secretId"] == "prod-vision-token"


def test_versions_are_protected_where_data_is() -> None:
    assert deploy_secret().one(SECRET, "secret-token-secret").options["protect"] is True
    assert "protect" not in deploy_secret(protected=False).one(SECRET, "secret-token-secret").options


VOLUME = "kubernetes:core/v1:PersistentVolume"


def environment_lustre(**changes: Any) -> dict[str, Any]:
    scratch = {"location": "us-central1-a", "capacity_gib": 18000, **changes}
    return {**ENVIRONMENT, "lustre": {"scratch": scratch}, "data_sets": {"fast": {"lustre": {"instance": "scratch"}}}}


def plan(stack: str = "env", **changes: Any) -> PlannedStack:
    return planned(environment_lustre(**changes), TEAM, stack)


def test_an_instance_is_in_the_vpc_with_its_key_and_labels() -> None:
    instance = plan(mbps_per_tib=500).one(LUSTRE, "lustre-scratch-instance")

    assert instance.inputs["instanceId"] == "env-scratch"
    assert (instance.inputs["capacityGib"], instance.inputs["perUnitStorageThroughput"]) == ("18000", "500")
    assert instance.inputs["kmsKey"] == ENVIRONMENT["encryption"]["keys"][0]
    assert instance.inputs["labels"]["environment"] == "env"
    assert instance.inputs["accessRulesOptions"] == {"defaultSquashMode": "NO_SQUASH"}
    assert instance.options["protect"]
    assert (SERVICE_CONNECTION, "network-services") in instance.options["dependsOn"]


def test_root_is_squashed_to_nobody() -> None:
    options = plan(squash_root=True).one(LUSTRE).inputs["accessRulesOptions"]

    assert options == {"defaultSquashMode": "ROOT_SQUASH", "defaultSquashUid": 65534, "defaultSquashGid": 65534}


def test_its_servers_reach_their_clients_and_its_api_is_enabled() -> None:
    whole = plan()
    rule = whole.one(FIREWALL, "network-lustre").inputs

    assert rule["sourceRanges"] == [ENVIRONMENT["private_services_range"]]
    assert rule["allows"] == [{"protocol": "tcp"}]
    assert "lustre.googleapis.com" in {service.inputs["service"] for service in whole.of(SERVICE)}
    assert whole.one(CLUSTER).inputs["addonsConfig"]["lustreCsiDriverConfig"] == {"enabled": True}


def test_a_team_mounts_it_by_the_address_that_the_environment_exports() -> None:
    csi = plan("team").one(VOLUME, "data-fast-c-volume").inputs["spec"]["csi"]

    assert csi["volumeHandle"] == "example-reach/us-central1-a/env-scratch"
    assert csi["volumeAttributes"]["filesystem"] == "lustre"
    assert "ip" in csi["volumeAttributes"]
