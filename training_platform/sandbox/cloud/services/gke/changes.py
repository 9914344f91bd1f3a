"""Changes of clusters and node pools: ``update`` with its ``desired`` fields, and the methods that set one field."""

from __future__ import annotations

import copy
from typing import Final

from training_platform.sandbox.cloud.requests.errors import ApiError, conflict, failed_precondition
from training_platform.sandbox.cloud.requests.masks import merge
from training_platform.sandbox.cloud.resources import refusals
from training_platform.sandbox.cloud.resources.actions import etag
from training_platform.sandbox.cloud.resources.model import Call, Handler, Json
from training_platform.sandbox.cloud.services.gke.cluster_defaults import fill_cluster, resolve_version
from training_platform.sandbox.cloud.services.gke.instance_groups import group_urls, put_groups
from training_platform.sandbox.cloud.services.gke.pool_defaults import fill_pool
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record
from training_platform.sandbox.cloud.state.work import Change, Work

_POOL_METHODS: Final = {
    "setAutoscaling": "autoscaling",
    "setManagement": "management",
}


def check_free(cloud: Cloud, name: str) -> None:
    """Raise ApiError while an operation on a cluster or pool is under way; the provider then tries again."""
    under_way = cloud.operations.pending(name)
    if under_way is not None:
        raise failed_precondition(f"Cluster is running incompatible operation {under_way.id}.", code=400)


def _update_cluster(cloud: Cloud, call: Call) -> Json:
    """Apply the ``desired`` fields of an update, each to the field of the cluster that it is called after."""
    record = cloud.existing(call.name)
    check_free(cloud, record.name)
    update = call.body.get("update", {})
    if update.get("etag") and update["etag"] != record.body["etag"]:
        raise conflict("The etag is stale.")
    known = call.properties("Cluster")
    network = call.properties("NetworkConfig")
    for given, value in update.items():
        name = given.removeprefix("desired")
        field = _RENAMED.get(given, name[:1].lower() + name[1:])
        if field in known:
            record.body[field] = _merged(record.body.get(field), value)
        elif field in network:
            record.body["networkConfig"][field] = _merged(record.body["networkConfig"].get(field), value)
        elif given in _POOL_FIELDS:
            _update_pools(cloud, record, update)
        elif given not in ("etag", "desiredNodePoolId"):
            raise ApiError(501, f"Changing a cluster's {given} is not implemented by the local cloud")
    _finish_cluster(cloud, record, update)
    return _operation(cloud, record, "UPDATE_CLUSTER")


def _finish_cluster(cloud: Cloud, record: Record, update: Json) -> None:
    if "desiredMasterVersion" in update:
        record.body["initialClusterVersion"] = record.body["currentMasterVersion"] = resolve_version(
            update["desiredMasterVersion"], record.body.get("releaseChannel", {}).get("channel", "")
        )
    fill_cluster(cloud, record)
    cloud.store.put(record)


def _update_pools(cloud: Cloud, record: Record, update: Json) -> None:
    for pool in cloud.store.children(f"{record.name}/nodePools"):
        if update.get("desiredNodePoolId") not in (None, "-", pool.id):
            continue
        for given, field in _POOL_FIELDS.items():
            if given in update:
                pool.body["config"][field] = update[given]
        cloud.store.put(pool)


def _set_cluster(cloud: Cloud, call: Call) -> Json:
    """Set one field of a cluster: ``setResourceLabels``, ``setMaintenancePolicy`` and the like."""
    record = cloud.existing(call.name)
    check_free(cloud, record.name)
    given = dict(call.body)
    stale = given.pop("labelFingerprint", None)
    if stale and stale != record.body.get("labelFingerprint"):
        raise conflict("Labels could not be set due to fingerprint mismatch.", code=412)
    field, source = _SETTERS[call.method.action]
    record.body[field] = given.get(source, {})
    fill_cluster(cloud, record)
    cloud.store.put(record)
    return _operation(cloud, record, "UPDATE_CLUSTER")


