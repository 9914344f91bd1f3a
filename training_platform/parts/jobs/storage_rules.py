"""Findings about a job's mounts, data sets and buckets that exclude each other or cannot be reached."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from training_platform.catalog.locations import region_of
from training_platform.config.data_sets import access_mode, data_location
from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.reading.finding import Path
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.container import mount_path
from training_platform.parts.jobs.job_rules import job_rule
from training_platform.parts.jobs.resolve import ResolvedJob

_OF_THE_IMAGE = frozenset({
    "/bin", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/sys", "/usr",
    "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/var",
})  # fmt: skip


JOB_MOUNT = job_rule(
    "job-mount",
    "Find conflicting mounts: two at the same path, read-only caches, or caches on two mounts.",
)


def mount_findings(job: ResolvedJob) -> Iterator[Draft]:
    """Find mounts at the same path, caches in a read-only or second mount, and file caches for other than buckets."""
    taken: dict[str, str] = {}
    caching = [mount.name for mount in job.spec.mounts if mount.caches]
    for index, mount in enumerate(job.spec.mounts):
        path = mount_path(job, mount)
        if path in taken:
            message = f"{path} is also the path of mount {taken[path]}"
            yield finding(job, ("mounts", index), message, rule=JOB_MOUNT, allowed="different paths")
        taken.setdefault(path, mount.name)
        if path in _OF_THE_IMAGE:
            message = f"hides {path} of the image, and with it the image's programs"
            allowed = "a separate path, such as /mnt/data"
            yield finding(job, ("mounts", index, "path"), message, rule=JOB_MOUNT, severity="warning", allowed=allowed)
        if mount.caches and mount.read_only:
            message = "is for caches, which the job writes, but the mount is read-only"
            yield finding(job, ("mounts", index, "caches"), message, rule=JOB_MOUNT, allowed="read_only: false")
        if mount.caches and mount.name != caching[0]:
            message = f"mount {caching[0]} already keeps the caches"
            yield finding(job, ("mounts", index, "caches"), message, rule=JOB_MOUNT, allowed="one mount with caches")
        if mount.file_cache_gib and not mount.source.bucket:
            message = "is only for buckets: the node itself caches files on Filestore"
            yield finding(job, ("mounts", index, "file_cache_gib"), message, rule=JOB_MOUNT, allowed="0", nearest=0)


JOB_DATA_SET = job_rule(
    "job-data-set",
    "Find a data set that cannot be mounted at the job's place, or is not filled yet.",
)
JOB_DATA_SET_REGION = job_rule(
    "job-data-set-region",
    "Find a bucket that a job reads from another region, which costs traffic.",
    severity="warning",
    refused_by="nobody, but the traffic is charged",
)


def data_set_findings(job: ResolvedJob, region: str, *, vertex: bool) -> Iterator[Draft]:
    """Find data sets that cannot be mounted (region, Vertex AI, not filled yet), and buckets in another region."""
    for index, mount in enumerate(job.spec.mounts):
        if (key := mount.source.data_set) is None:
            continue
        path: Path = ("mounts", index, "source", "data_set")
        data = job.environment.data_sets[key]
        here = region_of(data_location(data, job.environment))
        if vertex and data.hyperdisk_ml:
            message = f"{key} is on Hyperdisk ML, which Vertex AI does not mount"
            yield finding(
                job, path, message, rule=JOB_DATA_SET, allowed="a bucket, Filestore or Managed Lustre, or gke"
            )
        elif access_mode(data, job.team.name) is None:
            writer = f"only its writer, team {data.writer}, may mount it" if data.writer else "no team is its writer"
            message = f"{key} is not filled yet: {writer}"
            yield finding(
                job,
                path,
                message,
                rule=JOB_DATA_SET,
                allowed=f"data_sets.{key} with filled: true, after it has been filled",
            )
        elif region != here and not data.bucket:
            readable_data_sets = {
                name: spec for name, spec in job.environment.data_sets.items() if spec.readable_by(job.team.name)
            }
            near = [
                name
                for name in readable_data_sets
                if region_of(data_location(readable_data_sets[name], job.environment)) == region
            ]
            message = f"{key} is in {here} and the job in {region}: only a bucket can be mounted from another region"
            allowed = enumeration(near) or f"a data set in {region}, or a job in {here}"
            yield finding(job, path, message, rule=JOB_DATA_SET, allowed=allowed)
        elif region != here:
            size = f"{data.size_gib:,} GiB" if data.size_gib else "all of it"
            crossing = f"each pass over it sends {size} between regions, which is charged"
            message = f"{key} is in {here} and the job in {region}: {crossing}"
            allowed = f"a copy in {region}, or a job in {here}"
            yield finding(job, path, message, rule=JOB_DATA_SET_REGION, allowed=allowed)


# USD for a GiB between regions of North America, or of Europe; between continents it is more. Source: general knowledge
# of Cloud Storage's prices (unverified: no copy of the table of data transfer was found on 2026-11-23).
USD_BETWEEN_REGIONS = 0.02


JOB_BUCKET_REGION = job_rule(
    "job-bucket-region",
    "Find a bucket in another region than the job: traffic between regions is charged.",
    severity="warning",
    refused_by="nobody, but the traffic is charged",
)


def bucket_findings(job: ResolvedJob, region: str) -> Iterator[Draft]:
    """Find buckets in another region than the job, since traffic between regions is charged."""
    buckets = job.team.buckets
    used: dict[Path, str | None] = {("output",): job.spec.output}
    used |= {("mounts", index, "source", "bucket"): mount.source.bucket for index, mount in enumerate(job.spec.mounts)}
    for path, name in used.items():
        if name is None or buckets[name].location == region:
            continue
        message = (
            f"{name} is in {buckets[name].location} and the job in {region}: each GiB between them costs about "
            f"{USD_BETWEEN_REGIONS} USD within a continent (unverified), and more beyond"
        )
        near = sorted(other for other, bucket in buckets.items() if bucket.location == region)
        allowed = f"a bucket in {region}: {enumeration(near) or 'the team has none'}"
        nearest = near[0] if near else None
        rule = JOB_BUCKET_REGION
        yield finding(job, path, message, rule=rule, severity="warning", allowed=allowed, nearest=nearest)


def disk_findings(job: ResolvedJob, zones: Collection[str | None]) -> Iterator[Draft]:
    """Find data sets on disks in zones where none of the job's VMs are. None in ``zones`` stands for any zone."""
    for index, mount in enumerate(job.spec.mounts):
        data = job.environment.data_sets[mount.source.data_set] if mount.source.data_set else None
        disk = data.hyperdisk_ml if data else None
        if disk and zones and not {disk.zone, None} & set(zones):
            path: Path = ("mounts", index, "source", "data_set")
            there = enumeration(sorted(zone for zone in zones if zone))
            message = f"{mount.source.data_set} is on a disk in {disk.zone}, and the job's VMs are in {there}"
            yield finding(
                job, path, message, rule=JOB_DATA_SET, allowed=f"a flavor with a pool in {disk.zone}, or another copy"
            )
