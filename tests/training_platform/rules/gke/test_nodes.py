"""Rules about the nodes of a pool: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

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
    ("boot-disk-settings", "gpu_pool", {"disk_twice": True}, 1),
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
