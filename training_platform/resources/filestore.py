"""Filestore: instances with their one share, snapshots and backups, and the StorageClasses by which clusters use them.

Teams may claim volumes of the classes that a stack file declares, and of no other class of Filestore. A claim below the
smallest size of its tier gets that size, so the number of claims is limited beside their GiB. Even so, claims
that are too small can take up to twice the GiB that are counted. Source: Filestore CSI driver 2edb466 (2026-06-24).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from training_platform.catalog import FILESTORE_TIERS
from training_platform.catalog.locations import region_of
from training_platform.config.data_sets import reaches
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import BackupScheduleSpec, ExportSpec, FileClassSpec, FilestoreSpec
from training_platform.config.names import declared_name, name_in_cluster
from training_platform.resources import gcp
from training_platform.resources.plan import Component, Options, Resource, compute
from training_platform.resources.resource_types import STORAGE_CLASS
from training_platform.resources.scope import NAME_LIMIT, Scope, short_name

if TYPE_CHECKING:
    from pulumi_gcp import filestore
    from pulumi_gcp.backupdisasterrecovery import BackupPlanBackupRuleStandardScheduleArgsDict as Schedule
    from pulumi_gcp.filestore import InstanceFileSharesNfsExportOptionArgsDict as Export
    from pulumi_gcp.filestore import InstanceNetworkArgsDict as Network


class InstanceOutputs(NamedTuple):
    """An instance of Filestore or Managed Lustre: its name in the API, and the address that clients mount."""

    instance: str
    ip: Any


def filestore_resources(
    into: Component,
    key: str,
    spec: FilestoreSpec,
    scope: Scope,
    *,
    network: Any,
    services: Resource | None = None,
    services_range: Any = None,
) -> InstanceOutputs:
    """Add an instance with its one share, its snapshots, and its backups on a schedule.

    All of its data is lost when tier, network, protocol, location or the share's name change, or the key, which is in
    its name. The name, ``{environment}-{key}``, and everything else but the address is known before it exists.
    ``services`` is the VPC's private service access and ``services_range`` the name of its addresses, if it has them.
    """
    # An instance that joins by private service access needs it first; the network's name alone does not say so.
    joined = [services] if services and spec.connection == "private-service-access" else []
    instance = into.add(filestore_instance(key, spec, scope, network, services_range), joined)
    for snapshot in filestore_snapshots(key, spec, scope, instance.output("name")):
        into.add(snapshot)
    if spec.backups:
        vault = into.add(backup_vault(key, spec, spec.backups, scope))
        plan = into.add(backup_plan(key, spec, spec.backups, scope, vault.output("id")))
        into.add(backup_association(key, spec, scope, instance.output("id"), plan.output("id")))
    # Unknown until it has an id: its networks may be known before, without any address.
    address = compute(filestore_address, instance.output("networks"), instance.output("id"))
    return InstanceOutputs(instance_name(scope.environment, key), address)


def filestore_address(networks: Sequence[Mapping[str, Any]], _id: str) -> str:
    """Return the address of an instance; empty if it has none: every instance has one, but no mock of a test."""
    addresses = [str(address) for network in networks for address in network.get("ip_addresses") or ()]
    return addresses[0] if addresses else ""


def filestore_instance(key: str, spec: FilestoreSpec, scope: Scope, network: Any, services: Any = None) -> Resource:
    """Return an instance; ``network`` is the VPC's name or id, which the provider takes for the same.

    ``services`` is the name of the VPC's range for private service access, where the environment has one.
    """
    protected = scope.deletion_protection and spec.deletion_protection
    options = _options(protected=protected)
    return gcp.filestore(
        f"{declared_name('filestore', key)}-instance",
        options,
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


def instance_name(environment: str, key: str) -> str:
    """Return an instance's name in the API, ``{environment}-{key}``, which takes 63 characters."""
    return short_name(f"{environment}-{key}", NAME_LIMIT)


def filestore_snapshots(key: str, spec: FilestoreSpec, scope: Scope, instance: Any) -> Iterator[Resource]:
    """Yield an instance's snapshots: its files as they were when the name first stood in the stack file."""
    for name in spec.snapshots:
        yield gcp.filestore_snapshot(
            f"{declared_name('filestore', key)}-snapshot-{name}",
            name=name,
            project=scope.project,
            location=spec.location,
            instance=instance,
            labels=scope.labels,
        )


def _share(spec: FilestoreSpec) -> filestore.InstanceFileSharesArgsDict:
    """Return the one share; the provider's field counts GiB, whatever it is called."""
    share: dict[str, Any] = {"name": spec.share, "capacity_gb": spec.capacity_gib}
    if spec.exports:
        share["nfs_export_options"] = [_export(export) for export in spec.exports]
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
        # Read at creation alone. The provider never learns which range Google Cloud picked: where the file comes to say
        # it, it would replace the instance, with its data (google-beta 7.45, flattenFilestoreInstanceNetworks...).
        ignore_changes=("networks[0].reservedIpRange",),
        # Short of quota, the provider would otherwise retry in silence for up to ten days.
        timeouts={"create": "30m"},
    )


