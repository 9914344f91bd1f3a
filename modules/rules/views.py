"""The views that the rules read. Sizes end in their unit; counts are of VMs, chips or GPUs as the name says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from modules.catalog import ACCELERATORS, MACHINE_TYPES
from modules.catalog.attachments import attached
from modules.catalog.locations import is_zone
from modules.catalog.types import Capacity, MachineType, chips_in
from modules.config.finding import Path
from modules.rules.view import Settings, View

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
        "local_ssd_count": ("machine_type",),
        **dict.fromkeys(
            (
                "node_count",
                "initial_nodes",
                "location_policy",
                "auto_repair",
                "auto_upgrade",
                "upgrade_strategy",
                "private_nodes",
                "pool",
                "max_pods",
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
        """Return where a field stands in the stack file; a pool of TPUs is counted there in slices."""
        field = next(iter(self.PATHS.get(name, (name,))), "")
        machine = MACHINE_TYPES.get(self.machine_type or "") if self.known("machine_type") else None
        tpu = machine is not None and machine.kind == "tpu"
        slices = {"max_nodes": "slices", "min_nodes": "min_slices"}
        return (*self.origin, slices[str(field)]) if tpu and field in slices else super().path(name)

    @property
    def machine(self) -> MachineType | None:
        """The machine type's row in the catalogue; None where it has none, which a rule of its own finds.

        A CPU machine with GPUs attached is the row of both, where the catalogue lets them go together.
        """
        machine = MACHINE_TYPES.get(self.machine_type or "")
        if machine is None or machine.kind != "cpu" or self.accelerator_type is None:
            return machine
        return with_gpus(machine.name, self.accelerator_type, self.accelerator_count or 0)

    @property
    def capacity(self) -> Capacity:
        """How its VMs are had: what decides the quota charged. Queued provisioning is charged as flex-start is."""
        if self.flex_start or self.queued:
            return "flex-start"
        if self.spot:
            return "spot"
        return "reservation" if self.consume_reservation == "SPECIFIC_RESERVATION" else "on-demand"

    @property
    def hosts(self) -> int:
        """VMs of one slice as ``tpu_topology`` asks for them, rounded up; 1 without one, or where it is no topology."""
        if not self.tpu_topology or not self.machine or not self.machine.chips:
            return 1
        return -(-(chips_in(self.tpu_topology) or 1) // self.machine.chips)

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


@lru_cache(maxsize=1024)
def with_gpus(machine_type: str, gke_label: str, count: int) -> MachineType:
    """Return the row of a CPU machine with GPUs attached; its own row where they do not go together."""
    machine = MACHINE_TYPES[machine_type]
    found = next((each for each in ACCELERATORS.values() if each.gke_label == gke_label), None)
    return (attached(machine, found, count) if found else None) or machine


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


@dataclass(frozen=True, kw_only=True)
class Filestore(View):
    """A Filestore instance; capacity in GiB (the API's ``capacityGb``).

    ``network_project`` is the project that its network is named with, None where a bare name says none.
    """

    PATHS: ClassVar[dict[str, Path]] = {"connect_mode": (), "network_project": ()}

    project: str
    tier: str
    location: str
    capacity_gib: int
    protocol: str | None
    connect_mode: str | None
    reserved_range: str | None
    network_project: str | None
    deletion_protection: bool | None
    labels: dict[str, str] | None


@dataclass(frozen=True, kw_only=True)
class FilestorePerformance(Settings):
    """What a plan alone says of a Filestore instance: IOPS per TiB or in all, and whether it knows users by LDAP."""

    filestore: Filestore
    iops_per_tb: int | None
    fixed_iops: int | None
    directory_services: bool


@dataclass(frozen=True, kw_only=True)
class PersistentPool(View):
    """One resource pool of a Vertex AI persistent resource; counts are VMs."""

    PATHS: ClassVar[dict[str, Path]] = {
        "resource_id": (),
        "replica_count": ("replicas",),
        "min_replicas": ("replicas",),
        "accelerator_type": ("machine_type",),
        "accelerator_count": ("machine_type",),
    }

    project: str
    region: str
    resource_id: str | None
    machine_type: str | None
    accelerator_type: str | None
    accelerator_count: int | None
    replica_count: int | None
    min_replicas: int | None
    max_replicas: int | None
    labels: dict[str, str] | None

    @property
    def machine(self) -> MachineType | None:
        """The machine type's row in the catalogue; None where it has none, which a rule of its own finds."""
        return MACHINE_TYPES.get(self.machine_type or "")

    @property
    def most_vms(self) -> int:
        """VMs at most: the autoscaler's maximum, else the fixed count."""
        return next((n for n in (self.max_replicas, self.replica_count) if n is not None), 1)


@dataclass(frozen=True, kw_only=True)
class Labelled(View):
    """Any resource that takes labels: its labels, None where it has none at all."""

    labels: dict[str, str] | None


@dataclass(frozen=True, kw_only=True)
class Bucket(View):
    """A Cloud Storage bucket; ``force_destroy`` deletes its objects with it."""

    PATHS: ClassVar[dict[str, Path]] = {"force_destroy": ()}

    location: str
    force_destroy: bool


@dataclass(frozen=True, kw_only=True)
class Flavor(View):
    """A Kueue ResourceFlavor: the labels of the nodes that it stands for."""

    PATHS: ClassVar[dict[str, Path]] = {"node_labels": ()}

    flavor: str
    node_labels: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class FlavorQuota(View):
    """One flavor of one resource in a ClusterQueue; quantities in chips or GPUs."""

    queue: str
    cohort: str | None
    resource: str
    flavor: str
    nominal_quota: int
    borrowing_limit: int | None
    lending_limit: int | None

    def path(self, name: str) -> Path:
        """Return where a field stands in the stack file: below the flavor of the share."""
        return (*self.origin, self.flavor, name) if self.known("flavor") else (*self.origin, name)


@dataclass(frozen=True, kw_only=True)
class ExternalAddress(View):
    """Something that gives VMs an address on the internet; ``what`` names it."""

    PATHS: ClassVar[dict[str, Path]] = {"what": ()}

    what: str


@dataclass(frozen=True, kw_only=True)
class Gateway(View):
    """A region's NAT gateway; ``addresses`` counts those reserved for it by hand, 0 where Google Cloud takes them."""

    project: str
    region: str
    addresses: int
