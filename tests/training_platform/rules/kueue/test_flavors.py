"""Rules about resource flavors: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


def labelled(pool: Make, **changes: object) -> View:
    return pool(node_labels={"training-platform/flavor": "tpu-v5e-4x8"}, **changes)


QUEUED = "cloud.google.com/gke-queued"
ARCHITECTURE = "kubernetes.io/arch"
GB200 = {"cloud.google.com/gke-accelerator": "nvidia-gb200"}


def test_pool_of_the_flavors_shape_is_no_finding(check: Check, slice_pool: Make, flavor: Make) -> None:
    assert check("tpu-flavor-topology", labelled(slice_pool), flavor()) == []


@pytest.mark.parametrize(
    ("topology", "wanted", "nearest"), [("8x8", "4x8", "4x8"), (None, "4x8", "4x8"), (None, "3x3", "4x4")]
)
def test_pool_of_another_shape_than_its_flavor_is_found(
    check: Check, flawless: dict[str, Make], topology: str | None, wanted: str, nearest: str
) -> None:
    selector = flawless["flavor"](node_labels={"cloud.google.com/gke-tpu-topology": wanted})
    (finding,) = check("tpu-flavor-topology", labelled(flawless["slice_pool"], tpu_topology=topology), selector)

    assert (finding.path, finding.nearest) == ("section.topology", nearest)


def test_pool_of_another_flavor_is_no_finding(check: Check, slice_pool: Make, flavor: Make) -> None:
    assert check("tpu-flavor-topology", labelled(slice_pool, tpu_topology="8x8"), flavor(flavor="tpu-v5e-8x8")) == []


@pytest.mark.parametrize(
    ("labels", "nearest"),
    [
        ({"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}, []),
        ({"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slicee"}, ["tpu-v5p-slice"]),
        ({"cloud.google.com/gke-tpu-accelerator": "nvidia-h100-80gb"}, [None]),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, []),
        ({"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "8x16"}, []),
        (
            {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "16x8"},
            ["8x16"],
        ),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-80g"}, ["nvidia-h100-80gb"]),
        ({}, []),
    ],
)
def test_flavor_selects_accelerators_as_gke_calls_them(
    check: Check, flavor: Make, labels: dict[str, str], nearest: list[str | None]
) -> None:
    found = check("flavor-accelerator", flavor(node_labels=labels))

    assert [finding.nearest for finding in found] == nearest


def test_a_shape_that_a_pool_has_too_is_found_at_the_pool_alone(check: Check, flavor: Make, slice_pool: Make) -> None:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice", "cloud.google.com/gke-tpu-topology": "4x5",
    }  # fmt: skip

    assert len(check("flavor-accelerator", flavor(node_labels=labels), slice_pool())) == 1
    assert check("flavor-accelerator", flavor(node_labels=labels), slice_pool(tpu_topology="4x5")) == []


@pytest.mark.parametrize(
    ("labels", "checks", "findings"), [({QUEUED: "true"}, (), 1), ({QUEUED: "true"}, ("dws",), 0), ({}, (), 0)]
)
def test_a_queue_of_queued_nodes_makes_requests(
    check: Check, flavor: Make, flavor_quota: Make, *, labels: dict[str, str], checks: tuple[str, ...], findings: int
) -> None:
    found = check("queued-flavor-check", flavor(node_labels=labels), flavor_quota(checks=checks))

    assert len(found) == findings


def test_pods_of_queued_nodes_tolerate_their_taint(check: Check, flavor: Make) -> None:
    labels = {QUEUED: "true"}

    assert len(check("queued-flavor-toleration", flavor(node_labels=labels))) == 1
    assert check("queued-flavor-toleration", flavor(node_labels=labels, tolerated=(QUEUED,))) == []
    assert check("queued-flavor-toleration", flavor()) == []


@pytest.mark.parametrize(
    ("labels", "tolerated", "findings"),
    [
        (GB200, ("nvidia.com/gpu",), 1),
        (GB200, ("nvidia.com/gpu", ARCHITECTURE), 0),
        ({**GB200, ARCHITECTURE: "arm64"}, ("nvidia.com/gpu",), 0),
        ({"cloud.google.com/gke-accelerator": "nvidia-b200"}, ("nvidia.com/gpu",), 0),
        ({}, (), 0),
    ],
)
def test_pods_of_arm_nodes_tolerate_their_taint(
    check: Check, flavor: Make, labels: dict[str, str], tolerated: tuple[str, ...], findings: int
) -> None:
    found = check("arm-flavor-toleration", flavor(node_labels=labels, tolerated=tolerated))

    assert len(found) == findings


@pytest.mark.parametrize(
    ("topology", "changes", "found"),
    [
        ("slices", {"total_min_nodes": 0}, True),
        ("slices", {"total_min_nodes": 8}, False),
        ("slices", {"total_min_nodes": 0, "queued": True}, False),
        (None, {"total_min_nodes": 0}, False),
    ],
)
def test_a_pool_that_waits_for_pods_is_found_in_a_flavor_with_a_topology(
    check: Check, flawless: dict[str, Make], topology: str | None, changes: dict[str, object], found: bool
) -> None:
    pool = labelled(flawless["slice_pool"], total_max_nodes=8, **changes)

    findings = check("topology-autoscaled", pool, flawless["flavor"](topology=topology))

    assert [finding.path for finding in findings] == (["section.min_slices"] if found else [])
