"""An environment's section from the resources of its project."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from training_platform.catalog.types import Json
from training_platform.clients.project_contents import POLICY, Contents
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.reading.section import Member, fits
from training_platform.parts.adopt.cluster_objects import Queues, environment_fields
from training_platform.parts.adopt.sections.clusters import cluster_section
from training_platform.parts.adopt.sections.values import (
    Inexpressible,
    at,
    is_ours,
    key_of,
    labels_of,
    own_labels,
    shortest,
    whole,
)
from training_platform.resources import resource_types
from training_platform.resources.scope import account_id, repository_id

_ADMIN = "roles/container.admin"
_GROUPS = "gke-security-groups@"
_POOLS = "/nodePools/"


@dataclass
class AdoptedSection:
    """A section, and the reasons of missing resources by path in the project."""

    section: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def environment_section(stack: str, contents: Contents, queues: Queues, *, production: bool) -> AdoptedSection:
    """Return the section of the environment ``stack``: resources whose names begin with it and a dash."""
    adopted = AdoptedSection()

    def cluster(path: str, body: Json) -> dict[str, Any]:
        written, reasons = cluster_section(body, _pools_of(path, contents), contents.of(resource_types.SUBNETWORK))
        adopted.left_out |= {f"{path}{_POOLS}{name}": reason for name, reason in reasons.items()}
        return written

    cluster_bodies, instance_bodies = (contents.of(kind) for kind in (resource_types.CLUSTER, resource_types.FILESTORE))
    clusters = _keyed(stack, cluster_bodies, adopted, cluster)
    filestore = _keyed(stack, instance_bodies, adopted, filestore_section)
    for path, body in cluster_bodies.items():
        if not is_ours(stack, path):
            adopted.left_out[path] = foreign_cluster(stack, path, body, _pools_of(path, contents), contents)
    for path, body in instance_bodies.items():
        if not is_ours(stack, path):
            network = str(at(body, "networks.network") or _DEFAULT)
            adopted.left_out[path] = "; ".join([_other_name(stack, path), *_network(stack, network)])
    protected = [bool(body.get("deletionProtectionEnabled")) for body in instance_bodies.values()]
    if not any(protected):
        for instance in filestore.values():
            instance.pop("deletion_protection", None)
    labels = [body.get("resourceLabels") for body in cluster_bodies.values()]
    labels += [body.get("labels") for body in instance_bodies.values()]
    groups = sorted({at(body, "authenticatorGroupsConfig.securityGroup") or "" for body in cluster_bodies.values()})
    services = contents.of(resource_types.GLOBAL_ADDRESS).get(
        f"projects/{contents.project}/global/addresses/{stack}-services"
    )
    dashboards = any(
        title.startswith(f"{stack}: ") for title in _titles(contents.of(resource_types.DASHBOARD).values())
    )
    keys = {at(body, "databaseEncryption.keyName") for body in cluster_bodies.values()}
    keys |= {body.get("kmsKeyName") for body in instance_bodies.values()}
    encryption_keys = sorted(key.partition("/cryptoKeyVersions/")[0] for key in keys if key)
    bindings = contents.of(POLICY).get(contents.project, {}).get("bindings", ())
    admins = [row["members"] for row in bindings if row["role"] == _ADMIN and not row.get("condition")]
    section = {
        "project": contents.project,
        "production": production,
        "labels": own_labels(labels_of(row) for row in labels),
        "deletion_protection": False if protected and not any(protected) else None,
        "encryption": {"keys": encryption_keys} if encryption_keys else None,
        "google_groups_domain": next((name.removeprefix(_GROUPS) for name in groups if name.startswith(_GROUPS)), None),
        "admins": sorted({member for members in admins for member in members if fits(Member, member)}),
        "nat_addresses": _nat_addresses(stack, contents),
        "private_services_range": f"{services['address']}/{services['prefixLength']}" if services else None,
        **_google_apis(stack, contents),
        "network_attachments": _network_attachments(stack, contents),
        "alerts": _alerts(stack, contents),
        "dashboards": None if dashboards or resource_types.DASHBOARD in contents.unread else False,
        "images": _images(stack, contents),
        "filestore": filestore,
        **environment_fields(queues),
        "clusters": clusters,
    }
    if section.get("priorities") == Environment.model_fields["priorities"].default:
        del section["priorities"]
    adopted.section = {key: value for key, value in section.items() if value is False or value not in (None, {}, [], 0)}
    return adopted


def _pools_of(cluster: str, contents: Contents) -> dict[str, Json]:
    below = f"{cluster}{_POOLS}"
    return {p.removeprefix(below): b for p, b in contents.of(resource_types.NODE_POOL).items() if p.startswith(below)}


def _keyed(
    stack: str, bodies: Mapping[str, Json], adopted: AdoptedSection, section: Callable[[str, Json], dict[str, Any]]
) -> dict[str, Any]:
    sections = {}
    for path, body in sorted(bodies.items()):
        try:
            key = key_of(stack, path.rpartition("/")[2])
            sections[key] = section(path, body)
        except Inexpressible as error:
            adopted.left_out[path] = str(error)
    return sections


def _nat_addresses(stack: str, contents: Contents) -> int:
    """Return the number of addresses of each region, which are numbered from 1."""
    names = [path.rpartition("/")[2] for path in contents.of(resource_types.ADDRESS)]
    counts = [re.fullmatch(rf"{re.escape(stack)}-nat-[a-z]+-[a-z]+[0-9]+-([0-9]+)", name) for name in names]
    return max((int(match[1]) for match in counts if match), default=0)


def _alerts(stack: str, contents: Contents) -> dict[str, Any] | None:
    """Return the recipients of alerts; alerts are off for a project with clusters but without the stack's policies."""
    emails = [
        at(body, "labels.email_address")
        for body in contents.of(resource_types.NOTIFICATION_CHANNEL).values()
        if str(body.get("displayName", "")).startswith(f"{stack}: ")
    ]
    alerts = _titles(contents.of(resource_types.ALERT_POLICY).values())
    none = bool(contents.of(resource_types.CLUSTER)) and not any(title.startswith(f"{stack}: ") for title in alerts)
    if none and resource_types.ALERT_POLICY not in contents.unread:
        return {"enabled": False}
    return {"emails": sorted(email for email in emails if email)} if emails else None


