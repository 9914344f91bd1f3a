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
    """Clients that may mount the share, and what they may do. The first entry with a client's address applies."""

    ranges: Annotated[tuple[Cidr, ...], AfterValidator(unique)] = Field(
        min_length=1,
        description="Address ranges of the clients, such as the node ranges of clusters.",
        examples=[["10.12.0.0/20"]],
    )
    access: Literal["read-write", "read-only"] = Field(default="read-write", description="Access of these clients.")
    squash: Literal["none", "root"] = Field(
        default="none",
        description="root maps the clients' root user to the anonymous user. Nodes create the folders of teams as "
        "root.",
    )
    anonymous_id: int | None = Field(
        default=None,
        ge=0,
        lt=2**32,
        description="User and group id of the anonymous user, if root is squashed; default: 65534.",
        examples=[65534],
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for an anonymous user id if no user is squashed."""
        if self.anonymous_id is not None and self.squash == "none":
            yield Problem((), "anonymous_id needs squash: root")


class BackupScheduleSpec(Consistent):
    """Backups that a Backup and DR plan makes on a schedule, by default once a day.

    Google enables Backup and DR for Filestore in a project on request (its page on backup plans, read 2026-11-22).
    """

    every_hours: int | None = Field(default=None, ge=1, le=23, description="Hours between the backups of a day.")
    weekdays: Annotated[tuple[Weekday, ...], AfterValidator(unique)] = Field(
        default=(), description="Weekdays with a backup; default: every day."
    )
    start_hour: int = Field(default=0, ge=0, le=23, description="Hour of the day from which backups start.")
    end_hour: int = Field(default=6, ge=1, le=24, description="Hour of the day after which no backup starts.")
    time_zone: str = Field(
        default="UTC",
        pattern=r"^[A-Za-z_+-]+(/[A-Za-z0-9_+-]+)*$",
        description="IANA name of the time zone of these hours.",
        examples=["Europe/Zurich"],
    )
    keep_days: int = Field(default=30, ge=1, description="Days for which a backup is kept.")
    locked_days: int = Field(default=1, ge=1, description="Days during which nobody can delete a backup.")

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each combination of fields that is not allowed."""
        if self.every_hours and self.weekdays:
            yield Problem(("weekdays",), "is set together with every_hours", allowed="one of the two")
        if self.end_hour <= self.start_hour:
            message = f"is {self.end_hour}, not after start_hour {self.start_hour}"
            yield Problem(
                ("end_hour",),
                message,
                allowed=f"{self.start_hour + 1} to 24",
                nearest=str(min(24, self.start_hour + 6)),
            )
        if self.locked_days > self.keep_days:
            message = f"is {self.locked_days}, but backups are kept for only {self.keep_days} days"
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
        description="Name of the file share: at most 16 lower-case letters, digits and _.",
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
        description="Address range of the instance in the VPC, outside of all subnets. Filestore reads it only at "
        "creation; default: Google Cloud chooses a range.",
        examples=["10.20.32.0/24"],
    )
    connection: Literal["direct-peering", "private-service-access"] = Field(
        default="direct-peering",
        description="How the instance joins the VPC. With private-service-access, its address is in "
        "private_services_range.",
    )
    team: Name | None = Field(
        default=None,
        description="Name of the only team that may mount the instance; default: every team may, but only the folder "
        "with its name.",
    )
    exports: tuple[ExportSpec, ...] = Field(
        default=(),
        max_length=10,
        description="Clients that may mount the instance; default: all clients that reach "
        "its address, including as root.",
    )
    iops: int | None = Field(default=None, ge=1, description="Total IOPS, billed in addition to the capacity.")
    iops_per_tib: int | None = Field(
        default=None, ge=1, description="IOPS per TiB, billed in addition to the capacity."
    )
    snapshots: Annotated[tuple[Name, ...], AfterValidator(unique)] = Field(
        default=(),
        description="Names of snapshots. Adding a name creates a snapshot, and removing the name deletes the snapshot.",
    )
    backups: BackupScheduleSpec | None = Field(default=None, description="Schedule of backups; default: no backups.")
    restore_from: str | None = Field(
        default=None,
        pattern=BACKUP,
        description="Backup from which a new instance is restored, in Filestore or in a backup vault.",
        examples=["projects/example-train-dev/locations/us-central1/backups/before-move"],
    )
    provider_inputs: ProviderInputs = Field(
        default=NOTHING,
        description="Inputs of the instance that have no field here, under their Python names in pulumi-gcp.",
        examples=[{"description": "Home directories"}],
    )
    deletion_protection: DeletionProtection = True

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem if IOPS are set both as a number and per TiB."""
        if self.iops is not None and self.iops_per_tib is not None:
            yield Problem((), "iops and iops_per_tib exclude each other")


class FileClassSpec(Consistent):
    """A StorageClass of Filestore. While the cluster runs, a team's claim creates an instance, or a share of one."""

    tier: FilestoreTierName = Field(default="ZONAL", description="Service tier of the instances.")
    multishare: bool = Field(
        default=False,
        description="Lets volume claims of at least 100 GiB share instances of tier ENTERPRISE, at "
        "most ten claims per instance.",
    )
    largest_share_gib: Literal[128, 256, 512, 1024] | None = Field(
        default=None,
        description="multishare: maximum size of a claim. Claims may then be as small as 10 GiB, and 80, 40, 20 or "
        "10 claims share an instance.",
    )
    teams: dict[Name, Annotated[int, Field(ge=1)]] = Field(
        default=NOTHING,
        description="Total GiB that each team may claim, keyed by team. Other teams may claim nothing.",
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

    location: Zone = Field(description="Zone of the instance, preferably the zone of the accelerators.")
    capacity_gib: int = Field(
        ge=1, description="Capacity in GiB; the throughput determines the step size.", examples=[18000]
    )
    mbps_per_tib: Literal[125, 250, 500, 1000] = Field(default=1000, description="Throughput in MB/s per TiB.")
    filesystem: str = Field(
        default="lustre", pattern=FILESYSTEM, description="Name of its file system.", examples=["lustre"]
    )
    squash_root: bool = Field(
        default=False, description="true maps the clients' root user to user 65534, which owns no files."
    )
    deletion_protection: DeletionProtection = True


Folder = Annotated[str, Field(pattern=FOLDER, examples=["images/food101"])]


def _bucket_of_yours(value: str) -> str:
    """Refuse names reserved for Google's own buckets. Source: Cloud Storage docs, bucket names, read 2026-11-28."""
    if value.startswith("goog") or "google" in value or re.match(ADDRESS, value):
        context = {"allowed": "a name that does not contain google, does not begin with goog, and is not an IP address"}
        raise PydanticCustomError("bucket", f"{value!r} cannot be the name of your own bucket", context)
    return value


BucketName = Annotated[str, Field(pattern=BUCKET_NAME), AfterValidator(_bucket_of_yours)]


class BucketData(Section):
    """Files of a Cloud Storage bucket, mounted with Cloud Storage FUSE."""

    name: BucketName = Field(description="Name of an existing bucket.", examples=["example-images"])
    location: Region = Field(description="Region of the bucket. Vertex AI cannot mount multi-region buckets.")
    path: Folder | None = Field(default=None, description="Folder in the bucket; default: the whole bucket.")
    profile: Literal["training", "checkpointing", "serving"] | None = Field(
        default=None,
        description="GKE's profile for Cloud Storage FUSE, from GKE 1.35.1 on; default: no profile, and "
        "file_cache_gib applies.",
    )
    file_cache_gib: int = Field(
        default=0,
        ge=0,
        description="GiB of the node's boot disk that cache the files that were read; default: no cache.",
    )


class FilestoreData(Section):
    """A folder of a Filestore instance."""

    instance: Name = Field(description="Filestore instance of the environment.", examples=["datasets"])
    path: Folder = Field(description="Folder in the instance's share. It exists once the data set has been filled.")


class HyperdiskData(Section):
    """A Hyperdisk ML volume. One pod fills it once; then up to thousands of VMs of a zone can read it."""

    zone: Zone = Field(description="Zone of the volume, and of the VMs that read it.")
    size_gib: int = Field(ge=1, description="Size in GiB.", examples=[1024])
    throughput_mibps: int | None = Field(
        default=None, ge=1, description="Throughput of all readers together, in MiB/s; default: Google Cloud's default."
    )
    filled: bool = Field(
        default=False, description="false lets the writer fill the volume; true makes it read-only for everybody."
    )


class LustreData(Consistent):
    """A Managed Lustre instance: one of the environment, given by its name, or another one, with all fields set."""

    instance: str = Field(
        pattern=r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$",
        description="Name of an instance of the environment, or the id of another instance.",
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
        """Yield a problem for each required field that is missing for an instance outside the environment."""
        fields = ("location", "address", "filesystem")
        missing = [field for field in fields if getattr(self, field) is None]
        if missing and len(missing) < len(fields):
            yield Problem((), f"needs {' and '.join(missing)} too, because no stack file creates the instance")

    @property
    def elsewhere(self) -> bool:
        """Whether the instance was created outside this environment."""
        return self.address is not None


class DataSetSpec(Consistent):
    """Data that jobs mount by name. Exactly one of bucket, filestore, hyperdisk_ml and lustre is its location."""

    size_gib: int | None = Field(
        default=None,
        ge=1,
        description="Size of the data in GiB, to estimate the cost of reading it from other regions; default: not "
        "known.",
    )
    teams: Annotated[tuple[Name, ...], AfterValidator(unique)] = Field(
        default=(), description="Teams that may read the data set; default: all teams of the environment."
    )
    writer: Name | None = Field(
        default=None, description="Team that fills the data set and may write to it; default: none."
    )
    bucket: BucketData | None = Field(default=None, description="Location in a Cloud Storage bucket.")
    filestore: FilestoreData | None = Field(default=None, description="Location on a Filestore instance.")
    hyperdisk_ml: HyperdiskData | None = Field(
        default=None, description="A Hyperdisk ML volume that contains the data set."
    )
    lustre: LustreData | None = Field(default=None, description="A Managed Lustre instance that contains the data set.")

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem if the data set has no location or several."""
        places = [name for name in DATA_PLACES if getattr(self, name) is not None]
        if len(places) != 1:
            message = f"has both {' and '.join(places)}" if places else "does not have a location"
            yield Problem((), message, allowed=f"one of {', '.join(DATA_PLACES)}")

    def readable_by(self, team: str) -> bool:
        """Return True if a team mounts the data set."""
        return not self.teams or team in self.teams or team == self.writer


class TeamDataSpec(Section):
    """A data set of one team: a bucket that its jobs mount by name, like the data sets of the environment."""

    bucket: BucketData = Field(
        description="The bucket. The account that deploys the team must be able to grant roles on it."
    )
    size_gib: int | None = Field(
        default=None,
        ge=1,
        description="Size of the data in GiB, to estimate the cost of reading it from other "
        "regions; default: not known.",
    )
    writable: bool = Field(default=False, description="Whether the team's jobs may also write.")
