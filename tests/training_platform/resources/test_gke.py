"""A cluster's inputs: private, reached by name, watched, and never replaced by what GKE answers."""

from __future__ import annotations

import dataclasses
import re
from datetime import datetime
from typing import Any

import pytest
from pulumi_gcp import container

from tests.support.plans import PlannedStack, composed
from tests.support.stack_files import RANGES
from training_platform.config.expansion import CpuPool, cpu_pools
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.node_pool import CpuPoolSpec, NodePoolSpec, PathwaysPoolSpec, SystemPoolSpec
from training_platform.resources.cluster import cluster_resources
from training_platform.resources.gke import (
    FREEZE,
    cluster_admins,
    dns_endpoint,
    existing_endpoint,
    gke_cluster,
    member_key,
    node_account_resources,
)
from training_platform.resources.node_pools import PoolPlace, cpu_pool, initial_nodes_per_zone
from training_platform.resources.plan import Component
from training_platform.resources.scope import Scope
from training_platform.resources.stack_resource import UNKNOWN, StackResource

CLUSTER = "gcp:container/cluster:Cluster"
MEMBER = "gcp:projects/iAMMember:IAMMember"


def spec_of(**fields: Any) -> ClusterSpec:
    return ClusterSpec.model_validate({"location": "us-central2-b", "subnet": RANGES, **fields})


def cluster(scope: Scope, **fields: Any) -> StackResource:
    nodes = "nodes@example.com"
    declared = gke_cluster(
        "tpu",
        spec_of(**fields),
        scope,
        network="vpc",
        subnetwork="subnet",
        service_account=nodes,
        google_groups_domain=None,
    )
    return composed(lambda into: into.add(declared)).one(CLUSTER, "tpu-cluster")


@pytest.fixture
def planned(scope: Scope) -> StackResource:
    return cluster(scope)


def test_a_cluster_is_named_after_its_environment_and_key(planned: StackResource) -> None:
    assert planned.inputs["name"] == "prod-tpu"
    assert planned.inputs["project"] == "example-train-prod"
    assert planned.inputs["resourceLabels"] == {"environment": "prod", "managed-by": "training-platform"}


def test_nodes_have_no_public_address_and_the_control_plane_has_no_address_at_all(planned: StackResource) -> None:
    assert planned.inputs["privateClusterConfig"] == {"enablePrivateNodes": True}
    assert planned.inputs["controlPlaneEndpointsConfig"] == {
        "dnsEndpointConfig": {"allowExternalTraffic": True},
        "ipEndpointsConfig": {"enabled": False},
    }
    assert "masterAuthorizedNetworksConfig" not in planned.inputs


def test_pods_and_services_take_the_ranges_of_the_subnet(planned: StackResource) -> None:
    assert planned.inputs["network"] == "vpc"
    assert planned.inputs["subnetwork"] == "subnet"
    assert planned.inputs["networkingMode"] == "VPC_NATIVE"
    assert planned.inputs["ipAllocationPolicy"] == {
        "clusterSecondaryRangeName": "pods",
        "servicesSecondaryRangeName": "services",
    }


def test_what_only_a_new_cluster_can_have_is_there_from_the_start(planned: StackResource) -> None:
    assert planned.inputs["datapathProvider"] == "ADVANCED_DATAPATH"
    assert planned.inputs["enableMultiNetworking"] is True
    assert "networkPolicy" not in planned.inputs  # Dataplane V2 and Calico exclude each other


def test_pods_act_under_accounts_of_the_clusters_project(planned: StackResource) -> None:
    assert planned.inputs["workloadIdentityConfig"] == {"workloadPool": "example-train-prod.svc.id.goog"}


