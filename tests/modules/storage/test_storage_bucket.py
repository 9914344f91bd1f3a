from __future__ import annotations

import re
from typing import Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.storage import Bucket, BucketArgs
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model import team
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.scope import Scope, bucket_id

BUCKET = "gcp:storage/bucket:Bucket"
LABELS = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}
LEFT_UPLOADS = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}}
names = st.from_regex(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?", fullmatch=True)


def scope(environment: str = "prod", project: str = "example-train-prod", *, protected: bool = True) -> Scope:
    return Scope(environment=environment, team="vision", project=project, labels=LABELS, deletion_protection=protected)


def deploy(*, protected: bool = True, **fields: Any) -> Plan:
    spec = team.BucketSpec(**{"location": "us-central1", **fields})

    def program() -> None:
        args = BucketArgs(scope=scope(protected=protected), key="checkpoints", spec=spec)
        made = Bucket("bucket-checkpoints", args)
        pulumi.export("bucket_name", made.bucket_name)
        pulumi.export("url", made.url)

    return record(program, project="training-platform", stack_name="prod-vision")


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
    assert plan.outputs == {
        "bucket_name": "example-train-prod-prod-vision-checkpoints",
        "url": "gs://example-train-prod-prod-vision-checkpoints",
    }
    assert [resource.type for resource in plan.resources if resource.custom] == [BUCKET]


@pytest.mark.parametrize(
    ("field", "value", "name", "wanted"),
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
def test_every_field_reaches_the_bucket(field: str, value: Any, name: str, wanted: object) -> None:
    assert deploy(**{field: value}).one(BUCKET).inputs[name] == wanted


def test_objects_age_from_the_first_day_on() -> None:
    assert deploy(delete_after_days=1).one(BUCKET).inputs["lifecycleRules"][0]["condition"] == {"age": 1}


def test_a_protected_bucket_keeps_its_objects() -> None:
    bucket = deploy().one(BUCKET)

    assert bucket.options["protect"] is True
    assert bucket.inputs["forceDestroy"] is False


def test_without_deletion_protection_a_bucket_goes_with_its_objects() -> None:
    bucket = deploy(protected=False).one(BUCKET)

    assert "protect" not in bucket.options
    assert bucket.inputs["forceDestroy"] is True


def test_the_fixed_name_is_free_before_it_is_taken_again() -> None:
    assert deploy().one(BUCKET).options["deleteBeforeReplace"] is True


def test_nothing_about_a_bucket_is_unknown_before_it_exists() -> None:
    assert UNKNOWN not in deploy().outputs.values()


def test_a_name_of_63_characters_stays_whole_and_one_more_is_cut() -> None:
    whole = scope(environment="e" * 20, project="p" * 20)  # 20 + 1 + 20 + 1 + len("vision") + 1 = 49

    assert bucket_id(whole, "k" * 14) == f"{'p' * 20}-{'e' * 20}-vision-{'k' * 14}"
    assert re.fullmatch(r"p{20}-e{20}-vision-k{7}-[0-9a-f]{6}", bucket_id(whole, "k" * 15))


@given(names, names, names)
def test_every_bucket_has_a_name_that_cloud_storage_takes(environment: str, project: str, key: str) -> None:
    name = bucket_id(scope(environment=environment, project=project), key)

    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", name)
