"""Rules about protection against deletion: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import UNKNOWN
from training_platform.rules import RULES, View, evaluate, program

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


def test_production_filestore_is_protected(check: Check, filestore: Make) -> None:
    assert check("filestore-deletion-protection", filestore(), production=True) == []
    assert check("filestore-deletion-protection", filestore(deletion_protection=False)) == []
    (finding,) = check("filestore-deletion-protection", filestore(deletion_protection=False), production=True)

    assert finding.path == "deletion_protection"


def test_production_cluster_is_protected(check: Check, cluster: Make) -> None:
    assert check("cluster-deletion-protection", cluster(), production=True) == []
    assert check("cluster-deletion-protection", cluster(deletion_protection=False)) == []
    assert len(check("cluster-deletion-protection", cluster(deletion_protection=False), production=True)) == 1


def test_production_bucket_keeps_its_objects(check: Check, bucket: Make) -> None:
    assert check("bucket-force-destroy", bucket(), production=True) == []
    assert check("bucket-force-destroy", bucket(force_destroy=True)) == []
    assert len(check("bucket-force-destroy", bucket(force_destroy=True), production=True)) == 1


@pytest.mark.parametrize(
    ("production", "team", "severities"),
    [
        (True, None, []),
        (False, None, []),
        (None, None, ["error"]),
        (None, "vision", []),  # said once, where the line goes
        (UNKNOWN, None, []),  # a program without a stack file, whose config of the pack may say it
    ],
)
def test_an_environment_says_whether_it_is_production(
    cluster: Make, production: bool | None, team: str | None, severities: list[str]
) -> None:
    whole = program([cluster()], stack="dev", environment="dev", team=team, production=production)

    assert [each.severity for each in evaluate(whole, [RULES["production-said"]])] == severities
