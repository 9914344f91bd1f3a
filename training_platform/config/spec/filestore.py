"""A Filestore instance: capacity, who reaches it and how, snapshots and backups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from training_platform.config.reading.conflicts import Conflict, refuse_conflicts
from training_platform.config.reading.section import Cidr, FilestoreTierName, Location, Name, Section, unique

BACKUP = (
    r"^projects/[a-z0-9-]+/locations/[a-z0-9-]+/(backups|backupVaults/[a-z0-9-]+/dataSources/[a-z0-9-]+/backups)"
    r"/[a-z0-9-]+$"
)
Weekday = Literal["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"]


class ExportSpec(Section):
    """Who may mount the share, and as whom: the first entry whose ranges hold a client's address counts."""

    ranges: Annotated[tuple[Cidr, ...], AfterValidator(unique)] = Field(
        min_length=1, description="Address ranges of the clients, such as the nodes' ranges of clusters."
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
        description="User and group id of the anonymous user, where root is squashed; default: 65534.",
        examples=[65534],
    )

    @model_validator(mode="after")
    def _squashed(self) -> ExportSpec:
        if self.anonymous_id is not None and self.squash == "none":
            raise ValueError("anonymous_id needs squash: root")
        return self


class BackupScheduleSpec(Section):
    """Backups on a schedule, by a plan of Backup and DR; default: one each day.

    Google lets a project use Backup and DR for Filestore on request (its page on backup plans, read 2026-11-22).
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

    @model_validator(mode="after")
    def _fields_go_together(self) -> BackupScheduleSpec:
        refuse_conflicts(self._conflicts())
        return self

    def _conflicts(self) -> Iterator[Conflict]:
        if self.every_hours and self.weekdays:
            yield Conflict(("weekdays",), "has days beside every_hours", "one of the two")
        if self.end_hour <= self.start_hour:
            message = f"is {self.end_hour}, not after start_hour {self.start_hour}"
            yield Conflict(("end_hour",), message, f"{self.start_hour + 1} to 24", str(min(24, self.start_hour + 6)))
        if self.locked_days > self.keep_days:
            message = f"is {self.locked_days}, and backups are kept for {self.keep_days} days"
            yield Conflict(("locked_days",), message, f"at most {self.keep_days}", str(self.keep_days))


class FilestoreSpec(Section):
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
        default=None, description="Address range of the instance; default: Google Cloud picks one."
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
        default=(), description="Snapshots to take, by name: a new name takes one, a name that goes deletes it."
    )
    backups: BackupScheduleSpec | None = Field(default=None, description="Backups on a schedule; default: none.")
    restore_from: str | None = Field(
        default=None,
        pattern=BACKUP,
        description="Backup, of Filestore or of a backup vault, that a new instance starts with.",
        examples=["projects/example-train-dev/locations/us-central1/backups/before-move"],
    )
    deletion_protection: bool = Field(
        default=True,
        description="false allows a change to delete or replace it, where the environment protects such resources.",
    )

    @model_validator(mode="after")
    def _one_way_of_iops(self) -> FilestoreSpec:
        if self.iops is not None and self.iops_per_tib is not None:
            raise ValueError("iops and iops_per_tib exclude each other")
        return self
