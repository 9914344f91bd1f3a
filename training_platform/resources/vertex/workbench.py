"""A VM with JupyterLab for one person of a team, which Vertex AI Workbench keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from training_platform.catalog.types import MachineType
from training_platform.config.model.team import WorkbenchSpec
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.cloud_names import jobs_account_email, workbench_id
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import WORKBENCH
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp.workbench import InstanceGceSetupAcceleratorConfigArgsDict as Accelerator
    from pulumi_gcp.workbench import InstanceGceSetupBootDiskArgsDict as Disk
    from pulumi_gcp.workbench import InstanceGceSetupDataDisksArgsDict as DataDisk


def workbench(key: str, spec: WorkbenchSpec, scope: Scope, network: Any, subnet: Any) -> Declared:
    """Return an instance; ``network`` and ``subnet`` are the environment's in its region, for one that names no other.

    It acts as the account that the team's jobs act as. Idle time is counted in seconds, as metadata. Source: Vertex AI
    Workbench docs, manage features through metadata, read 2026-11-22.
    """
    protected = scope.deletion_protection and spec.deletion_protection
    inputs = gcp.workbench(
        name=workbench_id(scope, key),
        project=scope.project,
        location=spec.zone,
        instance_owners=[spec.owner],
        enable_deletion_protection=protected,
        gce_setup={
            "machine_type": spec.machine_type,
            "accelerator_configs": _accelerators(spec.machine),
            "disable_public_ip": True,
            "network_interfaces": [{"subnet": spec.subnet} if spec.subnet else {"network": network, "subnet": subnet}],
            "service_accounts": [{"email": jobs_account_email(scope)}],
            "boot_disk": _disk(spec, spec.boot_disk_gb, scope),
            "data_disks": cast("DataDisk", _disk(spec, spec.data_disk_gb, scope)),
            "metadata": {"idle-timeout-seconds": str(spec.idle_minutes * 60)},
        },
        labels=scope.labels,
    )
    options = Options(
        # Its disks go with it, and what is on them.
        protect=protected,
        # The name is fixed, and taken until the old instance is gone.
        delete_before_replace=True,
    )
    return Declared(
        type=WORKBENCH, name=f"{declared_name('vertex.workbench', key)}-instance", inputs=inputs, options=options
    )


def _accelerators(machine: MachineType) -> list[Accelerator]:
    """Return the GPUs of a machine, its own or attached, by the names that Vertex AI has for them."""
    return [{"type": machine.vertex_gpus, "core_count": str(machine.chips)}] if machine.vertex_gpus else []


def _disk(spec: WorkbenchSpec, size_gb: int, scope: Scope) -> Disk:
    """Return a disk; the API spells types in capitals, and sizes as texts."""
    key = scope.key(spec.zone)
    return {
        "disk_type": spec.disk.upper().replace("-", "_"),
        "disk_size_gb": str(size_gb),
        "disk_encryption": "CMEK" if key else "GMEK",
        "kms_key": key,
    }