def _update_pool(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    _pool_free(cloud, record)
    before = Record(name=record.name, project=record.project, body=copy.deepcopy(record.body), meta=record.meta)
    body, config = record.body, record.body["config"]
    known = call.properties("NodeConfig")
    for given, value in call.body.items():
        if given in ("name", "projectId", "zone", "clusterId", "nodePoolId", "etag"):
            continue
        if given == "nodeVersion":
            body["version"] = value
        elif given == "nodeNetworkConfig":
            body["networkConfig"] = merge(body.get("networkConfig", {}), value)
        elif given in ("labels", "tags", "taints", "resourceLabels"):
            config[given] = value.get(_INNER[given], {} if given in ("labels", "resourceLabels") else [])
        elif given in ("diskSizeGb", "diskType"):
            config[given] = int(value) if given == "diskSizeGb" else value
            config["bootDisk"][{"diskSizeGb": "sizeGb", "diskType": "diskType"}[given]] = value
        elif given == "bootDisk":
            config["bootDisk"] = merge(config.get("bootDisk", {}), value)
            config.pop("diskSizeGb", None)
            config.pop("diskType", None)
        elif given in known:
            config[given] = value
        else:
            body[given] = value
    return _changed_pool(cloud, call, record, before)


def _set_pool(cloud: Cloud, call: Call) -> Json:
    """Set one field of a node pool: its autoscaling, its management."""
    record = cloud.existing(call.name)
    _pool_free(cloud, record)
    before = Record(name=record.name, project=record.project, body=copy.deepcopy(record.body), meta=record.meta)
    field = _POOL_METHODS[call.method.action]
    record.body[field] = call.body.get(field, {})
    return _changed_pool(cloud, call, record, before)


def _set_size(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    _pool_free(cloud, record)
    before = Record(
        name=record.name, project=record.project, body=copy.deepcopy(record.body), meta=copy.deepcopy(record.meta)
    )
    record.meta["nodes"] = call.body.get("nodeCount", 0) * len(record.body["locations"])
    return _changed_pool(cloud, call, record, before)


def _changed_pool(cloud: Cloud, call: Call, record: Record, before: Record) -> Json:
    try:
        fill_pool(record.body, cloud.existing(record.name.rpartition("/nodePools/")[0]).body)
        refusals.check(call, record, before)
        cloud.charge(call.service, record)
    except ApiError:
        record.body, record.meta = before.body, before.meta
        raise
    record.body["etag"] = etag(cloud)
    record.body["instanceGroupUrls"] = group_urls(record, record.name.split("/")[6])
    cloud.store.put(record)
    put_groups(cloud, record)
    grows = record.meta.get("nodes", 0) > before.meta.get("nodes", 0)
    resized = call.method.action == "setSize"
    return _operation(cloud, record, "SET_NODE_POOL_SIZE" if resized else "UPDATE_NODE_POOL", grows=grows)


def _pool_free(cloud: Cloud, record: Record) -> None:
    check_free(cloud, record.name)
    check_free(cloud, record.name.rpartition("/nodePools/")[0])


def _operation(cloud: Cloud, record: Record, kind: str, *, grows: bool = False) -> Json:
    pool = "/nodePools/" in record.name
    record.body["status"] = "RECONCILING"
    cloud.store.put(record)
    work = Work(
        style="container", service="container", project=record.project, target=record.name, type=kind,
        seconds=cloud.settings.seconds("container.nodePools" if pool else "container.clusters.update"),
        changes=[Change(target=record.name, fields={"status": "RUNNING"})], grows=grows,
    )  # fmt: skip
    return cloud.operations.start(work)


def _merged(old: object, new: object) -> object:
    return merge(old, new) if isinstance(old, dict) and isinstance(new, dict) else new


_RENAMED: Final = {
    "desiredLocations": "locations",
    "desiredClusterAutoscaling": "autoscaling",
    "desiredIntraNodeVisibilityConfig": "enableIntraNodeVisibility",
    "desiredL4ilbSubsettingConfig": "enableL4ilbSubsetting",
    "desiredMasterVersion": "initialClusterVersion",
    "desiredK8sBetaApis": "enableK8sBetaApis",
}
_POOL_FIELDS: Final = {"desiredImageType": "imageType"}
_INNER: Final = {"labels": "labels", "tags": "tags", "taints": "taints", "resourceLabels": "labels"}
_SETTERS: Final = {
    "setResourceLabels": ("resourceLabels", "resourceLabels"),
    "setMaintenancePolicy": ("maintenancePolicy", "maintenancePolicy"),
    "setNetworkPolicy": ("networkPolicy", "networkPolicy"),
}
HANDLERS: Final[dict[str, Handler]] = {
    "clusters.update": _update_cluster,
    "clusters.setResourceLabels": _set_cluster,
    "clusters.setMaintenancePolicy": _set_cluster,
    "clusters.setNetworkPolicy": _set_cluster,
    "nodePools.update": _update_pool,
    "nodePools.setAutoscaling": _set_pool,
    "nodePools.setManagement": _set_pool,
    "nodePools.setSize": _set_size,
}
