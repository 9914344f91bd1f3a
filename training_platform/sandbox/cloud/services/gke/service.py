"""GKE: clusters and their node pools. What the API fills in is in ``cluster_defaults`` and ``pool_defaults``."""

from __future__ import annotations

import copy
from typing import Final

from training_platform.sandbox.cloud.requests.errors import ApiError, required
from training_platform.sandbox.cloud.requests.links import CONTAINER_LINK
from training_platform.sandbox.cloud.resources import refusals
from training_platform.sandbox.cloud.resources.actions import etag
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service
from training_platform.sandbox.cloud.services.gke.changes import HANDLERS, check_free
from training_platform.sandbox.cloud.services.gke.cluster_defaults import CHANNEL_VERSIONS, fill_cluster
from training_platform.sandbox.cloud.services.gke.instance_groups import group_urls, put_groups, remove_groups
from training_platform.sandbox.cloud.services.gke.pool_defaults import fill_pool
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record

_NAME: Final = r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"  # 40 characters at most


def _cluster(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    body = record.body
    if old:
        fill_cluster(cloud, record)
        return
    pools = body.pop("nodePools", None)
    count, config = body.get("initialNodeCount"), body.get("nodeConfig", {})
    if pools and (count or config):
        raise ApiError(400, "Cluster.initial_node_count and node_config must not be set together with node_pools.")
    if not pools and not count and not body.get("autopilot", {}).get("enabled"):
        raise ApiError(400, "Cluster.initial_node_count must be greater than zero.")
    for pool in pools or ():
        required(pool, "name", "cluster.node_pools[]")
    body.pop("id", None)  # GKE's to give
    body["location"] = body["zone"] = call.location
    body["selfLink"] = CONTAINER_LINK + f"{call.path}/{record.id}"
    fill_cluster(cloud, record)
    record.meta["first_pools"] = pools or [{"name": "default-pool", "initialNodeCount": count, "config": config}]


def _cluster_made(cloud: Cloud, call: Call, record: Record) -> None:
    pools = []
    for given in record.meta.pop("first_pools"):
        pool = Record(
            name=f"{record.name}/nodePools/{given['name']}", project=record.project, body=copy.deepcopy(given)
        )
        _pool(cloud, call, pool, {})
        refusals.check(call, pool, None)
        cloud.charge(call.service, pool)
        pool.body |= {"status": "RUNNING", "etag": etag(cloud)}
        cloud.store.put(pool)
        pools.append(pool)
    for pool in pools:
        put_groups(cloud, pool)
    workload_pool = record.body.get("workloadIdentityConfig", {}).get("workloadPool")
    if workload_pool:
        cloud.store.put(Record(name=f"iam/projects/{record.project}/identityPool", project=record.project, body={}))


def _show_cluster(cloud: Cloud, record: Record) -> Json:
    """Return a cluster with its pools; the first pool's configuration stands for the cluster's own."""
    pools = [each.body for each in cloud.store.children(f"{record.name}/nodePools")]
    body = {**record.body, "nodePools": pools}
    body["instanceGroupUrls"] = [url for pool in pools for url in pool.get("instanceGroupUrls", ())]
    body["currentNodeCount"] = sum(
        each.meta.get("nodes", 0) for each in cloud.store.children(f"{record.name}/nodePools")
    )
    if pools:
        body["nodeConfig"] = pools[0]["config"]
    return body


def _pool(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    cluster = cloud.existing(record.name.rpartition("/nodePools/")[0])
    fill_pool(record.body, cluster.body)
    record.body["selfLink"] = CONTAINER_LINK + record.name.partition("/")[2]
    record.body["instanceGroupUrls"] = group_urls(record, cluster.id)
    if not old:
        record.meta["nodes"] = record.body.get("initialNodeCount", 0) * len(record.body["locations"])


def _pool_made(cloud: Cloud, _call: Call, record: Record) -> None:
    put_groups(cloud, record)


def _pool_gone(cloud: Cloud, _call: Call, record: Record) -> None:
    remove_groups(cloud, record)


def _cluster_gone(cloud: Cloud, _call: Call, record: Record) -> None:
    for pool in cloud.store.children(f"{record.name}/nodePools"):
        remove_groups(cloud, pool)


def _cluster_removable(cloud: Cloud, _call: Call, record: Record) -> None:
    check_free(cloud, record.name)


def _its_cluster_free(cloud: Cloud, _call: Call, pool: Record) -> None:
    check_free(cloud, pool.name.rpartition("/nodePools/")[0])


def _server_config(_cloud: Cloud, _call: Call) -> Json:
    versions = sorted(set(CHANNEL_VERSIONS.values()), reverse=True)
    channels = [
        {"channel": name, "defaultVersion": version, "validVersions": [version]}
        for name, version in CHANNEL_VERSIONS.items()
        if name
    ]
    return {
        "defaultClusterVersion": CHANNEL_VERSIONS[""], "validMasterVersions": versions, "validNodeVersions": versions,
        "channels": channels, "defaultImageType": "COS_CONTAINERD",
        "validImageTypes": ["COS_CONTAINERD", "UBUNTU_CONTAINERD"],
    }  # fmt: skip


SERVICE = Service(
    name="container",
    kinds=(
        Kind(
            collection="clusters", schema="Cluster", style="container", wrapper="cluster", id_form=_NAME,
            states=("status", "PROVISIONING", "RUNNING", "RECONCILING", "STOPPING"), fill=_cluster,
            made=_cluster_made, removable=_cluster_removable, gone=_cluster_gone, show=_show_cluster, etag="etag",
        ),
        Kind(
            collection="nodePools", schema="NodePool", style="container", wrapper="nodePool", parent=True,
            id_form=_NAME,
            states=("status", "PROVISIONING", "RUNNING", "RECONCILING", "STOPPING"), fill=_pool,
            admit=_its_cluster_free, made=_pool_made, removable=_its_cluster_free, gone=_pool_gone, etag="etag",
        ),
    ),
    handlers={
        **HANDLERS,
        "locations.getServerConfig": _server_config,
        "zones.getServerconfig": _server_config,
    },
)  # fmt: skip
