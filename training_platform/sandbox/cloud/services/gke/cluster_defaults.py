"""What GKE works out for a cluster, beside defaults. Sources: as of ``defaults.yaml``."""

from __future__ import annotations

import zlib
from typing import Any, Final
from uuid import UUID

from training_platform.sandbox.cloud.requests.errors import ApiError, invalid
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.places import node_zones
from training_platform.sandbox.cloud.state.projects import number
from training_platform.sandbox.cloud.state.store import Record

Json = dict[str, Any]
# One version a channel, recent enough for every machine of the catalogue (inferred).
CHANNEL_VERSIONS: Final = {
    "": "1.34.1-gke.3899001",
    "RAPID": "1.35.0-gke.2745000",
    "REGULAR": "1.34.1-gke.3899001",
    "STABLE": "1.33.5-gke.2118001",
    "EXTENDED": "1.34.1-gke.3899001",
}


def fill_cluster(cloud: Cloud, record: Record) -> None:
    """Complete a cluster, new or changed; what is there stays."""
    body = record.body
    if "id" not in body:
        serial = cloud.store.serial()
        body["id"] = UUID(int=serial * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128).hex * 2
        body["createTime"] = cloud.time()
        _new(cloud, record, serial)
    body.setdefault("locations", node_zones(body["location"]))
    body["labelFingerprint"] = f"{hash_of(body.get('resourceLabels', {})):08x}"
    body["etag"] = cloud.number()


def _new(cloud: Cloud, record: Record, serial: int) -> None:
    body = record.body
    version = resolve_version(body.get("initialClusterVersion", ""), body.get("releaseChannel", {}).get("channel", ""))
    body |= {"initialClusterVersion": version, "currentMasterVersion": version, "currentNodeVersion": version}
    _network(cloud, record)
    _endpoints(record, serial)
    if body.get("workloadIdentityConfig", {}).get("workloadPool") not in (None, f"{record.project}.svc.id.goog"):
        raise invalid(
            f"Invalid workload pool: must be {record.project}.svc.id.goog.", field="cluster.workload_identity_config"
        )


def _network(cloud: Cloud, record: Record) -> None:
    body, project = record.body, record.project
    region = body["location"] if body["location"].count("-") == 1 else body["location"].rpartition("-")[0]
    network = _path(body.get("network") or "default", f"projects/{project}/global/networks/")
    subnet = _path(body.get("subnetwork") or "default", f"projects/{project}/regions/{region}/subnetworks/")
    found = cloud.store.get(f"compute/{subnet}")
    if cloud.store.get(f"compute/{network}") is None:
        raise ApiError(400, f'Network "{network.rpartition("/")[2]}" does not exist.')
    if found is None:
        raise ApiError(400, f'Subnetwork "{subnet.rpartition("/")[2]}" does not exist in region {region}.')
    body |= {"network": network.rpartition("/")[2], "subnetwork": subnet.rpartition("/")[2]}
    body["networkConfig"] |= {"network": network, "subnetwork": subnet}
    _ranges(body, {each["rangeName"]: each["ipCidrRange"] for each in found.body.get("secondaryIpRanges", ())})


def _ranges(body: Json, known: dict[str, str]) -> None:
    allocation = body["ipAllocationPolicy"]
    for word, old in (("cluster", "clusterIpv4Cidr"), ("services", "servicesIpv4Cidr")):
        name = allocation.get(f"{word}SecondaryRangeName")
        if name and name not in known:
            raise ApiError(400, f'Services range or pod range "{name}" does not exist in the subnetwork.')
        cidr = known.get(
            name or "",
            allocation.get(f"{word}Ipv4CidrBlock") or ("10.4.0.0/14" if word == "cluster" else "34.118.224.0/20"),
        )
        allocation[f"{word}Ipv4Cidr"] = allocation[f"{word}Ipv4CidrBlock"] = cidr
        body[old] = cidr


def _endpoints(record: Record, serial: int) -> None:
    body = record.body
    config = body["controlPlaneEndpointsConfig"]
    host = f"gke-{body['id'][:32]}-{number(record.project)}.{body['location']}.gke.goog"
    config["dnsEndpointConfig"]["endpoint"] = host
    ip = config["ipEndpointsConfig"]
    private, public = f"10.128.{serial % 250}.2", f"192.0.2.{serial % 250 + 1}"  # TEST-NET-1, for documentation
    if ip["enabled"]:
        ip |= {"privateEndpoint": private, "publicEndpoint": public}
        body["endpoint"] = public if ip["enablePublicEndpoint"] else private
    else:
        body["endpoint"] = ""
    body.setdefault("privateClusterConfig", {}).setdefault(
        "enablePrivateNodes", body["networkConfig"]["defaultEnablePrivateNodes"]
    )


def resolve_version(asked: str, channel: str) -> str:
    """Return a version in full. Raises ApiError for a version that no channel offers."""
    if asked in ("", "-", "latest"):
        return CHANNEL_VERSIONS.get(channel, CHANNEL_VERSIONS[""])
    found = [each for each in CHANNEL_VERSIONS.values() if each == asked or each.startswith((f"{asked}.", f"{asked}-"))]
    if found:
        return max(found)
    if "-gke." in asked:
        return asked  # written in full: our table is older than it
    raise ApiError(400, f'Master version "{asked}" is unsupported.')


def hash_of(value: object) -> int:
    """Return a number that is always the same for a value."""
    return zlib.crc32(repr(sorted(value.items()) if isinstance(value, dict) else value).encode())


def _path(text: str, parent: str) -> str:
    """Return a network's or subnet's path from its name, its path or its link."""
    return "projects/" + text.split("projects/", 1)[1] if "projects/" in text else parent + text
