"""Filestore: instances with one share, their snapshots and backups, and the StorageClasses of clusters.

Teams may claim volumes only of the Filestore classes that a stack file declares. A claim below the minimum size of its
tier gets the minimum size, so both the number of claims and their total GiB are limited. Even so, claims that are too
small can use up to twice the GiB that are counted. Source: Filestore CSI driver 2edb466 (2026-06-24).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from training_platform.catalog import FILESTORE_TIERS
from training_platform.catalog.locations import region_of
from training_platform.config.data_sets import reaches
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import BackupScheduleSpec, ExportSpec, FileClassSpec, FilestoreSpec
from training_platform.config.names import declared_name, name_in_cluster
from training_platform.resources import gcp
from training_platform.resources.plan import Component, Options, Resource, compute
from training_platform.resources.provider_inputs import add_provider_inputs
from training_platform.resources.resource_types import STORAGE_CLASS
from training_platform.resources.scope import NAME_LIMIT, Scope, complete_labels, short_name

if TYPE_CHECKING:
    from pulumi_gcp import filestore
    from pulumi_gcp.backupdisasterrecovery import BackupPlanBackupRuleStandardScheduleArgsDict as Schedule
    from pulumi_gcp.filestore import InstanceFileSharesNfsExportOptionArgsDict as Export
    from pulumi_gcp.filestore import InstanceNetworkArgsDict as Network


class PlannedInstance(NamedTuple):
    """An instance of Filestore or Managed Lustre: its name in the API, and the IP address that clients mount."""

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
) -> PlannedInstance:
    """Add an instance with its one share, its snapshots, and its scheduled backups.

    Its data is lost if its tier, network, protocol or location, the share's name, or its key in the stack file changes.
    Its name is ``{environment}-{key}``. All outputs except the address are known before the instance exists. If the VPC
    has private service access, ``services`` is its connection and ``services_range`` the name of its address range.
    """
    # An instance that joins by private service access needs it first, which the network's name does not imply.
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
    into.outputs = {"address": address}
    return PlannedInstance(instance_name(scope.environment, key), address)


def filestore_address(networks: Sequence[Mapping[str, Any]], _id: str) -> str:
    """Return the address of an instance. It is empty only for mocks in tests; every real instance has one."""
    addresses = [str(address) for network in networks for address in network.get("ip_addresses") or ()]
    return addresses[0] if addresses else ""


def filestore_instance(key: str, spec: FilestoreSpec, scope: Scope, network: Any, services: Any) -> Resource:
    """Return an instance. ``network`` is the name or id of the VPC; the provider accepts both.

    ``services`` is the name of the VPC's address range for private service access, if the environment has one.
    """
    protected = scope.deletion_protection and spec.deletion_protection
    options = _options(protected=protected)
    instance = gcp.filestore(
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
        # Only the team that it is reserved for, so that the team's bills and budgets include it.
        labels={**scope.labels, "team": spec.team} if spec.team else scope.labels,
        deletion_protection_enabled=protected,
        deletion_protection_reason=f"deletion_protection of stack {scope.environment}" if protected else None,
    )
    add_provider_inputs(instance, spec.provider_inputs, ("filestore", key), spec.TAKEN_OVER)
    return instance


def instance_name(environment: str, key: str) -> str:
    """Return an instance's name in the API, ``{environment}-{key}``, at most 63 characters."""
    return short_name(f"{environment}-{key}", NAME_LIMIT)


def filestore_snapshots(key: str, spec: FilestoreSpec, scope: Scope, instance: Any) -> Iterator[Resource]:
    """Yield an instance's snapshots. A snapshot contains the files at the time its name was added to the stack file."""
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
    """Return the instance's only share. Despite its name, ``capacity_gb`` counts GiB."""
    in_vault = "/backupVaults/" in (spec.restore_from or "")
    return {
        "name": spec.share,
        "capacity_gb": spec.capacity_gib,
        "nfs_export_options": [_export(export) for export in spec.exports] or None,
        "source_backup": None if in_vault else spec.restore_from,
        "source_backupdr_backup": spec.restore_from if in_vault else None,
    }


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
    """Return an instance's connection to the VPC. Google Cloud chooses the address range unless the file sets one."""
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
        # To the provider, a new name is an update. It sends nothing, and from then on reads an instance of that name:
        # the old one, with its data, would drop out of the state.
        replace_on_changes=("name",),
        # Used only at creation. The provider never reads back the range that Google Cloud picked: adding it to the file
        # would replace the instance, and lose its data (google-beta 7.45, flattenFilestoreInstanceNetworks...).
        ignore_changes=("networks[0].reservedIpRange",),
        # Without enough quota, the provider would otherwise retry silently for up to ten days.
        timeouts={"create": "30m"},
    )


