"""Rules about auto-provisioning: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.builders import check, cluster, example, gpu_pool, nap
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import View
from training_platform.views.adapters import views_of_plan
from training_platform.views.cluster import ResourceLimit

TPUS = (ResourceLimit("cpu", 10_000), ResourceLimit("memory", 100_000))
SHORT = (ResourceLimit("cpu", 25), ResourceLimit("memory", 234), ResourceLimit("nvidia-h100-80gb", 1))


TABLE = [
    Rule(
        "auto-provisioning-upgrades",
        nap,
        passes=[
            {"max_surge": 0, "max_unavailable": 1},
            {"max_surge": 15, "max_unavailable": 5},
            {"strategy": "BLUE_GREEN", "max_surge": 0},
        ],
        finds=[{"max_surge": 0}, {"max_surge": 15, "max_unavailable": 6}],
    ),
    Rule(
        "auto-provisioning-nodes",
        nap,
        passes=[{"image_type": "UBUNTU_CONTAINERD"}, {"written": False, "scopes": ()}, {"service_account": UNKNOWN}],
        finds=[
            {"scopes": ()},
            {"scopes": ("https://www.googleapis.com/auth/devstorage.read_only",)},
            {"service_account": "default"},
            {"image_type": "UBUNTU_CONTAINERD", "limits": (*TPUS, ResourceLimit("tpu-v5-lite-podslice", 8))},
        ],
    ),
    Rule(
        "auto-provisioning-limits",
        nap,
        passes=[],
        finds=[
            {"limits": (ResourceLimit("cpu", 100),)},
            Found({"limits": ()}, times=2),
            Found({"limits": SHORT}, "26"),
        ],
    ),
    Rule(
        "auto-provisioning-type",
        nap,
        passes=[],
        finds=[
            {"limits": (ResourceLimit("tpu-v5e-slice", 8),)},
            Found({"limits": (ResourceLimit("nvidia-h100-80", 8),)}, "nvidia-h100-80gb"),
        ],
    ),
    Rule(
        "auto-provisioning-disk",
        nap,
        passes=[{"disk_type": None, "written": False}, {"disk_type": "hyperdisk-balanced", "disk_gb": 100}],
        finds=[{"disk_type": None}, {"disk_type": "hyperdisk-balanced", "disk_gb": 99}],
    ),
    Rule(
        "auto-provisioning-zones",
        nap,
        passes=[{"zones": ("us-central1-f", "us-central1-a")}, {"zones": ()}],
        finds=[{"zones": ("us-central1-f",)}],
    ),
    Rule(
        "auto-provisioning-room",
        example,
        passes=[
            {"nap.limits": (ResourceLimit("nvidia-h100-80gb", 4 * 8),)},
            {"nap.limits": (ResourceLimit("cpu", 4 * 208 + 6 * 4),)},
        ],
        finds=[
            {"nap.limits": (ResourceLimit("nvidia-h100-80gb", 4 * 8 - 1),)},
            {"nap.limits": (ResourceLimit("cpu", 4 * 208 + 6 * 4 - 1),)},
            Found({"nap.limits": (ResourceLimit("nvidia-h100-80gb", 8),)}, "32"),
        ],
        notes=[{"nap.limits": UNKNOWN}],
    ),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


CLASS = "kubernetes:cloud.google.com/v1:ComputeClass"
LABEL = {"cloud.google.com/compute-class": "h100"}
H100 = {"machineType": "a3-highgpu-8g", "gpu": {"type": "nvidia-h100-80gb", "count": 8}}
V4 = {"machineType": "ct4p-hightpu-4t", "tpu": {"type": "tpu-v4-podslice", "count": 4, "topology": "2x2x4"}}
V5E = {"machineType": "ct5lp-hightpu-4t", "tpu": {"type": "tpu-v5-lite-podslice", "count": 4, "topology": "4x4"}}
FLEX = {"flexStart": {"enabled": True}}
ANY = {"reservations": {"affinity": "AnyBestEffort"}}
ZONE = {"location": {"zones": ["us-central1-a"]}}
SPECIFIC = {"reservations": {"affinity": "Specific", "specific": [{"name": "one"}]}}


def of(*priorities: dict[str, Any], **spec: Any) -> View:
    """Return the view of a class with these priorities, as an object would have them."""
    inputs = {
        "metadata": {"name": "h100"},
        "spec": {"priorities": list(priorities), "nodePoolAutoCreation": {"enabled": True}, **spec},
    }
    _, view = views_of_plan(
        [StackResource(stack="dev", type=CLASS, name="h100", inputs=inputs)]
    )  # the first is of the whole
    return view


PRIORITIES = [
    ("compute-class-priority", {"nodepools": ["h100"]}, 0),
    ("compute-class-priority", {"nodepools": ["h100"], "spot": True}, 1),
    ("compute-class-priority", {"nodepools": ["h100"], "allocationStrategy": "lowest-cost"}, 0),
    ("compute-class-priority", {**H100, "spot": True}, 0),
    ("compute-class-priority", {**H100, "spot": True, "flexStart": {"enabled": False}}, 0),
    ("compute-class-priority", {**H100, "spot": True, **FLEX}, 1),
    ("compute-class-priority", {"machineType": "a3-highgpu-8g", "machineFamily": "a3"}, 1),
    ("compute-class-priority", {**H100, "machineFamily": "a3"}, 1),
    ("compute-class-priority", {"machineFamily": "a3", "minCores": 8}, 0),
    ("compute-class-priority", {**H100, "minCores": 8}, 1),
    ("compute-class-priority", {**H100, **SPECIFIC}, 0),
    ("compute-class-priority", {**H100, "reservations": {"affinity": "Specific"}}, 1),
    ("compute-class-priority", {**H100, "reservations": {"affinity": "None", "specific": [{"name": "one"}]}}, 1),
    ("compute-class-priority", {**H100, **FLEX, "capacityCheckWaitTimeSeconds": 300}, 0),
    ("compute-class-priority", {**V5E, "capacityCheckWaitTimeSeconds": 300}, 0),
    ("compute-class-priority", {**H100, "capacityCheckWaitTimeSeconds": 300}, 1),
    ("compute-class-capacity", {**H100, **FLEX}, 0),
    ("compute-class-capacity", {"machineType": "a3-highgpu-1g"}, 1),
    ("compute-class-capacity", {"machineType": "a3-highgpu-1g", "spot": True}, 0),
    ("compute-class-capacity", {"machineType": "a4-highgpu-8g", **ANY}, 1),
    ("compute-class-capacity", {"machineType": "a4-highgpu-8g", "reservations": {"affinity": "AnyThenFail"}}, 0),
    ("compute-class-capacity", {**V4, "spot": True}, 0),
    ("compute-class-capacity", {**V4, **FLEX}, 1),
    ("compute-class-reservation", {**H100, **ANY}, 0),
    ("compute-class-reservation", {**V5E, **ANY}, 1),
    ("compute-class-reservation", {**V5E, "reservations": {"affinity": "AnyThenFail"}}, 1),
    ("compute-class-reservation", {**V5E, **SPECIFIC}, 0),
    ("compute-class-reservation", {**H100, **SPECIFIC, **ZONE}, 1),
    ("compute-class-reservation", {**H100, **SPECIFIC, "location": {"locationPolicy": "ANY"}}, 0),
    ("compute-class-reservation", {**H100, **ANY, **ZONE}, 0),
    ("compute-class-reservation", {**H100, **ANY, "spot": True}, 1),
    ("compute-class-reservation", {**H100, **SPECIFIC, **FLEX}, 1),
    ("compute-class-reservation", {**H100, "reservations": {"affinity": "None"}, "spot": True}, 0),
]


@pytest.mark.parametrize(("rule", "priority", "findings"), PRIORITIES)
def test_a_priority_is_refused_for_what_would_never_bring_a_node(
    rule: str, priority: dict[str, Any], findings: int
) -> None:
    priority_findings = check(rule, of({"nodepools": ["first"]}, priority))

    assert [finding.rule for finding in priority_findings] == [rule] * findings
    assert all(finding.allowed for finding in priority_findings)
    assert all(finding.message.startswith("priority 2: ") for finding in priority_findings)


@pytest.mark.parametrize(("scores", "findings"), [((), 0), ((1,), 1), ((2,), 1), ((1, 2), 0)])
def test_every_priority_has_a_score_or_none_has(scores: tuple[int, ...], findings: int) -> None:
    rows: list[dict[str, Any]] = [{"nodepools": ["first"]}, {**H100, "spot": True}]
    for number in scores:
        rows[number - 1]["priorityScore"] = 5

    assert len(check("compute-class-priority", of(*rows))) == findings


@pytest.mark.parametrize(
    ("priority", "findings"),
    [
        ({**H100, **SPECIFIC}, 1),
        ({**H100, **ANY}, 0),
        ({"nodepools": ["h100"]}, 0),
        ({**H100, **SPECIFIC, "location": {}}, 0),
    ],
)
def test_zones_of_the_whole_class_are_those_of_a_priority_without_its_own(
    priority: dict[str, Any], findings: int
) -> None:
    assert len(check("compute-class-reservation", of(priority, priorityDefaults=ZONE))) == findings


@pytest.mark.parametrize(
    ("pool", "findings"),
    [
        ({"node_labels": LABEL}, 0),
        ({"node_labels": {}}, 1),
        ({"node_labels": {"cloud.google.com/compute-class": "other"}}, 1),
        ({"node_labels": LABEL, "queued": True}, 1),
        ({"node_labels": {}, "pool": "elsewhere"}, 0),
    ],
)
def test_pools_of_a_class_carry_its_label_and_scale_for_pods(pool: dict[str, Any], findings: int) -> None:
    views = (cluster(), gpu_pool(**{"pool": "h100", **pool}), of({"nodepools": ["h100"]}))

    assert len(check("compute-class-pools", *views)) == findings


@pytest.mark.parametrize(
    ("version", "limits", "severities"),
    [
        (None, False, []),
        ("1.33.3-gke.1136000", False, []),
        ("1.33.3-gke.1135999", False, ["error"]),
        ("1.33.3-gke.1135999", True, []),
        ("1.30.3-gke.1451000", True, []),
        ("1.30.3-gke.1450999", True, ["error"]),
        ("1.29", False, ["warning", "warning"]),
    ],
)
def test_a_class_wants_the_gke_that_knows_it(*, version: str | None, limits: bool, severities: list[str]) -> None:
    views = [cluster(version=version), of(H100)]
    if limits:
        views.append(nap())

    assert [finding.severity for finding in check("compute-class-floor", *views)] == severities


@pytest.mark.parametrize(
    ("limits", "severities"),
    [
        ((ResourceLimit("nvidia-h100-80gb", 8),), []),
        ((ResourceLimit("nvidia-l4", 8),), ["error"]),
        (None, ["warning"]),
    ],
)
def test_what_a_class_makes_has_a_limit(limits: tuple[ResourceLimit, ...] | None, severities: list[str]) -> None:
    views = [cluster(), of({"nodepools": ["first"]}, H100)]
    if limits:
        views.append(nap(limits=limits))

    assert [finding.severity for finding in check("compute-class-limits", *views)] == severities


def test_a_class_whose_cluster_is_not_in_the_program_is_not_compared() -> None:
    assert check("compute-class-limits", of(H100), nap(limits=(ResourceLimit("nvidia-l4", 8),))) == []
