"""Backups of a Filestore instance on a schedule: a vault, a plan of Backup and DR, and what ties the instance to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from training_platform.catalog.locations import region_of
from training_platform.config.model.storage import BackupScheduleSpec, FilestoreSpec
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.declared import Declared, Options
from training_platform.resources.filestore.instance import instance_name
from training_platform.resources.register import BACKUP_PLAN, BACKUP_PLAN_ASSOCIATION, BACKUP_VAULT
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp.backupdisasterrecovery import BackupPlanBackupRuleStandardScheduleArgsDict as Schedule

FILESTORE_INSTANCE = "file.googleapis.com/Instance"
DAY_SECONDS = 86_400


def backup_vault(key: str, spec: FilestoreSpec, backups: BackupScheduleSpec, scope: Scope) -> Declared:
    """Return where the backups of an instance are kept: in its region, apart from the instance."""
    inputs = gcp.backup_vault(
        backup_vault_id=instance_name(scope.environment, key),
        project=scope.project,
        location=region_of(spec.location),
        description=f"Backups of Filestore instance {key} of {scope.environment}",
        backup_minimum_enforced_retention_duration=f"{backups.locked_days * DAY_SECONDS}s",
        # With the vault go backups that are no longer locked; Google Cloud keeps those that are.
        force_delete=not scope.deletion_protection,
        labels=scope.labels,
    )
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)
    return Declared(type=BACKUP_VAULT, name=f"{declared_name('filestore', key)}-vault", inputs=inputs, options=options)


def backup_plan(key: str, spec: FilestoreSpec, backups: BackupScheduleSpec, scope: Scope, vault: Any) -> Declared:
    """Return when backups are made and how long they are kept; ``vault`` is the id of the vault."""
    inputs = gcp.backup_plan(
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
    options = Options(delete_before_replace=True)
    return Declared(type=BACKUP_PLAN, name=f"{declared_name('filestore', key)}-plan", inputs=inputs, options=options)


def backup_association(key: str, spec: FilestoreSpec, scope: Scope, instance: Any, plan: Any) -> Declared:
    """Return what puts an instance under a plan; both by their ids."""
    inputs = gcp.backup_plan_association(
        backup_plan_association_id=instance_name(scope.environment, key),
        project=scope.project,
        location=region_of(spec.location),
        resource_type=FILESTORE_INSTANCE,
        resource=instance,
        backup_plan=plan,
    )
    # Updates to the provider; but the API's document calls an instance immutable here, and a plan in use does not go.
    options = Options(delete_before_replace=True, replace_on_changes=("backupPlan", "resource"))
    name = f"{declared_name('filestore', key)}-association"
    return Declared(type=BACKUP_PLAN_ASSOCIATION, name=name, inputs=inputs, options=options)


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
