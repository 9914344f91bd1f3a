"""Rules about the nodes of a pool: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_names_the_nearest_that_passes,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest
from training_platform.config.reading.finding import Finding
from training_platform.rules import View
from training_platform.views.node_pool import Taint

Make = Callable[..., View]
Check = Callable[..., list[Finding]]
T4 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}
TAINT = Taint("team", "NO_SCHEDULE")


ALONE: list[Alone] = [
    ("node-image", "gpu_pool", {}, 0),
    ("node-image", "gpu_pool", {"fast_socket": True}, 0),
    ("node-image", "gpu_pool", {"fast_socket": True, "gvnic": False}, 1),
    ("node-image", "gpu_pool", {"image_type": "UBUNTU_CONTAINERD", "image_streaming": False}, 0),
    ("node-image", "gpu_pool", {"image_type": "UBUNTU_CONTAINERD"}, 1),
    ("node-image", "gpu_pool", {"image_type": "WINDOWS_LTSC_CONTAINERD", "image_streaming": False}, 1),
    ("node-image", "gpu_pool", {"secondary_disks": 1}, 0),
    ("node-image", "gpu_pool", {"secondary_disks": 1, "image_streaming": False}, 1),
    ("node-sysctls", "gpu_pool", {"sysctls": {"net.core.somaxconn": "4096"}}, 0),
    ("node-sysctls", "gpu_pool", {"sysctls": {"net.core.somaxcon": "4096", "vm.swappines": "0"}}, 2),
    ("node-sysctls", "gpu_pool", {"sysctls": {"net.core.somaxconn": "128", "vm.overcommit_ratio": "100"}}, 0),
    ("node-sysctls", "gpu_pool", {"sysctls": {"net.core.somaxconn": "127", "vm.overcommit_ratio": "101"}}, 2),
    ("node-sysctls", "gpu_pool", {"sysctls": {"net.core.somaxconn": "4k"}}, 1),
    ("node-sysctls", "gpu_pool", {"sysctls": {"net.ipv4.tcp_rmem": "4096 87380 6291456"}}, 0),
    ("node-huge-pages", "system_pool", {"huge_pages_2m": 4915}, 0),  # 9.6 of 16 GB
    ("node-huge-pages", "system_pool", {"huge_pages_2m": 4916}, 1),
    ("node-huge-pages", "gpu_pool", {"huge_pages_1g": 1497}, 0),  # 1,497.6 of 1,872 GB
    ("node-huge-pages", "gpu_pool", {"huge_pages_1g": 1497, "huge_pages_2m": 512}, 1),
    ("node-image", "slice_pool", {"image_type": "UBUNTU_CONTAINERD", "image_streaming": False}, 1),
    ("node-image", "gpu_pool", {"image_type": "UBUNTU_CONTAINERD", "image_streaming": False}, 0),
    ("gpu-driver-image", "gpu_pool", {"driver": "LATEST"}, 0),
    ("gpu-driver-image", "gpu_pool", {"driver": "LATEST", "image_type": "UBUNTU_CONTAINERD"}, 1),
    ("gpu-driver-image", "gpu_pool", {"driver": "DEFAULT", "image_type": "UBUNTU_CONTAINERD"}, 0),
    ("gpu-sharing", "gpu_pool", {"partition": "1g.20gb"}, 0),
    ("gpu-sharing", "gpu_pool", {"partition": "1g.5gb"}, 1),
    ("gpu-sharing", "gpu_pool", {"partition": "1g.5gb", **T4}, 1),
    ("gpu-sharing", "gpu_pool", {"sharing": "MPS", "sharing_clients": 48}, 0),
    ("gpu-sharing", "gpu_pool", {"sharing": "TIME_SHARING", "sharing_clients": 49}, 1),
    ("gpu-sharing", "gpu_pool", {"sharing": "TIME_SHARING", "sharing_clients": 2}, 0),
    ("gpu-sharing", "gpu_pool", {"sharing": "TIME_SHARING", "sharing_clients": 1}, 1),
    ("gpu-sharing", "gpu_pool", {"sharing": "SPLIT"}, 1),
    ("confidential-gpu", "gpu_pool", {"confidential": "TDX"}, 1),
    ("confidential-gpu", "gpu_pool", {"confidential": "TDX", "machine_type": "a3-highgpu-1g"}, 0),
    ("confidential-gpu", "gpu_pool", {"confidential": "SEV", "machine_type": "a3-highgpu-1g"}, 1),
    ("confidential-gpu", "system_pool", {"confidential": "SEV"}, 0),
    ("boot-disk-settings", "gpu_pool", {"provisioned": True}, 1),
    ("boot-disk-settings", "gpu_pool", {"provisioned": True, "disk_type": "hyperdisk-balanced"}, 0),
    ("boot-disk-settings", "gpu_pool", {"storage_pools": 1}, 1),
    ("boot-disk-settings", "gpu_pool", {"storage_pools": 1, "disk_type": "hyperdisk-balanced"}, 0),
    ("node-labels", "gpu_pool", {"node_labels": {"example.com/a": "b", "plain": "c"}}, 0),
    ("node-labels", "gpu_pool", {"node_labels": {"kubernetes.io/role": "a"}}, 1),
    ("node-labels", "gpu_pool", {"node_labels": {"node.kubernetes.io/role": "a"}}, 1),
    ("node-labels", "gpu_pool", {"node_labels": {"x.k8s.io/role": "a"}}, 1),
    ("node-labels", "gpu_pool", {"node_labels": {"notkubernetes.io/role": "a"}}, 0),
    ("node-labels", "gpu_pool", {"node_labels": {"cloud.google.com/gke-spot": "true"}}, 1),
    ("node-labels", "gpu_pool", {"node_labels": {"cloud.google.com/gke-queued": "true"}}, 0),
    ("node-labels", "gpu_pool", {"node_labels": {"a": "b" * 63}}, 0),
    ("node-labels", "gpu_pool", {"node_labels": {"a": "b" * 64}}, 1),
    ("node-labels", "gpu_pool", {"node_labels": {"a": "b c", "b": "-b"}}, 2),
    ("node-labels", "gpu_pool", {"node_labels": {"a": "", "b": "B_1.c"}}, 0),
    ("node-tags", "gpu_pool", {"tags": 5}, 0),
    ("node-tags", "gpu_pool", {"tags": 6}, 1),
    ("graceful-shutdown", "gpu_pool", {"shutdown_seconds": 60}, 1),
    ("graceful-shutdown", "gpu_pool", {"shutdown_seconds": 10, "spot": True}, 0),
    ("graceful-shutdown", "gpu_pool", {"shutdown_seconds": 9, "spot": True}, 1),
    ("graceful-shutdown", "gpu_pool", {"shutdown_seconds": 10_000, "spot": True}, 0),
    ("graceful-shutdown", "gpu_pool", {"shutdown_seconds": 10_001, "spot": True}, 1),
    ("node-taints", "gpu_pool", {}, 0),
    ("node-taints", "gpu_pool", {"taints": (TAINT, TAINT._replace(effect="NO_EXECUTE"))}, 0),
    ("node-taints", "gpu_pool", {"taints": (TAINT, TAINT)}, 1),
    ("node-taints", "gpu_pool", {"taints": (TAINT, TAINT, TAINT)}, 1),
]


NEAREST: list[AloneNearest] = [
    ("gpu-sharing", "gpu_pool", {"sharing_clients": 1}, "2"),
]


def test_label_that_gke_sets_is_a_warning_and_kubernetes_own_an_error(check: Check, gpu_pool: Make) -> None:
    labels = {"cloud.google.com/gke-spot": "true", "kubernetes.io/role": "a"}

    assert [each.severity for each in check("node-labels", gpu_pool(node_labels=labels))] == ["warning", "error"]


@pytest.mark.parametrize(
    ("machine", "nearest"), [("a3-highgpu-8g", None), ("a3-higpu-8g", "a3-highgpu-8g"), (None, None)]
)
def test_machine_type_outside_the_catalogue_is_found(
    check: Check, gpu_pool: Make, machine: str | None, nearest: str | None
) -> None:
    found = check("machine-type-known", gpu_pool(machine_type=machine))

    assert len(found) == (machine != "a3-highgpu-8g")
    assert [finding.nearest for finding in found if finding.nearest] == ([nearest] if nearest else [])


@pytest.mark.parametrize(
    ("machine", "zone", "count"),
    [
        ("a3-highgpu-8g", "us-central1-a", 0),
        ("a3-highgpu-8g", "us-central1-f", 1),
        ("ct4p-hightpu-4t", "us-central2-b", 0),
        ("ct4p-hightpu-4t", "us-central1-a", 1),
        ("e2-standard-4", "us-central1-a", 0),
        ("e2-standard-4", "us-central2-b", 1),
        ("a4x-highgpu-4g", "us-east4-b", 0),  # of which only regions are known
        ("a4x-highgpu-4g", "us-west1-a", 1),
        ("ct5l-hightpu-4t", "us-west1-a", 0),  # of which nothing is known
    ],
)
def test_zone_without_the_machine_is_a_warning_with_the_lists_date(
    check: Check, gpu_pool: Make, machine: str, zone: str, count: int
) -> None:
    found = check("machine-zone", gpu_pool(machine_type=machine, zones=(zone,)))

    assert [(finding.severity, finding.path) for finding in found] == [("warning", "section.zone")] * count
    assert all("2026" in finding.message for finding in found)


@pytest.mark.parametrize(
    ("asked", "nearest", "allowed"),
    [
        (("ct5lp-hightpu-4t", "us-west4-c"), "us-west4-a", "us-west4-a, us-west4-b; regions "),
        (("ct4p-hightpu-4t", "us-west4-a"), "us-central2-b", "regions us-central2"),
        (("ct5lp-hightpu-4t", "europe-west8-a"), "europe-north1-a", "regions asia-east1, "),
    ],
)
def test_zone_without_the_machine_has_its_regions_others_for_nearest_then_other_regions(
    check: Check, gpu_pool: Make, asked: tuple[str, str], nearest: str, allowed: str
) -> None:
    machine, zone = asked
    (finding,) = check("machine-zone", gpu_pool(machine_type=machine, zones=(zone,)))

    assert finding.nearest == nearest
    assert (finding.allowed or "").startswith(allowed)


def test_region_without_a_machine_whose_zones_nobody_lists_names_the_others(check: Check, gpu_pool: Make) -> None:
    (finding,) = check("machine-zone", gpu_pool(machine_type="a4x-highgpu-4g", zones=("us-west1-a",)))

    assert finding.allowed == "regions europe-west4, us-central1, us-east1, us-east4"
    assert finding.nearest is None


def test_zone_without_the_gpus_that_are_attached_names_them(check: Check, gpu_pool: Make) -> None:
    v100 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-v100", "accelerator_count": 1}

    (finding,) = check("machine-zone", gpu_pool(**v100, zones=("us-west4-a",)))

    assert finding.message.startswith("n1-standard-8 with nvidia-tesla-v100 is not listed in us-west4-a")
    assert check("machine-zone", gpu_pool(**v100, zones=("us-west1-a",))) == []


def test_region_without_the_machine_names_those_that_have_it(check: Check, gpu_pool: Make) -> None:
    pool = gpu_pool(machine_type="ct4p-hightpu-4t", zones=(), location="us-west4")

    (finding,) = check("pool-zone", pool)

    assert finding.allowed == "no zone of us-west4, as far as we know; regions us-central2"


def test_zonal_cluster_gives_its_zone_to_the_pool(check: Check, gpu_pool: Make) -> None:
    assert check("machine-zone", gpu_pool(zones=(), location="us-central1-a")) == []
    assert len(check("machine-zone", gpu_pool(zones=(), location="us-central1-f"))) == 1


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 0),
        ({"zones": (), "location": "us-central1-a"}, 0),
        ({"zones": ()}, 1),
        ({"zones": ("us-west4-a",)}, 1),
        ({"zones": (), "machine_type": "e2-standard-4"}, 0),
    ],
)
def test_accelerators_are_in_a_named_zone_of_the_clusters_region(
    check: Check, gpu_pool: Make, changes: dict[str, Any], count: int
) -> None:
    found = check("pool-zone", gpu_pool(**changes))

    assert [finding.nearest for finding in found] == ["us-central1-a"] * count


@pytest.mark.parametrize(
    ("location", "regions", "nearest"),
    [
        ("us", ("us-central1", "us-west4-a"), None),
        ("us-central1", ("us-central1-a",), None),
        ("us-central1", ("us-central1", "us-west4-a"), "us"),
        ("us", ("us-central1", "europe-west4", "northamerica-northeast1"),
         "us, with caches: [europe, northamerica-northeast1]"),
    ],
)  # fmt: skip
def test_images_are_in_the_region_of_the_nodes_or_around_it(
    check: Check, flawless: dict[str, Make], location: str, regions: tuple[str, ...], nearest: str | None
) -> None:
    clusters = [flawless["cluster"](name=region, location=region) for region in regions]

    found = check("images-streamed", flawless["repository"](location=location), *clusters)

    assert [each.nearest for each in found] == ([nearest] if nearest else [])
    assert [each.path for each in found] == ["section.location"] * len(found)


def test_a_cache_of_the_repository_serves_the_nodes_of_its_region(
    check: Check, repository: Make, cluster: Make
) -> None:
    own, far = repository(location="us"), cluster(location="europe-west4")
    cache = repository(name="cache", location="europe", mode="REMOTE_REPOSITORY")
    other = repository(name="other", location="europe", mode="REMOTE_REPOSITORY", repository="dev-images-docker-hub")

    assert check("images-streamed", own, cache, far) == []
    assert len(check("images-streamed", own, other, far)) == 1
    assert check("images-streamed", repository(location="us", format="PYTHON"), far) == []