def test_metrics_cover_system_workloads_gpus_and_jobsets(planned: StackResource) -> None:
    monitoring = planned.inputs["monitoringConfig"]

    assert {"SYSTEM_COMPONENTS", "POD", "KUBELET", "CADVISOR", "DCGM", "JOBSET"} <= set(monitoring["enableComponents"])
    assert "WORKLOADS" not in monitoring["enableComponents"]  # GKE took it away in 1.24
    assert monitoring["managedPrometheus"] == {"enabled": True}
    assert planned.inputs["loggingConfig"] == {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}
    assert planned.inputs["costManagementConfig"] == {"enabled": True}


def test_buckets_filestore_and_disks_can_be_mounted_and_images_stream(planned: StackResource) -> None:
    assert planned.inputs["addonsConfig"] == {
        "gcsFuseCsiDriverConfig": {"enabled": True},
        "gcpFilestoreCsiDriverConfig": {"enabled": True},
        "gcePersistentDiskCsiDriverConfig": {"enabled": True},
    }
    assert planned.inputs["nodePoolDefaults"] == {"nodeConfigDefaults": {"gcfsConfig": {"enabled": True}}}


def test_nodes_are_shielded_and_resources_scaled_upwards(planned: StackResource) -> None:
    assert planned.inputs["enableShieldedNodes"] is True
    assert planned.inputs["verticalPodAutoscaling"] == {"enabled": True}
    assert planned.inputs["securityPostureConfig"] == {"mode": "BASIC"}


def test_the_throw_away_pool_is_of_the_system_pool_s_machine_whose_quota_it_uses(planned: StackResource) -> None:
    assert planned.inputs["removeDefaultNodePool"] is True
    assert planned.inputs["initialNodeCount"] == 1
    assert planned.inputs["skipNodePoolRefresh"] is True
    assert "nodePools" not in planned.inputs
    node = planned.inputs["nodeConfig"]
    assert node["machineType"] == SystemPoolSpec().machine_type
    assert node["bootDisk"] == {"sizeGb": 30, "diskType": "pd-balanced"}
    assert node["serviceAccount"] == "nodes@example.com"
    assert node["oauthScopes"] == ["https://www.googleapis.com/auth/cloud-platform"]


def test_what_gke_answers_for_the_removed_pool_replaces_nothing(planned: StackResource) -> None:
    assert planned.options["ignoreChanges"] == ["initialNodeCount", "nodeConfig"]
    assert planned.options["deleteBeforeReplace"] is True


@pytest.mark.parametrize("protected", [True, False])
def test_deletion_protection_is_google_clouds_and_pulumis(protected: bool, scope: Scope) -> None:
    mine = dataclasses.replace(scope, deletion_protection=protected)
    planned = cluster(mine)

    assert planned.inputs["deletionProtection"] is protected
    assert planned.options.get("protect", False) is protected


def test_upgrades_have_weekend_days_and_the_48_hours_in_32_days_that_gke_asks_for(planned: StackResource) -> None:
    window = planned.inputs["maintenancePolicy"]["recurringWindow"]
    start, end = (datetime.fromisoformat(window[key]) for key in ("startTime", "endTime"))

    assert start.strftime("%A") == "Saturday"
    assert window["recurrence"] == "FREQ=WEEKLY;BYDAY=SA,SU"
    assert (end - start).total_seconds() / 3600 * 2 * 4 >= 48


@pytest.mark.parametrize("names", [(), ("vacation",), (FREEZE,)])
def test_an_exclusion_of_the_file_takes_the_place_of_the_freeze_by_its_name(
    names: tuple[str, ...], scope: Scope
) -> None:
    written = {"start": "2026-12-20T00:00:00Z", "end": "2027-01-05T00:00:00Z"}
    spec = {"upgrade_freeze": True, "exclusions": dict.fromkeys(names, written)}

    rows = cluster(scope, maintenance=spec).inputs["maintenancePolicy"]["maintenanceExclusions"]

    ends = {row["exclusionName"]: row.get("endTime") for row in rows}
    assert ends == {FREEZE: None, **dict.fromkeys(names, written["end"])}


