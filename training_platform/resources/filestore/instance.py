"""A Filestore instance with its one share, and the snapshots of it that the stack file names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from training_platform.config.model.storage import ExportSpec, FilestoreSpec
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.cloud_names import NAME_LIMIT, short_name
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import FILESTORE, FILESTORE_SNAPSHOT
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp import filestore
    from pulumi_gcp.filestore import InstanceFileSharesNfsExportOptionArgsDict as Export
    from pulumi_gcp.filestore import InstanceNetworkArgsDict as Network


def filestore_instance(key: str, spec: FilestoreSpec, scope: Scope, network: Any, services: Any = None) -> Declared:
    """Return an instance; ``network`` is the VPC's name or id, which the provider takes for the same.

    ``services`` is the name of the VPC's range for private service access, where the environment has one.
    """
    protected = scope.deletion_protection and spec.deletion_protection
    inputs = gcp.filestore(
        name=instance_name(scope.environment, key),
        project=scope.project,
        location=spec.location,
        tier=spec.tier,
        protocol=spec.protocol,
        file_shares=_share(spec),
        networks=[_network(spec, network, services)],
        kms_key_name=scope.key(spec.location),
        performance_config=_performance(spec),
        # The team that it is alone for, so that bills and budgets of the team have it.
        labels={**scope.labels, "team": spec.team} if spec.team else scope.labels,
        deletion_protection_enabled=protected,
        deletion_protection_reason=f"deletion_protection of stack {scope.environment}" if protected else None,
    )
    options = _options(protected=protected)
    return Declared(type=FILESTORE, name=f"{declared_name('filestore', key)}-instance", inputs=inputs, options=options)


def instance_name(environment: str, key: str) -> str:
    """Return an instance's name in the API, ``{environment}-{key}``, which takes 63 characters."""
    return short_name(f"{environment}-{key}", NAME_LIMIT)


def filestore_snapshots(key: str, spec: FilestoreSpec, scope: Scope, instance: Any) -> Iterator[Declared]:
    """Yield an instance's snapshots: its files as they were when the name first stood in the stack file."""
    for name in spec.snapshots:
        inputs = gcp.filestore_snapshot(
            name=name,
            project=scope.project,
            location=spec.location,
            instance=instance,
            labels=scope.labels,
        )
        yield Declared(
            type=FILESTORE_SNAPSHOT, name=f"{declared_name('filestore', key)}-snapshot-{name}", inputs=inputs
        )


def _share(spec: FilestoreSpec) -> filestore.InstanceFileSharesArgsDict:
    """Return the one share; the provider's field counts GiB, whatever it is called."""
    share: dict[str, Any] = {"name": spec.share, "capacity_gb": spec.capacity_gib}
    if spec.exports:
        share["nfs_export_options"] = [_export(each) for each in spec.exports]
    if spec.restore_from:
        share["source_backupdr_backup" if "/backupVaults/" in spec.restore_from else "source_backup"] = (
            spec.restore_from
        )
    return cast("filestore.InstanceFileSharesArgsDict", share)


def _export(spec: ExportSpec) -> Export:
    export: Export = {
        "ip_ranges": list(spec.ranges),
        "access_mode": "READ_WRITE" if spec.access == "read-write" else "READ_ONLY",
        "squash_mode": "ROOT_SQUASH" if spec.squash == "root" else "NO_ROOT_SQUASH",
    }
    if spec.anonymous_id is not None:
        export["anon_uid"] = export["anon_gid"] = spec.anonymous_id
    return export


def _performance(spec: FilestoreSpec) -> filestore.InstancePerformanceConfigArgsDict | None:
    if spec.iops is not None:
        return {"fixed_iops": {"max_iops": spec.iops}}
    if spec.iops_per_tib is not None:
        return {"iops_per_tb": {"max_iops_per_tb": spec.iops_per_tib}}
    return None


def _network(spec: FilestoreSpec, vpc: Any, services: Any) -> Network:
    """Return how an instance joins the VPC; Google Cloud picks its address range unless it is given."""
    private = spec.connection == "private-service-access"
    return {
        "network": vpc,
        "modes": ["MODE_IPV4"],
        "connect_mode": "PRIVATE_SERVICE_ACCESS" if private else "DIRECT_PEERING",
        "reserved_ip_range": spec.reserved_range or (services if private else None),
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
