from __future__ import annotations

from typing import Any

import pytest

from tests.support.stack_files import cluster, environment
from tests.training_platform.rules.viewed import one, views
from training_platform.config.model.environment import Environment
from training_platform.config.names import Locator
from training_platform.resources.resource_types import (
    CLUSTER,
    CLUSTER_QUEUE,
    FILESTORE,
    NODE_POOL,
    PERSISTENT_RESOURCE,
)
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import views_of_plan
from training_platform.views.access import LabelledView
from training_platform.views.cluster import ClusterView
from training_platform.views.kueue import FlavorQuotaView
from training_platform.views.network import GatewayView, InterfaceView
from training_platform.views.node_pool import InlinePoolView, NodePoolView
from training_platform.views.storage import BucketView, FilestoreView
from training_platform.views.vertex import PersistentPoolView
from training_platform.views.whole_stack import ObjectView


def pool(**inputs: Any) -> NodePoolView:
    return one(NodePoolView, NODE_POOL, **inputs)


def node(**config: Any) -> NodePoolView:
    return pool(nodeConfig=config)


def test_unknown_field_is_unknown_alone() -> None:
    disk = one(NodePoolView, NODE_POOL, nodeConfig={"machineType": UNKNOWN, "bootDisk": {"sizeGb": UNKNOWN}})

    assert not disk.known("disk_gb")
    assert not disk.known("machine_type")
    assert disk.disk_type is None


def test_unknown_parent_makes_every_field_below_it_unknown() -> None:
    view = pool(nodeConfig=UNKNOWN, location="us-central1")

    assert not view.known("machine_type")
    assert not view.known("spot")
    assert view.location == "us-central1"


def test_value_of_the_wrong_type_is_not_decided() -> None:
    view = node(spot="yes", machineType=5, guestAccelerators=[{"count": "many"}])

    assert not any(view.known(field) for field in ("spot", "machine_type", "accelerator_count"))