def test_the_endpoint_is_unknown_until_the_cluster_exists(scope: Scope) -> None:
    def compose(into: Component) -> dict[str, Any]:
        cluster = cluster_resources(
            into, "tpu", spec_of(), scope, network="vpc", service_account="nodes@example.com"
        )  # fmt: skip
        return {"name": cluster.name, "endpoint": cluster.endpoint}

    assert composed(compose).outputs["value"] == {"name": "prod-tpu", "endpoint": UNKNOWN}


def test_the_endpoint_is_the_host_name_that_gke_answers() -> None:
    assert endpoint_of(endpoints("gke-0123.us-central2.gke.goog")) == "gke-0123.us-central2.gke.goog"


@pytest.mark.parametrize("host", [None, ""])
def test_an_existing_cluster_without_a_host_name_is_refused(host: str | None) -> None:
    with pytest.raises(ValueError, match="no DNS-based control-plane endpoint"):
        existing_endpoint(endpoints(host), "projects/p/locations/l/clusters/c")
    with pytest.raises(ValueError, match="no DNS-based control-plane endpoint"):
        existing_endpoint(container.outputs.ClusterControlPlaneEndpointsConfig(), "c")


def endpoint_of(config: container.outputs.ClusterControlPlaneEndpointsConfig) -> str:
    return dns_endpoint(config, "projects/p/locations/l/clusters/c")


def endpoints(host: str | None) -> container.outputs.ClusterControlPlaneEndpointsConfig:
    dns = container.outputs.ClusterControlPlaneEndpointsConfigDnsEndpointConfig(endpoint=host)
    return container.outputs.ClusterControlPlaneEndpointsConfig(dns_endpoint_config=dns)


PLATFORM = "group:ml-platform@example.com"
ONCALL = "user:on.call@example.com"


def names(scope: Scope, *admins: str) -> dict[str, str]:
    plan = composed(lambda into: cluster_admins(into, scope, admins))
    return {member.inputs["member"]: member.name for member in plan.of(MEMBER)}


def test_an_administrator_administers_the_clusters_of_the_project(scope: Scope) -> None:
    plan = composed(lambda into: cluster_admins(into, scope, [PLATFORM]))

    assert [grant.inputs for grant in plan.of(MEMBER)] == [
        {"project": "example-train-prod", "role": role, "member": PLATFORM}
        for role in (
            "roles/container.admin",
            "roles/viewer",
            "roles/serviceusage.serviceUsageConsumer",
            "roles/logging.viewAccessor",
        )
    ]


def test_a_new_administrator_moves_no_other(scope: Scope) -> None:
    before = names(scope, PLATFORM)
    after = names(scope, ONCALL, PLATFORM)

    assert after[PLATFORM] == before[PLATFORM]
    assert after.keys() == {PLATFORM, ONCALL}
    assert len(set(after.values())) == 2


def test_an_administrator_who_is_named_twice_counts_once(scope: Scope) -> None:
    assert list(names(scope, PLATFORM, PLATFORM)) == [PLATFORM]


@pytest.mark.parametrize(
    ("member", "start"),
    [(PLATFORM, "ml-platform-"), (ONCALL, "on-call-"), ("domain:example.com", "example-com-")],
)
def test_a_members_key_can_be_read(member: str, start: str) -> None:
    assert member_key(member).startswith(start)


def test_members_that_read_alike_have_different_keys() -> None:
    alike = ["user:a.b@example.com", "user:a-b@example.com", "group:a.b@example.com", "user:a.b@example.org"]

    assert len({member_key(member) for member in alike}) == len(alike)


ACCOUNT = "gcp:serviceaccount/account:Account"


def account(scope: Scope) -> PlannedStack:
    return composed(lambda into: node_account_resources("nodes", scope, into))


