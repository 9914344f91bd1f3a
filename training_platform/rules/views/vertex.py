"""Vertex AI persistent resources."""

from __future__ import annotations

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import MachineType
from training_platform.resources.register import PERSISTENT_RESOURCE
from training_platform.rules.views import fields
from training_platform.rules.views.view import View

_POOL = "resourcePools"


class PersistentPoolView(View):
    """One resource pool of a Vertex AI persistent resource; counts are VMs, the boot disk's size is in GB."""

    TYPES = (PERSISTENT_RESOURCE,)
    EACH = (_POOL,)

    project = fields.project()
    region = fields.said("location")
    resource_id = fields.text("name", place="")
    labels = fields.labels("labels")
    machine_type = fields.text(f"{_POOL}.machineSpec.machineType")
    accelerator_type = fields.text(f"{_POOL}.machineSpec.acceleratorType", place="machine_type")
    accelerator_count = fields.whole(f"{_POOL}.machineSpec.acceleratorCount", place="machine_type")
    replica_count = fields.whole(f"{_POOL}.replicaCount", place="replicas")
    min_replicas = fields.whole(f"{_POOL}.autoscalingSpec.minReplicaCount", place="replicas")
    max_replicas = fields.whole(f"{_POOL}.autoscalingSpec.maxReplicaCount")
    disk_gb = fields.whole(f"{_POOL}.diskSpec.bootDiskSizeGb", place="boot_disk.size_gb")
    disk_type = fields.text(f"{_POOL}.diskSpec.bootDiskType", place="boot_disk.type")

    @property
    def machine(self) -> MachineType | None:
        """The machine type's row in the catalogue; None where it has none, which a rule of its own finds."""
        return MACHINE_TYPES.get(self.machine_type or "")

    @property
    def most_vms(self) -> int:
        """VMs at most: the autoscaler's maximum, else the fixed count."""
        return next((n for n in (self.max_replicas, self.replica_count) if n is not None), 1)
