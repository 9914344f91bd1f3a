"""Views of Vertex AI persistent resources."""

from __future__ import annotations

from typing import Any, Self

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.attachments import of_vertex, vertex_gpu
from training_platform.catalog.types import MachineType
from training_platform.config.model.team import pool_path
from training_platform.config.reading.finding import Path
from training_platform.resources.resource_types import PERSISTENT_RESOURCE
from training_platform.resources.stack_resource import StackResource
from training_platform.views import fields
from training_platform.views.inputs import at, keys
from training_platform.views.view import View

_POOL = "resourcePools"
_ATTACHED = {"accelerator_type": "accelerator", "accelerator_count": "accelerator_count"}
_SHARED = ("region", "network_attachment")


class PersistentPoolView(View):
    """One resource pool of a Vertex AI persistent resource. Counts are numbers of VMs; the boot disk is in GB."""

    TYPES = (PERSISTENT_RESOURCE,)
    EACH = (_POOL,)

    project = fields.project()
    region = fields.required("location")
    resource_id = fields.text("name", place="")
    network_attachment = fields.text("pscInterfaceConfig.networkAttachment")
    labels = fields.labels("labels")
    machine_type = fields.text(f"{_POOL}.machineSpec.machineType")
    accelerator_type = fields.text(f"{_POOL}.machineSpec.acceleratorType", place="machine_type")
    accelerator_count = fields.whole(f"{_POOL}.machineSpec.acceleratorCount", place="machine_type")
    replica_count = fields.whole(f"{_POOL}.replicaCount", place="replicas")
    min_replicas = fields.whole(f"{_POOL}.autoscalingSpec.minReplicaCount", place="replicas")
    max_replicas = fields.whole(f"{_POOL}.autoscalingSpec.maxReplicaCount")
    disk_gb = fields.whole(f"{_POOL}.diskSpec.bootDiskSizeGb", place="boot_disk.size_gb")
    disk_type = fields.text(f"{_POOL}.diskSpec.bootDiskType", place="boot_disk.type")

    @classmethod
    def viewed(cls, planned: StackResource, origin: Path, inputs: Any) -> Self:
        """Return the view of a pool. Every pool except the first has its own section in the stack file."""
        pool = at(inputs, keys(f"{_POOL}.id"))
        section = pool_path(pool) if origin and isinstance(pool, str) else ()
        return super().viewed(planned, (*origin, *section), inputs)

    def path(self, name: str) -> Path:
        """Return the path of a field in the stack file. Fields that all pools share are outside ``more_pools``."""
        if name in _ATTACHED and self.known("accelerator_type"):
            gpu = vertex_gpu(self.accelerator_type)
            if gpu and gpu.attachment:
                return (*self.origin, _ATTACHED[name])
        shared = name in _SHARED and self.origin[-2:-1] == ("more_pools",)
        return (*self.origin[:-2], name) if shared else super().path(name)

    @property
    def machine(self) -> MachineType | None:
        """The machine type's entry in the catalogue together with the attached GPUs, or None."""
        if self.machine_type not in MACHINE_TYPES:  # its GPUs may be unknown and are not read
            return None
        return of_vertex(self.machine_type, self.accelerator_type, self.accelerator_count)

    @property
    def most_vms(self) -> int:
        """The maximum number of VMs: the autoscaler's maximum, or the fixed count."""
        return next((n for n in (self.max_replicas, self.replica_count) if n is not None), 1)
