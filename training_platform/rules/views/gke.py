"""The views of clusters and pools, and by name all others. Sizes end in their unit; counts are of VMs or GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.attachments import with_gpus
from training_platform.catalog.locations import is_zone
from training_platform.catalog.types import Capacity, MachineType
from training_platform.config.reading.finding import Path
from training_platform.rules.views.services import (
    Bucket,
    ExternalAddress,
    Filestore,
    FilestorePerformance,
    Flavor,
    FlavorQuota,
    Gateway,
    Labelled,
    PersistentPool,
)
from training_platform.rules.views.view import View

__all__ = [
    "BootDisk",
    "Bucket",
    "Cluster",
    "ExternalAddress",
    "Filestore",
    "FilestorePerformance",
    "Flavor",
    "FlavorQuota",
    "Gateway",
    "Labelled",
    "NodePool",
    "PersistentPool",
]

_ATTACHED = {"accelerator_type": "accelerator", "accelerator_count": "accelerator_count"}
ZONES_OF_A_REGIONAL_CLUSTER = 3  # GKE's default; a pool that names no zone is in each of them


@dataclass(frozen=True, kw_only=True)
class Cluster(View):
    """A GKE cluster. ``public_endpoint`` says whether its control plane answers at an address on the internet.

    ``version`` is the lowest of its control plane, as far as it is written; ``pods_range`` names the subnet's secondary
    range of its pods, and ``max_pods`` is what a node of a pool that says nothing takes of it.
    """

    PATHS: ClassVar[dict[str, Path]] = {
        "private_nodes": (), "public_endpoint": (), "cluster": (), "pods_range": ("subnet", "pods"), "max_pods": (),
    }  # fmt: skip

    project: str
    cluster: str
    location: str
    private_nodes: bool | None
    public_endpoint: bool | None
    deletion_protection: bool | None
    labels: dict[str, str] | None
    version: str | None
    release_channel: str | None
    subnetwork: str | None
    pods_range: str | None
    max_pods: int | None


@dataclass(frozen=True, kw_only=True)
class NodePool(View):
    """A GKE node pool. Node counts are per zone as GKE takes them; ``zones`` is what ``node_locations`` lists.

    ``pool`` is its name in GKE, ``max_pods`` the most pods of one node; ``version`` is None where it is the cluster's.

    ``capacity`` is worked out from spot, flex-start, queued provisioning and the reservation affinity.
    """

    PATHS: ClassVar[dict[str, Path]] = {
        "zones": ("zone",),
        "tpu_topology": ("topology",),
        "max_run_seconds": ("max_run_hours",),
        "flex_start": ("capacity",),
        "spot": ("capacity",),
        "queued": ("capacity",),
        "consume_reservation": ("capacity",),
        "total_max_nodes": ("max_nodes",),
        "min_nodes": ("min_nodes",),
        "total_min_nodes": ("min_nodes",),
        "accelerator_count": ("machine_type",),
        "accelerator_type": ("machine_type",),
        "local_ssd_count": ("local_ssd", "count"),
        "max_pods": ("max_pods",),
        **{name: ("upgrades", name) for name in ("auto_repair", "auto_upgrade")},
        "upgrade_strategy": ("upgrades", "strategy"),
        **dict.fromkeys(
            (
                "node_count",
                "initial_nodes",
                "location_policy",
                "private_nodes",
                "pool",
                "version",
                "cluster",
            ),
            (),
        ),
        "node_labels": ("labels",),
        "placement_type": ("topology",),
    }

    project: str
    cluster: str
    pool: str | None
    version: str | None
    max_pods: int | None
    location: str
    machine_type: str | None
    zones: tuple[str, ...]
    spot: bool
    flex_start: bool
    queued: bool
    consume_reservation: str | None
    reservation: str | None
    placement_type: str | None
    tpu_topology: str | None
    initial_nodes: int | None
    node_count: int | None
    min_nodes: int | None
    max_nodes: int | None
    total_min_nodes: int | None
    total_max_nodes: int | None
    location_policy: str | None
    auto_repair: bool
    auto_upgrade: bool
    upgrade_strategy: str | None
    max_run_seconds: int | None
    accelerator_type: str | None
    accelerator_count: int | None
    local_ssd_count: int | None
    private_nodes: bool | None
    node_labels: dict[str, str]
    labels: dict[str, str] | None

    def path(self, name: str) -> Path:
        """Return where a field stands in the stack file; a pool of TPUs is counted there in slices.

        GPUs have fields of their own where they are attached to a CPU machine.
        """
        field = next(iter(self.PATHS.get(name, (name,))), "")
        machine = MACHINE_TYPES.get(self.machine_type or "") if self.known("machine_type") else None
        if machine is not None and machine.kind == "cpu" and name in _ATTACHED:
            return (*self.origin, _ATTACHED[name])
        tpu = machine is not None and machine.kind == "tpu"
        if name == "placement_type" and machine is not None and not tpu:
            return (*self.origin, "compact")
        slices = {"max_nodes": "slices", "min_nodes": "min_slices"}
        return (*self.origin, slices[str(field)]) if tpu and field in slices else super().path(name)

    @property
    def machine(self) -> MachineType | None:
        """The machine type's row in the catalogue; None where it has none, which a rule of its own finds.

        A CPU machine with GPUs attached is the row of both, where the catalogue lets them go together.
        """
        machine = MACHINE_TYPES.get(self.machine_type or "")
        if machine is None or machine.kind != "cpu":
            return machine
        return with_gpus(machine.name, self.accelerator_type, self.accelerator_count)

    @property
    def capacity(self) -> Capacity:
        """How its VMs are had: what decides the quota charged. Queued provisioning is charged as flex-start is."""
        if self.flex_start or self.queued:
            return "flex-start"
        if self.spot:
            return "spot"
        return "reservation" if self.consume_reservation == "SPECIFIC_RESERVATION" else "on-demand"

    @property
    def autoscales(self) -> bool:
        """Whether it has a most of VMs, per zone or over all."""
        return self.max_nodes is not None or self.total_max_nodes is not None

    @property
    def hosts(self) -> int:
        """VMs of one slice as ``tpu_topology`` asks for them, rounded up; 1 without one, or where it is no topology."""
        return self.machine.hosts_of(self.tpu_topology) if self.machine else 1

    @property
    def zone_count(self) -> int:
        """In how many zones the counts per zone hold."""
        if self.zones:
            return len(self.zones)
        return 1 if is_zone(self.location) else ZONES_OF_A_REGIONAL_CLUSTER

    @property
    def most_vms(self) -> int:
        """VMs at most over all zones: the autoscaler's maximum, else the fixed count."""
        if self.total_max_nodes:
            return self.total_max_nodes
        per_zone = next((n for n in (self.max_nodes, self.node_count, self.initial_nodes) if n is not None), 1)
        return per_zone * self.zone_count


@dataclass(frozen=True, kw_only=True)
class BootDisk(View):
    """The boot disk of a node pool's VMs (``of`` is ``gke``) or of a Vertex AI pool's (``vertex``), size in GB.

    ``size_gb`` and ``disk_type`` are None where the program leaves them out.
    """

    PATHS: ClassVar[dict[str, Path]] = {"size_gb": ("boot_disk", "size_gb"), "disk_type": ("boot_disk", "type")}

    of: str
    machine_type: str | None
    size_gb: int | None
    disk_type: str | None