@pytest.mark.parametrize(
    ("config", "capacity"),
    [
        ({}, "on-demand"),
        ({"spot": True}, "spot"),
        ({"preemptible": True}, "spot"),
        ({"flexStart": True}, "flex-start"),
        ({"reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}, "on-demand"),
        ({"reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["r"]}}, "reservation"),
    ],
)
def test_capacity_is_worked_out(config: dict[str, Any], capacity: str) -> None:
    assert node(**config).capacity == capacity


def test_queued_provisioning_is_charged_as_flex_start() -> None:
    assert pool(queuedProvisioning={"enabled": True}).capacity == "flex-start"


@pytest.mark.parametrize(
    ("inputs", "max_vms"),
    [
        ({"location": "us-central1", "autoscaling": {"maxNodeCount": 4}}, 4 * 3),
        ({"location": "us-central1", "nodeLocations": ["us-central1-a"], "autoscaling": {"maxNodeCount": 4}}, 4),
        ({"location": "us-central1-a", "autoscaling": {"maxNodeCount": 4}}, 4),
        ({"location": "us-central1", "autoscaling": {"totalMaxNodeCount": 5}}, 5),
        ({"location": "us-central1", "nodeCount": 2}, 2 * 3),
        ({"location": "us-central1-a", "initialNodeCount": 3}, 3),
        ({"location": "us-central1-a"}, 1),
    ],
)
def test_most_vms_are_counted_over_all_zones(inputs: dict[str, Any], max_vms: int) -> None:
    assert pool(**inputs).most_vms == max_vms


def test_upkeep_has_the_providers_defaults() -> None:
    bare = pool()
    written = pool(management={"autoRepair": False}, upgradeSettings={"strategy": "BLUE_GREEN"})

    assert (bare.auto_repair, bare.auto_upgrade, bare.upgrade_strategy) == (None, True, None)
    assert pool(management={"autoUpgrade": True}).auto_repair is True
    assert (written.auto_repair, written.auto_upgrade, written.upgrade_strategy) == (False, True, "BLUE_GREEN")


@pytest.mark.parametrize(("text", "seconds"), [("3600s", 3600), (None, None), ("1h", -1), ("3600", -1)])
def test_longest_life_is_seconds(text: str | None, seconds: int | None) -> None:
    assert node(maxRunDuration=text).max_run_seconds == seconds


@pytest.mark.parametrize("name", ["dev-main", "projects/p/locations/us-central1/clusters/dev-main"])
def test_cluster_is_named_by_its_last_part(name: str) -> None:
    assert pool(cluster=name).cluster == "dev-main"


@pytest.mark.parametrize(
    ("inputs", "private", "public"),
    [
        ({}, None, True),
        ({"privateClusterConfig": {"enablePrivateNodes": True}}, True, True),
        ({"privateClusterConfig": {"enablePrivateNodes": True, "enablePrivateEndpoint": True}}, True, False),
        ({"controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enabled": False}}}, None, False),
    ],
)
def test_cluster_is_public_unless_told(inputs: dict[str, Any], private: bool | None, public: bool) -> None:
    view = one(ClusterView, CLUSTER, name="dev-main", location="us-central1", **inputs)

    assert (view.private_nodes, view.public_endpoint) == (private, public)


def test_deletion_protection_has_the_providers_defaults() -> None:
    assert one(ClusterView, CLUSTER).deletion_protection is True
    assert one(FilestoreView, FILESTORE).deletion_protection is False
    assert one(BucketView, "gcp:storage/bucket:Bucket").force_destroy is False


@pytest.mark.parametrize("place", ["location", "zone"])
def test_filestore_capacity_is_in_gib(place: str) -> None:
    view = one(FilestoreView, FILESTORE, tier="ZONAL", fileShares={"capacityGb": 1024.0}, **{place: "us-central1-a"})

    assert (view.tier, view.capacity_gib, view.location, view.protocol) == ("ZONAL", 1024, "us-central1-a", None)


def test_every_pool_of_a_persistent_resource_is_read() -> None:
    first = {
        "machineSpec": {"machineType": "a2-highgpu-1g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1},
        "replicaCount": "1",
        "autoscalingSpec": {"minReplicaCount": "1", "maxReplicaCount": "4"},
        "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
    }
    second = {"machineSpec": {"machineType": "n2-standard-8"}, "replicaCount": "2"}
    inputs = {"name": "tuning", "location": "us-central1", "resourcePools": [first, second]}

    one_pool, other = views(PersistentPoolView, PERSISTENT_RESOURCE, **inputs)

    assert (one_pool.replica_count, one_pool.min_replicas, one_pool.max_replicas) == (1, 1, 4)
    assert (one_pool.accelerator_type, one_pool.accelerator_count) == ("NVIDIA_TESLA_A100", 1)
    assert (one_pool.most_vms, other.most_vms) == (4, 2)
    assert (one_pool.disk_gb, one_pool.disk_type) == (200, "pd-ssd")
    assert (other.disk_gb, other.disk_type) == (None, None)


def test_unknown_pools_are_one_view_without_a_known_field() -> None:
    view = one(PersistentPoolView, PERSISTENT_RESOURCE, resourcePools=UNKNOWN)

    assert not view.known("machine_type")


def test_queue_is_read_by_flavor_and_accelerator_alone() -> None:
    resources = [
        {"name": "cpu", "nominalQuota": "100"},
        {"name": "google.com/tpu", "nominalQuota": "64", "borrowingLimit": 32, "lendingLimit": "1k"},
    ]
    spec = {
        "cohortName": "training-platform",
        "resourceGroups": [
            {"coveredResources": ["cpu", "google.com/tpu"], "flavors": [{"name": "v5e", "resources": resources}]}
        ],
    }
    view = one(FlavorQuotaView, CLUSTER_QUEUE, metadata={"name": "vision"}, spec=spec)

    assert (view.queue, view.cohort, view.flavor, view.resource) == (
        "vision",
        "training-platform",
        "v5e",
        "google.com/tpu",
    )
    assert (view.nominal_quota, view.borrowing_limit, view.lending_limit) == (64, 32, 1000)


@pytest.mark.parametrize(("addresses", "count"), [(None, 0), (["a", "b"], 2)])
def test_gateway_counts_its_own_addresses(addresses: list[str] | None, count: int) -> None:
    assert one(GatewayView, "gcp:compute/routerNat:RouterNat", region="us-west4", natIps=addresses).addresses == count


@pytest.mark.parametrize(
    ("interfaces", "count"), [([{}], 0), ([{"accessConfigs": [{}]}], 1), ([{"ipv6AccessConfigs": [{}]}, {}], 1)]
)
def test_public_address_of_a_vm_is_a_view(interfaces: list[dict[str, Any]], count: int) -> None:
    interface_views = views(InterfaceView, "gcp:compute/instance:Instance", networkInterfaces=interfaces)

    assert sum(view.public for view in interface_views) == count


@pytest.mark.parametrize(
    ("resource_type", "inputs"),
    [
        (CLUSTER, {"resourceLabels": {"team": "vision"}}),
        (NODE_POOL, {"nodeConfig": {"resourceLabels": {"team": "vision"}}}),
        (FILESTORE, {"labels": {"team": "vision"}}),
        ("gcp:vertex/aiTensorboard:AiTensorboard", {"labels": {"team": "vision"}}),
        ("gcp:monitoring/notificationChannel:NotificationChannel", {"userLabels": {"team": "vision"}}),
    ],
)
def test_labels_are_read_where_each_type_has_them(resource_type: str, inputs: dict[str, Any]) -> None:
    assert one(LabelledView, resource_type, **inputs).labels == {"team": "vision"}
    assert one(LabelledView, resource_type).labels is None


def test_type_that_no_rule_reads_is_seen_as_a_whole_alone() -> None:
    record = StackResource(stack="dev", type="gcp:dns/recordSet:RecordSet", name="vpc", inputs={})
    component = StackResource(stack="dev", type="training-platform:index:GkeCluster", name="pool", inputs={})

    (view,) = views_of_plan([record, component])
    assert (type(view), view.name) == (ObjectView, "vpc")


def test_view_knows_its_section_of_the_stack_file() -> None:
    main = cluster(node_pools={"v5e": {"machine_type": "ct5lp-hightpu-4t", "topology": "4x8"}})
    section = Environment.model_validate(environment({"main": main}))
    planned = StackResource(stack="dev", type=NODE_POOL, name="main-v5e-0-pool", inputs={})

    origins = {view.origin for view in views_of_plan([planned], Locator(section))}

    assert origins == {("clusters", "main", "node_pools", "v5e")}


def test_a_pool_inside_a_cluster_is_a_pool_and_its_inputs_are_the_cluster_s() -> None:
    config = {"machineType": "a2-highgpu-8g", "spot": True}
    inside = views(
        InlinePoolView, CLUSTER, location="us-central1", nodeLocations=["us-central1-a"], nodeConfig=config,
        removeDefaultNodePool=True, nodePools=[{}, {"name": "train", "nodeConfig": config, "initialNodeCount": 2.0}],
    )  # fmt: skip

    assert [(pool.pool, pool.machine_type, pool.zones, pool.most_vms) for pool in inside] == [
        ("train", "a2-highgpu-8g", ("us-central1-a",), 2)
    ]
    assert inside[0].spelled("spot") == "nodePools[1].nodeConfig.spot"


def test_the_default_pool_is_a_pool_where_it_stays() -> None:
    config = {"machineType": "e2-standard-8"}
    (default,) = views(InlinePoolView, CLUSTER, location="us-central1-a", nodeConfig=config, initialNodeCount=3.0)

    assert (default.pool, default.most_vms, default.spelled("machine_type")) == (
        "default-pool",
        3,
        "nodeConfig.machineType",
    )
    assert views(InlinePoolView, CLUSTER, location="us-central1-a", initialNodeCount=3.0) == []
    assert views(InlinePoolView, CLUSTER, nodeConfig=config, enableAutopilot=True) == []
    assert views(InlinePoolView, CLUSTER, nodeConfig=UNKNOWN)[0].known("machine_type") is False
