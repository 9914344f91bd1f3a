"""What is wrong with the data sets that a job mounts: where it runs they are not, or far away."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from training_platform.catalog.locations import region_of
from training_platform.config.data_sets import access_mode, data_location
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.section import enumeration
from training_platform.config.spec.storage import DataSetSpec
from training_platform.jobs.resolve import ResolvedJob

RULE, FAR = "job-data-set", "job-data-set-region"


def data_set_findings(job: ResolvedJob, region: str, *, vertex: bool) -> Iterator[Finding]:
    """Find data sets that cannot be mounted in a region, on Vertex AI, or yet; and buckets that are read from afar."""
    for index, mount in enumerate(job.spec.mounts):
        if key := mount.source.data_set:
            path: Path = ("mounts", index, "source", "data_set")
            data = job.environment.data_sets[key]
            yield from _mountable(job, path, key, data, region, vertex=vertex)


def _mountable(
    job: ResolvedJob, path: Path, key: str, data: DataSetSpec, region: str, *, vertex: bool
) -> Iterator[Finding]:
    here = region_of(data_location(data, job.environment))
    if vertex and data.hyperdisk_ml:
        message = f"{key} is on Hyperdisk ML, which Vertex AI does not mount"
        yield job.finding(path, message, rule=RULE, allowed="a bucket, Filestore or Managed Lustre, or gke")
    elif access_mode(data, job.team.name) is None:
        message = f"{key} is still being filled by team {data.writer or 'nobody'}"
        yield job.finding(path, message, rule=RULE, allowed=f"filled: true of data_sets.{key}, once it is")
    elif region != here and not data.bucket:
        near = [name for name, each in job.environment.data_sets.items() if _near(job, each, region)]
        message = f"{key} is in {here} and the job in {region}: only a bucket is mounted from another region"
        allowed = enumeration(near) or f"a data set in {region}, or a job in {here}"
        yield job.finding(path, message, rule=RULE, allowed=allowed)
    elif region != here:
        size = f"{data.size_gib:,} GiB" if data.size_gib else "all of it"
        message = f"{key} is in {here} and the job in {region}: each pass over it sends {size} between regions, charged"
        allowed = f"a copy in {region}, or a job in {here}"
        yield job.finding(path, message, rule=FAR, severity="warning", allowed=allowed)


def disk_findings(job: ResolvedJob, zones: Collection[str | None]) -> Iterator[Finding]:
    """Find data sets on a disk of another zone than all VMs that the job may get; ``zones`` has None for any zone."""
    for index, mount in enumerate(job.spec.mounts):
        data = job.environment.data_sets[mount.source.data_set] if mount.source.data_set else None
        disk = data.hyperdisk_ml if data else None
        if disk and zones and not {disk.zone, None} & set(zones):
            path: Path = ("mounts", index, "source", "data_set")
            there = enumeration(sorted(zone for zone in zones if zone))
            message = f"{mount.source.data_set} is on a disk in {disk.zone}, and the job's VMs are in {there}"
            yield job.finding(path, message, rule=RULE, allowed=f"a flavor with a pool in {disk.zone}, or another copy")


def _near(job: ResolvedJob, data: DataSetSpec, region: str) -> bool:
    return data.readable_by(job.team.name) and region_of(data_location(data, job.environment)) == region
