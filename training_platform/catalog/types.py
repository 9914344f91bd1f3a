"""The types of the catalogue. The facts themselves are in data files.

No code here names a machine family: a new family is a new data file. The name of a size field ends with its unit.
``source`` says where a row was read and when. ``unverified`` names the fields of a row for which no primary source was
read or on which sources disagree; ``price.spot`` is the spot price in ``price``. Every output that shows a row also
shows these marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from math import prod
from typing import Any, Literal, NamedTuple

Json = dict[str, Any]
"""A JSON object whose structure is defined by an API, a CRD or a chart, and not by a type of ours."""
Kind = Literal["tpu", "gpu", "cpu"]
ChargedCapacity = Literal["on-demand", "spot", "flex-start", "reservation"]
Calendar = Literal["offered", "on-request", "none"]
"""Whether calendar mode of future reservations is offered; ``on-request`` means for projects that Google admits."""


class QuotaId(NamedTuple):
    """A Google Cloud quota: its service, its id as the Cloud Quotas API writes it, and its fixed dimensions.

    ``dimensions`` contains pairs such as ``("gpu_family", "NVIDIA_H100")``; the code that charges the quota adds the
    region or zone. ``per`` is the scope: ``region``, ``zone`` or ``project`` (no location). ``unit`` is the unit of the
    limit: ``chips``, ``GPUs``, ``vCPUs``, ``GB``, ``GiB``, ``VMs``, ``addresses``, ``rules``, ``IOPS`` and the like.
    """

    service: str
    quota_id: str
    unit: str
    per: Literal["region", "zone", "project"] = "region"
    dimensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class CatalogRow:
    """A row of the catalogue. Its name is its key in the data file."""

    name: str
    source: str
    unverified: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Quota(CatalogRow):
    """What is known about a quota in addition to its id; ``name`` is its short name in data files."""

    id: QuotaId


@dataclass(frozen=True, kw_only=True)
class Price:
    """List prices in USD per hour of one chip, one GPU or one whole VM (``unit``), keyed by region.

    ``read`` is the date on which they were read. A capacity or region without a price has no entry, so that a cost
    which needs it is reported as unknown and never as zero. ``without`` names a part of the VM that the price does not
    include.
    """

    unit: Literal["chip", "gpu", "vm"]
    read: date
    source: str
    usd: dict[ChargedCapacity, dict[str, float]]  # capacity -> region -> USD per unit and hour; "*" is any other region
    without: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ServicePrice(CatalogRow):
    """The list price in USD of an item other than a machine, keyed by region, as of ``read``.

    ``usd`` in ``unverified`` marks a price that somebody else read from Google's billing catalogue.
    """

    per: Literal["GiB-month", "MiBps-month", "hour"]
    read: date
    usd: dict[str, float]  # "*" is any other region


@dataclass(frozen=True, kw_only=True)
class VertexSupport:
    """How Vertex AI training offers an accelerator: its ``acceleratorType``, its regions, its quota for each capacity.

    ``accelerator_type`` is None if Vertex AI accepts only a machine type and a topology (TPU v5e and later).
    ``flex_start`` says whether a job may request FLEX_START. Vertex AI does not support a capacity without a quota.
    ``topologies`` lists the slices that Vertex AI accepts; it is empty if Vertex AI accepts all slices of the family.
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

    A topology is written as ``AxB`` (``dims`` is 2) or ``AxBxC`` (``dims`` is 3), with the sides in chips.
    ``ascending`` means that the sides have to be in rising order. ``max_cubes`` limits the number of cubes of
    ``cube_side`` in a box; it is 0 for a family without cubes.
    """

    dims: int
    shapes: tuple[str, ...]
    cube_side: int | None = None
    max_cubes: int = 0
    ascending: bool = False

    def legal(self, topology: str) -> bool:
        """Return True if some machine type of the family can form the shape."""
        if topology in self.shapes:
            return True
        sides = parse_topology(topology)
        if sides is None or self.cube_side is None or len(sides) != self.dims or topology != render_topology(sides):
            return False
        if any(side % self.cube_side for side in sides) or (self.ascending and list(sides) != sorted(sides)):
            return False
        return prod(side // self.cube_side for side in sides) <= self.max_cubes

    def legal_shapes(self) -> Iterator[str]:
        """Yield every valid shape by number of chips: ``shapes``, and boxes of cubes with sides in rising order."""
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
    """Return a topology as a string, ``AxB`` or ``AxBxC``."""
    return "x".join(str(side) for side in sides)


def chips_in(topology: str) -> int | None:
    """Return the number of chips in a slice of this topology, or None if the string is not a topology."""
    sides = parse_topology(topology)
    return prod(sides) if sides else None


def _rising(dims: int, max_product: int, minimum: int = 1) -> Iterator[tuple[int, ...]]:
    """Yield every tuple of ``dims`` rising numbers >= ``minimum`` whose product is at most ``max_product``."""
    if dims == 0:
        yield ()
        return
    for first in range(minimum, max_product + 1):
        for following_numbers in _rising(dims - 1, max_product // first, first):
            yield (first, *following_numbers)


class GpuCount(NamedTuple):
    """How many GPUs one VM can have, and the maximum number of vCPUs that this VM can then have."""

    gpus: int
    max_vcpus: int

    def __str__(self) -> str:
        """Return the numbers of GPUs and vCPUs as text."""
        return f"{self.gpus} with up to {self.max_vcpus} vCPUs"


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """How a GPU without its own machine types is attached to VMs of ``families`` (``n1-standard``).

    ``capacities``, ``calendar``, ``zones`` and ``minimum_gke`` describe a VM with the GPU and replace the values of the
    machine type. ``vertex_counts`` is narrower than ``counts``. ``catalog.attachments`` combines both into one row.
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
    """One generation of TPU or one model of GPU. VMs with neither have the kind ``cpu``.

    - ``name`` is the short name that flavors and reports use (``tpu-v5e``, ``h100-mega``).
    - ``gke_label`` is the value of ``cloud.google.com/gke-tpu-accelerator`` or ``cloud.google.com/gke-accelerator``.
    - ``quotas`` gives the quota that each capacity is charged to. A capacity that is not listed is charged to no quota.
    - ``fallback`` gives the quota that is charged if the one in ``quotas`` has no limit in a project.
    - ``hbm_gb`` is in GB per chip or GPU.
    - ``peak_bf16_tflops`` is in TFLOPS of dense bf16, or None without a source.
    - ``price`` is the price of the accelerator without the VM, which costs more.
    - ``attachment`` is None unless the accelerator can be attached to CPU machines.
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
    """Local SSD partitions of a VM: either the fixed number ``bundled``, or the numbers that can be requested.

    ``quota`` counts GB. Bundled partitions are charged to it as well.
    """

    bundled: int = 0
    allowed: tuple[int, ...] = ()
    quota: QuotaId | None = None
    partition_gib: int = 375


@dataclass(frozen=True, kw_only=True)
class NetworkDevices:
    """The network devices of a VM that a pod with all of the VM's chips can claim through DRANET, a GKE driver.

    ``count`` is the number of devices of the class that the pod claims. A second gVNIC next to RDMA devices belongs to
    another class. ``default`` is True if Google's newest blueprint for the machine uses DRANET and was deployed with
    it.
    """

    device_class: str
    count: int
    default: bool = False

    @property
    def template(self) -> str:
        """The name of the ResourceClaimTemplate that claims all devices of a VM, for example ``mrdma-8``."""
        return f"{self.device_class.partition('.')[0]}-{self.count}"


@dataclass(frozen=True, kw_only=True)
class MachineType(CatalogRow):
    """A machine type that a node pool or a Vertex pool may have.

    - ``chips`` is the number of TPU chips or GPUs per VM, 0 for a machine without accelerators.
    - ``boot_disk_types`` lists the disk types that the machine supports, the default first.
    - ``capacities`` lists its provisioning models.
    - ``zones`` lists the zones that offer the machine according to our source. It is empty for CPU machines,
      which may be in every zone except ``missing_zones``. Both lists become outdated.
    - ``regions`` are additional regions that a source names without their zones.
    - ``allowlisted`` are the capacities that Google enables for a project on request.
    - ``calendar`` is None if no source says whether calendar mode exists for the machine.
    - ``single_host`` is the topology of a one-host slice, None if the machine has none.
    - ``multi_host`` says whether the machine can be part of a larger slice.
    - ``cpu_quota`` gives the quota to which each capacity charges the vCPUs. A capacity not listed charges none.
    - ``vertex_cpu_quota`` is charged instead if Vertex AI starts the machine.
    - ``gpudirect_minimum_gke`` contains the lowest patch that works for each minor version. All later minor
      versions work.
    - ``nics`` is the number of NICs. Each needs its own VPC, except the first and the ``rdma_nics``.
    - ``rdma_nics`` is the number of RDMA NICs. Each needs its own subnet, all in one VPC with the network profile
      ``{zone}-vpc-roce``.
    - ``workload_policy`` says that the placement names a workload policy which joins several hosts. The policy
      has the topology of the slice or of ``nvlink_domain``, which is written in GPUs.
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
        """Vertex AI's name of the GPUs. None for CPUs, and for TPUs, which the machine type already implies."""
        support = self.accelerator.vertex if self.accelerator and self.kind == "gpu" else None
        return support.accelerator_type if support else None

    def hosts_of(self, topology: str | None) -> int:
        """Return the number of VMs in one slice, rounded up. It is 1 for GPUs, and for TPUs without a topology."""
        if self.kind != "tpu" or topology is None:
            return 1
        return -(-(chips_in(topology) or 1) // self.chips)


@dataclass(frozen=True, kw_only=True)
class DiskType(CatalogRow):
    """A persistent disk type: its size range in GB as the API counts them, and the quota that it is charged to.

    Boot disks of machines that Vertex AI starts are charged to ``vertex_quota`` instead. Boot disks have narrower size
    limits than the type: see ``BootDiskLimits``.
    """

    min_gb: int
    max_gb: int
    quota: QuotaId | None
    gke_boot: bool
    vertex_boot: bool
    vertex_quota: QuotaId | None = None


@dataclass(frozen=True, kw_only=True)
class BootDiskLimits(CatalogRow):
    """The boot disk sizes that a service (``gke``, ``vertex``) accepts, in GB as the service's API counts them."""

    min_gb: int
    max_gb: int
    default_gb: int


class Band(NamedTuple):
    """A range of capacities in GiB: the lowest, the highest, and the step between them."""

    low_gib: int
    high_gib: int
    step_gib: int


class Performance(NamedTuple):
    """The maximum performance of instances from ``low_gib`` to ``high_gib``, per TiB of capacity or per instance."""

    low_gib: int
    high_gib: int
    read_iops: int
    write_iops: int
    read_mibps: int
    write_mibps: int
    per_tib: bool


class Throughput(NamedTuple):
    """The expected performance of an instance, in IOPS and MiB/s."""

    read_iops: int
    write_iops: int
    read_mibps: int
    write_mibps: int


@dataclass(frozen=True, kw_only=True)
class FilestoreTier(CatalogRow):
    """A Filestore service tier: zonal or regional, its capacities in GiB, and the quota that it is charged to.

    - A share never moves from one band to another.
    - ``high_band_quota`` is charged for capacities in the last band, if it differs from the quota of the other
      bands.
    - ``disputed_bands`` are ranges of capacities that only some sources list.
    - ``shrinks`` says whether a share can be made smaller.
    - ``reserved_prefixes`` are prefix lengths of the address block that an instance uses. Choose the first; the
      others are from sources that disagree.
    - ``share_name_max`` is in characters.
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
        """Return the band that contains a capacity, or None."""
        return next((band for band in self.bands if band.low_gib <= capacity_gib <= band.high_gib), None)

    def throughput(self, capacity_gib: int) -> Throughput | None:
        """Return the performance of an instance without custom performance, or None if there is no source."""
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
    """A performance tier of Managed Lustre, named ``lustre-{MB/s per TiB}``, with capacities in GiB.

    An instance can grow within its range of capacities (``Band``) and can never shrink.
    """

    bands: tuple[Band, ...]
    quota: QuotaId


@dataclass(frozen=True, kw_only=True)
class Chart(CatalogRow):
    """A Helm chart that the platform installs: its repository and version. Stack files can override both.

    ``tested`` lists the minor versions whose values and objects this project tests, together with the releases in
    ``tested_with``. ``upgrade`` describes what a change of version affects in a cluster.
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
    """The ports on which the API server calls pods of a chart; the row's name is the name of the chart."""

    ports: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Release(CatalogRow):
    """A minor version of a chart, and the versions of other software that its maintainers declare compatible.

    - ``goes_with`` are the versions of other charts that it was built and tested with, keyed by chart.
    - ``breaks`` are minor versions of other software that it does not work with.
    - ``kubernetes`` is the oldest minor version of Kubernetes that it supports.
    - ``removes`` describes what it no longer has, as the predicate of a sentence.
    """

    chart: str
    minor: str
    goes_with: dict[str, str] = field(default_factory=dict)
    breaks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kubernetes: str | None = None
    removes: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelServer(CatalogRow):
    """A model server: its port, which also serves /health and /metrics, and the metric by which replicas are scaled."""

    port: int
    metric: str
    target: int  # the metric's mean over all pods


@dataclass(frozen=True, kw_only=True)
class Image(CatalogRow):
    """A container image that the platform starts, unless a stack or a job names another image."""

    image: str
