"""A Filestore instance with its one share, in the VPC by direct peering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from training_platform.catalog.locations import region_of
from training_platform.config.names import filestore_name
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.config.spec.environment import FilestoreSpec
from training_platform.resources.cloud_names import NAME_LIMIT, short_name
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import FILESTORE
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp import filestore
    from pulumi_gcp.filestore import InstanceNetworkArgsDict as Network


class InstanceInputs(TypedDict):
    """What ``gcp.filestore.Instance`` takes, of which ours say these."""

    name: str
    project: str
    location: str
    tier: str
    protocol: str
    file_shares: filestore.InstanceFileSharesArgsDict
    networks: list[Network]
    labels: dict[str, str]
    deletion_protection_enabled: bool
    deletion_protection_reason: str | None


def filestore_instance(key: str, spec: FilestoreSpec, scope: Scope, network: Any) -> Declared:
    """Return an instance; ``network`` is the VPC's name or id, which the provider takes for the same."""
    protected = scope.deletion_protection and spec.deletion_protection
    inputs: InstanceInputs = {
        "name": instance_name(scope.environment, key),
        "project": scope.project,
        "location": spec.location,
        "tier": spec.tier,
        "protocol": spec.protocol,
        # The field counts GiB, whatever it is called.
        "file_shares": {"name": spec.share, "capacity_gb": spec.capacity_gib},
        "networks": [_network(spec, network)],
        "labels": scope.labels,
        "deletion_protection_enabled": protected,
        "deletion_protection_reason": f"deletion_protection of stack {scope.environment}" if protected else None,
    }
    options = _options(protected=protected)
    return Declared(type=FILESTORE, name=f"{filestore_name(key)}-instance", inputs=inputs, options=options)


def instance_name(environment: str, key: str) -> str:
    """Return an instance's name in the API, ``{environment}-{key}``, which takes 63 characters."""
    return short_name(f"{environment}-{key}", NAME_LIMIT)


def reaches(spec: FilestoreSpec, cluster: ClusterSpec) -> bool:
    """Whether a cluster's pods mount an instance: it is in the cluster's region, where traffic is short and cheap."""
    return region_of(spec.location) == region_of(cluster.location)


def _network(spec: FilestoreSpec, vpc: Any) -> Network:
    """Return how an instance joins the VPC: peered directly, its address range picked by Google Cloud unless given."""
    return {
        "network": vpc,
        "modes": ["MODE_IPV4"],
        "connect_mode": "DIRECT_PEERING",
        "reserved_ip_range": spec.reserved_range,
    }


def _options(*, protected: bool) -> Options:
    return Options(
        # Deletion, and so any replacement, loses all data.
        protect=protected,
        # The name is fixed, and taken until the old instance is gone.
        delete_before_replace=True,
        # The provider takes another name for a change in place, sends none of it, and looks for an instance of that
        # name from then on: the old one, with its data, would be lost from sight.
        replace_on_changes=("name",),
        # Short of quota, the provider would otherwise retry in silence for up to ten days.
        timeouts={"create": "30m"},
    )
