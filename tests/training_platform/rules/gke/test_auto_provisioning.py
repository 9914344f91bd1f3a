"""Rules about auto-provisioning: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_across_resources_names_the_nearest_that_passes,
    test_finding_names_the_nearest_that_passes,
    test_rule_across_resources_that_meets_an_unknown_value_says_so,
    test_rule_finds_what_does_not_go_together,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest, Together, TogetherNearest
from training_platform.views.cluster import Limit

SHORT = (Limit("cpu", 25), Limit("memory", 234), Limit("nvidia-h100-80gb", 1))


ALONE: list[Alone] = [
    ("auto-provisioning-limits", "nap", {}, 0),
    ("auto-provisioning-limits", "nap", {"limits": (Limit("cpu", 100),)}, 1),
    ("auto-provisioning-limits", "nap", {"limits": ()}, 2),
    ("auto-provisioning-type", "nap", {}, 0),
    ("auto-provisioning-type", "nap", {"limits": (Limit("tpu-v5e-slice", 8),)}, 1),
    ("auto-provisioning-disk", "nap", {}, 0),
    ("auto-provisioning-disk", "nap", {"disk_type": None}, 1),
    ("auto-provisioning-disk", "nap", {"disk_type": None, "written": False}, 0),
    ("auto-provisioning-disk", "nap", {"disk_type": "hyperdisk-balanced", "disk_gb": 100}, 0),
    ("auto-provisioning-disk", "nap", {"disk_type": "hyperdisk-balanced", "disk_gb": 99}, 1),
    ("auto-provisioning-zones", "nap", {}, 0),
    ("auto-provisioning-zones", "nap", {"zones": ("us-central1-f",)}, 1),
    ("auto-provisioning-zones", "nap", {"zones": ("us-central1-f", "us-central1-a")}, 0),
    ("auto-provisioning-zones", "nap", {"zones": ()}, 0),
    ("auto-provisioning-upgrades", "nap", {}, 0),
    ("auto-provisioning-upgrades", "nap", {"strategy": "BLUE_GREEN"}, 1),
    ("auto-provisioning-upgrades", "nap", {"strategy": "BLUE_GREEN", "max_surge": 0}, 0),
]


TOGETHER: list[Together] = [
    ("auto-provisioning-room", {}, (), 0),
    ("auto-provisioning-room", {"nap": {"limits": (Limit("nvidia-h100-80gb", 4 * 8),)}}, (), 0),
    ("auto-provisioning-room", {"nap": {"limits": (Limit("nvidia-h100-80gb", 4 * 8 - 1),)}}, (), 1),
    ("auto-provisioning-room", {"nap": {"limits": (Limit("cpu", 4 * 208 + 6 * 4),)}}, (), 0),
    ("auto-provisioning-room", {"nap": {"limits": (Limit("cpu", 4 * 208 + 6 * 4 - 1),)}}, (), 1),
]


UNKNOWNS: list[tuple[str, str, str]] = [
    ("auto-provisioning-room", "nap", "limits"),
]


NEAREST: list[AloneNearest] = [
    ("auto-provisioning-type", "nap", {"limits": (Limit("nvidia-h100-80", 8),)}, "nvidia-h100-80gb"),
    ("auto-provisioning-limits", "nap", {"limits": SHORT}, "26"),
]


NEAREST_TOGETHER: list[TogetherNearest] = [
    ("auto-provisioning-room", {"nap": {"limits": (Limit("nvidia-h100-80gb", 8),)}}, "32"),
]
