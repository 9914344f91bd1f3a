"""Views of what is neither cluster nor pool: storage, Vertex AI, queues, addresses. Quantities as the names say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import MachineType
from training_platform.config.reading.finding import Path
from training_platform.rules.views.view import Settings, View


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
    """A Kueue ResourceFlavor: the labels of the nodes that it stands for, and the keys of what its pods tolerate."""

    PATHS: ClassVar[dict[str, Path]] = {"node_labels": (), "tolerated": ()}

    flavor: str
    node_labels: dict[str, str]
    tolerated: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FlavorQuota(View):
    """One flavor of one resource in a ClusterQueue; quantities in chips or GPUs, ``checks`` by their names."""

    queue: str
    cohort: str | None
    resource: str
    flavor: str
    nominal_quota: int
    borrowing_limit: int | None
    lending_limit: int | None
    checks: tuple[str, ...]

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
