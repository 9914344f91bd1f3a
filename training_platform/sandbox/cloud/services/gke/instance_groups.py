"""The managed instance groups of node pools, one a zone, which compute's API shows."""

from __future__ import annotations

import zlib

from training_platform.sandbox.cloud.requests.links import COMPUTE_LINK
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record


def group_urls(pool: Record, cluster: str) -> list[str]:
    """Return the links of a pool's groups, as ``instanceGroupUrls`` has them."""
    return [f"{COMPUTE_LINK}{_path(pool, cluster, zone)}" for zone in pool.body["locations"]]


def put_groups(cloud: Cloud, pool: Record) -> None:
    """Make or resize a pool's groups; those of zones that it left go."""
    remove_groups(cloud, pool)
    zones, nodes = pool.body["locations"], pool.meta.get("nodes", 0)
    cluster = pool.name.split("/")[6]
    for index, zone in enumerate(zones):
        path = _path(pool, cluster, zone)
        name = path.rpartition("/")[2]
        short = name.removesuffix("-grp")
        link = f"{COMPUTE_LINK}projects/{pool.project}/zones/{zone}"
        body = {
            "kind": "compute#instanceGroupManager", "id": cloud.number(), "name": name, "zone": link,
            "creationTimestamp": cloud.time(), "selfLink": COMPUTE_LINK + path,
            "baseInstanceName": short,
            "targetSize": nodes // len(zones) + (index < nodes % len(zones)),
            "instanceGroup": f"{link}/instanceGroups/{name}",
            "instanceTemplate": f"{COMPUTE_LINK}projects/{pool.project}/global/instanceTemplates/{short}",
            "fingerprint": "AAAAAAAAAAA=", "status": {"isStable": True},
        }  # fmt: skip
        cloud.store.put(Record(name=f"compute/{path}", project=pool.project, body=body, meta={"pool": pool.name}))


def remove_groups(cloud: Cloud, pool: Record) -> None:
    """Delete a pool's groups."""
    for each in cloud.store.all(pool.project):
        if each.meta.get("pool") == pool.name:
            cloud.store.delete(each.name)


def _path(pool: Record, cluster: str, zone: str) -> str:
    unique = f"{zlib.crc32(f'{pool.name}/{zone}'.encode()):08x}"
    return f"projects/{pool.project}/zones/{zone}/instanceGroupManagers/gke-{cluster[:20]}-{pool.id[:20]}-{unique}-grp"
