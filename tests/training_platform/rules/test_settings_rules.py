"""Rules of one resource over what a plan alone says: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import UNKNOWN
from training_platform.rules import RULES, View
from training_platform.rules.views.cluster import Limit
from training_platform.rules.views.node_pool import Nic, Taint

Make = Callable[..., View]
Check = Callable[..., list[Finding]]
Row = tuple[str, str, dict[str, Any], int]  # rule, fixture, what is changed, findings

T4 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}
IRONWOOD = {"machine_type": "tpu7x-standard-4t", "tpu_topology": "4x4x4"}
GB200 = {"machine_type": "a4x-highgpu-4g", "accelerator_type": "nvidia-gb200", "accelerator_count": 4}
COMPACT = {"placement_type": "COMPACT"}
RESERVED = {"consume_reservation": "SPECIFIC_RESERVATION"}
TAINT = Taint("team", "NO_SCHEDULE")
NICS = tuple(Nic(f"net-{index}", None) for index in range(4))


ROWS: list[Row] = [
    ("cluster-name", "cluster", {"cluster": "c" * 40}, 0),
    ("cluster-name", "cluster", {"cluster": "c" * 41}, 1),
    ("pool-name", "gpu_pool", {"pool": "p" * 40}, 0),
    ("pool-name", "gpu_pool", {"pool": "p" * 41}, 1),
    ("dataplane-policies", "cluster", {}, 0),
    ("dataplane-policies", "cluster", {"network_policy": True}, 1),
    ("dataplane-policies", "cluster", {"network_policy": True, "datapath": "LEGACY_DATAPATH"}, 0),
    ("dataplane-policies", "cluster", {"dataplane_policies": True}, 0),
    ("dataplane-policies", "cluster", {"dataplane_policies": True, "datapath": None}, 1),
    ("multi-networking", "cluster", {}, 0),
    ("multi-networking", "cluster", {"datapath": None}, 1),
    ("multi-networking", "cluster", {"networking_mode": "ROUTES"}, 1),
    ("multi-networking", "cluster", {"datapath": None, "networking_mode": "ROUTES"}, 2),
    ("multi-networking", "cluster", {"networking_mode": None}, 0),  # GKE's default is VPC-native
    ("multi-networking", "cluster", {"datapath": None, "multi_networking": False}, 0),
    ("default-pool", "cluster", {}, 0),
    ("default-pool", "cluster", {"initial_nodes": 0}, 1),
    ("default-pool", "cluster", {"initial_nodes": None}, 1),
    ("default-pool", "cluster", {"initial_nodes": None, "remove_default_pool": False}, 0),
    ("default-pool", "cluster", {"node_version": "1.33"}, 1),
    ("default-pool", "cluster", {"node_version": "1.33", "remove_default_pool": False}, 1),
    ("default-pool", "cluster", {"node_version": "1.33", "version": "1.33", "remove_default_pool": False}, 0),
    ("cluster-zones", "cluster", {"zones": ("us-central1-a",)}, 0),
    ("cluster-zones", "cluster", {"zones": ("us-central1-a",), "location": "us-central1-a"}, 1),
    ("cluster-zones", "cluster", {"zones": ("us-central1-b",), "location": "us-central1-a"}, 0),
    ("cluster-zones", "cluster", {"zones": ("us-west4-a",)}, 1),
    ("autopilot-settings", "cluster", {"autopilot": True}, 0),
    ("autopilot-settings", "cluster", {"autopilot": True, "clashing": ("networkPolicy",)}, 1),
    ("autopilot-settings", "cluster", {"clashing": ("networkPolicy",)}, 0),
    ("default-pool-machine", "cluster", {"location": "us-central2-b"}, 0),
    ("default-pool-machine", "cluster", {"location": "us-central2-b", "default_machine": "e2-standard-4"}, 1),
    ("default-pool-machine", "cluster", {"location": "us-central2-b", "default_machine": None}, 1),
    ("default-pool-machine", "cluster", {"location": "us-central1-a", "default_machine": None}, 0),
    ("resource-tags", "cluster", {"tags": 5}, 0),
    ("resource-tags", "cluster", {"tags": 6}, 1),
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
    ("pool-counts", "gpu_pool", {}, 0),
    ("pool-counts", "gpu_pool", {"total_max_nodes": 4}, 1),
    ("pool-counts", "gpu_pool", {"node_count": 2, "min_nodes": None, "max_nodes": None}, 1),
    ("pool-counts", "gpu_pool", {"node_count": 2, "initial_nodes": None}, 1),
    ("pool-counts", "gpu_pool", {"node_count": 2, "initial_nodes": None, "min_nodes": None, "max_nodes": None}, 0),
    ("pool-bounds", "gpu_pool", {"min_nodes": 4, "max_nodes": 4}, 0),
    ("pool-bounds", "gpu_pool", {"min_nodes": 5, "max_nodes": 4}, 1),
    ("pool-bounds", "gpu_pool", {"total_min_nodes": 5, "total_max_nodes": 4}, 1),
    ("max-pods", "gpu_pool", {"max_pods": 7}, 1),
    ("max-pods", "gpu_pool", {"max_pods": 8}, 0),
    ("max-pods", "gpu_pool", {"max_pods": 256}, 0),
    ("max-pods", "gpu_pool", {"max_pods": 257}, 1),
    ("max-pods", "gpu_pool", {"max_pods": None}, 0),
    ("pool-nodes", "gpu_pool", {"max_nodes": 1_000}, 0),
    ("pool-nodes", "gpu_pool", {"max_nodes": 1_001}, 1),
    ("pool-nodes", "gpu_pool", {"max_nodes": 1_001, "zones": ("us-central1-a", "us-central1-b")}, 1),
    ("pool-nodes", "gpu_pool", {"max_nodes": None, "total_max_nodes": 2_000, "zones": ()}, 0),
    ("pool-nodes", "slice_pool", {"max_nodes": 1_001}, 0),
    ("default-max-pods", "cluster", {"max_pods": 7}, 1),
    ("default-max-pods", "cluster", {"max_pods": 8}, 0),
    ("default-max-pods", "cluster", {"max_pods": 256}, 0),
    ("default-max-pods", "cluster", {"max_pods": 257}, 1),
    ("default-max-pods", "cluster", {"max_pods": 110, "networking_mode": "ROUTES"}, 1),
    ("default-max-pods", "cluster", {"networking_mode": "ROUTES"}, 0),
    ("one-provisioning-model", "gpu_pool", {"spot": True, "spot_twice": True}, 1),
    ("one-provisioning-model", "gpu_pool", {"spot": True, "flex_start": True, "spot_twice": True}, 2),
    ("node-image", "gpu_pool", {}, 0),
    ("node-image", "gpu_pool", {"fast_socket": True}, 0),
    ("node-image", "gpu_pool", {"fast_socket": True, "gvnic": False}, 1),
    ("node-image", "gpu_pool", {"image_type": "UBUNTU_CONTAINERD", "image_streaming": False}, 0),
    ("node-image", "gpu_pool", {"image_type": "UBUNTU_CONTAINERD"}, 1),
    ("node-image", "gpu_pool", {"image_type": "WINDOWS_LTSC_CONTAINERD", "image_streaming": False}, 1),
    ("node-image", "gpu_pool", {"secondary_disks": 1}, 0),
    ("node-image", "gpu_pool", {"secondary_disks": 1, "image_streaming": False}, 1),
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
    ("node-scopes", "gpu_pool", {}, 0),
    ("node-scopes", "gpu_pool", {"scopes": ()}, 1),
    ("node-scopes", "gpu_pool", {"scopes": ("https://www.googleapis.com/auth/devstorage.read_only",)}, 1),
    ("node-scopes", "gpu_pool", {"scopes": ("logging-write", "storage-rw")}, 0),
    ("node-account", "gpu_pool", {}, 0),
    ("node-account", "gpu_pool", {"service_account": None}, 1),
    ("node-account", "gpu_pool", {"service_account": "default"}, 1),
    ("graceful-shutdown", "gpu_pool", {"shutdown_seconds": 60}, 1),
    ("graceful-shutdown", "gpu_pool", {"shutdown_seconds": 10, "spot": True}, 0),
    ("graceful-shutdown", "gpu_pool", {"shutdown_seconds": 9, "spot": True}, 1),
    ("graceful-shutdown", "gpu_pool", {"shutdown_seconds": 10_000, "spot": True}, 0),
    ("graceful-shutdown", "gpu_pool", {"shutdown_seconds": 10_001, "spot": True}, 1),
    ("surge-upgrades", "gpu_pool", {}, 0),
    ("surge-upgrades", "gpu_pool", {"max_unavailable": 0}, 1),
    ("surge-upgrades", "gpu_pool", {"max_unavailable": 0, "max_surge": 1}, 0),
    ("surge-upgrades", "gpu_pool", {"max_unavailable": 0, "upgrade_strategy": "BLUE_GREEN"}, 0),
    ("pool-replacement", "gpu_pool", {}, 0),
    ("pool-replacement", "gpu_pool", {"replaced_first": False}, 1),
    ("pool-replacement", "gpu_pool", {"replaced_first": None}, 0),
    ("pool-replacement", "system_pool", {"replaced_first": False}, 1),
    ("pool-replacement", "system_pool", {"replaced_first": False, "pool": None}, 0),
    ("placement-type", "slice_pool", {}, 0),
    ("placement-type", "slice_pool", {"placement_type": "SPREAD"}, 1),
    ("placement-machine", "gpu_pool", COMPACT, 0),
    ("placement-machine", "gpu_pool", {**COMPACT, **T4}, 1),
    ("placement-machine", "gpu_pool", {**COMPACT, **T4, "machine_type": "e2-standard-4", "accelerator_type": None}, 1),
    ("placement-machine", "gpu_pool", {**COMPACT, "machine_type": "n2-standard-8", "accelerator_type": None}, 0),
    ("placement-machine", "gpu_pool", {**COMPACT, **GB200}, 0),
    ("placement-size", "gpu_pool", {**COMPACT, "max_nodes": 96}, 0),
    ("placement-size", "gpu_pool", {**COMPACT, "max_nodes": 97}, 1),
    ("placement-size", "gpu_pool", {"max_nodes": 97}, 0),
    ("placement-capacity", "flex_pool", {}, 0),
    ("placement-capacity", "flex_pool", COMPACT, 1),
    ("placement-capacity", "flex_pool", {**COMPACT, "machine_type": "a3-ultragpu-8g"}, 0),
    ("placement-capacity", "flex_pool", {**COMPACT, "machine_type": "a3-ultragpu-8g", "queued": True}, 1),
    ("placement-capacity", "slice_pool", {"queued": True, "flex_start": True}, 0),
    ("workload-policy-missing", "slice_pool", {}, 0),
    ("workload-policy-missing", "slice_pool", IRONWOOD, 1),
    ("workload-policy-missing", "slice_pool", {**IRONWOOD, "policy": "slices"}, 0),
    ("workload-policy-missing", "slice_pool", {**IRONWOOD, "tpu_topology": None}, 0),
    ("workload-policy-missing", "gpu_pool", GB200, 1),
    ("nvlink-domain", "gpu_pool", {**GB200, "max_nodes": 18}, 0),
    ("nvlink-domain", "gpu_pool", {**GB200, "max_nodes": 17}, 1),
    ("nvlink-domain", "gpu_pool", {"max_nodes": 17}, 0),
    ("workload-policy-drift", "slice_pool", IRONWOOD, 1),
    ("workload-policy-drift", "slice_pool", {**IRONWOOD, "ignored": ("placementPolicy",)}, 0),
    ("workload-policy-drift", "slice_pool", {**IRONWOOD, "ignored": None}, 0),
    ("workload-policy-drift", "slice_pool", {}, 0),
    ("workload-policy-drift", "slice_pool", {**IRONWOOD, "tpu_topology": "2x2x1"}, 0),
    ("workload-policy-missing", "slice_pool", {**IRONWOOD, "tpu_topology": "2x2x1"}, 0),
    ("workload-policy-missing", "slice_pool", {**IRONWOOD, "tpu_topology": "2x2x2"}, 1),
    ("resource-policy", "resource_policy", {}, 0),
    ("resource-policy", "resource_policy", {"topology_distance": "BLOCK"}, 1),
    ("resource-policy", "resource_policy", {"workload_type": "HIGH_AVAILABILITY"}, 1),
    ("resource-policy", "resource_policy", {"workload_type": "HIGH_AVAILABILITY", "topology": None}, 0),
    ("resource-policy", "resource_policy", {"max_distance": 2}, 0),
    ("resource-policy", "resource_policy", {"max_distance": 2, "gpu_topology": "1x72"}, 1),
    ("provision-only", "resource_policy", {"topology_mode": "PROVISION_ONLY"}, 0),
    ("provision-only", "resource_policy", {"topology_mode": "PROVISION_ONLY", "topology": None}, 1),
    ("provision-only", "resource_policy", {"topology_mode": "PROVISION_ONLY", "workload_type": None}, 1),
    ("gpudirect-interfaces", "gpu_pool", {}, 0),
    ("gpudirect-interfaces", "gpu_pool", {"nics": NICS}, 0),
    ("gpudirect-interfaces", "gpu_pool", {"node_labels": {}}, 1),
    ("gpudirect-interfaces", "gpu_pool", {"node_labels": {}, "max_nodes": 1}, 0),
    ("gpudirect-interfaces", "gpu_pool", {"node_labels": {}, "max_nodes": 2}, 1),
    ("gpudirect-interfaces", "gpu_pool", {"node_labels": {}, "network_profile": "auto"}, 0),
    ("gpudirect-interfaces", "gpu_pool", {"node_labels": {}, "machine_type": "a2-highgpu-8g"}, 0),
    ("upgrade-room", "gpu_pool", {**RESERVED, "max_surge": 0}, 0),
    ("upgrade-room", "gpu_pool", {**RESERVED, "max_surge": 1}, 1),
    ("upgrade-room", "gpu_pool", {**RESERVED, "upgrade_strategy": "BLUE_GREEN"}, 1),
    ("upgrade-room", "gpu_pool", {**RESERVED, "max_surge": 1, "upgrades": False}, 0),
    ("upgrade-room", "gpu_pool", {"max_surge": 1}, 0),
    ("upgrade-room", "gpu_pool", {"upgrade_strategy": "BLUE_GREEN"}, 0),
    ("upgrade-room", "slice_pool", {**RESERVED, "max_surge": 1}, 0),
    ("node-taints", "gpu_pool", {}, 0),
    ("node-taints", "gpu_pool", {"taints": (TAINT, TAINT._replace(effect="NO_EXECUTE"))}, 0),
    ("node-taints", "gpu_pool", {"taints": (TAINT, TAINT)}, 1),
    ("node-taints", "gpu_pool", {"taints": (TAINT, TAINT, TAINT)}, 1),
    ("upgrade-room", "system_pool", {"max_surge": 1}, 0),
    ("slice-upgrades", "slice_pool", {"max_surge": 0}, 0),
    ("slice-upgrades", "slice_pool", {"max_surge": 1}, 1),
    ("slice-upgrades", "gpu_pool", {"max_surge": 1}, 0),
    ("gpudirect-interfaces", "gpu_pool", {"nics": NICS[:3]}, 1),
    ("gpudirect-interfaces", "gpu_pool", {"nics": NICS, "machine_type": "a3-megagpu-8g"}, 1),
    ("gpudirect-own-networks", "gpu_pool", {"nics": NICS}, 0),
    ("gpudirect-own-networks", "gpu_pool", {"nics": (*NICS[:3], NICS[0])}, 1),
    ("gpudirect-own-networks", "gpu_pool", {"nics": (*NICS, NICS[0]), "machine_type": "a3-ultragpu-8g"}, 0),
    ("accelerator-network-profile", "gpu_pool", {}, 0),
    ("accelerator-network-profile", "gpu_pool", {"network_profile": "auto"}, 0),
    ("accelerator-network-profile", "gpu_pool", {"network_profile": "own"}, 1),
    ("accelerator-network-profile", "gpu_pool", {"network_profile": "auto", "nics": NICS}, 1),
    ("accelerator-network-profile", "gpu_pool", {"network_profile": "auto", "machine_type": "a2-highgpu-8g"}, 1),
    ("network-driver-label", "gpu_pool", {}, 0),
    ("network-driver-label", "gpu_pool", {"network_profile": "auto"}, 1),
    (
        "network-driver-label",
        "gpu_pool",
        {"network_profile": "auto", "node_labels": {"cloud.google.com/gke-networking-dra-driver": "true"}},
        0,
    ),
    ("capacity-on-request", "slice_pool", {"spot": True}, 0),
    ("capacity-on-request", "slice_pool", {**IRONWOOD, "spot": True}, 1),
    ("capacity-on-request", "slice_pool", {**IRONWOOD, "consume_reservation": "SPECIFIC_RESERVATION"}, 0),
    ("flex-start-upgrades", "gpu_pool", {"flex_start": True}, 1),
    ("flex-start-upgrades", "gpu_pool", {"queued": True}, 1),
    ("flex-start-upgrades", "gpu_pool", {"flex_start": True, "upgrades": False}, 0),
    ("flex-start-upgrades", "gpu_pool", {"flex_start": True, "ignored": ("upgradeSettings",)}, 0),
    ("flex-start-upgrades", "gpu_pool", {}, 0),
    ("queued-label", "gpu_pool", {}, 0),
    ("queued-label", "gpu_pool", {"queued": True}, 1),
    ("queued-label", "gpu_pool", {"queued": True, "node_labels": {"cloud.google.com/gke-queued": "true"}}, 0),
    ("reservation-block", "gpu_pool", {"reservation_path": "r"}, 0),
    ("reservation-block", "gpu_pool", {"reservation_path": "r/reservationBlocks/b"}, 0),
    ("reservation-block", "gpu_pool", {"reservation_path": "r/reservationBlocks/b", "zones": ()}, 1),
    ("reservation-block", "gpu_pool", {"reservation_path": "r/reservationBlocks/b/reservationSubBlocks/s"}, 0),
    ("reservation-block", "gpu_pool", {"reservation_path": "r/reservationSubBlocks/s"}, 1),
    ("host-maintenance", "gpu_pool", {"maintenance": "PERIODIC"}, 1),
    ("host-maintenance", "gpu_pool", {"maintenance": "AS_NEEDED"}, 0),
    (
        "host-maintenance",
        "gpu_pool",
        {"maintenance": "PERIODIC", "consume_reservation": "SPECIFIC_RESERVATION"},
        0,
    ),
    ("location-policy-any", "gpu_pool", {"zones": ("us-central1-a", "us-central1-b")}, 0),
    ("location-policy-any", "gpu_pool", {"spot": True, "location_policy": None, "max_nodes": None}, 0),
    ("location-policy-any", "gpu_pool", {"spot": True, "location_policy": None, "total_max_nodes": 4}, 1),
    (
        "location-policy-any",
        "gpu_pool",
        {"zones": ("us-central1-a", "us-central1-b"), "location_policy": "BALANCED"},
        1,
    ),
    ("filestore-range", "filestore", {}, 0),
    ("filestore-range", "filestore", {"reserved_range": "10.0.0.0/24"}, 0),
    ("filestore-range", "filestore", {"reserved_range": "10.0.0.0/29"}, 1),
    ("filestore-range", "filestore", {"reserved_range": "10.0.0.0/29", "tier": "BASIC_HDD"}, 0),
    ("filestore-range", "filestore", {"reserved_range": "10.0.0.0/24", "connect_mode": "PRIVATE_SERVICE_ACCESS"}, 1),
    ("filestore-range", "filestore", {"reserved_range": "named", "connect_mode": "PRIVATE_SERVICE_ACCESS"}, 0),
    ("filestore-shared-vpc", "filestore", {"network_project": "example-train"}, 0),
    ("filestore-shared-vpc", "filestore", {"network_project": "example-host"}, 1),
    ("filestore-shared-vpc", "filestore", {"network_project": "example-host", "connect_mode": None}, 1),
    (
        "filestore-shared-vpc",
        "filestore",
        {"network_project": "example-host", "connect_mode": "PRIVATE_SERVICE_ACCESS"},
        0,
    ),
    ("filestore-iops", "filestore", {}, 0),
    ("filestore-iops", "filestore", {"iops_per_tb": 3_900}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": 17_000}, 0),
    ("filestore-iops", "filestore", {"iops_per_tb": 17_100}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": 4_050}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": 3_000, "capacity_gib": 10_240}, 0),
    ("filestore-iops", "filestore", {"iops_per_tb": 3_000, "capacity_gib": 9_984}, 1),
    ("filestore-iops", "filestore", {"fixed_iops": 2_000}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 2_000}, 0),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 1_000}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 166_000}, 0),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 167_000}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 167_000, "tier": "REGIONAL"}, 0),
    ("filestore-iops", "filestore", {"tier": "ENTERPRISE"}, 1),
    ("filestore-directory", "filestore", {"directory_services": True}, 1),
    ("filestore-directory", "filestore", {"directory_services": True, "protocol": "NFS_V4_1"}, 0),
    ("filestore-class", "storage_class", {}, 0),
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}}, 1),
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}, "provisioner": "other"}, 0),
    ("filestore-class", "storage_class", {"parameters": {"connect-mode": "PRIVATE_SERVICE_CONNECT"}}, 1),
    ("built-in-class", "volume_claim", {}, 0),
    ("built-in-class", "volume_claim", {"class_name": "zonal-rwx"}, 1),
    ("label-form", "labelled", {}, 0),
    ("label-form", "labelled", {"labels": {"a" * 63: "b" * 63}}, 0),
    ("label-form", "labelled", {"labels": {"a" * 64: "b"}}, 1),
    ("label-form", "labelled", {"labels": {"a": "b" * 64}}, 1),
    ("label-form", "labelled", {"labels": {"A": "b"}}, 1),
    ("label-form", "labelled", {"labels": {"1a": "b"}}, 1),
    ("label-form", "labelled", {"labels": {"a": "x.y"}}, 1),
    ("label-form", "labelled", {"labels": {"a": ""}}, 0),
    ("label-form", "labelled", {"labels": {f"k{index}": "v" for index in range(64)}}, 0),
    ("label-form", "labelled", {"labels": {f"k{index}": "v" for index in range(65)}}, 1),
]


SPOILED = [row for row in ROWS if row[3]]


@pytest.mark.parametrize("row", ROWS, ids=(f"{row[0]}-{index}" for index, row in enumerate(ROWS)))
def test_rule_finds_what_is_spoiled_and_nothing_else(row: Row, check: Check, request: pytest.FixtureRequest) -> None:
    rule, fixture, changes, count = row

    found = check(rule, request.getfixturevalue(fixture)(**changes))

    assert [finding.rule for finding in found] == [rule] * count
    assert all(finding.severity in (RULES[rule].severity, "warning") for finding in found)
    assert all(finding.allowed for finding in found)


@pytest.mark.parametrize("row", SPOILED, ids=(f"{row[0]}-{index}" for index, row in enumerate(SPOILED)))
def test_rule_that_meets_an_unknown_value_says_so(row: Row, check: Check, request: pytest.FixtureRequest) -> None:
    rule, fixture, changes, _ = row
    make = request.getfixturevalue(fixture)

    for field in changes:
        found = check(rule, make(**{**changes, field: UNKNOWN}))

        assert all(finding.severity == "note" or finding.rule == rule for finding in found)
    everything = check(rule, make(**dict.fromkeys(changes, UNKNOWN)))
    assert {finding.severity for finding in everything} <= {"note"}


SHORT = (Limit("cpu", 25), Limit("memory", 234), Limit("nvidia-h100-80gb", 1))
V4_ZONE = {"location": "us-central2-b", "default_machine": None}
NEAREST: list[tuple[str, str, dict[str, Any], str]] = [
    ("max-pods", "gpu_pool", {"max_pods": 300}, "256"),
    ("gpu-sharing", "gpu_pool", {"sharing_clients": 1}, "2"),
    ("placement-size", "gpu_pool", {**COMPACT, "max_nodes": 97}, "several pools of 96"),
    ("nvlink-domain", "gpu_pool", GB200, "18"),
    ("filestore-iops", "filestore", {"iops_per_tb": 17_100}, "17000"),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 2_500}, "3000"),
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}}, "tier"),
    ("label-form", "labelled", {"labels": {"a": "X.y"}}, "x-y"),
    ("auto-provisioning-type", "nap", {"limits": (Limit("nvidia-h100-80", 8),)}, "nvidia-h100-80gb"),
    ("auto-provisioning-limits", "nap", {"limits": SHORT}, "26"),
    ("filestore-range", "filestore", {"reserved_range": "10.0.0.0/29"}, "10.0.0.0/24"),
    ("default-pool-machine", "cluster", V4_ZONE, "n1-standard-4"),
]


@pytest.mark.parametrize("row", NEAREST, ids=(f"{row[0]}-{index}" for index, row in enumerate(NEAREST)))
def test_finding_names_the_nearest_that_passes(
    row: tuple[str, str, dict[str, Any], str], check: Check, request: pytest.FixtureRequest
) -> None:
    rule, fixture, changes, nearest = row
    (found,) = check(rule, request.getfixturevalue(fixture)(**changes))

    assert found.nearest == nearest


def test_range_of_a_tier_on_which_sources_disagree_is_a_warning(check: Check, filestore: Make) -> None:
    found = check("filestore-range", filestore(tier="REGIONAL", location="us-central1", reserved_range="10.0.0.0/24"))

    assert [(each.severity, "disagree" in each.message) for each in found] == [("warning", True)]


def test_label_that_gke_sets_is_a_warning_and_kubernetes_own_an_error(check: Check, gpu_pool: Make) -> None:
    labels = {"cloud.google.com/gke-spot": "true", "kubernetes.io/role": "a"}

    assert [each.severity for each in check("node-labels", gpu_pool(node_labels=labels))] == ["warning", "error"]
