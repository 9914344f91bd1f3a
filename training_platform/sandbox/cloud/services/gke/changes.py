"""Changes of clusters and node pools: ``update`` with its ``desired`` fields, and the methods that set one field."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from training_platform.sandbox.cloud.requests.errors import ApiError, conflict, failed_precondition, not_found
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

_TABLE: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
_PLACES: Final[Mapping[str, str]] = _TABLE["places"]
_INSIDE: Final[Mapping[str, str]] = _TABLE["inside"]
_POOL_FIELDS: Final[Mapping[str, str]] = _TABLE["pool_fields"]
_INNER: Final[Mapping[str, str]] = _TABLE["inner"]
_SETTERS: Final[Mapping[str, str]] = _TABLE["setters"]


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
    of_pools = {given: value for given, value in update.items() if given in _POOL_FIELDS}
    for given, value in update.items():
        if given not in of_pools and given not in ("etag", "desiredNodePoolId"):
            _put(record.body, _place(call, given), value.get(_INSIDE[given], False) if given in _INSIDE else value)
    if of_pools:
        _update_pools(cloud, call, record, of_pools)
    _finish_cluster(cloud, record, update)
    return _operation(cloud, record, "UPDATE_CLUSTER")


def _finish_cluster(cloud: Cloud, record: Record, update: Json) -> None:
    if "desiredMasterVersion" in update:
        record.body["initialClusterVersion"] = record.body["currentMasterVersion"] = resolve_version(
            update["desiredMasterVersion"], record.body.get("releaseChannel", {}).get("channel", "")
        )
    fill_cluster(cloud, record)
    cloud.store.put(record)


def _place(call: Call, given: str) -> tuple[str, ...]:
    """Return where in a cluster a field of an update goes. Raises ApiError for one that is nowhere."""
    if given in _PLACES:
        return tuple(_PLACES[given].split("."))
    name = given.removeprefix("desired")
    field = name[:1].lower() + name[1:]
    above = {"Cluster": (), "NetworkConfig": ("networkConfig",), "IPAllocationPolicy": ("ipAllocationPolicy",)}
    for schema, place in above.items():
        if field in call.properties(schema):
            return (*place, field)
    raise ApiError(501, f"Changing a cluster's {given} is not implemented by the local cloud")


def _put(body: Json, place: tuple[str, ...], value: object) -> None:
    """Set a field; messages are merged."""
    for name in place[:-1]:
        body = body.setdefault(name, {})
    old = body.get(place[-1])
    body[place[-1]] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value


def _update_pools(cloud: Cloud, call: Call, cluster: Record, fields: Json) -> None:
    """Set fields of the pool that an update names, or of all. Raises ApiError for a pool that is not there."""
    wanted = call.body["update"].get("desiredNodePoolId", "-")
    names = [each.name for each in cloud.store.children(f"{cluster.name}/nodePools") if wanted in ("-", each.id)]
    if not names:
        raise not_found(f"{call.path}/nodePools/{wanted}")
    for name in names:
        pool = cloud.existing(name)
        for given, value in fields.items():
            above, _, field = _POOL_FIELDS[given].rpartition(".")
            (pool.body[above] if above else pool.body)[field] = value
        _check_pool(cloud, call, pool)
        cloud.store.put(pool)


def _set_cluster(cloud: Cloud, call: Call) -> Json:
    """Set one field of a cluster: ``setResourceLabels``, ``setMaintenancePolicy`` and the like."""
    record = cloud.existing(call.name)
    check_free(cloud, record.name)
    given = dict(call.body)
    stale = given.pop("labelFingerprint", None)
    if stale and stale != record.body.get("labelFingerprint"):
        raise conflict("Labels could not be set due to fingerprint mismatch.", code=412)
    field = _SETTERS[call.method.action]
    record.body[field] = given.get(field, {})
    fill_cluster(cloud, record)
    cloud.store.put(record)
    return _operation(cloud, record, "UPDATE_CLUSTER")


def _update_pool(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    _pool_free(cloud, record)
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
    return _changed_pool(cloud, call, record)


def _set_pool(cloud: Cloud, call: Call) -> Json:
    """Set one field of a node pool: its autoscaling, its management."""
    record = cloud.existing(call.name)
    _pool_free(cloud, record)
    field = _SETTERS[call.method.action]
    record.body[field] = call.body.get(field, {})
    return _changed_pool(cloud, call, record)


def _set_size(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    _pool_free(cloud, record)
    record.meta["nodes"] = call.body.get("nodeCount", 0) * len(record.body["locations"])
    return _changed_pool(cloud, call, record)


def _changed_pool(cloud: Cloud, call: Call, record: Record) -> Json:
    before = cloud.existing(record.name)
    _check_pool(cloud, call, record)
    record.body["instanceGroupUrls"] = group_urls(record, record.name.split("/")[6])
    cloud.store.put(record)
    put_groups(cloud, record)
    grows = record.meta.get("nodes", 0) > before.meta.get("nodes", 0)
    resized = call.method.action == "setSize"
    return _operation(cloud, record, "SET_NODE_POOL_SIZE" if resized else "UPDATE_NODE_POOL", grows=grows)


def _check_pool(cloud: Cloud, call: Call, record: Record) -> None:
    """Complete a changed pool and charge it. Raises ApiError for what Google would refuse."""
    fill_pool(record.body, cloud.existing(record.name.rpartition("/nodePools/")[0]).body)
    refusals.check(call, record, cloud.existing(record.name))
    cloud.charge(call.service, record)
    record.body["etag"] = etag(cloud)


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


HANDLERS: Final[dict[str, Handler]] = {
    "clusters.update": _update_cluster,
    **{
        f"clusters.{method}": _set_cluster
        for method in ("setResourceLabels", "setMaintenancePolicy", "setNetworkPolicy")
    },
    "nodePools.update": _update_pool,
    "nodePools.setAutoscaling": _set_pool,
    "nodePools.setManagement": _set_pool,
    "nodePools.setSize": _set_size,
}