def test_nodes_have_an_account_per_environment(scope: Scope) -> None:
    inputs = account(scope).one(ACCOUNT, "nodes-account").inputs

    assert inputs == {
        "project": "example-train-prod",
        "accountId": "prod-gke-nodes",
        "displayName": "GKE nodes of prod",
        "createIgnoreAlreadyExists": True,
    }


@pytest.mark.parametrize("environment", ["a", "research-" * 8 + "x", "p" * 20, "p" * 21])
def test_the_account_id_is_one_that_google_cloud_takes(environment: str, scope: Scope) -> None:
    mine = dataclasses.replace(scope, environment=environment)
    name = account(mine).one(ACCOUNT).inputs["accountId"]

    assert re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", name)


def test_nodes_have_three_roles_and_no_more(scope: Scope) -> None:
    members = account(scope).of(MEMBER)

    assert {member.name: member.inputs for member in members} == {
        f"nodes-{role}": {"project": "example-train-prod", "role": f"roles/{role}", "member": UNKNOWN}
        for role in (
            "artifactregistry.reader",
            "container.defaultNodeServiceAccount",
            "serviceusage.serviceUsageConsumer",
        )
    }
    assert all(member.options["dependsOn"] == [(ACCOUNT, "nodes-account")] for member in members)


NODE_POOL = "gcp:container/nodePool:NodePool"


def pool(scope: Scope, location: str = "us-west4", **fields: Any) -> StackResource:
    spec = CpuPool(("system_pool",), SystemPoolSpec.model_validate(fields), "system", None)
    return planned_pool(scope, "gpu-system", spec, location)


def planned_pool(scope: Scope, name: str, spec: CpuPool, location: str) -> StackResource:
    place = PoolPlace(scope=scope, location=location, cluster="prod-gpu", service_account="nodes@example.com")
    return composed(lambda into: into.add(cpu_pool(name, spec, place))).one(NODE_POOL, f"{name}-pool")


@pytest.fixture
def planned_cpu(scope: Scope) -> StackResource:
    return pool(scope)


def test_the_pool_belongs_to_its_cluster(planned_cpu: StackResource) -> None:
    assert planned_cpu.inputs["project"] == "example-train-prod"
    assert planned_cpu.inputs["cluster"] == "prod-gpu"
    assert planned_cpu.inputs["location"] == "us-west4"
    assert planned_cpu.inputs["name"] == "system"


def test_the_minimum_and_maximum_are_over_all_zones(scope: Scope) -> None:
    inputs = pool(scope, min_nodes=4, max_nodes=9).inputs

    assert inputs["autoscaling"] == {
        "totalMinNodeCount": 4,
        "totalMaxNodeCount": 9,
        "locationPolicy": "BALANCED",
    }
    assert "nodeCount" not in inputs


@pytest.mark.parametrize(
    ("location", "minimum", "maximum", "initial_nodes"),
    [
        ("us-west4-a", 2, 6, 2),
        ("us-west4", 3, 6, 1),
        ("us-west4", 2, 6, 1),  # 3 VMs, of which the autoscaler may take one away
        ("us-west4", 4, 6, 2),
        ("us-west4", 4, 5, 1),  # 2 in each of 3 zones would be 6, over the maximum
        ("us-west4", 1, 2, 0),
    ],
)
def test_a_zone_starts_with_its_part_of_the_minimum(
    location: str, minimum: int, maximum: int, initial_nodes: int
) -> None:
    spec = SystemPoolSpec(min_nodes=minimum, max_nodes=maximum)

    assert initial_nodes_per_zone(spec, location) == initial_nodes


def test_the_pool_of_heads_starts_empty_and_takes_nothing_but_heads(scope: Scope) -> None:
    heads, _ = cpu_pools(spec_of(pathways=PathwaysPoolSpec(max_nodes=3)))
    inputs = planned_pool(scope, "gpu-pathways", heads, "us-west4").inputs

    assert (inputs["name"], inputs["initialNodeCount"]) == ("cpu-np", 0)
    assert (inputs["autoscaling"]["totalMinNodeCount"], inputs["autoscaling"]["totalMaxNodeCount"]) == (0, 3)
    assert inputs["nodeConfig"]["machineType"] == "n2-standard-64"
    taint = {"key": "training-platform/pathways", "value": "true", "effect": "NO_SCHEDULE"}
    assert inputs["nodeConfig"]["taints"] == [taint]