FILESTORE_INSTANCE = "file.googleapis.com/Instance"
DAY_SECONDS = 86_400


def backup_vault(key: str, spec: FilestoreSpec, backups: BackupScheduleSpec, scope: Scope) -> Resource:
    """Return the vault of an instance's backups. It is in the instance's region but independent of the instance."""
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
    """Return the schedule and retention of backups; ``vault`` is the vault's id."""
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
    """Return the association of an instance with a backup plan, given the ids of both."""
    # To the provider these are updates, but the API's document calls the instance immutable, and a plan that is used
    # cannot be deleted.
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
    if backups.every_hours:
        recurrence = "HOURLY"
    elif backups.weekdays:
        recurrence = "WEEKLY"
    else:
        recurrence = "DAILY"
    schedule: Schedule = {
        "recurrence_type": recurrence,
        "time_zone": backups.time_zone,
        "backup_window": {"start_hour_of_day": backups.start_hour, "end_hour_of_day": backups.end_hour},
    }
    if backups.every_hours:
        schedule["hourly_frequency"] = backups.every_hours
    if backups.weekdays:
        schedule["days_of_weeks"] = list(backups.weekdays)
    return schedule


# Annotations, for counting what a plan may use.
MOST = "training-platform/most-gib"
LOCATION = "training-platform/location"
# The StorageClasses that GKE puts into every cluster.
GKE_CLASSES = ("standard-rwx", "premium-rwx", "zonal-rwx", "enterprise-rwx", "enterprise-multishare-rwx")
PROVISIONER = "filestore.csi.storage.gke.io"
_OPTIONS = Options(
    replace_on_changes=("reclaimPolicy",),  # Kubernetes refuses the change, which the provider does not know
    delete_before_replace=True,  # the name is fixed, and taken until the old class is gone; volumes outlive a class
)
# The smallest claim on a share of an instance, without and with a largest one.
_SHARE_GIB = 100
_SMALL_SHARE_GIB = 10


def storage_class(
    name: str,
    scope: Scope,
    tier: str,
    network: Any,
    *,
    location: str | None = None,
    class_name: str | None = None,
    private: bool = False,
    shares: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Resource:
    """Return a StorageClass for one Filestore tier, named ``filestore-{tier}`` unless ``class_name`` is given.

    ``name`` is the component's name. ``network`` is the VPC's name without project or path. It can also be the id of a
    VPC in another project, which instances then join by private service access. ``shares`` are parameters for several
    shares on an instance.
    """
    metadata: dict[str, Any] = {"name": class_name or tier_class(tier), "labels": scope.kubernetes_labels}
    if annotations:
        metadata["annotations"] = dict(annotations)
    labels = complete_labels({}, scope.environment, scope.team)
    parameters = {
        "tier": FILESTORE_TIERS[tier].csi_tier,
        "network": network,
        # As the driver takes them. Source: Filestore CSI driver 2edb466 (2026-06-24), ``ConvertLabelsStringToMap``.
        # Without the stack file's own labels: any change of parameters replaces the class.
        "labels": ",".join(f"{label}={value}" for label, value in sorted(labels.items())),
    }
    if private:
        parameters["connect-mode"] = "PRIVATE_SERVICE_ACCESS"
    key = scope.key(location) if location else None
    if key:
        parameters["instance-encryption-kms-key"] = key
    inputs = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": PROVISIONER,
        "parameters": {**parameters, **(shares or {})},
        "volumeBindingMode": "WaitForFirstConsumer",  # a zonal instance belongs into the zone of the first pod
        "allowVolumeExpansion": True,
        "reclaimPolicy": "Retain" if scope.deletion_protection else "Delete",
    }
    return Resource(type=STORAGE_CLASS, name=f"{name}-class", inputs=inputs, options=_OPTIONS)


