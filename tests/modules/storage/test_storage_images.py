from __future__ import annotations

import pulumi

from modules.storage import ImageRepository, ImageRepositoryArgs
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model import environment
from training_platform.resources.scope import Scope
from training_platform.resources.storage import repository_id, repository_url

REPOSITORY = "gcp:artifactregistry/repository:Repository"
LABELS = {"environment": "prod", "managed-by": "training-platform"}


def deploy(location: str = "us-central1", keep_versions: int = 20, *, protected: bool = True) -> Plan:
    spec = environment.ImageRepositorySpec(location=location, keep_versions=keep_versions)
    scope = Scope(
        environment="prod", team=None, project="example-train-prod", labels=LABELS, deletion_protection=protected
    )

    def program() -> None:
        made = ImageRepository("images", ImageRepositoryArgs(scope=scope, spec=spec))
        for name in ("location", "repository_id", "url"):
            pulumi.export(name, getattr(made, name))

    return record(program, project="training-platform", stack_name="prod")


def test_images_are_kept_in_one_repository_per_environment() -> None:
    plan = deploy()

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
        "labels": LABELS,
    }
    assert [resource.type for resource in plan.resources if resource.custom] == [REPOSITORY]


def test_every_field_reaches_the_repository() -> None:
    inputs = deploy(location="europe-west4", keep_versions=1).one(REPOSITORY).inputs

    assert inputs["location"] == "europe-west4"
    assert inputs["cleanupPolicies"][0]["mostRecentVersions"] == {"keepCount": 1}


def test_everything_a_team_must_know_is_known_before_the_repository_exists() -> None:
    assert deploy().outputs == {
        "location": "us-central1",
        "repository_id": "prod-images",
        "url": "us-central1-docker.pkg.dev/example-train-prod/prod-images",
    }
    assert repository_url("dev", "example-train-dev", "us-west4") == (
        "us-west4-docker.pkg.dev/example-train-dev/dev-images"
    )


def test_deletion_protection_decides_whether_the_images_can_go() -> None:
    assert deploy().one(REPOSITORY).options["protect"] is True
    assert "protect" not in deploy(protected=False).one(REPOSITORY).options


def test_an_id_of_63_characters_stays_whole_and_one_more_is_cut() -> None:
    assert repository_id("e" * 56) == "e" * 56 + "-images"
    assert len(repository_id("e" * 57)) == 63
    assert repository_id("e" * 57) != repository_id("e" * 58)
