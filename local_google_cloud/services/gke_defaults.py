"""Fields that GKE computes for clusters and node pools: versions, IP ranges, endpoints, instance groups.

Constant defaults are in ``training_platform/rules/documents/api_defaults.yaml``. That file also names the sources of
the constant and the computed fields.
"""

from __future__ import annotations

import zlib
from typing import Final
from uuid import UUID

from local_google_cloud.requests.errors import Refusal, invalid
from local_google_cloud.services.compute import node_zones
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.operation import COMPUTE_LINK
from local_google_cloud.state.store import Record
from training_platform.catalog.locations import region_of
from training_platform.catalog.types import Json
from training_platform.rules.documents.api_defaults import fill_in

# One version per channel, recent enough for every machine of the catalogue (inferred).
CHANNEL_VERSIONS: Final = {
    "": "1.34.1-gke.3899001",
    "RAPID": "1.35.0-gke.2745000",
    "REGULAR": "1.34.1-gke.3899001",
    "STABLE": "1.33.5-gke.2118001",
    "EXTENDED": "1.34.1-gke.3899001",
}

# Clusters


def fill_cluster(cloud: Cloud, record: Record) -> None:
    """Fill in missing fields of a new or changed cluster."""
    body = record.body
    if "id" not in body:
        serial = cloud.store.serial()
        body["id"] = UUID(int=serial * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128).hex * 2
        body["createTime"] = cloud.time()
        channel = body.get("releaseChannel", {}).get("channel", "")
        version = resolve_version(body.get("initialClusterVersion", ""), channel)
        body |= {"initialClusterVersion": version, "currentMasterVersion": version, "currentNodeVersion": version}
        _fill_network(cloud, record)
        _fill_endpoints(cloud, record, serial)
        pool = f"{record.project}.svc.id.goog"
        if body.get("workloadIdentityConfig", {}).get("workloadPool") not in (None, pool):
            raise invalid(f"Invalid workload pool: must be {pool}.", field="cluster.workload_identity_config")
    body.setdefault("locations", node_zones(body["location"]))
    labels = sorted(body.get("resourceLabels", {}).items())
    body["labelFingerprint"] = f"{zlib.crc32(repr(labels).encode()):08x}"
    body["etag"] = cloud.number()


def resolve_version(requested: str, channel: str) -> str:
    """Return the full version for a prefix or an alias. Raises Refusal for a version that no channel contains."""
    if requested in ("", "-", "latest"):
        return CHANNEL_VERSIONS.get(channel, CHANNEL_VERSIONS[""])
    prefixes = (f"{requested}.", f"{requested}-")
    matching = [version for version in CHANNEL_VERSIONS.values() if f"{version}.".startswith(prefixes)]
    if matching:
        return max(matching)
    if "-gke." in requested:
        return requested  # a full version, newer than our table
    raise Refusal(400, f'Master version "{requested}" is unsupported.')


def _fill_network(cloud: Cloud, record: Record) -> None:
    """Set a cluster's network, subnetwork and ranges. Raises Refusal if one of them does not exist."""
    body = record.body
    project = record.project
    region = region_of(body["location"])
    network = _full_path(body.get("network") or "default", f"projects/{project}/global/networks/")
    subnet = _full_path(body.get("subnetwork") or "default", f"projects/{project}/regions/{region}/subnetworks/")
    if cloud.store.get(f"compute/{network}") is None:
        raise Refusal(400, f'Network "{network.rpartition("/")[2]}" does not exist.')
    record_of_subnet = cloud.store.get(f"compute/{subnet}")
    if record_of_subnet is None:
        raise Refusal(400, f'Subnetwork "{subnet.rpartition("/")[2]}" does not exist in region {region}.')
    body |= {"network": network.rpartition("/")[2], "subnetwork": subnet.rpartition("/")[2]}
    body["networkConfig"] |= {"network": network, "subnetwork": subnet}
    secondary = record_of_subnet.body.get("secondaryIpRanges", ())
    ranges = {row["rangeName"]: row["ipCidrRange"] for row in secondary}
    allocation = body["ipAllocationPolicy"]
    for word, default in (("cluster", "10.4.0.0/14"), ("services", "34.118.224.0/20")):
        name = allocation.get(f"{word}SecondaryRangeName")
        if name and name not in ranges:
            raise Refusal(400, f'Services range or pod range "{name}" does not exist in the subnetwork.')
        cidr = ranges.get(name or "", allocation.get(f"{word}Ipv4CidrBlock") or default)
        allocation[f"{word}Ipv4Cidr"] = allocation[f"{word}Ipv4CidrBlock"] = body[f"{word}Ipv4Cidr"] = cidr


def _full_path(text: str, parent: str) -> str:
    """Return the path of a network or subnet, given as a name, a path or a link."""
    return "projects/" + text.split("projects/", 1)[1] if "projects/" in text else parent + text


def _fill_endpoints(cloud: Cloud, record: Record, serial: int) -> None:
    body = record.body
    config = body["controlPlaneEndpointsConfig"]
    host = f"gke-{body['id'][:32]}-{cloud.judge.project_number(record.project)}.{body['location']}.gke.goog"
    config["dnsEndpointConfig"]["endpoint"] = host
    ip = config["ipEndpointsConfig"]
    private = f"10.128.{serial % 250}.2"
    public = f"192.0.2.{serial % 250 + 1}"  # TEST-NET-1, for documentation
    body["endpoint"] = ""
    if ip["enabled"]:
        ip |= {"privateEndpoint": private, "publicEndpoint": public}
        body["endpoint"] = public if ip["enablePublicEndpoint"] else private
    private_nodes = body["networkConfig"]["defaultEnablePrivateNodes"]
    body.setdefault("privateClusterConfig", {}).setdefault("enablePrivateNodes", private_nodes)


