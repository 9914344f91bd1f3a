"""GKE: clusters, node pools, and the methods that change them. ``gke_defaults`` fills in the computed fields."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from local_google_cloud.requests.errors import (
    Refusal,
    conflict,
    failed_precondition,
    not_found,
    required,
)
from local_google_cloud.resources.actions import etag, merge, refuse
from local_google_cloud.resources.resource_kinds import Call, ResourceKind, Service
from local_google_cloud.services.gke_defaults import (
    CHANNEL_VERSIONS,
    fill_cluster,
    fill_pool,
    group_urls,
    put_groups,
    remove_groups,
    resolve_version,
)
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.operation import CONTAINER_LINK, StateChange, Work
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json

_NAME: Final = r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"  # 40 characters at most
_STATES: Final = ("status", "PROVISIONING", "RUNNING", "RECONCILING", "STOPPING")
_TABLE: Final[Mapping[str, Mapping[str, str]]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)

# Creation and deletion


def _fill_cluster(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    body = record.body
    if not old:
        pools = body.pop("nodePools", None)
        count = body.get("initialNodeCount")
        config = body.get("nodeConfig", {})
        if pools and (count or config):
            raise Refusal(400, "Cluster.initial_node_count and node_config must not be set together with node_pools.")
        if not pools and not count and not body.get("autopilot", {}).get("enabled"):
            raise Refusal(400, "Cluster.initial_node_count must be greater than zero.")
        for pool in pools or ():
            required(pool, "name", "cluster.node_pools[]")
        body.pop("id", None)  # GKE assigns it
        body["location"] = body["zone"] = call.location
        body["selfLink"] = CONTAINER_LINK + f"{call.path}/{record.id}"
        record.meta["first_pools"] = pools or [{"name": "default-pool", "initialNodeCount": count, "config": config}]
    fill_cluster(cloud, record)


def _create_first_pools(cloud: Cloud, call: Call, cluster: Record) -> None:
    pools = []
    for body in cluster.meta.pop("first_pools"):
        name = f"{cluster.name}/nodePools/{body['name']}"
        pool = Record(name=name, project=cluster.project, body=copy.deepcopy(body))
        _fill_pool(cloud, call, pool, {})
        refuse(cloud, pool, None)
        cloud.quota.charge(pool)
        pool.body |= {"status": "RUNNING", "etag": etag(cloud)}
        cloud.store.put(pool)
        pools.append(pool)
    for pool in pools:
        put_groups(cloud, pool)
    if cluster.body.get("workloadIdentityConfig", {}).get("workloadPool"):
        cloud.store.put(Record(name=f"iam/projects/{cluster.project}/identityPool", project=cluster.project, body={}))


def _show_cluster(cloud: Cloud, record: Record) -> Json:
    """Return a cluster with its node pools. Its ``nodeConfig`` is that of the first pool."""
    records = cloud.store.children(f"{record.name}/nodePools")
    pools = [pool.body for pool in records]
    body = {
        **record.body,
        "nodePools": pools,
        "instanceGroupUrls": [url for pool in pools for url in pool.get("instanceGroupUrls", ())],
        "currentNodeCount": sum(pool.meta.get("nodes", 0) for pool in records),
    }
    if pools:
        body["nodeConfig"] = pools[0]["config"]
    return body


def _remove_cluster_groups(cloud: Cloud, _call: Call, cluster: Record) -> None:
    for pool in cloud.store.children(f"{cluster.name}/nodePools"):
        remove_groups(cloud, pool)


def _fill_pool(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    cluster = cloud.existing(_cluster_of(record))
    fill_pool(record.body, cluster.body)
    record.body["selfLink"] = CONTAINER_LINK + record.path
    record.body["instanceGroupUrls"] = group_urls(record)
    if not old:
        record.meta["nodes"] = record.body.get("initialNodeCount", 0) * len(record.body["locations"])


def _check_cluster_free(cloud: Cloud, _call: Call, record: Record) -> None:
    _check_free(cloud, _cluster_of(record))


def _check_free(cloud: Cloud, name: str) -> None:
    """Raise Refusal while an operation on a cluster or pool is in progress. The provider retries after this error."""
    operation = cloud.operations.pending(name)
    if operation is not None:
        raise failed_precondition(f"Cluster is running incompatible operation {operation.id}.")


def _cluster_of(record: Record) -> str:
    """Return the name of the cluster that a pool belongs to, or the name of the record itself if it is a cluster."""
    return record.name.rpartition("/nodePools/")[0] or record.name


# Changes of clusters


def _update_cluster(cloud: Cloud, call: Call) -> Json:
    """Apply an update: for each ``desired`` field, set the field of the cluster to which it corresponds."""
    record = cloud.existing(call.name)
    _check_free(cloud, record.name)
    body = record.body
    update = call.body.get("update", {})
    if update.get("etag") and update["etag"] != body["etag"]:
        raise conflict("The etag is stale.")
    of_pools = {field: value for field, value in update.items() if field in _TABLE["pool_fields"]}
    for field, value in update.items():
        if field not in of_pools and field not in ("etag", "desiredNodePoolId"):
            inner = _TABLE["inside"].get(field)
            _set_field(body, _path_of(call, field), value.get(inner, False) if inner else value)
    if of_pools:
        _update_pools(cloud, call, record, of_pools)
    if "desiredMasterVersion" in update:
        channel = body.get("releaseChannel", {}).get("channel", "")
        version = resolve_version(update["desiredMasterVersion"], channel)
        body["initialClusterVersion"] = body["currentMasterVersion"] = version
    fill_cluster(cloud, record)
    return _start(cloud, record, "UPDATE_CLUSTER")


def _path_of(call: Call, desired: str) -> list[str]:
    """Return the path of the cluster field that a field of an update sets. Raises Refusal if there is none."""
    if desired in _TABLE["paths"]:
        return _TABLE["paths"][desired].split(".")
    name = desired.removeprefix("desired")
    field = name[:1].lower() + name[1:]
    parents = {"Cluster": [], "NetworkConfig": ["networkConfig"], "IPAllocationPolicy": ["ipAllocationPolicy"]}
    for schema, parent in parents.items():
        if field in call.properties(schema):
            return [*parent, field]
    raise Refusal(501, f"Changing a cluster's {desired} is not implemented by the local cloud")


def _set_field(body: Json, path: list[str], value: object) -> None:
    """Set a field. If the value is a message, it is merged into the existing one."""
    *parents, field = path
    for name in parents:
        body = body.setdefault(name, {})
    old = body.get(field)
    body[field] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value


def _update_pools(cloud: Cloud, call: Call, cluster: Record, fields: Json) -> None:
    """Set fields of the node pool that an update names, or of all pools. Raises Refusal if the pool does not exist."""
    pool_id = call.body["update"].get("desiredNodePoolId", "-")
    pools = cloud.store.children(f"{cluster.name}/nodePools")
    names = [pool.name for pool in pools if pool_id in ("-", pool.id)]
    if not names:
        raise not_found(f"{call.path}/nodePools/{pool_id}")
    for name in names:
        pool = cloud.existing(name)
        for desired, value in fields.items():
            parent, _, field = _TABLE["pool_fields"][desired].rpartition(".")
            (pool.body[parent] if parent else pool.body)[field] = value
        _complete_pool(cloud, pool)
        cloud.store.put(pool)


def _set_cluster_field(cloud: Cloud, call: Call) -> Json:
    """Set one field of a cluster, for methods such as ``setResourceLabels`` or ``setMaintenancePolicy``."""
    record = cloud.existing(call.name)
    _check_free(cloud, record.name)
    stale = call.body.get("labelFingerprint")
    if stale and stale != record.body.get("labelFingerprint"):
        raise conflict("Labels could not be set due to fingerprint mismatch.", code=412)
    field = _TABLE["setters"][call.method.action]
    record.body[field] = call.body.get(field, {})
    fill_cluster(cloud, record)
    return _start(cloud, record, "UPDATE_CLUSTER")


# Changes of node pools


def _update_pool(cloud: Cloud, call: Call) -> Json:
    record = _free_pool(cloud, call)
    body = record.body
    config = body["config"]
    of_config = call.properties("NodeConfig")
    for field, value in call.body.items():
        if field in ("name", "projectId", "zone", "clusterId", "nodePoolId", "etag"):
            continue
        if field == "nodeVersion":
            body["version"] = value
        elif field == "nodeNetworkConfig":
            body["networkConfig"] = merge(body.get("networkConfig", {}), value)
        elif field in _TABLE["inner"]:
            config[field] = value.get(_TABLE["inner"][field], {} if field in ("labels", "resourceLabels") else [])
        elif field == "diskSizeGb":
            config["diskSizeGb"] = int(value)
            config["bootDisk"]["sizeGb"] = value
        elif field == "diskType":
            config["diskType"] = value
            config["bootDisk"]["diskType"] = value
        elif field == "bootDisk":
            config["bootDisk"] = merge(config.get("bootDisk", {}), value)
            config.pop("diskSizeGb", None)
            config.pop("diskType", None)
        else:
            (config if field in of_config else body)[field] = value
    return _write_pool(cloud, call, record)


def _set_pool_field(cloud: Cloud, call: Call) -> Json:
    """Set one field of a node pool, such as its autoscaling or management."""
    record = _free_pool(cloud, call)
    field = _TABLE["setters"][call.method.action]
    record.body[field] = call.body.get(field, {})
    return _write_pool(cloud, call, record)


def _set_size(cloud: Cloud, call: Call) -> Json:
    record = _free_pool(cloud, call)
    record.meta["nodes"] = call.body.get("nodeCount", 0) * len(record.body["locations"])
    return _write_pool(cloud, call, record)


def _free_pool(cloud: Cloud, call: Call) -> Record:
    """Return the node pool that a request changes. Raises Refusal while the pool or its cluster is being changed."""
    record = cloud.existing(call.name)
    _check_free(cloud, record.name)
    _check_free(cloud, _cluster_of(record))
    return record


def _write_pool(cloud: Cloud, call: Call, record: Record) -> Json:
    before = cloud.existing(record.name)
    _complete_pool(cloud, record)
    record.body["instanceGroupUrls"] = group_urls(record)
    cloud.store.put(record)
    put_groups(cloud, record)
    grows = record.meta.get("nodes", 0) > before.meta.get("nodes", 0)
    resized = call.method.action == "setSize"
    return _start(cloud, record, "SET_NODE_POOL_SIZE" if resized else "UPDATE_NODE_POOL", grows=grows)


def _complete_pool(cloud: Cloud, record: Record) -> None:
    """Fill in a changed node pool and charge its quota. Raises Refusal for anything that Google would refuse."""
    fill_pool(record.body, cloud.existing(_cluster_of(record)).body)
    refuse(cloud, record, cloud.existing(record.name))
    cloud.quota.charge(record)
    record.body["etag"] = etag(cloud)


def _start(cloud: Cloud, record: Record, operation: str, *, grows: bool = False) -> Json:
    """Store a changed cluster or pool, and start an operation. At its end, the cluster or pool is running again."""
    record.body["status"] = "RECONCILING"
    cloud.store.put(record)
    kind = "container.nodePools" if "/nodePools/" in record.name else "container.clusters.update"
    work = Work(
        style="container",
        service="container",
        project=record.project,
        target=record.name,
        type=operation,
        seconds=cloud.settings.seconds(kind),
        changes=[StateChange(target=record.name, fields={"status": "RUNNING"})],
        grows=grows,
    )
    return cloud.operations.start(work)


def _get_server_config(_cloud: Cloud, _call: Call) -> Json:
    versions = sorted(set(CHANNEL_VERSIONS.values()), reverse=True)
    channels = [
        {"channel": name, "defaultVersion": version, "validVersions": [version]}
        for name, version in CHANNEL_VERSIONS.items()
        if name
    ]
    return {
        "defaultClusterVersion": CHANNEL_VERSIONS[""],
        "validMasterVersions": versions,
        "validNodeVersions": versions,
        "channels": channels,
        "defaultImageType": "COS_CONTAINERD",
        "validImageTypes": ["COS_CONTAINERD", "UBUNTU_CONTAINERD"],
    }


GKE: Final = Service(
    name="container",
    kinds=(
        ResourceKind(
            collection="clusters",
            schema="Cluster",
            style="container",
            wrapper="cluster",
            id_form=_NAME,
            states=_STATES,
            fill=_fill_cluster,
            after_create=_create_first_pools,
            check_delete=_check_cluster_free,
            clean_up=_remove_cluster_groups,
            show=_show_cluster,
            etag="etag",
        ),
        ResourceKind(
            collection="nodePools",
            schema="NodePool",
            style="container",
            wrapper="nodePool",
            parent=True,
            id_form=_NAME,
            states=_STATES,
            etag="etag",
            fill=_fill_pool,
            check_write=_check_cluster_free,
            check_delete=_check_cluster_free,
            after_create=lambda cloud, _, pool: put_groups(cloud, pool),
            clean_up=lambda cloud, _, pool: remove_groups(cloud, pool),
        ),
    ),
    handlers={
        "clusters.update": _update_cluster,
        "clusters.setResourceLabels": _set_cluster_field,
        "clusters.setMaintenancePolicy": _set_cluster_field,
        "nodePools.update": _update_pool,
        "nodePools.setAutoscaling": _set_pool_field,
        "nodePools.setManagement": _set_pool_field,
        "nodePools.setSize": _set_size,
        "locations.getServerConfig": _get_server_config,
    },
)
