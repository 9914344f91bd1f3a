"""What places VMs: resource policies, and reservations."""

from __future__ import annotations

from training_platform.resources.register import RESERVATION, RESOURCE_POLICY
from training_platform.views import fields
from training_platform.views.view import Settings

_WORKLOAD, _GROUP = "workloadPolicy", "groupPlacementPolicy"
_VMS = "specificReservation.instanceProperties"


class ResourcePolicyView(Settings):
    """A resource policy of Compute Engine that places VMs."""

    TYPES = (RESOURCE_POLICY,)

    project = fields.project()
    region = fields.located("region")
    policy = fields.text("name")
    workload = fields.written(_WORKLOAD)
    workload_type = fields.text(f"{_WORKLOAD}.type")
    topology = fields.text(f"{_WORKLOAD}.acceleratorTopology")
    topology_mode = fields.text(f"{_WORKLOAD}.acceleratorTopologyMode")
    topology_distance = fields.text(f"{_WORKLOAD}.maxTopologyDistance")
    group = fields.written(_GROUP)
    max_distance = fields.whole(f"{_GROUP}.maxDistance")
    gpu_topology = fields.text(f"{_GROUP}.gpuTopology")


class ReservationView(Settings):
    """A reservation of VMs in one zone; ``local_ssds`` and GPUs are those that it lists, for each VM."""

    TYPES = (RESERVATION,)

    project = fields.project()
    zone = fields.located("zone")
    reservation = fields.text("name")
    machine_type = fields.text(f"{_VMS}.machineType")
    accelerator_type = fields.text(f"{_VMS}.guestAccelerators.acceleratorType")
    accelerator_count = fields.whole(f"{_VMS}.guestAccelerators.acceleratorCount")
    min_cpu_platform = fields.text(f"{_VMS}.minCpuPlatform")
    local_ssds = fields.count(f"{_VMS}.localSsds")
    count = fields.whole("specificReservation.count")
    specific = fields.flag("specificReservationRequired", default=False)