# Node pools


def fill_pool(body: Json, cluster: Json) -> None:
    """Fill in missing fields of a new or changed node pool."""
    fill_in(body, "container.nodePools")
    body.setdefault("locations", list(cluster["locations"]))
    body.setdefault("version", cluster["currentMasterVersion"])
    body.setdefault("maxPodsConstraint", dict(cluster.get("defaultMaxPodsConstraint", {"maxPodsPerNode": "110"})))
    config = body["config"]
    flex_start = config.get("flexStart", False)
    body.setdefault("management", {"autoUpgrade": True, "autoRepair": not flex_start})
    surge = {"maxSurge": 1, "strategy": "SURGE"}
    body.setdefault("upgradeSettings", {"strategy": "SHORT_LIVED"} if flex_start else surge)
    network = body["networkConfig"]
    allocation = cluster["ipAllocationPolicy"]
    network.setdefault("podRange", allocation.get("clusterSecondaryRangeName") or f"gke-{cluster['name']}-pods")
    network.setdefault("podIpv4CidrBlock", allocation["clusterIpv4CidrBlock"])
    network.setdefault("enablePrivateNodes", cluster["networkConfig"].get("defaultEnablePrivateNodes", False))
    network.setdefault("subnetwork", cluster["networkConfig"]["subnetwork"])
    scaling = body["autoscaling"]
    if scaling.get("enabled"):
        if scaling.get("maxNodeCount", 0) < scaling.get("minNodeCount", 0):
            raise Refusal(400, "Maximum node count must not be less than minimum node count.")
        scaling.setdefault("locationPolicy", "BALANCED")
    _fill_node_config(config, cluster)


def _fill_node_config(config: Json, cluster: Json) -> None:
    disk = config.setdefault("bootDisk", {})
    size = disk.get("sizeGb") or config.get("diskSizeGb") or 100
    disk_type = disk.get("diskType") or config.get("diskType") or "pd-balanced"
    config |= {"diskSizeGb": int(size), "diskType": disk_type}
    disk |= {"sizeGb": str(size), "diskType": disk_type}
    labels = config.setdefault("resourceLabels", {})
    labels["goog-gke-node-pool-provisioning-model"] = _provisioning_model(config)
    if cluster.get("workloadIdentityConfig", {}).get("workloadPool"):
        config.setdefault("workloadMetadataConfig", {"mode": "GKE_METADATA"})
    elif config.get("workloadMetadataConfig", {}).get("mode") == "GKE_METADATA":
        raise Refusal(400, "GKE_METADATA requires workload identity to be enabled on the cluster.")
    for accelerator in config.get("accelerators", ()):
        fill_in(accelerator, "node.accelerator")


def _provisioning_model(config: Json) -> str:
    if config.get("flexStart"):
        return "flex-start"
    if config.get("spot") or config.get("preemptible"):
        return "spot"
    affinity = config.get("reservationAffinity", {}).get("consumeReservationType")
    return "reservation" if affinity == "SPECIFIC_RESERVATION" else "on-demand"


# A pool's managed instance groups, one per zone, in Compute Engine


def group_urls(pool: Record) -> list[str]:
    """Return the links of a node pool's instance groups, for the field ``instanceGroupUrls``."""
    return [COMPUTE_LINK + _group_path(pool, zone) for zone in pool.body["locations"]]


def put_groups(cloud: Cloud, pool: Record) -> None:
    """Create or resize a node pool's instance groups, and delete those in zones that the pool no longer uses."""
    remove_groups(cloud, pool)
    zones = pool.body["locations"]
    nodes = pool.meta.get("nodes", 0)
    for index, zone in enumerate(zones):
        path = _group_path(pool, zone)
        name = path.rpartition("/")[2]
        base = name.removesuffix("-grp")
        link = f"{COMPUTE_LINK}projects/{pool.project}/zones/{zone}"
        body = {
            "kind": "compute#instanceGroupManager",
            "id": cloud.number(),
            "name": name,
            "zone": link,
            "creationTimestamp": cloud.time(),
            "selfLink": COMPUTE_LINK + path,
            "baseInstanceName": base,
            "targetSize": nodes // len(zones) + (index < nodes % len(zones)),
            "instanceGroup": f"{link}/instanceGroups/{name}",
            "instanceTemplate": f"{COMPUTE_LINK}projects/{pool.project}/global/instanceTemplates/{base}",
            "fingerprint": "AAAAAAAAAAA=",
            "status": {"isStable": True},
        }
        cloud.store.put(Record(name=f"compute/{path}", project=pool.project, body=body, meta={"pool": pool.name}))


def remove_groups(cloud: Cloud, pool: Record) -> None:
    """Delete a pool's instance groups."""
    for record in cloud.store.all(pool.project):
        if record.meta.get("pool") == pool.name:
            cloud.store.delete(record.name)


def _group_path(pool: Record, zone: str) -> str:
    cluster = pool.name.split("/")[6]
    unique = f"{zlib.crc32(f'{pool.name}/{zone}'.encode()):08x}"
    return f"projects/{pool.project}/zones/{zone}/instanceGroupManagers/gke-{cluster[:20]}-{pool.id[:20]}-{unique}-grp"