def test_the_system_pool_is_the_system_s_alone_once_other_pods_have_a_place() -> None:
    place = {"data": CpuPoolSpec(max_nodes=3)}

    taints = {pool.name: pool.taint for pool in cpu_pools(spec_of(cpu_pools=place))}

    assert taints == {"data": None, "system": ("components.gke.io/gke-managed-components", "true")}
    assert {pool.name: pool.taint for pool in cpu_pools(spec_of())} == {"system": None}


def test_a_fallback_of_the_system_pool_is_a_pool_alike_that_starts_empty(scope: Scope) -> None:
    system = SystemPoolSpec(min_nodes=3, max_nodes=5, fallback_machine_types=("n2d-standard-8",))
    cluster = spec_of(system_pool=system, cpu_pools={"data": CpuPoolSpec()})
    _, first, second = (planned_pool(scope, f"gpu-{pool.name}", pool, "us-west4").inputs for pool in cpu_pools(cluster))

    assert (first["name"], second["name"]) == ("system", "system-n2d-standard-8")
    assert second["nodeConfig"] == {**first["nodeConfig"], "machineType": "n2d-standard-8"}
    assert (first["autoscaling"]["totalMinNodeCount"], second["autoscaling"]["totalMinNodeCount"]) == (3, 0)
    assert second["autoscaling"]["totalMaxNodeCount"] == 5
    assert second["initialNodeCount"] == 0


def test_the_fallbacks_of_a_system_pool_are_other_machine_types() -> None:
    with pytest.raises(ValueError, match="has e2-standard-4, which is already machine_type"):
        SystemPoolSpec(machine_type="e2-standard-4", fallback_machine_types=("e2-standard-4",))
    with pytest.raises(ValueError, match="has n2-standard-4 twice"):
        SystemPoolSpec(fallback_machine_types=("n2-standard-4", "n2-standard-4"))


def test_a_cpu_pool_has_a_name_of_its_own() -> None:
    gpus = {"data": NodePoolSpec(machine_type="a3-highgpu-8g", zone="us-central1-a")}
    owners = {"data": "data of node_pools", **dict.fromkeys(("system", "cpu-np"), "one of the platform's own pools")}
    for name, owner in owners.items():
        with pytest.raises(ValueError, match=f"has the same name as {owner}"):
            spec_of(node_pools=gpus, cpu_pools={name: CpuPoolSpec()})


def test_pods_of_every_kind_find_room_beside_one_another_on_private_nodes(planned_cpu: StackResource) -> None:
    node = planned_cpu.inputs["nodeConfig"]

    assert node.keys().isdisjoint({"taints", "guestAccelerators", "spot", "flexStart", "reservationAffinity"})
    assert planned_cpu.inputs.keys().isdisjoint({"placementPolicy", "nodeLocations", "queuedProvisioning"})
    assert planned_cpu.inputs["maxPodsPerNode"] == 64
    assert planned_cpu.inputs["networkConfig"] == {"enablePrivateNodes": True}


def test_an_upgrade_brings_a_vm_before_it_takes_one(planned_cpu: StackResource) -> None:
    assert planned_cpu.inputs["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0}
    assert planned_cpu.inputs["management"] == {"autoRepair": True, "autoUpgrade": True}


def test_a_new_pool_waits_for_the_old_ones_end(planned_cpu: StackResource) -> None:
    assert planned_cpu.options["deleteBeforeReplace"] is True
    assert planned_cpu.options["customTimeouts"] == {"update": "8h"}
