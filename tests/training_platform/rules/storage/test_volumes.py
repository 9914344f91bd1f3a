"""Rules about storage classes and claims: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

import pytest

from tests.training_platform.rules.tables import Alone, AloneNearest, Holds, row_ids, spoiled

ALONE: list[Alone] = [
    ("filestore-class", "storage_class", {}, 0),
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}}, 1),
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}, "provisioner": "other"}, 0),
    ("filestore-class", "storage_class", {"parameters": {"connect-mode": "PRIVATE_SERVICE_CONNECT"}}, 1),
    ("bucket-hierarchical", "bucket", {"hierarchical": True, "versioning": False}, 0),
    ("bucket-hierarchical", "bucket", {"hierarchical": False, "versioning": True}, 0),
    ("bucket-hierarchical", "bucket", {"hierarchical": True, "versioning": True}, 1),
    ("built-in-class", "volume_claim", {}, 0),
    ("built-in-class", "volume_claim", {"class_name": "zonal-rwx"}, 1),
]


@pytest.mark.parametrize("row", ALONE, ids=row_ids(ALONE))
def test_rule_finds_what_is_spoiled_and_nothing_else(row: Alone, finds_alone: Holds) -> None:
    finds_alone(*row)


@pytest.mark.parametrize("row", spoiled(ALONE), ids=row_ids(spoiled(ALONE)))
def test_rule_that_meets_an_unknown_value_says_so(row: Alone, notes_alone: Holds) -> None:
    notes_alone(*row)


NEAREST: list[AloneNearest] = [
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}}, "tier"),
]


@pytest.mark.parametrize("row", NEAREST, ids=row_ids(NEAREST))
def test_finding_names_the_nearest_that_passes(row: AloneNearest, names_nearest: Holds) -> None:
    names_nearest(*row)