FILESTORE_INSTANCE = "file.googleapis.com/Instance"
DAY_SECONDS = 86_400


def backup_vault(key: str, spec: FilestoreSpec, backups: BackupScheduleSpec, scope: Scope) -> Resource:
    """Return where the backups of an instance are kept: in its region, apart from the instance."""
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)
    return gcp.backup_vault(
        f"{declared_name('filestore', key)}-vault",
        options,
        backup_vault_id=instance_name(scope.environment, key),
        project=scope.project,
        location=region_of(spec.location),
        description=f"Backups of Filestore instance {key} of {scope.environment}",
        backup_minimum_enforced_retention_duration=f"{backups.locked_days * DAY_SECONDS}s",
        # Deleting the vault deletes backups that are no longer locked; Google Cloud keeps locked ones.
        force_delete=not scope.deletion_protection,
        labels=scope.labels,
    )


def backup_plan(key: str, spec: FilestoreSpec, backups: BackupScheduleSpec, scope: Scope, vault: Any) -> Resource:
    """Return the schedule of backups and their retention; ``vault`` is the id of the vault."""
    options = Options(delete_before_replace=True)
    return gcp.backup_plan(
        f"{declared_name('filestore', key)}-plan",
        options,
        backup_plan_id=instance_name(scope.environment, key),
        project=scope.project,
        location=region_of(spec.location),
        resource_type=FILESTORE_INSTANCE,
        backup_vault=vault,
        backup_rules=[
            {
                "rule_id": "scheduled",
                "backup_retention_days": backups.keep_days,
                "standard_schedule": _schedule(backups),
            }
        ],
    )


def backup_association(key: str, spec: FilestoreSpec, scope: Scope, instance: Any, plan: Any) -> Resource:
    """Return the association of an instance with a backup plan; both by their ids."""
    # Updates to the provider; but the API's document calls an instance immutable here, and a plan in use does not go.
    options = Options(delete_before_replace=True, replace_on_changes=("backupPlan", "resource"))
    name = f"{declared_name('filestore', key)}-association"
    return gcp.backup_plan_association(
        name,
        options,
        backup_plan_association_id=instance_name(scope.environment, key),
        project=scope.project,
        location=region_of(spec.location),
        resource_type=FILESTORE_INSTANCE,
        resource=instance,
        backup_plan=plan,
    )


def _schedule(backups: BackupScheduleSpec) -> Schedule:
    schedule: Schedule = {
        "recurrence_type": "HOURLY" if backups.every_hours else "WEEKLY" if backups.weekdays else "DAILY",
        "time_zone": backups.time_zone,
        "backup_window": {"start_hour_of_day": backups.start_hour, "end_hour_of_day": backups.end_hour},
    }
    if backups.every_hours:
        schedule["hourly_frequency"] = backups.every_hours
    if backups.weekdays:
        schedule["days_of_weeks"] = list(backups.weekdays)
    return schedule


MOST, LOCATION = "training-platform/most-gib", "training-platform/location"  # annotations, for who counts a plan
# The StorageClasses that GKE puts into every cluster.
GKE_CLASSES = ("standard-rwx", "premium-rwx", "zonal-rwx", "enterprise-rwx", "enterprise-multishare-rwx")
PROVISIONER = "filestore.csi.storage.gke.io"
_OPTIONS = Options(
    replace_on_changes=("reclaimPolicy",),  # Kubernetes refuses the change; the provider knows of no such field
    delete_before_replace=True,  # the name is fixed, and taken until the old class is gone; volumes outlive a class
)
_SHARE_GIB, _SMALL_SHARE_GIB = 100, 10  # the smallest claim on a share, without and with a largest one


