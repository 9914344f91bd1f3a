"""Storage of an environment: Filestore with snapshots and backups, Managed Lustre, and named data sets."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from training_platform.config.reading.section import (
    BUCKET_NAME,
    NOTHING,
    Cidr,
    Consistent,
    DeletionProtection,
    FilestoreTierName,
    Location,
    Name,
    Problem,
    ProviderInputs,
    Region,
    Section,
    Zone,
    unique,
)

BACKUP = (
    r"^projects/[a-z0-9-]+/locations/[a-z0-9-]+/(backups|backupVaults/[a-z0-9-]+/dataSources/[a-z0-9-]+/backups)"
    r"/[a-z0-9-]+$"
)
FOLDER = r"^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$"  # no way out: no part begins with a dot
FILESYSTEM = r"^[a-z0-9]{1,8}$"
ADDRESS = r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$"
DATA_PLACES = ("bucket", "filestore", "hyperdisk_ml", "lustre")
Weekday = Literal["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"]


class ExportSpec(Consistent):
    """Clients that may mount the share, and their access. The first entry that contains a client's address applies."""

    ranges: Annotated[tuple[Cidr, ...], AfterValidator(unique)] = Field(
        min_length=1,
        description="Address ranges of the clients, such as the nodes' ranges of clusters.",
        examples=[["10.12.0.0/20"]],
    )
    access: Literal["read-write", "read-only"] = Field(default="read-write", description="What they may do.")
    squash: Literal["none", "root"] = Field(
        default="none",
        description="root turns the clients' root into the anonymous user; nodes create the folders of teams as root.",
    )
    anonymous_id: int | None = Field(
        default=None,
        ge=0,
        lt=2**32,
        description="User and group id of the anonymous user if root is squashed; default: 65534.",
        examples=[65534],
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for an anonymous user id if no user is squashed."""
        if self.anonymous_id is not None and self.squash == "none":
            yield Problem((), "anonymous_id needs squash: root")


class BackupScheduleSpec(Consistent):
    """Scheduled backups by a plan of Backup and DR. By default, one backup each day.

    Google enables Backup and DR for Filestore in a project on request (its page on backup plans, read 2026-11-22).
    """

    every_hours: int | None = Field(default=None, ge=1, le=23, description="Hours between backups of a day.")
    weekdays: Annotated[tuple[Weekday, ...], AfterValidator(unique)] = Field(
        default=(), description="Days with a backup; default: each day."
    )
    start_hour: int = Field(default=0, ge=0, le=23, description="Hour of the day from which backups start.")
    end_hour: int = Field(default=6, ge=1, le=24, description="Hour of the day after which none starts.")
    time_zone: str = Field(
        default="UTC",
        pattern=r"^[A-Za-z_+-]+(/[A-Za-z0-9_+-]+)*$",
        description="Time zone of the hours, an IANA name.",
        examples=["Europe/Zurich"],
    )
    keep_days: int = Field(default=30, ge=1, description="Days that a backup is kept.")
    locked_days: int = Field(default=1, ge=1, description="Days during which nobody can delete a backup.")

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each combination of fields that is not allowed."""
        if self.every_hours and self.weekdays:
            yield Problem(("weekdays",), "has days together with every_hours", allowed="one of the two")
        if self.end_hour <= self.start_hour:
            message = f"is {self.end_hour}, not after start_hour {self.start_hour}"
            yield Problem(
                ("end_hour",),
                message,
                allowed=f"{self.start_hour + 1} to 24",
                nearest=str(min(24, self.start_hour + 6)),
            )
        if self.locked_days > self.keep_days:
            message = f"is {self.locked_days}, and backups are kept for {self.keep_days} days"
            yield Problem(("locked_days",), message, allowed=f"at most {self.keep_days}", nearest=str(self.keep_days))


class FilestoreSpec(Consistent):
    """A Filestore instance.

    Changing location, tier, share name, protocol, connection or restore_from replaces the instance: all data is lost.
    """

    location: Location = Field(description="A zone for zonal tiers, a region for REGIONAL and ENTERPRISE.")
    tier: FilestoreTierName = Field(default="ZONAL", description="Service tier.")
    capacity_gib: int = Field(ge=1, description="Capacity in GiB.", examples=[1024])
    share: str = Field(
        default="share",
        pattern=r"^[a-z][a-z0-9_]{0,15}$",
        description="Name of the file share: lower-case letters, digits and _, at most 16.",
        examples=["share"],
    )
    protocol: str = Field(
        default="NFS_V3",
        pattern=r"^NFS_V(3|4_1)$",
        description="NFS_V3 or NFS_V4_1; not every tier supports both.",
        examples=["NFS_V3"],
    )
    reserved_range: Cidr | None = Field(
        default=None,
        description="Its address range in the VPC, free of subnets, read at creation; default: Google Cloud picks one.",
        examples=["10.20.32.0/24"],
    )
    connection: Literal["direct-peering", "private-service-access"] = Field(
        default="direct-peering",
        description="How it joins the VPC; private-service-access takes an address of private_services_range.",
    )
    team: Name | None = Field(
        default=None,
        description="Name of the one team that may mount it; default: any team, each held to a folder of its name.",
    )
    exports: tuple[ExportSpec, ...] = Field(
        default=(), max_length=10, description="Who may mount it; default: whoever reaches its address, also as root."
    )
    iops: int | None = Field(default=None, ge=1, description="IOPS in total, paid for apart from the capacity.")
    iops_per_tib: int | None = Field(default=None, ge=1, description="IOPS per TiB, paid for apart from the capacity.")
    snapshots: Annotated[tuple[Name, ...], AfterValidator(unique)] = Field(
        default=(), description="Snapshots by name: a new name takes one, a removed name deletes it."
    )
    backups: BackupScheduleSpec | None = Field(default=None, description="Backups on a schedule; default: none.")
    restore_from: str | None = Field(
        default=None,
        pattern=BACKUP,
        description="Backup, of Filestore or of a backup vault, that a new instance starts with.",
        examples=["projects/example-train-dev/locations/us-central1/backups/before-move"],
    )
    provider_inputs: ProviderInputs = Field(
        default=NOTHING,
        description="Inputs of the instance that have no field here, as pulumi-gcp's Python spells them.",
        examples=[{"description": "Home directories"}],
    )
    deletion_protection: DeletionProtection = True

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem if IOPS are set in both ways."""
        if self.iops is not None and self.iops_per_tib is not None:
            yield Problem((), "iops and iops_per_tib exclude each other")


class FileClassSpec(Consistent):
    """A StorageClass of Filestore. While the cluster runs, a team's claim creates an instance, or a share of one."""

    tier: FilestoreTierName = Field(default="ZONAL", description="Service tier of the instances.")
    multishare: bool = Field(
        default=False, description="Claims, from 100 GiB on, share instances of the tier ENTERPRISE, ten at most each."
    )
    largest_share_gib: Literal[128, 256, 512, 1024] | None = Field(
        default=None,
        description="multishare: the largest claim, which may have 10 GiB then; 80, 40, 20 or 10 share an instance.",
    )
    teams: dict[Name, Annotated[int, Field(ge=1)]] = Field(
        default=NOTHING,
        description="GiB that each team may claim in all; other teams none.",
        examples=[{"vision": 4096}],
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for a share size if instances are not shared."""
        if self.largest_share_gib is not None and not self.multishare:
            yield Problem((), "largest_share_gib needs multishare: true")


class LustreSpec(Section):
    """A Managed Lustre instance: files that all VMs of a zone can read and write at the same time.

    Changing location, throughput or filesystem replaces the instance: all data is lost. It can grow, but never shrink.
    """

    location: Zone = Field(description="Zone of the instance, best that of the accelerators.")
    capacity_gib: int = Field(ge=1, description="Capacity in GiB, in the steps of its throughput.", examples=[18000])
    mbps_per_tib: Literal[125, 250, 500, 1000] = Field(default=1000, description="Throughput in MB/s per TiB.")
    filesystem: str = Field(
        default="lustre", pattern=FILESYSTEM, description="Name of its file system.", examples=["lustre"]
    )
    squash_root: bool = Field(
        default=False, description="true turns root of the clients into user 65534, who owns nothing."
    )
    deletion_protection: DeletionProtection = True


Folder = Annotated[str, Field(pattern=FOLDER, examples=["images/food101"])]


def _bucket_of_yours(value: str) -> str:
    """Refuse names reserved for Google's own buckets. Source: Cloud Storage docs, bucket names, read 2026-11-28."""
    if value.startswith("goog") or "google" in value or re.match(ADDRESS, value):
        context = {"allowed": "a name without google, that does not begin with goog and is no IP address"}
        raise PydanticCustomError("bucket", f"no bucket of yours is named {value!r}", context)
    return value


BucketName = Annotated[str, Field(pattern=BUCKET_NAME), AfterValidator(_bucket_of_yours)]


class BucketData(Section):
    """Files of a Cloud Storage bucket, mounted with Cloud Storage FUSE."""

    name: BucketName = Field(description="Name of the bucket, which exists.", examples=["example-images"])
    location: Region = Field(description="Region of the bucket; Vertex AI mounts none of several regions.")
    path: Folder | None = Field(default=None, description="Folder of the bucket; default: all of it.")
    profile: Literal["training", "checkpointing", "serving"] | None = Field(
        default=None,
        description="GKE's profile for Cloud Storage FUSE, of GKE 1.35.1 and later; default: none, and file_cache_gib.",
    )
    file_cache_gib: int = Field(
        default=0, ge=0, description="GiB of the node's boot disk that keep what was read; default: none."
    )


class FilestoreData(Section):
    """A folder of a Filestore instance."""

    instance: Name = Field(description="Filestore instance of the environment.", examples=["datasets"])
    path: Folder = Field(description="Folder of its share, which exists once the data set is filled.")


class HyperdiskData(Section):
    """A Hyperdisk ML volume. One pod fills it once; then up to thousands of VMs of a zone can read it."""

    zone: Zone = Field(description="Zone of the volume, and of the VMs that read it.")
    size_gib: int = Field(ge=1, description="Size in GiB.", examples=[1024])
    throughput_mibps: int | None = Field(
        default=None, ge=1, description="Throughput for all readers together, in MiB/s; default: Google Cloud's."
    )
    filled: bool = Field(
        default=False, description="false lets its writer fill it; true lets everybody read it, and nobody write."
    )


class LustreData(Consistent):
    """A Managed Lustre instance: one of the environment, given by name, or another existing one, by all fields."""

    instance: str = Field(
        pattern=r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$",
        description="Instance of the environment, or the id of another.",
        examples=["scratch"],
    )
    location: Zone | None = Field(default=None, description="Zone of another instance.")
    address: str | None = Field(
        default=None,
        pattern=ADDRESS,
        description="Address of another instance in the VPC.",
        examples=["10.90.0.2"],
    )
    filesystem: str | None = Field(
        default=None,
        pattern=FILESYSTEM,
        description="Name of another instance's file system.",
        examples=["lustre"],
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each field that an instance outside the environment needs and does not have."""
        fields = ("location", "address", "filesystem")
        missing = [field for field in fields if getattr(self, field) is None]
        if missing and len(missing) < len(fields):
            yield Problem((), f"lacks {' and '.join(missing)}, which an instance that no stack file creates needs")

    @property
    def elsewhere(self) -> bool:
        """Whether the instance was created outside this environment."""
        return self.address is not None


class DataSetSpec(Consistent):
    """Data that jobs mount by name. Exactly one of bucket, filestore, hyperdisk_ml and lustre is its location."""

    size_gib: int | None = Field(
        default=None,
        ge=1,
        description="GiB of data, for what reading it from afar costs; default: not known.",
    )
    teams: Annotated[tuple[Name, ...], AfterValidator(unique)] = Field(
        default=(), description="Teams that read it; default: all of the environment."
    )
    writer: Name | None = Field(default=None, description="Team that fills it and may write; default: none.")
    bucket: BucketData | None = Field(default=None, description="It is in a Cloud Storage bucket.")
    filestore: FilestoreData | None = Field(default=None, description="It is on Filestore.")
    hyperdisk_ml: HyperdiskData | None = Field(default=None, description="It is on a Hyperdisk ML volume.")
    lustre: LustreData | None = Field(default=None, description="It is on Managed Lustre.")

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem if the data set has no location or several."""
        places = [name for name in DATA_PLACES if getattr(self, name) is not None]
        if len(places) != 1:
            message = f"{' and '.join(places)} are both given" if places else "says nowhere that it is"
            yield Problem((), message, allowed=f"one of {', '.join(DATA_PLACES)}")

    def readable_by(self, team: str) -> bool:
        """Return True if a team mounts the data set."""
        return not self.teams or team in self.teams or team == self.writer


class TeamDataSpec(Section):
    """A data set of one team: a bucket that its jobs mount by name, like the data sets of the environment."""

    bucket: BucketData = Field(description="The bucket; whoever deploys the team has to be able to grant roles on it.")
    size_gib: int | None = Field(
        default=None, ge=1, description="GiB of data, for what reading it from afar costs; default: not known."
    )
    writable: bool = Field(default=False, description="Whether the team's jobs may write, too.")
