"""Rules across resources: a whole small program that breaks none, then one part of it spoiled at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import UNKNOWN
from training_platform.rules import View
from training_platform.rules.views.cluster import Limit
from training_platform.rules.views.node_pool import Nic, Taint

Make = Callable[..., View]
Check = Callable[..., list[Finding]]
EMAIL = "nodes@example-train.iam.gserviceaccount.com"
IRONWOOD = {"machine_type": "tpu7x-standard-4t", "tpu_topology": "4x4x4"}
TRILLIUM = {"machine_type": "ct6e-standard-4t", "tpu_topology": "4x4"}
GB200 = {"machine_type": "a4x-highgpu-4g"}
RDMA = {"machine_type": "a3-ultragpu-8g", "nics": (Nic("roce", None),)}
TPU7X = {"limits": (Limit("tpu7x", 64),)}
ONE_NIC = {"nics": (Nic("vpc", "subnet"),)}  # in the cluster's own subnet
RESERVED = {"consume_reservation": "SPECIFIC_RESERVATION", "reservation": "training", "reservation_path": "training"}
ON_N1 = {
    "machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1,
    "local_ssd_count": None,
}  # fmt: skip
OF_N1 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}
NO_GPUS = {"accelerator_type": None, "accelerator_count": None}
# What each part of the program is built from; a spoiled one replaces or adds to these.
PARTS = (
    "cluster", "nap", "gpu_pool", "system_pool", "network", "subnet", "firewall", "gateway", "filestore", "account",
    "role_grant", "image_grant", "resource_policy", "reservation",
)  # fmt: skip

OWN: dict[str, dict[str, Any]] = {
    "system_pool": {"name": "system"},
    "image_grant": {"role": "roles/artifactregistry.reader"},
    "gpu_pool": {"name": "h100"},
    "account": {"name": "nodes"},
}


@pytest.fixture
def run(check: Check, request: pytest.FixtureRequest) -> Callable[..., list[Finding]]:
    """Return a function that runs a rule over the program, some parts changed and some left out."""

    def of(rule: str, without: tuple[str, ...] = (), **changes: dict[str, Any]) -> list[Finding]:
        views = []
        for part in PARTS:
            if part in without:
                continue
            base = {"image_grant": "role_grant"}.get(part, part)
            make = request.getfixturevalue(base)
            own = OWN.get(part, {})
            changed = {**own, **changes.get(part, {})}
            if part == "nap":
                cluster = request.getfixturevalue("cluster")(**changes.get("cluster", {}))
                changed = {"cluster": cluster, **changed}
            views.append(make(**changed))
        return check(rule, *views)

    return of


ACROSS: list[tuple[str, dict[str, dict[str, Any]], tuple[str, ...], int]] = [
    ("gke-floor", {}, (), 0),
    ("gke-floor", {"cluster": {"version": "1.32.2-gke.1651999"}, "gpu_pool": {"flex_start": True}}, (), 1),
    ("gke-floor", {"cluster": {"version": "1.32.2-gke.1652000"}, "gpu_pool": {"flex_start": True}}, (), 0),
    ("gke-floor", {"cluster": {"version": "1.32.2-gke.1651999"}}, (), 0),
    ("gke-floor", {"cluster": {"version": "1.32.2-gke.1651999"}, "gpu_pool": {"queued": True}}, (), 0),
    ("gke-floor", {"gpu_pool": {"flex_start": True, "queued": True, "version": "1.31.1-gke.1"}}, (), 1),
    ("gke-floor", {"gpu_pool": {"flex_start": True, "version": "1.31.1-gke.1"}}, (), 1),
    ("gke-floor", {"gpu_pool": IRONWOOD, "cluster": {"version": "1.33"}}, (), 1),
    ("gke-floor", {"gpu_pool": {**IRONWOOD, "cluster": "other"}, "cluster": {"version": "1.33"}}, (), 0),
    ("gpudirect-floor", {"gpu_pool": {"nics": (Nic("a", None),), "version": "1.29.15-gke.2466999"}}, (), 1),
    ("gpudirect-floor", {"gpu_pool": {"nics": (Nic("a", None),), "version": "1.29.15-gke.2467000"}}, (), 0),
    ("gpudirect-floor", {"gpu_pool": {"nics": (Nic("a", None),), "version": "1.30.1-gke.1"}}, (), 0),
    ("gpudirect-floor", {"gpu_pool": {"version": "1.29.15-gke.2466999"}}, (), 0),
    ("feature-floor", {}, (), 0),
    ("feature-floor", {"gpu_pool": {"driver": None, "version": "1.30.1-gke.1155999"}}, (), 1),
    ("feature-floor", {"gpu_pool": {"driver": None, "version": "1.30.1-gke.1156000"}}, (), 0),
    ("feature-floor", {"gpu_pool": {"fast_socket": True, "version": "1.25.2-gke.1699"}}, (), 1),
    ("feature-floor", {"gpu_pool": {"fast_socket": True, "version": "1.25.2-gke.1700", "driver": "LATEST"}}, (), 0),
    ("feature-floor", {"gpu_pool": {"secondary_disks": 1, "version": "1.28.3-gke.106699"}}, (), 1),
    ("feature-floor", {"gpu_pool": {"secondary_disks": 1, "version": "1.28.3-gke.106700"}}, (), 0),
    ("feature-floor", {"gpu_pool": {"network_profile": "auto", "version": "1.34.1-gke.1829000"}}, (), 1),
    ("feature-floor", {"gpu_pool": {"network_profile": "auto", "version": "1.34.1-gke.1829001"}}, (), 0),
    ("auto-provisioning-floor", {}, (), 0),
    ("auto-provisioning-floor", {"cluster": {"version": "1.32.2-gke.1296999"}}, (), 1),
    ("auto-provisioning-floor", {"cluster": {"version": "1.32.2-gke.1297000"}}, (), 0),
    ("auto-provisioning-floor", {"nap": TPU7X, "cluster": {"version": "1.34.1-gke.2540999"}}, (), 1),
    ("auto-provisioning-floor", {"nap": TPU7X, "cluster": {"version": "1.34.1-gke.2541000"}}, (), 0),
    ("channel-upgrades", {}, (), 0),
    ("channel-upgrades", {"gpu_pool": {"auto_upgrade": False}}, (), 1),
    ("channel-upgrades", {"gpu_pool": {"auto_upgrade": False}, "cluster": {"release_channel": "UNSPECIFIED"}}, (), 0),
    ("channel-upgrades", {"gpu_pool": {"auto_upgrade": False}, "cluster": {"release_channel": None}}, (), 0),
    ("pinned-version", {"cluster": {"version": "1.34.1-gke.1"}}, (), 1),
    ("pinned-version", {"cluster": {"version": "1.34.1-gke.1", "release_channel": None}}, (), 0),
    ("pinned-version", {"cluster": {"version": "1.34"}}, (), 0),
    ("pool-version", {"cluster": {"version": "1.34.1-gke.2"}, "gpu_pool": {"version": "1.34.1-gke.2"}}, (), 0),
    ("pool-version", {"cluster": {"version": "1.34.1-gke.2"}, "gpu_pool": {"version": "1.34.1-gke.3"}}, (), 1),
    ("pool-version", {"cluster": {"version": "1.34"}, "gpu_pool": {"version": "1.32"}}, (), 0),
    ("pool-version", {"cluster": {"version": "1.34"}, "gpu_pool": {"version": "1.31"}}, (), 1),
    ("pool-version", {"cluster": {"version": "1.30"}, "gpu_pool": {"version": "1.34", "cluster": "other"}}, (), 0),
    ("queued-tpu", {"gpu_pool": {"queued": True}}, (), 0),
    ("queued-tpu", {"gpu_pool": {"queued": True, "machine_type": "ct6e-standard-4t"}}, (), 1),
    ("queued-tpu", {"gpu_pool": {"queued": True, "flex_start": True, "machine_type": "ct6e-standard-4t"}}, (), 1),
    ("queued-tpu", {"gpu_pool": {"flex_start": True, "machine_type": "ct6e-standard-4t"}}, (), 0),
    ("system-pool", {}, ("nap",), 0),
    ("system-pool", {}, ("system_pool", "nap"), 1),
    ("system-pool", {}, ("system_pool",), 0),
    ("system-pool", {"system_pool": {"taints": (Taint("own", "NO_SCHEDULE"),)}}, ("nap",), 1),
    ("system-pool", {"system_pool": {"total_min_nodes": 0}}, ("nap",), 1),
    ("system-pool", {"system_pool": {"total_min_nodes": 1}}, ("nap",), 0),
    ("system-pool", {"cluster": {"remove_default_pool": False}}, ("system_pool", "nap"), 0),
    ("system-pool", {}, ("system_pool", "gpu_pool", "nap"), 0),
    ("system-pool", {"system_pool": {"taints": (Taint("own", "PREFER_NO_SCHEDULE"),)}}, ("nap",), 0),
    ("inline-pools", {}, (), 0),
    ("inline-pools", {"cluster": {"inline_pools": 1}}, (), 1),
    ("inline-pools", {"cluster": {"inline_pools": 1}}, ("gpu_pool", "system_pool"), 0),
    ("autopilot-pools", {}, (), 0),
    ("autopilot-pools", {"cluster": {"autopilot": True}}, ("system_pool",), 1),
    ("cluster-nodes", {"gpu_pool": {"max_nodes": 4_994}}, (), 0),  # beside the system pool's 6
    ("cluster-nodes", {"gpu_pool": {"max_nodes": 4_995}}, (), 1),
    ("routes-max-pods", {}, (), 0),
    ("routes-max-pods", {"cluster": {"networking_mode": "ROUTES"}}, ("system_pool",), 1),
    (
        "routes-max-pods",
        {"cluster": {"networking_mode": "ROUTES"}, "gpu_pool": {"max_pods": None}},
        ("system_pool",),
        0,
    ),
    ("dranet-cluster", {"gpu_pool": {"network_profile": "auto"}}, (), 0),
    ("dranet-cluster", {"cluster": {"datapath": None}}, (), 0),
    ("dranet-cluster", {"gpu_pool": {"network_profile": "auto"}, "cluster": {"datapath": None}}, (), 1),
    (
        "dranet-cluster",
        {"gpu_pool": {"nics": (Nic("a", None),)}, "cluster": {"multi_networking": False}},
        (),
        1,
    ),
    ("workload-identity", {}, (), 0),
    ("workload-identity", {"cluster": {"workload_pool": None}}, ("system_pool",), 1),
    (
        "workload-identity",
        {"cluster": {"workload_pool": None}, "gpu_pool": {"metadata_mode": None}},
        ("system_pool",),
        0,
    ),
    ("workload-pool", {}, (), 0),
    ("workload-pool", {"cluster": {"workload_pool": "example-host.svc.id.goog"}}, (), 1),
    ("node-account-roles", {}, (), 0),
    ("node-account-roles", {}, ("image_grant",), 1),
    ("node-account-roles", {"role_grant": {"account": "nodes"}, "image_grant": {"account": "nodes"}}, (), 0),
    ("node-account-roles", {"role_grant": {"role": "roles/editor"}}, ("image_grant",), 0),
    ("node-account-roles", {}, ("image_grant", "gpu_pool", "system_pool"), 0),
    ("placement-policy", {"gpu_pool": {**IRONWOOD, "policy": "slices"}}, (), 0),
    ("placement-policy", {"gpu_pool": {**IRONWOOD, "policy": "elsewhere", "tpu_topology": "4x4x8"}}, (), 0),
    ("placement-policy", {"gpu_pool": {**IRONWOOD, "policy": "slices", "tpu_topology": "4x4x8"}}, (), 1),
    ("placement-policy", {"gpu_pool": {**TRILLIUM, "policy": "slices"}}, (), 0),
    ("placement-policy", {"gpu_pool": {**GB200, "policy": "slices"}}, (), 1),
    (
        "placement-policy",
        {"gpu_pool": {**GB200, "policy": "slices"}, "resource_policy": {"topology": "1x72"}},
        (),
        0,
    ),
    ("placement-policy", {"gpu_pool": {"policy": "slices"}, "resource_policy": {"region": "us-west4"}}, (), 1),
    ("placement-policy", {"gpu_pool": {"policy": "slices"}, "resource_policy": {"project": "example"}}, (), 1),
    ("placement-policy", {"gpu_pool": {"policy": "slices"}, "resource_policy": {"workload": False}}, (), 1),
    (
        "provision-only-pool",
        {"gpu_pool": {"policy": "slices"}, "resource_policy": {"topology_mode": "PROVISION_ONLY"}},
        (),
        1,
    ),
    (
        "provision-only-pool",
        {"gpu_pool": {**RESERVED, "policy": "slices"}, "resource_policy": {"topology_mode": "PROVISION_ONLY"}},
        (),
        0,
    ),
    ("reservation-fits", {}, (), 0),
    ("reservation-fits", {"gpu_pool": RESERVED}, (), 0),
    ("reservation-fits", {"gpu_pool": {**RESERVED, "zones": ("us-central1-b",)}}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, "machine_type": "a3-megagpu-8g"}}, (), 1),
    ("reservation-fits", {"gpu_pool": RESERVED, "reservation": {"specific": False}}, (), 1),
    ("reservation-fits", {"gpu_pool": RESERVED, "reservation": {"min_cpu_platform": "Intel Skylake"}}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, "min_cpu_platform": "Intel Skylake"}}, (), 1),
    ("reservation-fits", {"gpu_pool": RESERVED, "reservation": {"local_ssds": 16}}, (), 0),
    ("reservation-fits", {"gpu_pool": RESERVED, "reservation": {"local_ssds": 15}}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, **ON_N1}, "reservation": OF_N1}, (), 0),
    ("reservation-fits", {"gpu_pool": {**RESERVED, **ON_N1, "accelerator_count": 2}, "reservation": OF_N1}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, **ON_N1}, "reservation": {**OF_N1, **NO_GPUS}}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, **ON_N1, "local_ssd_count": 1}, "reservation": OF_N1}, (), 1),
    ("reservation-fits", {"gpu_pool": RESERVED, "reservation": {**OF_N1, "machine_type": None}}, (), 1),
    ("reservation-fits", {"gpu_pool": {**RESERVED, "reservation_path": "x"}, "reservation": {"zone": "z"}}, (), 0),
    (
        "reservation-fits",
        {"gpu_pool": {**RESERVED, "reservation_path": "projects/p/reservations/training/reservationBlocks/b"},
         "reservation": {"zone": "us-central1-b"}},
        (),
        1,
    ),
    ("reservation-room", {"gpu_pool": {**RESERVED, "max_nodes": 4}}, (), 0),
    ("reservation-room", {"gpu_pool": {**RESERVED, "max_nodes": 5}}, (), 1),
    ("reservation-room", {"gpu_pool": {**RESERVED, "max_surge": 1}}, (), 1),
    ("reservation-room", {"gpu_pool": {**RESERVED, "upgrades": False}}, (), 1),
    ("reservation-room", {"gpu_pool": {**RESERVED, "max_nodes": 3, "max_surge": 1}}, (), 0),
    ("auto-provisioning-room", {}, (), 0),
    ("auto-provisioning-room", {"nap": {"limits": (Limit("nvidia-h100-80gb", 4 * 8),)}}, (), 0),
    ("auto-provisioning-room", {"nap": {"limits": (Limit("nvidia-h100-80gb", 4 * 8 - 1),)}}, (), 1),
    ("auto-provisioning-room", {"nap": {"limits": (Limit("cpu", 4 * 208 + 6 * 4),)}}, (), 0),
    ("auto-provisioning-room", {"nap": {"limits": (Limit("cpu", 4 * 208 + 6 * 4 - 1),)}}, (), 1),
    ("pod-range", {}, (), 0),
    # 32 pods take a /26 of 64 addresses; 4 VMs and 6 of the system pool, whose view here has 32 pods too.
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/22"}}}, (), 0),
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/23"}}}, (), 1),
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/23"}}, "cluster": {"subnetwork": "other"}}, (), 0),
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/22"}}, "gpu_pool": {"max_nodes": 10}}, (), 0),
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/22"}}, "gpu_pool": {"max_nodes": 11}}, (), 1),
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/23"}}, "gpu_pool": {"cluster": UNKNOWN}}, (), 1),
    ("node-range", {"subnet": {"cidr": "10.10.0.0/28"}}, (), 0),
    ("node-range", {"subnet": {"cidr": "10.10.0.0/28"}, "gpu_pool": {"max_nodes": 6}}, (), 0),
    ("node-range", {"subnet": {"cidr": "10.10.0.0/28"}, "gpu_pool": {"max_nodes": 7}}, (), 1),
    ("node-range", {"subnet": {"cidr": "10.10.0.0/29"}}, (), 1),
    ("ranges-overlap", {}, (), 0),
    ("ranges-overlap", {"subnet": {"cidr": "10.64.255.0/24"}}, (), 1),
    ("ranges-overlap", {"subnet": {"cidr": "10.64.255.255/32"}}, (), 1),
    ("ranges-overlap", {"subnet": {"cidr": "10.65.0.0/24"}}, (), 0),
    ("webhook-firewall", {}, (), 0),
    ("webhook-firewall", {}, ("firewall",), 1),
    ("webhook-firewall", {"firewall": {"ports": ("8443",)}}, (), 1),
    ("webhook-firewall", {"firewall": {"ports": ("9000-9443",)}}, (), 0),
    ("webhook-firewall", {"firewall": {"ports": ("9000-9442",)}}, (), 1),
    ("webhook-firewall", {"firewall": {"network": "dev-network"}}, (), 0),
    ("webhook-firewall", {}, ("firewall", "network"), 0),
    ("webhook-firewall", {"cluster": {"private_nodes": None}}, ("firewall",), 0),
    ("private-nodes-way-out", {}, (), 0),
    ("private-nodes-way-out", {}, ("gateway",), 1),
    ("private-nodes-way-out", {"gateway": {"region": "us-west4"}}, (), 1),
    ("private-nodes-way-out", {"cluster": {"private_nodes": False}}, ("gateway",), 0),
    ("filestore-range-free", {"filestore": {"reserved_range": "10.0.0.0/24"}}, (), 0),
    ("filestore-range-free", {"filestore": {"reserved_range": "10.10.3.0/24"}}, (), 1),
    ("filestore-range-free", {"filestore": {"reserved_range": "10.64.3.0/24"}}, (), 1),
    ("filestore-range-free", {"filestore": {"reserved_range": "named-range"}}, (), 0),
    ("filestore-region", {}, (), 0),
    ("filestore-region", {"filestore": {"location": "us-west4-a"}}, (), 1),
    ("filestore-region", {"filestore": {"location": "us-west4-a"}}, ("cluster",), 0),
    ("subnet-region", {}, (), 0),
    ("subnet-region", {"subnet": {"region": "us-west4"}}, (), 1),
    ("rdma-network", {}, (), 0),
    ("rdma-network", {"gpu_pool": RDMA}, (), 0),
    ("rdma-network", {"gpu_pool": RDMA, "network": {"name": "roce", "profile": "us-central1-a-vpc-roce"}}, (), 0),
    ("rdma-network", {"gpu_pool": RDMA, "network": {"name": "roce", "profile": "us-central1-b-vpc-roce"}}, (), 1),
    (
        "rdma-network",
        {"gpu_pool": RDMA, "network": {"name": "roce", "profile": "us-central1-a-vpc-roce", "mtu": 1460}},
        (),
        1,
    ),
    ("rdma-network", {"gpu_pool": RDMA, "network": {"name": "roce"}}, (), 1),
    (
        "rdma-network",
        {"gpu_pool": RDMA, "network": {"name": "roce", "profile": "us-central1-a-vpc-roce"},
         "subnet": {"network": "roce"}},
        (),
        1,
    ),
    ("rdma-network", {"gpu_pool": {"nics": (Nic("vpc", None),)}}, (), 1),
    ("rdma-network", {"gpu_pool": {"nics": (Nic("vpc", None),)}, "network": {"mtu": 8244}}, (), 0),
    # A /29 has 8 addresses, of which 4 are reserved: 4 VMs fit, and 5 do not.
    ("gpu-network-room", {"gpu_pool": ONE_NIC, "subnet": {"cidr": "192.168.0.0/29"}}, (), 0),
    ("gpu-network-room", {"gpu_pool": {**ONE_NIC, "max_nodes": 5}, "subnet": {"cidr": "192.168.0.0/29"}}, (), 1),
    ("gpu-network-room", {"gpu_pool": {"max_nodes": 5}, "subnet": {"cidr": "192.168.0.0/29"}}, (), 0),
    ("gpu-network-range", {"gpu_pool": ONE_NIC}, (), 1),
    ("gpu-network-range", {"gpu_pool": {"nics": (Nic("vpc", "elsewhere"),)}}, (), 0),
    ("gpu-network-range", {}, (), 0),
    ("rdma-firewall", {}, (), 0),
    ("rdma-firewall", {"network": {"profile": "us-central1-a-vpc-roce"}}, (), 1),
    ("rdma-metal-subnets", {"network": {"profile": "us-central1-a-vpc-roce"}}, (), 0),
    ("rdma-metal-subnets", {"network": {"profile": "us-central1-a-vpc-roce-metal"}}, (), 1),
]  # fmt: skip


@pytest.mark.parametrize("row", ACROSS, ids=(f"{row[0]}-{index}" for index, row in enumerate(ACROSS)))
def test_rule_finds_what_does_not_go_together(
    row: tuple[str, dict[str, dict[str, Any]], tuple[str, ...], int], run: Callable[..., list[Finding]]
) -> None:
    rule, changes, without, count = row

    found = run(rule, without, **changes)

    assert [each.rule for each in found if each.severity != "note"] == [rule] * count
    assert all(each.allowed for each in found if each.severity != "note")


@pytest.mark.parametrize(
    ("rule", "part", "field"),
    [
        ("gke-floor", "cluster", "version"),
        ("pod-range", "cluster", "subnetwork"),
        ("pod-range", "subnet", "ranges"),
        ("pod-range", "gpu_pool", "max_nodes"),
        ("workload-identity", "cluster", "workload_pool"),
        ("workload-pool", "cluster", "workload_pool"),
        ("webhook-firewall", "firewall", "ports"),
        ("private-nodes-way-out", "gateway", "region"),
        ("auto-provisioning-room", "nap", "limits"),
        ("system-pool", "system_pool", "taints"),
        ("node-account-roles", "account", "email"),
    ],
)
def test_rule_that_meets_an_unknown_value_says_so(
    rule: str, part: str, field: str, run: Callable[..., list[Finding]]
) -> None:
    pool = {"flex_start": True} if rule == "gke-floor" else {}
    found = run(
        rule,
        ("nap",) if rule == "system-pool" else (),
        **{"gpu_pool": pool, part: {**({} if part != "gpu_pool" else pool), field: UNKNOWN}},
    )

    assert {each.severity for each in found} == {"note"}
    assert all(field in each.message for each in found)


@pytest.mark.parametrize(
    ("rule", "changes", "nearest"),
    [
        ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/23"}}}, "10.64.0.0/22"),
        ("node-range", {"subnet": {"cidr": "10.10.0.0/29"}}, "10.10.0.0/28"),
        ("auto-provisioning-room", {"nap": {"limits": (Limit("nvidia-h100-80gb", 8),)}}, "32"),
        ("workload-pool", {"cluster": {"workload_pool": "x"}}, "example-train.svc.id.goog"),
        ("reservation-room", {"gpu_pool": {**RESERVED, "max_nodes": 5}}, "4"),
        ("gke-floor", {"gpu_pool": {"flex_start": True, "version": "1.31.1-gke.1"}}, "1.32.2-gke.1652000"),
    ],
)
def test_finding_names_the_nearest_that_passes(
    rule: str, changes: dict[str, dict[str, Any]], nearest: str, run: Callable[..., list[Finding]]
) -> None:
    (found,) = run(rule, (), **changes)

    assert found.nearest == nearest


@pytest.mark.parametrize(
    ("version", "severity"), [("1.34.9-gke.1", "error"), ("1.35.0-gke.1", "warning"), (None, "warning")]
)
def test_queued_flex_start_tpus_are_refused_before_1_35_and_disputed_after(
    version: str | None, severity: str, run: Callable[..., list[Finding]]
) -> None:
    pool = {"queued": True, "flex_start": True, "machine_type": "ct6e-standard-4t"}
    (found,) = run("queued-tpu", (), gpu_pool=pool, cluster={"version": version})

    assert found.severity == severity


@pytest.mark.parametrize(
    ("nodes", "said"),
    [(14_994, "more than 5,000 need a limit that Google has raised"), (14_995, "GKE documents a limit of 15,000")],
)
def test_a_cluster_of_many_nodes_has_a_limit_above_the_one_that_is_raised(
    nodes: int, said: str, run: Callable[..., list[Finding]]
) -> None:
    (found,) = run("cluster-nodes", (), gpu_pool={"max_nodes": nodes})

    assert said in found.message


def test_webhooks_out_of_reach_are_an_error_where_kueue_is(
    check: Check, network: Make, flavor: Make, cluster: Make
) -> None:
    (found,) = check("webhook-firewall", network(), flavor(), cluster())

    assert found.severity == "error"


def test_pool_whose_cluster_is_not_named_yet_is_of_the_only_one(run: Callable[..., list[Finding]]) -> None:
    found = run("gke-floor", (), gpu_pool={**IRONWOOD, "cluster": UNKNOWN}, cluster={"version": "1.33"})

    assert [each.severity for each in found] == ["warning"]


@pytest.mark.parametrize(("mtu", "severity"), [(1460, "error"), (None, "warning"), (8896, None)])
def test_another_mtu_is_refused_for_rdma_and_one_that_is_not_written_only_said(
    mtu: int | None, severity: str | None, run: Callable[..., list[Finding]]
) -> None:
    network = {"name": "roce", "profile": "us-central1-a-vpc-roce", "mtu": mtu}

    assert [each.severity for each in run("rdma-network", (), gpu_pool=RDMA, network=network)] == (
        [severity] if severity else []
    )


@pytest.mark.parametrize(("count", "findings"), [(7, 1), (8, 0)])
def test_a_vpc_for_rdma_has_a_subnet_for_each_interface(
    check: Check, flawless: dict[str, Make], count: int, findings: int
) -> None:
    vpc = flawless["network"](name="roce", profile="us-central1-a-vpc-roce")
    subnets = [flawless["subnet"](name=f"roce-{index}", network="roce") for index in range(count)]

    assert len(check("rdma-network", vpc, flawless["gpu_pool"](**RDMA), *subnets)) == findings


def test_two_instances_do_not_share_a_range(check: Check, filestore: Make) -> None:
    found = check(
        "filestore-range-free",
        filestore(name="a", origin=("a",), reserved_range="10.0.0.0/24"),
        filestore(name="b", origin=("b",), reserved_range="10.0.0.0/24"),
    )

    assert [each.path for each in found] == ["b.reserved_range"]