def cluster_classes(
    name: str, cluster: ClusterSpec, scope: Scope, environment: Environment, network: Any
) -> Iterator[Resource]:
    """Yield a cluster's StorageClasses: first one for each tier in use, then the classes of the stack file."""
    cluster_class = partial(
        storage_class,
        scope=scope,
        network=network,
        location=cluster.location,
        private=environment.host_project is not None,
    )
    for tier in class_tiers(environment, cluster):
        yield cluster_class(f"{name}-{tier_class(tier)}", tier=tier)
    for key, spec in cluster.storage_classes.items():
        yield cluster_class(
            name_in_cluster(name, "storage_classes", key),
            tier=spec.tier,
            class_name=kubernetes_class(key),
            shares=share_parameters(key, spec),
            annotations=class_annotations(spec, cluster.location),
        )


def kubernetes_class(key: str) -> str:
    """Return the name that a class of the stack file has in clusters. No class of GKE has this prefix."""
    return f"files-{key}"


def share_parameters(key: str, spec: FileClassSpec) -> dict[str, str]:
    """Return the parameters that let claims share instances. No other class uses the instances of the class ``key``.

    Source: Filestore CSI driver 2edb466 (2026-06-24), ``multishare_controller.go``; GKE docs, Filestore multishares.
    """
    if not spec.multishare:
        return {}
    largest = {"max-volume-size": f"{spec.largest_share_gib}Gi"} if spec.largest_share_gib else {}
    return {"multishare": "true", "instance-storageclass-label": kubernetes_class(key), **largest}


def claim_limits(
    classes: Mapping[str, FileClassSpec], team: str, further_classes: Iterable[str] = ()
) -> dict[str, str]:
    """Return a team's limits for claims of each class, for the field ``hard`` of a ResourceQuota.

    ``further_classes`` are additional classes that the team may not claim. It may not claim GKE's own classes either.
    """
    of_class = "{}.storageclass.storage.k8s.io/{}".format
    limits = {of_class(name, "requests.storage"): "0Gi" for name in (*GKE_CLASSES, *further_classes)}
    for key, spec in classes.items():
        name = kubernetes_class(key)
        gib = spec.teams.get(team, 0)
        claims = max(1, gib // _smallest_claim(spec)) if gib else 0
        limits[of_class(name, "requests.storage")] = f"{gib}Gi"
        limits[of_class(name, "persistentvolumeclaims")] = str(claims)
    return limits


def most_gib(spec: FileClassSpec) -> int:
    """Return the maximum total size in GiB of the instances that all teams' claims can create, in steps of the tier."""
    smallest, _, step = FILESTORE_TIERS[spec.tier].bands[0]
    claimed = [sum(spec.teams.values())] if spec.multishare else list(spec.teams.values())
    return sum(max(smallest, -(-gib // step) * step) for gib in claimed if gib)


def class_annotations(spec: FileClassSpec, location: str) -> dict[str, str]:
    """Return the annotations of a class: the maximum GiB of instances that claims create, and their location."""
    return {MOST: str(most_gib(spec)), LOCATION: location}


def tier_class(tier: str) -> str:
    """Return the name of the StorageClass for a tier, such as ``filestore-basic-hdd``."""
    return f"filestore-{tier.lower().replace('_', '-')}"


def class_tiers(environment: Environment, cluster: ClusterSpec) -> tuple[str, ...]:
    """Return the tiers that have a class in a cluster: the tiers of the environment's instances that its pods mount.

    Only the platform's own namespaces may claim volumes of these classes.
    """
    return tuple(sorted({instance.tier for instance in environment.filestore.values() if reaches(instance, cluster)}))


def _smallest_claim(spec: FileClassSpec) -> int:
    if spec.multishare:
        return _SMALL_SHARE_GIB if spec.largest_share_gib else _SHARE_GIB
    return FILESTORE_TIERS[spec.tier].bands[0].low_gib