def _google_apis(stack: str, contents: Contents) -> dict[str, Any]:
    """Return how names of Google's APIs are resolved: without the stack's zones, by public DNS."""
    zone = f"projects/{contents.project}/managedZones/{stack}-googleapis-com"
    if not contents.of(resource_types.CLUSTER) or resource_types.MANAGED_ZONE in contents.unread:
        return {}
    if zone not in contents.of(resource_types.MANAGED_ZONE):
        return {"google_apis": "public", "open_egress": True}
    restricted = f"{zone}/rrsets/restricted.googleapis.com./A" in contents.of(resource_types.RECORD_SET)
    return {"google_apis": "restricted"} if restricted else {}


def _network_attachments(stack: str, contents: Contents) -> dict[str, str]:
    """Return the addresses of VMs of Vertex AI, by region."""
    ranges = {}
    for path, body in contents.of(resource_types.NETWORK_ATTACHMENT).items():
        subnet = "projects/" + str((body.get("subnetworks") or [""])[0]).partition("projects/")[2]
        cidr = contents.of(resource_types.SUBNETWORK).get(subnet, {}).get("ipCidrRange")
        if path.rpartition("/")[2].startswith(f"{stack}-") and cidr:
            ranges[path.split("/")[3]] = cidr
    return ranges


def _titles(bodies: Iterable[Json]) -> list[str]:
    return [str(body.get("displayName", "")) for body in bodies]


def _images(stack: str, contents: Contents) -> dict[str, Any] | None:
    for path, body in contents.of(resource_types.REPOSITORY).items():
        if path.endswith(f"/repositories/{repository_id(stack)}"):
            policies = (body.get("cleanupPolicies") or {}).values()
            counts = (at(policy, "mostRecentVersions.keepCount") for policy in policies)
            count = next((int(count) for count in counts if count), 20)
            section: dict[str, Any] = {"location": path.split("/")[3]}
            if count != 20:
                section["keep_versions"] = count
            return section
    return None


