"""Masks, merges, and the views that rules read from bodies."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.sandbox.cloud.conftest import LOCATION, PROJECT, Client
from training_platform.sandbox.cloud.resources.actions import apply_mask, mask_paths, merge
from training_platform.views.adapters import views_of_rest
from training_platform.views.network import NetworkView, SubnetView
from training_platform.views.node_pool import NodePoolView


def test_a_mask_changes_what_it_names_and_clears_what_is_not_sent() -> None:
    old = {"description": "a", "labels": {"x": "1"}, "config": {"size": 1, "kind": "k"}}

    new = apply_mask(old, {"labels": {"y": "2"}, "config": {"size": 2}}, mask_paths("labels,config.size,description"))

    assert new == {"labels": {"y": "2"}, "config": {"size": 2, "kind": "k"}}
    assert old["description"] == "a"


def test_the_paths_of_a_mask_are_read_in_either_spelling() -> None:
    assert mask_paths("display_name, file_shares.capacity_gb,labels") == [
        "displayName", "fileShares.capacityGb", "labels",
    ]  # fmt: skip


def test_a_merge_goes_by_key_replaces_lists_and_null_removes() -> None:
    assert merge({"a": {"x": 1, "y": 2}, "b": [1], "c": 3}, {"a": {"y": 5}, "b": [2], "c": None}) == {
        "a": {"x": 1, "y": 5},
        "b": [2],
    }


@pytest.mark.parametrize(
    "config",
    [{"diskSizeGb": 200, "diskType": "pd-ssd"}, {"bootDisk": {"sizeGb": "200", "diskType": "pd-ssd"}}],
)
def test_both_spellings_of_a_boot_disk_are_one(ask: Client, config: dict[str, Any]) -> None:
    ask.network()
    ask.cluster()
    pool = {"name": "cpu", "initialNodeCount": 1, "config": {"machineType": "e2-standard-4", **config}}
    ask.done("POST", f"container/v1/{LOCATION}/clusters/one/nodePools", {"nodePool": pool})

    answered = ask.done("GET", f"container/v1/{LOCATION}/clusters/one/nodePools/cpu")["config"]
    assert (answered["diskSizeGb"], answered["diskType"]) == (200, "pd-ssd")
    assert answered["bootDisk"] == {"sizeGb": "200", "diskType": "pd-ssd"}


def test_a_node_pools_body_is_read_into_views() -> None:
    body = {
        "initialNodeCount": 0,
        "locations": ["us-west4-a"],
        "autoscaling": {"enabled": True, "maxNodeCount": 8, "totalMaxNodeCount": 0, "locationPolicy": "ANY"},
        "management": {"autoUpgrade": True},
        "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x8"},
        "config": {
            "machineType": "ct5lp-hightpu-4t",
            "flexStart": True,
            "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
            "bootDisk": {"sizeGb": "100", "diskType": "pd-balanced"},
        },
    }
    name = f"projects/{PROJECT}/locations/us-west4/clusters/one/nodePools/slice"

    views = views_of_rest("container.nodePools", body, project=PROJECT, name=name)

    (pool,) = [view for view in views if isinstance(view, NodePoolView)]
    assert (pool.project, pool.cluster, pool.location, pool.zones) == (PROJECT, "one", "us-west4", ("us-west4-a",))
    assert (pool.min_nodes, pool.max_nodes, pool.total_max_nodes, pool.most_vms) == (0, 8, None, 8)
    assert (pool.flex_start, pool.spot, pool.auto_repair, pool.auto_upgrade) == (True, False, False, True)
    assert (pool.tpu_topology, pool.hosts, pool.capacity) == ("4x8", 8, "flex-start")
    assert (pool.disk_gb, pool.disk_type) == (100, "pd-balanced")


def test_networks_and_subnetworks_are_read_into_views(ask: Client) -> None:
    ask.network()
    base = f"projects/{PROJECT}"
    bodies = {
        (collection, path): ask.done("GET", f"compute/v1/{base}/{path}")
        for collection, path in (
            ("compute.networks", "global/networks/net"),
            ("compute.subnetworks", "regions/us-central1/subnetworks/nodes"),
        )
    }

    found = [
        view
        for (collection, path), body in bodies.items()
        for view in views_of_rest(collection, body, project=PROJECT, name=f"{base}/{path}")
    ]
    (network,) = (view for view in found if isinstance(view, NetworkView))
    (subnet,) = (view for view in found if isinstance(view, SubnetView))

    assert (network.project, network.network, network.mtu, network.profile) == (PROJECT, "net", 1460, None)
    assert (subnet.region, subnet.subnetwork, subnet.network) == ("us-central1", "nodes", "net")
    assert (subnet.cidr, subnet.ranges) == ("10.0.0.0/20", {"pods": "10.64.0.0/16", "services": "10.65.0.0/20"})


def test_a_collection_that_no_rule_reads_has_no_views() -> None:
    assert views_of_rest("monitoring.alertPolicies", {}, project=PROJECT, name="projects/x/alertPolicies/1") == []
