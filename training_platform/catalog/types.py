"""The types of the catalogue; the facts themselves are in data files beside this one.

Nothing here names a family: a new family of machines is a new data file. Sizes are in the unit that the name of the
field ends in. ``source`` says where a row was read and when; ``unverified`` names the fields of a row (``price.spot``
is the spot figure in ``price``) for which no primary source was read, or on which sources disagree, and is shown
wherever the row is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from math import prod
from typing import Any, Literal, NamedTuple

Json = dict[str, Any]
"""A JSON object whose structure an API, a CRD or a chart defines, and no type of ours."""
Kind = Literal["tpu", "gpu", "cpu"]
ChargedCapacity = Literal["on-demand", "spot", "flex-start", "reservation"]
Calendar = Literal["offered", "on-request", "none"]
"""Future reservations in calendar mode; ``on-request`` is for projects that Google admits."""


class QuotaId(NamedTuple):
    """A quota that Google Cloud counts: service, id as the Cloud Quotas API spells it, and its fixed dimensions.

    ``dimensions`` holds pairs such as ``("gpu_family", "NVIDIA_H100")``; the region or zone is added by whoever
    charges it. ``per`` says which: ``region``, ``zone`` or ``project`` (no location). ``unit`` is what one counts:
    ``chips``, ``GPUs``, ``vCPUs``, ``GB``, ``GiB``, ``VMs``, ``addresses``, ``rules``, ``IOPS`` and the like.
    """

    service: str
    quota_id: str
    unit: str
    per: Literal["region", "zone", "project"] = "region"
    dimensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class CatalogRow:
    """A row of the catalogue; data files write its name as the key."""

    name: str
    source: str
    unverified: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Quota(CatalogRow):
    """The facts of a quota besides its id; ``name`` is its short name in data files."""

    id: QuotaId


@dataclass(frozen=True, kw_only=True)
class Price:
    """List prices in USD per hour of one chip, one GPU or one whole VM (``unit``), by region, as read on ``read``.

    A capacity or region without a figure has no entry: a cost that needs it is reported as not known, never as zero.
    ``without`` names what the VM comes with and the figure leaves out.
    """

    unit: Literal["chip", "gpu", "vm"]
    read: date
    source: str
    usd: dict[ChargedCapacity, dict[str, float]]  # capacity -> region -> USD per unit and hour; "*" is any other region
    without: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ServicePrice(CatalogRow):
    """The list price in USD by region of an item other than a machine, as of ``read``.

    A price with ``usd`` in ``unverified`` is one that somebody else read from Google's billing catalogue.
    """

    per: Literal["GiB-month", "MiBps-month", "hour"]
    read: date
    usd: dict[str, float]  # "*" is any other region


@dataclass(frozen=True, kw_only=True)
class VertexSupport:
    """An accelerator in Vertex AI training: its ``acceleratorType``, regions, and quota by capacity.

    ``accelerator_type`` is None where Vertex takes machine type and topology alone (TPU v5e and later).
    ``flex_start`` says whether a job may ask for FLEX_START; Vertex AI does not support a capacity without a quota.
    ``topologies`` lists the slices that Vertex takes, empty where it takes all that the family has.
    """

    accelerator_type: str | None
    regions: tuple[str, ...]
    quotas: dict[ChargedCapacity, QuotaId]
    flex_start: bool
    source: str
    topologies: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TopologyRule:
    """The slice shapes that exist: ``shapes`` and, if ``cube_side`` is set, boxes whose sides are multiples of it.

    A topology is written ``AxB`` (``dims`` 2) or ``AxBxC`` (``dims`` 3), sides in chips. ``ascending`` asks for
    sides in rising order; ``max_cubes`` bounds the number of cubes of ``cube_side`` in a box, 0 for a family without.
    """

    dims: int
    shapes: tuple[str, ...]
    cube_side: int | None = None
    max_cubes: int = 0
    ascending: bool = False

    def legal(self, topology: str) -> bool:
        """Whether the shape exists, on some machine type of the family."""
        if topology in self.shapes:
            return True
        sides = parse_topology(topology)
        if sides is None or self.cube_side is None or len(sides) != self.dims or topology != render_topology(sides):
            return False
        if any(side % self.cube_side for side in sides) or (self.ascending and list(sides) != sorted(sides)):
            return False
        return prod(side // self.cube_side for side in sides) <= self.max_cubes

    def legal_shapes(self) -> Iterator[str]:
        """Every valid shape in order of chips, sides rising, smallest first; a rule with cubes lists all its boxes."""
        side = self.cube_side
        boxes = _rising(self.dims, self.max_cubes) if side is not None else ()
        shapes = {*self.shapes, *(render_topology(tuple(cubes * (side or 0) for cubes in box)) for box in boxes)}
        yield from sorted(shapes, key=lambda shape: (chips_in(shape) or 0, parse_topology(shape) or ()))


@lru_cache(maxsize=4096)
def parse_topology(topology: str) -> tuple[int, ...] | None:
    """Return the sides of ``AxB`` or ``AxBxC`` in chips, or None if the string is not a topology."""
    sides = topology.split("x")
    if not 2 <= len(sides) <= 3 or not all(side.isascii() and side.isdecimal() and len(side) < 6 for side in sides):
        return None
    numbers = tuple(int(side) for side in sides)
    return numbers if all(numbers) else None


def render_topology(sides: tuple[int, ...]) -> str:
    """Return a topology as string, ``AxB`` or ``AxBxC``."""
    return "x".join(str(side) for side in sides)


def chips_in(topology: str) -> int | None:
    """Return the number of chips in a slice of this topology, or None if the string is not a topology."""
    sides = parse_topology(topology)
    return prod(sides) if sides else None


def _rising(dims: int, max_product: int, minimum: int = 1) -> Iterator[tuple[int, ...]]:
    """Yield every tuple of ``dims`` numbers >= ``minimum``, in rising order, with a product up to ``max_product``."""
    if dims == 0:
        yield ()
        return
    for first in range(minimum, max_product + 1):
        for following_numbers in _rising(dims - 1, max_product // first, first):
            yield (first, *following_numbers)


class GpuCount(NamedTuple):
    """A number of GPUs that one VM can have, and the most vCPUs of the VM with them."""

    gpus: int
    max_vcpus: int

    def __str__(self) -> str:
        """Return the pair for people."""
        return f"{self.gpus} with up to {self.max_vcpus} vCPUs"


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """The attachment of a GPU without machine types of its own to VMs of ``families`` (``n1-standard``).

    ``capacities``, ``calendar``, ``zones`` and ``minimum_gke`` are of a VM with the GPU, and take the place of the
    machine type's own; ``vertex_counts`` is narrower than ``counts``. ``catalog.attachments`` makes the row of
    both.
    """

    families: tuple[str, ...]
    counts: tuple[GpuCount, ...]
    vertex_counts: tuple[GpuCount, ...]
    capacities: tuple[ChargedCapacity, ...]
    zones: tuple[str, ...]
    source: str
    calendar: Calendar | None = None
    minimum_gke: dict[str, str] = field(default_factory=dict)
    unverified: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One generation of TPU or one model of GPU; its kind is ``cpu`` for VMs with neither.

    ``name`` is the short name that flavors and reports use (``tpu-v5e``, ``h100-mega``). ``gke_label`` is the value
    of ``cloud.google.com/gke-tpu-accelerator`` or ``cloud.google.com/gke-accelerator``. ``quotas`` gives the quota
    charged per capacity; a capacity that is absent is charged to none. ``fallback`` is charged where the first has
    no limit in a project. HBM is in GB per chip or GPU; the peak is in TFLOPS of dense bf16, or None without a source.
    ``price`` is that of the accelerator alone: its VM costs more. ``attachment`` is None unless CPU machines take it.
    """

    name: str
    kind: Kind
    title: str
    gke_label: str
    hbm_gb: int
    peak_bf16_tflops: float | None
    topologies: TopologyRule | None
    quotas: dict[ChargedCapacity, QuotaId]
    fallback: dict[ChargedCapacity, QuotaId]
    vertex: VertexSupport | None
    partitions: dict[str, int]  # gpu_partition_size -> instances per GPU
    source: str
    price: Price | None = None
    attachment: Attachment | None = None
    unverified: tuple[str, ...] = ()

    @property
    def resource(self) -> str:
        """The Kubernetes resource that pods request."""
        return {"tpu": "google.com/tpu", "gpu": "nvidia.com/gpu", "cpu": "cpu"}[self.kind]


