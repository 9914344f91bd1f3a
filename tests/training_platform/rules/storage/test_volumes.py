"""Rules about storage classes and claims: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_names_the_nearest_that_passes,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest

SHARED = {"tier": "enterprise", "multishare": "true"}
ALONE: list[Alone] = [
    ("filestore-class", "storage_class", {}, 0),
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}}, 1),
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}, "provisioner": "other"}, 0),
    ("filestore-class", "storage_class", {"parameters": {"connect-mode": "PRIVATE_SERVICE_CONNECT"}}, 1),
    ("filestore-multishare", "storage_class", {"parameters": {"tier": "zonal"}}, 0),
    ("filestore-multishare", "storage_class", {"parameters": {"tier": "zonal", "multishare": "true"}}, 1),
    ("filestore-multishare", "storage_class", {"parameters": {"tier": "zonal", "multishare": "false"}}, 0),
    ("filestore-multishare", "storage_class", {"parameters": SHARED}, 0),
    ("filestore-multishare", "storage_class", {"parameters": SHARED, "largest_share": "1024Gi"}, 0),
    ("filestore-multishare", "storage_class", {"parameters": SHARED, "largest_share": "2048Gi"}, 1),
    ("filestore-multishare", "storage_class", {"parameters": {"tier": "enterprise"}, "largest_share": "128Gi"}, 1),
    ("bucket-hierarchical", "bucket", {"hierarchical": True, "versioning": False}, 0),
    ("bucket-hierarchical", "bucket", {"hierarchical": False, "versioning": True}, 0),
    ("bucket-hierarchical", "bucket", {"hierarchical": True, "versioning": True}, 1),
    ("built-in-class", "volume_claim", {}, 0),
    ("built-in-class", "volume_claim", {"class_name": "zonal-rwx"}, 1),
]


NEAREST: list[AloneNearest] = [
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}}, "tier"),
]