def storage_class(
    name: str, scope: Scope, tier: str, network: Any, *, location: str | None = None, class_name: str | None = None,
    private: bool = False, shares: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None,
) -> Resource:  # fmt: skip
    """Return a StorageClass of one Filestore tier, called ``filestore-{tier}`` unless it has a name of its own.

    ``name`` is the component's; ``network`` is the VPC's name, without project or path, or its id where it is another
    project's, which instances then join by private service access. ``shares`` are parameters of shares of an instance.
    """
    key = scope.key(location) if location else None
    metadata = {"name": class_name or tier_class(tier), "labels": scope.kubernetes_labels}
    inputs = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {**metadata, "annotations": dict(annotations)} if annotations else metadata,
        "provisioner": PROVISIONER,
        "parameters": {
            "tier": FILESTORE_TIERS[tier].csi_tier,
            "network": network,
            # As the driver takes them. Source: Filestore CSI driver 2edb466 (2026-06-24), ``ConvertLabelsStringToMap``.
            "labels": ",".join(f"{label}={value}" for label, value in sorted(scope.labels.items())),
            **({"connect-mode": "PRIVATE_SERVICE_ACCESS"} if private else {}),
            **({"instance-encryption-kms-key": key} if key else {}),
            **(shares or {}),
        },
        "volumeBindingMode": "WaitForFirstConsumer",  # a zonal instance belongs into the zone of the first pod
        "allowVolumeExpansion": True,
        "reclaimPolicy": "Retain" if scope.deletion_protection else "Delete",
    }
    return Resource(type=STORAGE_CLASS, name=f"{name}-class", inputs=inputs, options=_OPTIONS)


def cluster_classes(
    name: str, cluster: ClusterSpec, scope: Scope, environment: Environment, network: Any
) -> Iterator[tuple[str, Resource]]:
    """Yield the StorageClasses of a cluster, each with its component's name: of tiers, and those of the stack file."""
    of_cluster = partial(
        storage_class,
        scope=scope,
        network=network,
        location=cluster.location,
        private=environment.host_project is not None,
    )
    for tier in class_tiers(environment, cluster):
        component = f"{name}-{tier_class(tier)}"
        yield component, of_cluster(component, tier=tier)
    for key, spec in cluster.storage_classes.items():
        component = name_in_cluster(name, "storage_classes", key)
        yield (
            component,
            of_cluster(
                component,
                tier=spec.tier,
                class_name=kubernetes_class(key),
                shares=share_parameters(key, spec),
                annotations=class_annotations(spec, cluster.location),
            ),
        )


def kubernetes_class(key: str) -> str:
    """Return the name of a class in its clusters; none of GKE's own begins so."""
    return f"files-{key}"


def share_parameters(key: str, spec: FileClassSpec) -> dict[str, str]:
    """Return the parameters by which claims share instances; ``key`` is the class's, whose instances are its own.

    Source: Filestore CSI driver 2edb466 (2026-06-24), ``multishare_controller.go``; GKE docs, Filestore multishares.
    """
    if not spec.multishare:
        return {}
    largest = {"max-volume-size": f"{spec.largest_share_gib}Gi"} if spec.largest_share_gib else {}
    return {"multishare": "true", "instance-storageclass-label": kubernetes_class(key), **largest}


def claim_limits(classes: Mapping[str, FileClassSpec], team: str, others: Iterable[str] = ()) -> dict[str, str]:
    """Return a team's limits for claims of each class, as the ``hard`` part of a ResourceQuota.

    ``others`` are the classes of which it may claim nothing, beside those of GKE.
    """
    of_class = "{}.storageclass.storage.k8s.io/{}".format
    limits = {of_class(name, "requests.storage"): "0Gi" for name in (*GKE_CLASSES, *others)}
    for key, spec in classes.items():
        name, gib = kubernetes_class(key), spec.teams.get(team, 0)
        limits[of_class(name, "requests.storage")] = f"{gib}Gi"
        limits[of_class(name, "persistentvolumeclaims")] = str(max(1, gib // _smallest_claim(spec)) if gib else 0)
    return limits


def most_gib(spec: FileClassSpec) -> int:
    """Return the GiB of the instances that claims of all teams make together, in the steps of the tier."""
    smallest, _, step = FILESTORE_TIERS[spec.tier].bands[0]
    wholes = [sum(spec.teams.values())] if spec.multishare else list(spec.teams.values())
    return sum(max(smallest, -(-gib // step) * step) for gib in wholes if gib)


def class_annotations(spec: FileClassSpec, location: str) -> dict[str, str]:
    """Return a class's parameters for the instances that claims create."""
    return {MOST: str(most_gib(spec)), LOCATION: location}


def tier_class(tier: str) -> str:
    """Return the name of a tier's own StorageClass: ``filestore-basic-hdd``."""
    return f"filestore-{tier.lower().replace('_', '-')}"


def class_tiers(environment: Environment, cluster: ClusterSpec) -> tuple[str, ...]:
    """Return the tiers that a cluster gets a class for: those of the environment's instances that its pods mount.

    The platform's own namespaces may claim of these, and teams nothing.
    """
    return tuple(sorted({instance.tier for instance in environment.filestore.values() if reaches(instance, cluster)}))


def _smallest_claim(spec: FileClassSpec) -> int:
    if spec.multishare:
        return _SMALL_SHARE_GIB if spec.largest_share_gib else _SHARE_GIB
    return FILESTORE_TIERS[spec.tier].bands[0].low_gib
