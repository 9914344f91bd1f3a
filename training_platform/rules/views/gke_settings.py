"""Views of settings of clusters and pools, most of which no line of a stack file decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from training_platform.config.reading.finding import Path
from training_platform.rules.views.gke import Cluster, NodePool
from training_platform.rules.views.view import Settings


class Window(NamedTuple):
    """A recurring window of maintenance: times as GKE takes them, ``2026-01-03T06:00:00Z``, and an RRULE."""

    start: str
    end: str
    recurrence: str


class Exclusion(NamedTuple):
    """A time without upgrades of ``scope``; no end means the end of the version's support."""

    name: str
    start: str
    end: str | None
    scope: str


@dataclass(frozen=True, kw_only=True)
class ClusterSettings(Settings):
    """A cluster's settings; ``clashing`` lists what is set that an Autopilot cluster does not take.

    ``window`` is None where GKE may upgrade at any time.
    """

    PATHS: ClassVar[dict[str, Path]] = {"window": ("maintenance",), "exclusions": ("maintenance", "exclusions")}

    cluster: Cluster
    network: str | None
    datapath: str | None
    networking_mode: str | None
    multi_networking: bool
    network_policy: bool
    dataplane_policies: bool  # FQDN or cluster-wide Cilium network policies
    autopilot: bool
    clashing: tuple[str, ...]
    zones: tuple[str, ...]  # as node_locations lists them
    node_version: str | None
    remove_default_pool: bool
    initial_nodes: int | None
    inline_pools: int
    default_machine: str | None
    workload_pool: str | None
    tags: int
    window: Window | None
    exclusions: tuple[Exclusion, ...]


_LIMITS = {"cpu": "cpu", "memory": "memory_gb"}


class Limit(NamedTuple):
    """A limit of node auto-provisioning: vCPUs, GB of memory, chips or GPUs over all pools of the cluster."""

    resource: str
    maximum: int | None


@dataclass(frozen=True, kw_only=True)
class AutoProvisioning(Settings):
    """Node auto-provisioning of a cluster; ``written`` says whether the defaults of its pools are written at all."""

    PATHS: ClassVar[dict[str, Path]] = {
        "limits": ("auto_provisioning",),
        "strategy": ("auto_provisioning",),
        "zones": ("auto_provisioning", "zones"),
        "disk_type": ("auto_provisioning", "boot_disk", "type"),
        "disk_gb": ("auto_provisioning", "boot_disk", "size_gb"),
        "max_surge": ("auto_provisioning", "max_surge"),
    }

    cluster: Cluster
    limits: tuple[Limit, ...]
    zones: tuple[str, ...]
    written: bool
    disk_type: str | None
    disk_gb: int | None
    strategy: str | None
    max_surge: int | None

    def path(self, name: str) -> Path:
        """Return where a field stands; a limit, by the name of its resource, stands at a line of its own."""
        if name not in _LIMITS and self.known("limits") and any(each.resource == name for each in self.limits):
            return (*super().path("limits"), "accelerators", name)
        return (*super().path("limits"), _LIMITS[name]) if name in _LIMITS else super().path(name)

    def limit(self, resource: str) -> int | None:
        """Return the limit of a resource; None where it has none."""
        return next((each.maximum for each in self.limits if each.resource == resource), None)


class Taint(NamedTuple):
    """What keeps pods off nodes; the effect as GKE spells it, ``NO_SCHEDULE``."""

    key: str | None
    effect: str | None


class Nic(NamedTuple):
    """An additional network interface: its network and subnet, by name or logical name."""

    network: str | None
    subnetwork: str | None


@dataclass(frozen=True, kw_only=True)
class PoolSettings(Settings):
    """A node pool's settings beside those of ``pool``; ``upgrades`` says whether its upgrades are written at all.

    ``replaced_first`` says whether a replacement waits for the old pool to go, None where whoever
    planned does not say.
    """

    PATHS: ClassVar[dict[str, Path]] = {
        **{name: (name,) for name in ("driver", "partition", "confidential", "taints")},
        **dict.fromkeys(("upgrades", "max_surge", "max_unavailable"), ("upgrades",)),
        "sharing": ("sharing", "strategy"),
        "sharing_clients": ("sharing", "max_clients"),
        "secondary_disks": ("preload_images",),
        "nics": ("gpu_direct",),
    }

    pool: NodePool
    spot_twice: bool  # both spellings of spot
    min_cpu_platform: str | None
    image_type: str | None
    gvnic: bool
    fast_socket: bool
    image_streaming: bool
    secondary_disks: int
    driver: str | None
    partition: str | None
    sharing: str | None
    sharing_clients: int | None
    confidential: str | None
    maintenance: str | None
    shutdown_seconds: int | None
    upgrades: bool
    max_surge: int | None
    max_unavailable: int | None
    policy: str | None
    reservation_path: str | None
    nics: tuple[Nic, ...]
    network_profile: str | None
    metadata_mode: str | None
    scopes: tuple[str, ...]
    service_account: str | None
    tags: int
    taints: tuple[Taint, ...]
    provisioned: bool  # IOPS or throughput of the boot disk
    disk_type: str | None
    storage_pools: int
    disk_twice: bool  # both spellings of the boot disk, with different values
    ignored: tuple[str, ...] | None  # inputs whose changes are ignored, None where whoever planned does not say
    replaced_first: bool | None


@dataclass(frozen=True, kw_only=True)
class ResourcePolicy(Settings):
    """A resource policy of Compute Engine that places VMs."""

    project: str
    region: str
    policy: str | None
    workload: bool
    workload_type: str | None
    topology: str | None
    topology_mode: str | None
    topology_distance: str | None
    group: bool
    max_distance: int | None
    gpu_topology: str | None


@dataclass(frozen=True, kw_only=True)
class Reservation(Settings):
    """A reservation of VMs in one zone; ``local_ssds`` and GPUs are those that it lists, for each VM."""

    project: str
    zone: str
    reservation: str | None
    machine_type: str | None
    accelerator_type: str | None
    accelerator_count: int | None
    min_cpu_platform: str | None
    local_ssds: int
    count: int | None
    specific: bool
