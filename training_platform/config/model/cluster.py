"""A cluster: its addresses, upgrades and software, its node pools, and the pools that GKE creates in it."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.types import MachineType, NetworkDevices
from training_platform.config.model.compute_class import ComputeClassSpec, check_classes
from training_platform.config.model.node_pool import (
    BootDiskSpec,
    CpuPoolSpec,
    NodePoolSpec,
    PathwaysPoolSpec,
    SystemPoolSpec,
)
from training_platform.config.model.storage import FileClassSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.config.reading.finding import Path
from training_platform.config.reading.section import (
    CLUSTER_NAME,
    NOTHING,
    RESERVATION_NAME,
    Cidr,
    Consistent,
    Location,
    Name,
    OneOf,
    Problem,
    ProviderInputs,
    Section,
    Time,
    Version,
    Zone,
    refuse_conflicts,
    unique,
)

_LABELS = frozenset(accelerator.gke_label for accelerator in ACCELERATORS.values())
_DISKS = ("pd-balanced", "hyperdisk-balanced", "pd-ssd")  # the first that suits every limit is the default


def _label_by_name() -> dict[str, str]:
    """Return GKE's names for accelerators, keyed by their names in the catalogue, with and without ``tpu-``."""
    labels = {name: accelerator.gke_label for name, accelerator in ACCELERATORS.items()}
    return {**labels, **{name.removeprefix("tpu-"): label for name, label in labels.items()}}


AcceleratorLabel = Annotated[str, OneOf("TPU or GPU type as GKE spells it", _LABELS, called=_label_by_name)]


class AutoProvisioningSpec(Section):
    """Node pools that GKE creates for pending pods and deletes when they are empty, within limits of the cluster.

    The limits count all node pools of the cluster, including those in this file. Quota is charged for the whole limit
    of each accelerator. Names are GKE's own: ``nvidia-h100-80gb`` counts GPUs, ``tpu-v5-lite-podslice`` counts chips.
    """

    REMOVED: ClassVar[Mapping[str, str]] = {
        "image_type": "provider_inputs of the cluster: "
        "{cluster_autoscaling: {auto_provisioning_defaults: {image_type: UBUNTU_CONTAINERD}}}",
        "max_surge": "provider_inputs of the cluster: "
        "{cluster_autoscaling: {auto_provisioning_defaults: {upgrade_settings: {max_surge: 1}}}}",
        "max_unavailable": "provider_inputs of the cluster: "
        "{cluster_autoscaling: {auto_provisioning_defaults: {upgrade_settings: {max_unavailable: 2}}}}",
    }

    cpu: int = Field(ge=1, description="Limit for the vCPUs of all node pools together.", examples=[1000])
    memory_gb: int = Field(ge=1, description="Limit for the memory of all node pools together, in GB.", examples=[8000])
    accelerators: dict[AcceleratorLabel, Annotated[int, Field(ge=0)]] = Field(
        default=NOTHING,
        description="Limits for the chips or GPUs of all node pools together, keyed by accelerator type.",
        examples=[{"nvidia-h100-80gb": 16}],
    )
    zones: Annotated[tuple[Zone, ...], AfterValidator(unique)] = Field(
        default=(), description="Zones of the node pools that GKE creates; default: the zones of the cluster."
    )
    boot_disk: BootDiskSpec = Field(default=BootDiskSpec(), description="Boot disks of the nodes.")

    @property
    def boot_disk_type(self) -> str:
        """The boot disk type of new node pools: the file's, else the first that all limited accelerators support."""
        if self.boot_disk.type:
            return self.boot_disk.type
        supported: dict[str, set[str]] = {label: set() for label, limit in self.accelerators.items() if limit}
        for machine in MACHINE_TYPES.values():
            label = machine.accelerator.gke_label if machine.accelerator else ""
            supported.get(label, set()).update(machine.boot_disk_types)
        types = list(filter(None, supported.values()))  # an accelerator without machines supports any
        return next((kind for kind in _DISKS if all(kind in kinds for kinds in types)), _DISKS[0])