def filestore_section(path: str, body: Json) -> dict[str, Any]:
    """Return an instance's section; ``path`` is its full name. Raises Inexpressible."""
    shares = body.get("fileShares") or []
    networks = body.get("networks") or []
    if len(shares) != 1 or len(networks) != 1:
        raise Inexpressible(f"it has {len(shares)} shares and {len(networks)} networks: a stack file has one of each")
    private = at(networks, "connectMode") == "PRIVATE_SERVICE_ACCESS"
    share = shares[0]
    section = {
        "location": path.split("/")[3],
        "tier": body.get("tier"),
        "capacity_gib": whole(share, "capacityGb"),
        "share": share.get("name"),
        "protocol": body.get("protocol"),
        "reserved_range": None if private else at(networks, "reservedIpRange"),
        "connection": "private-service-access" if private else None,
        "team": at(body, "labels.team"),
        "exports": [_export(options) for options in share.get("nfsExportOptions") or ()] or None,
        "iops": whole(body, "performanceConfig.fixedIops.maxIops") or None,
        "iops_per_tib": whole(body, "performanceConfig.iopsPerTb.maxIopsPerTb") or None,
        "restore_from": share.get("sourceBackup") or share.get("sourceBackupdrBackup"),
        "deletion_protection": None if body.get("deletionProtectionEnabled") else False,
    }
    return shortest(FilestoreSpec, section)


def _export(body: Json) -> dict[str, Any]:
    squashed = body.get("squashMode") == "ROOT_SQUASH"
    return {
        "ranges": body.get("ipRanges"),
        "access": "read-only" if body.get("accessMode") == "READ_ONLY" else "read-write",
        "squash": "root" if squashed else "none",
        "anonymous_id": (whole(body, "anonUid") or None) if squashed else None,
    }


_DEFAULT = "default"  # the default account and network of a body


def foreign_cluster(stack: str, path: str, body: Json, pools: Mapping[str, Json], contents: Contents) -> str:
    """Return the fields that differ because of the cluster's name, and what a stack file can express."""
    fields = [
        _other_name(stack, path),
        *_network(stack, str(at(body, "networkConfig.network") or body.get("network") or _DEFAULT)),
    ]
    ours = f"{account_id(stack, 'gke-nodes')}@{contents.project}.iam.gserviceaccount.com"
    for name, pool in pools.items():
        account = at(pool, "config.serviceAccount") or _DEFAULT
        if account != ours:
            fields.append(f"nodePools/{name}: config.serviceAccount is {account}, and a stack's is {ours}")
    try:
        _, reasons = cluster_section(body, pools, contents.of(resource_types.SUBNETWORK))
        fields += [f"nodePools/{name}: {why}" for name, why in reasons.items()]
    except Inexpressible as error:
        fields.append(str(error))
    name = path.rpartition("/")[2]
    use = f"clusters: {{KEY: {{location: {body.get('location')}, existing: {name}}}}}"
    return f"{'; '.join(fields)}. As somebody else's, with pools and queues of the stack in it: {use}"


def foreign_bucket(start: str, name: str, body: Json) -> str:
    """Return the name that a bucket of no team would need, and how teams can read it as it is."""
    location = str(body.get("location", "")).lower()
    use = f"data_sets: {{KEY: {{bucket: {{name: {name}, location: {location}}}}}}}"
    return f"name is {name}, and a team's is {start}TEAM-KEY. For reading it as it is: {use}"


def _other_name(stack: str, path: str) -> str:
    return f"name is {path.rpartition('/')[2]}, and a stack's is {stack}-KEY with a key of at most 30 characters"


def _network(stack: str, network: str) -> Iterator[str]:
    short = network.rpartition("/")[2]
    if short != f"{stack}-network":
        use = f"network: {{name: {short}}}"
        yield f"network is {short}, and a stack's own is {stack}-network (for an existing one: {use})"
