"""Managed Lustre instances, and the firewall rule by which their servers answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from training_platform.config.model.storage import LustreSpec
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.cloud_names import NAME_LIMIT, short_name
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import FIREWALL, LUSTRE
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp.lustre import InstanceAccessRulesOptionsArgsDict as AccessRules

NOBODY = 65534


def lustre_instance(key: str, spec: LustreSpec, scope: Scope, network: Any) -> Declared:
    """Return an instance; ``network`` is the VPC's id, which private service access has to be ready in.

    Clusters mount it at port 988, which those from 1.33.2-gke.4780000 on do (GKE docs, read 2026-11-22).
    """
    inputs = gcp.lustre(
        instance_id=instance_id(key, scope),
        project=scope.project,
        location=spec.location,
        network=network,
        filesystem=spec.filesystem,
        capacity_gib=str(spec.capacity_gib),
        per_unit_storage_throughput=str(spec.mbps_per_tib),
        access_rules_options=_access_rules(spec),
        kms_key=scope.key(spec.location),
        description=f"{key} of environment {scope.environment}",
        labels=scope.labels,
    )
    options = Options(
        # Deletion, and so any replacement, loses all data.
        protect=scope.deletion_protection and spec.deletion_protection,
        # The name is fixed, and taken until the old instance is gone.
        delete_before_replace=True,
    )
    return Declared(type=LUSTRE, name=f"{declared_name('lustre', key)}-instance", inputs=inputs, options=options)


def instance_id(key: str, scope: Scope) -> str:
    """Return an instance's id, ``{environment}-{key}``."""
    return short_name(f"{scope.environment}-{key}", NAME_LIMIT)


def lustre_firewall(addresses: str, scope: Scope, network: Any) -> Declared:
    """Return the rule that lets the servers of all instances reach their clients; ``addresses`` are the servers'.

    Source: Managed Lustre docs, VPC network, read 2026-11-22 in translation.
    """
    inputs = gcp.firewall(
        project=scope.project,
        network=network,
        description="Servers of Managed Lustre to their clients",
        direction="INGRESS",
        source_ranges=[addresses],
        allows=[{"protocol": "tcp"}],
    )
    return Declared(type=FIREWALL, name="network-lustre", inputs=inputs)


def address(mount_point: str) -> str:
    """Return the address in an instance's mount point, ``ADDRESS@tcp:/FILESYSTEM``."""
    return mount_point.partition("@")[0]


def _access_rules(spec: LustreSpec) -> AccessRules:
    if not spec.squash_root:
        return {"default_squash_mode": "NO_SQUASH"}
    return {"default_squash_mode": "ROOT_SQUASH", "default_squash_uid": NOBODY, "default_squash_gid": NOBODY}