class MaintenanceExclusion(Section):
    """A period in which GKE does not upgrade the cluster, for example during a long training run."""

    start: Time = Field(description="Start, in UTC.")
    end: Time = Field(description="End, in UTC.")
    scope: Literal["no-upgrades", "no-minor-upgrades", "no-minor-or-node-upgrades"] = Field(
        default="no-upgrades", description="Which upgrades are excluded."
    )


class Maintenance(Section):
    """When GKE may upgrade, in UTC: by default at weekends, in 24 of the week's 168 hours.

    To upgrade a TPU slice, GKE recreates the whole slice, and jobs restart from their last checkpoint. GKE requires at
    least 48 hours in every 32 days (newer documents say 92), in windows of at least 4 hours.
    """

    start: Time = Field(
        default="2026-01-03T06:00:00Z",
        description="Start of the first window; `recurrence` determines the later windows.",
    )
    end: Time = Field(default="2026-01-03T18:00:00Z", description="End of the first window.")
    recurrence: str = Field(
        default="FREQ=WEEKLY;BYDAY=SA,SU",
        description="How the window repeats: an RRULE of RFC 5545.",
        examples=["FREQ=WEEKLY;BYDAY=SA,SU"],
    )
    upgrade_freeze: bool | None = Field(
        default=None,
        description="Do not upgrade minor versions and nodes before their support ends; default: true for clusters "
        "with "
        "node_pools.",
    )
    exclusions: dict[Name, MaintenanceExclusion] = Field(
        default=NOTHING, description="Periods without upgrades, keyed by name."
    )


AcceleratorNetworks = Literal["multi-network", "dranet"]
Presence = Literal["installed", "existing", "none"]
# Of a cluster that is somebody else's, what its owner decides.
OWNERS_FIELDS = (
    "auto_provisioning",
    "binary_authorization",
    "maintenance",
    "provider_inputs",
    "release_channel",
    "subnet",
    "system_pool",
    "version",
)


class SubnetSpec(Section):
    """The address ranges of one cluster. Changing any of them recreates the cluster."""

    name: str | None = Field(
        default=None,
        pattern=RESERVATION_NAME,
        description="Subnet of the environment's existing network, with these ranges; default: a new one.",
        examples=["train-us-central1"],
    )
    nodes: Cidr = Field(description="Primary range of the subnet: one address per VM.", examples=["10.10.0.0/20"])
    pods: Cidr = Field(description="Secondary range for pods: each VM gets a block of it.", examples=["10.64.0.0/16"])
    services: Cidr = Field(description="Secondary range for Kubernetes Services.", examples=["10.10.16.0/20"])
    pods_range: str = Field(
        default="pods", pattern=RESERVATION_NAME, description="Name of the range for pods.", examples=["pods"]
    )
    services_range: str = Field(
        default="services",
        pattern=RESERVATION_NAME,
        description="Name of the range for Services.",
        examples=["services"],
    )


class GpuNetworksSpec(Section):
    """VPCs for node pools whose VMs have additional network interfaces for GPUDirect.

    Each interface has a subnet, which is one of the 128 equal parts of ``range``: a /16 gives /23, enough for 508 VMs.
    These VPCs are not peered, so clusters may use the same range, but it must not overlap the cluster's own ranges.
    Changing it recreates the node pools.
    """

    range: Cidr = Field(default="192.168.0.0/16", description="Address range that contains all these subnets.")


class SoftwareSpec(Section):
    """Software that the environment installs. With ``existing``, others install it; with ``none``, nobody does."""

    kueue: Presence = Field(
        default="installed", description="Kueue. Without it (none), teams have no shares of the cluster."
    )
    jobset: Presence = Field(default="installed", description="JobSet, the kind of object of all jobs on GKE.")
    metrics: bool = Field(
        default=True,
        description="Managed Prometheus scrapes the installed software. false also removes the alerts "
        "on these metrics.",
    )


Operator = Literal["ray", "trainer", "leader-worker-set", "slice-controller", "ml-diagnostics"]