@dataclass(frozen=True, kw_only=True)
class LocalSsd:
    """Local SSD partitions: the fixed number that is ``bundled``, or the counts that can be requested.

    ``quota`` counts GB; bundled partitions are charged to it as well.
    """

    bundled: int = 0
    allowed: tuple[int, ...] = ()
    quota: QuotaId | None = None
    partition_gib: int = 375


@dataclass(frozen=True, kw_only=True)
class NetworkDevices:
    """The network devices of a VM that DRANET, a driver of GKE, lets a pod with all of the VM's chips claim.

    ``count`` is of the class that the pod claims; a second gVNIC beside RDMA is another class. ``default`` says whether
    Google's newest blueprint of the machine uses DRANET and was deployed with it.
    """

    device_class: str
    count: int
    default: bool = False

    @property
    def template(self) -> str:
        """The name of the ResourceClaimTemplate for all devices of a VM: ``mrdma-8``."""
        return f"{self.device_class.partition('.')[0]}-{self.count}"


@dataclass(frozen=True, kw_only=True)
class MachineType(CatalogRow):
    """A machine type that a node pool or a Vertex pool may have.

    ``chips`` counts chips (TPU) or GPUs per VM, 0 for a machine without. ``boot_disk_types`` lists the types that it
    takes, the default first. ``capacities`` lists its provisioning models. ``zones`` lists the zones that
    offer it by our source, empty where every zone may (CPU machines) but those in ``missing_zones``; both lists age.
    ``regions`` are those that a source names beside them, without their zones. ``allowlisted`` are the capacities that
    Google opens to a project on request. ``calendar`` is None where no source says whether there is such a thing.
    ``single_host`` is the topology of a one-host slice, None where the machine has none; ``multi_host`` says whether
    it can be part of a larger slice. A capacity that is absent from ``cpu_quota`` charges its vCPUs to none;
    ``vertex_cpu_quota`` is charged instead when Vertex starts the machine. ``gpudirect_minimum_gke`` holds, for each
    minor version, the lowest patch that works; every later minor does. Each NIC but the first wants a VPC of its own,
    save the ``rdma_nics``, which want a subnet each of one VPC made from the network profile ``{zone}-vpc-roce``.
    ``workload_policy`` says that several hosts are joined by the workload policy that the placement names, of the
    slice's topology or of ``nvlink_domain``, which is written in GPUs.
    """

    kind: Kind
    accelerator: Accelerator | None
    chips: int
    vcpus: int
    memory_gb: float
    boot_disk_types: tuple[str, ...]
    capacities: tuple[ChargedCapacity, ...]
    zones: tuple[str, ...]
    cpu_quota: dict[ChargedCapacity, QuotaId]
    price: Price | None
    local_ssd: LocalSsd = field(default_factory=LocalSsd)
    single_host: str | None = None
    multi_host: bool = False
    calendar: Calendar | None = None
    nics: int = 1
    max_gbps: int | None = None
    gpudirect: str | None = None
    compact_max_nodes: int | None = None
    vertex: bool = False
    fast_socket: bool = False  # takes gVNIC with NCCL Fast Socket
    missing_zones: tuple[str, ...] = ()
    vertex_cpu_quota: dict[ChargedCapacity, QuotaId] = field(default_factory=dict)
    gpudirect_minimum_gke: tuple[str, ...] = ()
    # A capacity, "pool", "autopilot", "auto-provisioning", "multislice" or "dranet" -> lowest GKE version.
    minimum_gke: dict[str, str] = field(default_factory=dict)
    regions: tuple[str, ...] = ()
    allowlisted: tuple[ChargedCapacity, ...] = ()
    rdma_nics: int = 0
    gpudirect_mtu: int | None = None  # of the VPCs of all NICs but gVNIC's
    workload_policy: bool = False
    nvlink_domain: str | None = None
    network_devices: NetworkDevices | None = None  # None without DRANET
    architecture: Literal["amd64", "arm64"] = "amd64"
    confidential: tuple[str, ...] = ()  # confidential_instance_type

    @property
    def vertex_gpus(self) -> str | None:
        """Vertex AI's name of the GPUs; None without GPUs, and for TPUs, which the machine type implies."""
        support = self.accelerator.vertex if self.accelerator and self.kind == "gpu" else None
        return support.accelerator_type if support else None

    def hosts_of(self, topology: str | None) -> int:
        """Return the VMs of one slice, rounded up; 1 for GPUs and without a topology."""
        if self.kind != "tpu" or topology is None:
            return 1
        return -(-(chips_in(topology) or 1) // self.chips)


@dataclass(frozen=True, kw_only=True)
class DiskType(CatalogRow):
    """A persistent disk type: size range in GB as the API counts them, and the quota that it is charged to.

    ``vertex_quota`` is charged instead for boot disks of machines that Vertex starts. The limits of boot disks are
    narrower than the range of the type: ``BootDiskLimits``.
    """

    min_gb: int
    max_gb: int
    quota: QuotaId | None
    gke_boot: bool
    vertex_boot: bool
    vertex_quota: QuotaId | None = None


@dataclass(frozen=True, kw_only=True)
class BootDiskLimits(CatalogRow):
    """The sizes of boot disks that a service (``gke``, ``vertex``) accepts, in GB as its API counts them."""

    min_gb: int
    max_gb: int
    default_gb: int


class Band(NamedTuple):
    """A range of capacities in GiB: lowest, highest, and the step from the lowest."""

    low_gib: int
    high_gib: int
    step_gib: int


class Performance(NamedTuple):
    """The highest performance of instances of ``low_gib`` to ``high_gib``, per TiB of capacity or per instance."""

    low_gib: int
    high_gib: int
    read_iops: int
    write_iops: int
    read_mibps: int
    write_mibps: int
    per_tib: bool


class Throughput(NamedTuple):
    """The expected performance of an instance: IOPS, and MiB/s."""

    read_iops: int
    write_iops: int
    read_mibps: int
    write_mibps: int


@dataclass(frozen=True, kw_only=True)
class FilestoreTier(CatalogRow):
    """A Filestore service tier: zonal or regional, capacities in GiB, and the quota that it is charged to.

    A share never moves from one band to another. ``high_band_quota`` is charged for capacities of the last band where
    that differs. ``disputed_bands`` are capacities that one source has and another lacks. ``shrinks`` says whether a
    share can get smaller. ``reserved_prefixes`` are lengths of the prefix of the address block that an instance takes:
    the first is the one to choose, the others are those of sources that disagree. ``share_name_max`` counts characters.
    """

    scope: Literal["zone", "region"]
    bands: tuple[Band, ...]
    protocols: tuple[str, ...]
    csi_tier: str  # the tier parameter of the GKE Filestore CSI driver
    quota: QuotaId
    shrinks: bool
    reserved_prefixes: tuple[int, ...]
    share_name_max: int
    performance: tuple[Performance, ...] = ()
    snapshots: bool = True
    high_band_quota: QuotaId | None = None
    disputed_bands: tuple[Band, ...] = ()

    def band_of(self, capacity_gib: int) -> Band | None:
        """Return the band of a capacity, or None outside of all bands."""
        return next((band for band in self.bands if band.low_gib <= capacity_gib <= band.high_gib), None)

    def throughput(self, capacity_gib: int) -> Throughput | None:
        """Return the performance of an instance without custom performance, or None without a source."""
        for row in self.performance:
            if row.low_gib <= capacity_gib <= row.high_gib:
                tib = capacity_gib / 1024 if row.per_tib else 1
                return Throughput(
                    read_iops=round(row.read_iops * tib),
                    write_iops=round(row.write_iops * tib),
                    read_mibps=round(row.read_mibps * tib),
                    write_mibps=round(row.write_mibps * tib),
                )
        return None

    def quota_for(self, capacity_gib: int) -> QuotaId:
        """Return the quota to which an instance of this capacity is charged."""
        if self.high_band_quota is not None and capacity_gib >= self.bands[-1].low_gib:
            return self.high_band_quota
        return self.quota


@dataclass(frozen=True, kw_only=True)
class LustreTier(CatalogRow):
    """A performance tier of Managed Lustre, ``lustre-{MB/s per TiB}``; capacities in GiB.

    An instance grows inside its band and never shrinks.
    """

    bands: tuple[Band, ...]
    quota: QuotaId


@dataclass(frozen=True, kw_only=True)
class Chart(CatalogRow):
    """A Helm chart that the platform installs: its repository and version. Stack files can override both.

    ``tested`` are the minor versions whose values and objects are tested here, with the releases that ``tested_with``
    names. ``upgrade`` says what another version touches in a cluster.
    """

    chart: str  # an OCI reference, or a name in ``repository``
    version: str
    repository: str | None
    namespace: str
    tested: tuple[str, ...] = ()
    tested_with: str = ""
    upgrade: str = ""


@dataclass(frozen=True, kw_only=True)
class ChartPorts(CatalogRow):
    """The ports on which the API server calls pods of a chart, by the chart's name."""

    ports: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Release(CatalogRow):
    """A minor version of a chart, and the versions of other software that its owner declares compatible.

    ``goes_with`` are the versions that it was built and tested with, by chart; ``breaks`` are minor versions that it
    does not work with; ``kubernetes`` is the oldest minor version that it supports; ``removes`` is what it no longer
    has, as a predicate.
    """

    chart: str
    minor: str
    goes_with: dict[str, str] = field(default_factory=dict)
    breaks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kubernetes: str | None = None
    removes: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelServer(CatalogRow):
    """A program that serves models: its port, with /health and /metrics, and the gauge for scaling its replicas."""

    port: int
    metric: str
    target: int  # the metric's mean over all pods


@dataclass(frozen=True, kw_only=True)
class Image(CatalogRow):
    """A container image that the platform starts unless a stack or a job names another."""

    image: str
