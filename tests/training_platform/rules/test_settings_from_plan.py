"""Views of settings, networks and accounts, as pulumi-gcp and pulumi-kubernetes name their inputs."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from training_platform.resources.planned import UNKNOWN, Planned
from training_platform.resources.resource_types import CLUSTER, FILESTORE, NODE_POOL, SUBNETWORK
from training_platform.rules import views_of_plan
from training_platform.views.access import AccountView, RoleGrantView
from training_platform.views.cluster import (
    AutoProvisioningView,
    ClusterView,
    ReservationView,
    ResourceLimit,
    ResourcePolicyView,
)
from training_platform.views.network import FirewallView, NetworkView, SubnetView
from training_platform.views.node_pool import NodePoolView, PoolNic, Taint
from training_platform.views.storage import FilestoreView, StorageClassView, VolumeClaimView
from training_platform.views.view import View

V = TypeVar("V", bound=View)
FIREWALL = "gcp:compute/firewall:Firewall"
MEMBERS = ["serviceAccount:a@p", "group:g@example.com"]
VPC = "gcp:compute/network:Network"


def views(kind: type[V], resource_type: str, options: dict[str, Any] | None = None, **inputs: Any) -> list[V]:
    planned = Planned(stack="dev", type=resource_type, name="thing", inputs=inputs, options=options or {})
    return [view for view in views_of_plan([planned]) if isinstance(view, kind)]


def one(kind: type[V], resource_type: str, options: dict[str, Any] | None = None, **inputs: Any) -> V:
    (view,) = views(kind, resource_type, options, **inputs)
    return view


def settings(options: dict[str, Any] | None = None, **node: Any) -> NodePoolView:
    return one(NodePoolView, NODE_POOL, options, nodeConfig=node)


def test_cluster_is_read_with_version_channel_and_ranges() -> None:
    view = one(
        ClusterView,
        CLUSTER,
        minMasterVersion="1.34",
        releaseChannel={"channel": "RAPID"},
        subnetwork="projects/p/regions/r/subnetworks/nodes",
        ipAllocationPolicy={"clusterSecondaryRangeName": "pods"},
        defaultMaxPodsPerNode=64.0,
    )

    assert (view.version, view.release_channel, view.subnetwork) == ("1.34", "RAPID", "nodes")
    assert (view.pods_range, view.max_pods) == ("pods", 64)


def test_place_that_is_left_out_is_the_provider_s_and_not_known() -> None:
    assert not one(ClusterView, CLUSTER).known("location")
    assert not one(NodePoolView, NODE_POOL).known("location")
    assert not one(SubnetView, SUBNETWORK).known("region")
    assert (
        one(ReservationView, "gcp:compute/reservation:Reservation", zone="zones/us-central1-a").zone == "us-central1-a"
    )


def test_settings_of_a_cluster_are_read() -> None:
    view = one(
        ClusterView,
        CLUSTER,
        network="projects/p/global/networks/vpc",
        datapathProvider="ADVANCED_DATAPATH",
        networkingMode="VPC_NATIVE",
        enableMultiNetworking=True,
        networkPolicy={"enabled": True},
        enableFqdnNetworkPolicy=True,
        enableAutopilot=True,
        nodeLocations=["us-central1-a"],
        nodeVersion="1.34",
        removeDefaultNodePool=True,
        initialNodeCount=1.0,
        nodePools=[{"name": "default-pool"}, {"name": "a"}, {"name": "b"}],
        nodeConfig={"machineType": "n2-standard-2", "resourceManagerTags": {"a": "b"}},
        workloadIdentityConfig={"workloadPool": "p.svc.id.goog"},
    )

    assert (view.network, view.datapath, view.networking_mode) == ("vpc", "ADVANCED_DATAPATH", "VPC_NATIVE")
    assert view.multi_networking
    assert view.network_policy
    assert view.dataplane_policies
    assert view.autopilot
    assert view.clashing == ("networkPolicy", "removeDefaultNodePool", "nodePools")
    assert one(ClusterView, CLUSTER, None, clusterAutoscaling={"autoProvisioningDefaults": {}}).clashing == ()
    scaled = one(ClusterView, CLUSTER, None, clusterAutoscaling={"enabled": True}, addonsConfig={"dnsCacheConfig": {}})
    assert scaled.clashing == ("clusterAutoscaling.enabled", "addonsConfig.dnsCacheConfig")
    assert (view.zones, view.node_version, view.remove_default_pool) == (("us-central1-a",), "1.34", True)
    assert (view.initial_nodes, view.inline_pools, view.tags) == (1, 2, 1)
    assert (view.default_machine, view.workload_pool) == ("n2-standard-2", "p.svc.id.goog")


@pytest.mark.parametrize("flag", ["enableFqdnNetworkPolicy", "enableCiliumClusterwideNetworkPolicy"])
def test_either_policy_of_dataplane_v2_is_one(flag: str) -> None:
    on, off = {flag: True}, {flag: False}

    assert one(ClusterView, CLUSTER, None, **on).dataplane_policies
    assert not one(ClusterView, CLUSTER, None, **off).dataplane_policies


def test_auto_provisioning_is_a_view_where_it_is_on() -> None:
    scaling = {
        "enabled": True,
        "resourceLimits": [{"resourceType": "cpu", "maximum": 100.0}],
        "autoProvisioningLocations": ["us-central1-a"],
        "autoProvisioningDefaults": {
            "diskType": "pd-ssd", "diskSize": 200, "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1},
        },
    }  # fmt: skip
    view = one(AutoProvisioningView, CLUSTER, clusterAutoscaling=scaling)

    assert (view.limits, view.zones, view.written) == ((ResourceLimit("cpu", 100),), ("us-central1-a",), True)
    assert (view.disk_type, view.disk_gb, view.strategy, view.max_surge) == ("pd-ssd", 200, "SURGE", 1)
    assert (view.limit("cpu"), view.limit("memory")) == (100, None)
    assert views(AutoProvisioningView, CLUSTER, clusterAutoscaling={"enabled": False}) == []
    limits = {"enabled": True, "resourceLimits": [{"resourceType": "nvidia-l4", "maximum": 8}]}
    named = one(AutoProvisioningView, CLUSTER, clusterAutoscaling=limits)
    assert [named.path(name) for name in ("limits", "memory", "nvidia-l4")] == [
        ("auto_provisioning",),
        ("auto_provisioning", "memory_gb"),
        ("auto_provisioning", "accelerators", "nvidia-l4"),
    ]
    assert views(AutoProvisioningView, CLUSTER) == []
    assert not one(AutoProvisioningView, CLUSTER, clusterAutoscaling={"enabled": True}).written


def test_settings_of_nodes_are_read() -> None:
    view = settings(
        {"ignoreChanges": ["initialNodeCount"], "deleteBeforeReplace": True},
        spot=True,
        preemptible=True,
        minCpuPlatform="Intel Skylake",
        imageType="COS_CONTAINERD",
        gvnic={"enabled": True},
        fastSocket={"enabled": True},
        gcfsConfig={"enabled": True},
        secondaryBootDisks=[{}],
        guestAccelerators=[
            {
                "gpuPartitionSize": "1g.10gb",
                "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
                "gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": 4.0},
            }
        ],
        confidentialNodes={"confidentialInstanceType": "TDX"},
        hostMaintenancePolicy={"maintenanceInterval": "PERIODIC"},
        kubeletConfig={"shutdownGracePeriodSeconds": 30.0},
        reservationAffinity={"values": ["r/reservationBlocks/b"]},
        workloadMetadataConfig={"mode": "GKE_METADATA"},
        oauthScopes=["cloud-platform"],
        serviceAccount="a@p.iam.gserviceaccount.com",
        resourceManagerTags={"a": "b"},
        taints=[{"key": "nvidia.com/gpu", "effect": "NO_SCHEDULE"}],
        storagePools=["pool"],
    )

    assert (view.image_type, view.gvnic, view.fast_socket, view.image_streaming) == ("COS_CONTAINERD", True, True, True)
    assert (view.secondary_disks, view.driver, view.partition) == (1, "LATEST", "1g.10gb")
    assert (view.sharing, view.sharing_clients) == ("MPS", 4)
    assert (view.confidential, view.maintenance, view.shutdown_seconds) == ("TDX", "PERIODIC", 30)
    assert (view.reservation_path, view.metadata_mode) == ("r/reservationBlocks/b", "GKE_METADATA")
    assert (view.scopes, view.service_account) == (("cloud-platform",), "a@p.iam.gserviceaccount.com")
    assert (view.tags, view.taints, view.storage_pools) == (1, (Taint("nvidia.com/gpu", "NO_SCHEDULE"),), 1)
    assert (view.ignored, view.replaced_first) == (("initialNodeCount",), True)
    assert (view.spot_twice, view.min_cpu_platform) == (True, "Intel Skylake")
    assert not settings(spot=True).spot_twice
    assert not settings(preemptible=True).spot_twice


def test_whoever_gives_no_options_does_not_say_how_a_pool_is_replaced() -> None:
    assert (settings().ignored, settings().replaced_first) == (None, None)
    assert settings({"protect": True}).replaced_first is False


def test_settings_of_a_pool_beside_its_nodes_are_read() -> None:
    view = one(
        NodePoolView,
        NODE_POOL,
        name="h100",
        version="1.34",
        maxPodsPerNode=32.0,
        upgradeSettings={"maxSurge": 0.0, "maxUnavailable": 1.0},
        placementPolicy={"policyName": "projects/p/regions/r/resourcePolicies/slices"},
        networkConfig={
            "additionalNodeNetworkConfigs": [{"network": "a/b/vpc", "subnetwork": "c/d/subnet"}],
            "acceleratorNetworkProfile": "auto",
        },
    )

    assert (view.pool, view.version, view.max_pods) == ("h100", "1.34", 32)
    assert (view.upgrades, view.max_surge, view.max_unavailable, view.policy) == (True, 0, 1, "slices")
    assert (view.nics, view.network_profile) == ((PoolNic("vpc", "subnet"),), "auto")
    assert not settings().upgrades


@pytest.mark.parametrize(
    ("disk", "provisioned"), [({"provisionedIops": 4000}, True), ({"provisionedThroughput": 400}, True),
                              ({"provisionedIops": 0}, False)],
)  # fmt: skip
def test_boot_disk_with_performance_of_its_own_is_seen(disk: dict[str, Any], provisioned: bool) -> None:
    assert settings(bootDisk=disk).provisioned is provisioned


@pytest.mark.parametrize("value", ["additionalNodeNetworkConfigs", "taints", "clusterAutoscaling", "allows"])
def test_list_that_is_not_known_is_unknown_alone(value: str) -> None:
    seen = {
        "additionalNodeNetworkConfigs": (one(NodePoolView, NODE_POOL, networkConfig={value: UNKNOWN}), "nics"),
        "taints": (settings(taints=UNKNOWN), "taints"),
        "clusterAutoscaling": (one(AutoProvisioningView, CLUSTER, clusterAutoscaling=UNKNOWN), "limits"),
        "allows": (one(FirewallView, FIREWALL, allows=[{"protocol": "tcp", "ports": UNKNOWN}]), "ports"),
    }  # fmt: skip
    view, field = seen[value]

    assert not view.known(field)


def test_reference_that_is_not_known_is_the_one_resource_of_its_type_that_is_waited_for() -> None:
    after = {"dependsOn": [(VPC, "network-vpc"), (SUBNETWORK, "main-subnet")]}
    view = one(ClusterView, CLUSTER, after, subnetwork=UNKNOWN, network=UNKNOWN)
    several = {"dependsOn": [(SUBNETWORK, "a"), (SUBNETWORK, "b")]}

    assert view.subnetwork == "main-subnet"
    assert one(ClusterView, CLUSTER, after, network=UNKNOWN).network == "network-vpc"
    assert not one(ClusterView, CLUSTER, several, subnetwork=UNKNOWN).known("subnetwork")
    assert one(ClusterView, CLUSTER, several, subnetwork="c").subnetwork == "c"


def test_placement_and_reservations_are_read() -> None:
    policy = one(
        ResourcePolicyView,
        "gcp:compute/resourcePolicy:ResourcePolicy",
        name="slices",
        region="us-central1",
        workloadPolicy={
            "type": "HIGH_THROUGHPUT", "acceleratorTopology": "4x4x4", "acceleratorTopologyMode": "PROVISION_ONLY",
            "maxTopologyDistance": "BLOCK",
        },
        groupPlacementPolicy={"maxDistance": 2.0, "gpuTopology": "1x72"},
    )  # fmt: skip
    vm = {
        "machineType": "n1-standard-8", "minCpuPlatform": "Intel Skylake", "localSsds": [{}, {}],
        "guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 2.0}],
    }  # fmt: skip
    instance = {"count": 4.0, "instanceProperties": vm}
    kind = "gcp:compute/reservation:Reservation"
    held = one(ReservationView, kind, name="r", specificReservation=instance, specificReservationRequired=True)

    assert (policy.policy, policy.region, policy.workload, policy.group) == ("slices", "us-central1", True, True)
    assert (policy.workload_type, policy.topology, policy.topology_mode) == (
        "HIGH_THROUGHPUT",
        "4x4x4",
        "PROVISION_ONLY",
    )
    assert (policy.topology_distance, policy.max_distance, policy.gpu_topology) == ("BLOCK", 2, "1x72")
    assert (held.reservation, held.machine_type, held.count, held.specific) == ("r", "n1-standard-8", 4, True)
    assert (held.accelerator_type, held.accelerator_count) == ("nvidia-tesla-t4", 2)
    assert (held.min_cpu_platform, held.local_ssds) == ("Intel Skylake", 2)
    assert not one(ReservationView, kind).specific


def test_networks_are_read() -> None:
    profile = "projects/p/global/networkProfiles/us-central1-a-vpc-roce"
    vpc = one(NetworkView, VPC, name="vpc", mtu=8896.0, networkProfile=profile)
    ranges = [{"rangeName": "pods", "ipCidrRange": "10.64.0.0/16"}]
    subnet = one(
        SubnetView, SUBNETWORK, network="a/vpc", ipCidrRange="10.0.0.0/20", secondaryIpRanges=ranges, region="r"
    )

    assert (vpc.network, vpc.mtu, vpc.profile) == ("vpc", 8896, "us-central1-a-vpc-roce")
    assert (subnet.network, subnet.cidr, subnet.ranges) == ("vpc", "10.0.0.0/20", {"pods": "10.64.0.0/16"})


@pytest.mark.parametrize(
    ("inputs", "ports"),
    [
        ({"allows": [{"protocol": "tcp", "ports": ["443", "9443"]}]}, ("443", "9443")),
        ({"allows": [{"protocol": "tcp"}]}, ("0-65535",)),
        ({"allows": [{"protocol": "all"}]}, ("0-65535",)),
        ({"allows": [{"protocol": "udp", "ports": ["9443"]}]}, ()),
        ({"allows": [{"protocol": "tcp"}], "direction": "EGRESS"}, ()),
        ({"allows": [{"protocol": "tcp"}], "disabled": True}, ()),
        ({"denies": [{"protocol": "tcp"}]}, ()),
    ],
)
def test_firewall_rule_is_the_ports_that_it_lets_in(inputs: dict[str, Any], ports: tuple[str, ...]) -> None:
    assert one(FirewallView, FIREWALL, **inputs).ports == ports


@pytest.mark.parametrize(
    ("kind", "inputs", "accounts"),
    [
        ("iAMMember:IAMMember", {"member": "serviceAccount:a@p"}, ["a@p"]),
        ("iAMBinding:IAMBinding", {"members": MEMBERS}, ["a@p", "group:g@example.com"]),
    ],
)  # fmt: skip
def test_every_member_of_a_role_is_read(kind: str, inputs: dict[str, Any], accounts: list[str]) -> None:
    found = views(RoleGrantView, f"gcp:projects/{kind}", role="roles/editor", **inputs)

    assert [(each.role, each.account) for each in found] == [("roles/editor", account) for account in accounts]


def test_e_mail_of_an_account_follows_from_its_id() -> None:
    view = one(AccountView, "gcp:serviceaccount/account:Account", accountId="nodes", project="example-train")

    assert view.email == "nodes@example-train.iam.gserviceaccount.com"


def test_filestore_is_read_with_its_network() -> None:
    network = {"network": "projects/host/global/networks/vpc", "connectMode": "DIRECT_PEERING", "reservedIpRange": "r"}
    performance = {"iopsPerTb": {"maxIopsPerTb": 4000.0}, "fixedIops": {"maxIops": 2000.0}}
    inputs: dict[str, Any] = {"networks": [network], "performanceConfig": performance, "directoryServices": {}}
    view = one(FilestoreView, FILESTORE, None, **inputs)

    assert (view.network_project, view.connect_mode, view.reserved_range) == ("host", "DIRECT_PEERING", "r")
    assert (view.iops_per_tb, view.fixed_iops, view.directory_services) == (4000, 2000, True)
    assert one(FilestoreView, FILESTORE, networks=[{"network": "vpc"}]).network_project is None


def test_classes_and_claims_are_read() -> None:
    made = one(
        StorageClassView,
        "kubernetes:storage.k8s.io/v1:StorageClass",
        metadata={"name": "own"},
        provisioner="p",
        parameters={"tier": "zonal"},
    )
    claim = one(VolumeClaimView, "kubernetes:core/v1:PersistentVolumeClaim", spec={"storageClassName": "own"})

    assert (made.class_name, made.provisioner, made.parameters) == ("own", "p", {"tier": "zonal"})
    assert claim.class_name == "own"