class ClusterSpec(Consistent):
    """A private GKE cluster in one region or zone, with a DNS-based control-plane endpoint."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "autoscaling_profile": "provider_inputs: {cluster_autoscaling: {autoscaling_profile: BALANCED}}",
        "intranode_visibility": "provider_inputs: {enable_intranode_visibility: true}",
    }

    location: Location = Field(description="A region, or a zone if the machines are available in only one zone.")
    existing: str | None = Field(
        default=None,
        pattern=CLUSTER_NAME,
        description="Name of an existing cluster of the project, owned by somebody else, in which to create pools "
        "and queues.",
        examples=["shared-training"],
    )
    subnet: SubnetSpec | None = Field(
        default=None, description="Address ranges of the cluster; required unless the cluster is existing."
    )
    software: SoftwareSpec = Field(default=SoftwareSpec(), description="Software that is installed in the cluster.")
    release_channel: Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"] = Field(
        default="REGULAR", description="GKE release channel."
    )
    version: Version | None = Field(default=None, description="Minimum version of the control plane, in quotes.")
    maintenance: Maintenance = Field(default=Maintenance(), description="When GKE may upgrade the cluster.")
    accelerator_networks: AcceleratorNetworks | None = Field(
        default=None,
        description="Networks of GPUs and TPUs: VPCs of this stack (multi-network), or GKE's own (dranet). "
        "Default: depends on the machine type (docs/pools.md). Another value recreates the node pools.",
    )
    gpu_networks: GpuNetworksSpec = Field(
        default=GpuNetworksSpec(), description="VPCs that this stack creates for GPUDirect."
    )
    system_pool: SystemPoolSpec = Field(
        default=SystemPoolSpec(), description="Node pool for controllers and for GKE's own pods."
    )
    cpu_pools: dict[Name, CpuPoolSpec] = Field(
        default=NOTHING,
        description="Node pools for teams' pods without TPUs or GPUs, keyed by name. If there is one, these pods do "
        "not run on the system pool.",
        examples=[{"general": {"machine_type": "n2-standard-16", "max_nodes": 4}}],
    )
    pathways: PathwaysPoolSpec | None = Field(
        default=None, description="Node pool for heads of Pathways jobs, whose workers are TPU slices; default: none."
    )
    node_pools: dict[Name, NodePoolSpec] = Field(
        default=NOTHING, description="Node pools with TPUs or GPUs, keyed by name."
    )
    auto_provisioning: AutoProvisioningSpec | None = Field(
        default=None, description="Limits for node pools that GKE creates automatically; default: GKE creates none."
    )
    binary_authorization: bool = Field(
        default=False,
        description="true lets pods start only from images that the project's Binary Authorization policy allows.",
    )
    fqdn_policies: bool = Field(
        default=False,
        description="Allows host names in egress (docs/tenancy.md). Turning it off recreates the cluster.",
    )
    compute_classes: dict[Name, ComputeClassSpec] = Field(
        default=NOTHING, description="Custom compute classes, keyed by name; each becomes the flavor class-NAME."
    )
    storage_classes: dict[Name, FileClassSpec] = Field(
        default=NOTHING,
        description="StorageClasses, keyed by name, with which volume claims of teams create Filestore instances; "
        "Kubernetes has them as files-NAME.",
    )
    notebooks: Notebooks | None = Field(default=None, description="JupyterHub; default: none.")
    serving: bool = Field(
        default=False,
        description="Lets teams have model servers here: Kueue queues their pods, and autoscalers can read their "
        "metrics.",
    )
    operators: tuple[Operator, ...] = Field(
        default=(),
        description="Software for other kinds of jobs; slice-controller and ml-diagnostics are GKE's own add-ons.",
        examples=[["ray", "trainer"]],
    )
    provider_inputs: ProviderInputs = Field(
        default=NOTHING,
        description="Inputs of the GKE cluster that have no field here, under their Python names in pulumi-gcp.",
        examples=[{"cluster_autoscaling": {"autoscaling_profile": "BALANCED"}}],
    )
    deletion_protection: bool = Field(
        default=True,
        description="false lets a change delete or replace the cluster and its contents, even if the environment "
        "protects resources.",
    )

    @cached_property
    def expanded(self) -> dict[str, tuple[Any, ...]]:
        """A cache of the cluster's expanded pools, keyed by the cluster's name. ``config.expansion`` fills it."""
        return {}

    def network_devices(self, machine: MachineType) -> NetworkDevices | None:
        """Return the network devices that GKE's driver offers on VMs of a machine type; None without the driver."""
        devices = machine.network_devices
        if devices is None or self.accelerator_networks == "multi-network":
            return None
        return devices if devices.default or self.accelerator_networks else None

    @property
    def pools_without_chips(self) -> dict[Path, CpuPoolSpec]:
        """The pools without TPUs or GPUs, keyed by path in the cluster's section. System pools come last."""
        pools: dict[Path, CpuPoolSpec] = {("cpu_pools", name): pool for name, pool in self.cpu_pools.items()}
        if self.pathways:
            pools["pathways",] = self.pathways
        if self.existing is None:
            pools["system_pool",] = self.system_pool
            for number, fallback in enumerate(self.system_pool.fallbacks):
                pools["system_pool", "fallback_machine_types", number] = fallback
        return pools

    @property
    def queues_pods(self) -> bool:
        """Whether Kueue also counts pods that do not belong to a job."""
        on_notebooks = bool(self.notebooks and self.notebooks.teams)
        return self.serving or on_notebooks or "leader-worker-set" in self.operators

    @cached_property
    def fabrics(self) -> dict[str, dict[str, Any]]:
        """A cache of the networks between the cluster's GPUs, keyed by its name. ``config.gpu_fabric`` fills it."""
        return {}

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each field that only the cluster's owner may set, and for other fields that conflict."""
        if self.existing:
            for field in OWNERS_FIELDS:
                if field in self.model_fields_set:
                    message = f"cannot be combined with `existing`: the owner of {self.existing} decides this"
                    yield Problem((field,), message, allowed="the field left out", nearest="leave it out")
        queued = {("serving",): self.serving, ("notebooks", "teams"): bool(self.notebooks and self.notebooks.teams)}
        for path, is_queued in queued.items():
            if is_queued and self.software.kueue == "none":
                message = "needs Kueue, which counts its pods, but software.kueue is none"
                yield Problem(path, message, allowed="the field left out, or Kueue installed", nearest="leave it out")
        for name in self.cpu_pools:
            if name in self.node_pools or name in ("system", "cpu-np"):
                other = f"{name} of node_pools" if name in self.node_pools else "one of the platform's own pools"
                yield Problem(
                    ("cpu_pools", name), f"has the same name as {other}", allowed="another name", nearest=f"{name}-cpu"
                )
        if self.existing is None and self.subnet is None:
            yield Problem(("subnet",), "is missing", allowed="nodes, pods and services, or the field `existing`")
        yield from self._conflicts_of_networks()

    def _conflicts_of_networks(self) -> Iterator[Problem]:
        """Yield a problem if some pools need VPCs (multi-network) and others DRANET, since a cluster can have only one.

        Source: reports of GKE's page on automated networking for accelerators, read 2026-11-28.
        """
        pools_of: dict[AcceleratorNetworks, str] = {}
        for name, pool in self.node_pools.items():
            machine = pool.machine
            if not pool.gpu_direct:
                continue
            if self.network_devices(machine):
                pools_of.setdefault("dranet", name)
            elif machine.gpudirect:
                pools_of.setdefault("multi-network", name)
        if self.accelerator_networks is None and len(pools_of) > 1:
            dranet = pools_of["dranet"]
            vpcs = pools_of["multi-network"]
            message = (
                f"is missing: {dranet} ({self.node_pools[dranet].machine_type}) has DRANET by default, and "
                f"{vpcs} ({self.node_pools[vpcs].machine_type}) has VPCs, but a cluster can have only one of the two"
            )
            yield Problem(
                ("accelerator_networks",), message, allowed="dranet or multi-network", nearest="multi-network"
            )

    @model_validator(mode="after")
    def _classes_are_of_its_pools(self) -> Self:
        check_classes(self.compute_classes, self.node_pools)
        return self

    @model_validator(mode="after")
    def _notebooks_are_on_its_pools(self) -> Self:
        if self.notebooks:
            refuse_conflicts(self.notebooks.conflicts(dict(self.node_pools)))
        return self
