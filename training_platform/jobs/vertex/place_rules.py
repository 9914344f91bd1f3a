"""What Vertex AI refuses of networks, keys, reservations and mounts, and what it does not have at all.

Source: Vertex AI docs on private IP, PSC interfaces, CMEK, reservations and file shares, and the CustomJob proto, read
2026-08-22.
"""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog.locations import region_of
from training_platform.config.reading.finding import Finding
from training_platform.config.spec.team import OWN_ATTACHMENT
from training_platform.config.team_references import missing_attachment
from training_platform.jobs.mounts import fixed_path, mount_path
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.mount import Mount
from training_platform.jobs.spec.vertex import VertexTarget

_NO_PEERING = ("h100-mega", "h200", "b200")


def place_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Yield what is wrong with where a job on Vertex AI is, and what it reaches from there."""
    yield from _network(job, target)
    yield from _regions(job, target)
    yield from _attachment(job, target)
    yield from _reservation(job, target)
    yield from _mounts(job, target)
    yield from _machine(job, target)


def _network(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    rule, path = "job-vertex-network", ("vertex", "network")
    if target.network is None:
        return
    if target.network_attachment:
        message = "stands beside network_attachment, and a job has one of the two"
        yield job.finding(path, message, rule=rule, allowed="network or network_attachment")
    accelerator = target.machine.accelerator
    if accelerator and accelerator.name in _NO_PEERING:
        message = f"{target.machine_type} does not support peered networks"
        yield job.finding(path, message, rule=rule, allowed="network_attachment")


def _regions(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find a network attachment or key of another region."""
    for field, text in (("network_attachment", target.network_attachment), ("kms_key", target.kms_key)):
        region = text.split("/")[3] if text and text != OWN_ATTACHMENT else target.region
        if region != target.region:
            message = f"is in {region}, and the job runs in {target.region}"
            yield job.finding(("vertex", field), message, rule="job-vertex-place", allowed=f"one in {target.region}")


def _attachment(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find an attachment of the environment where it has none that the team's VMs may use."""
    if target.network_attachment == OWN_ATTACHMENT:
        for message, allowed in missing_attachment(job.team, job.environment, target.region):
            yield job.finding(("vertex", "network_attachment"), message, rule="job-vertex-network", allowed=allowed)


def _reservation(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    if target.reservation is None:
        return
    rule, path = "job-vertex-reservation", ("vertex", "reservation")
    if target.capacity != "on-demand":
        message = f"is for on-demand VMs, and the job's are {target.capacity}"
        yield job.finding(path, message, rule=rule, allowed="no reservation, or capacity: on-demand")
    zone = target.reservation.split("/")[3]
    if region_of(zone) != target.region:
        message = f"is in {zone}, and the job runs in {target.region}"
        yield job.finding(path, message, rule=rule, allowed=f"a reservation in a zone of {target.region}")
    if target.persistent_resource:
        message = f"is for new VMs, and the job runs on those of {target.persistent_resource}"
        yield job.finding(path, message, rule=rule, allowed="none")


def _mounts(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find paths that Vertex AI does not offer, shares that it cannot reach, and protection that it does not give."""
    for index, mount in enumerate(job.spec.mounts):
        where, network = fixed_path(job, mount), _in_network(job, mount)
        if mount_path(job, mount) != where:
            message = f"is {mount.path}, and Vertex AI mounts it at {where}"
            path = ("mounts", index, "path")
            yield job.finding(path, message, rule="job-vertex-mount", allowed=f"none, or {where}", nearest=where)
        if mount.read_only:
            message = "is not kept on Vertex AI, which mounts everything for writing"
            path = ("mounts", index, "read_only")
            yield job.finding(path, message, rule="job-vertex-mount", severity="warning", allowed="false")
        if network and not (target.network or target.network_attachment):
            message = f"{network}, which a job without network does not reach"
            path = ("mounts", index, "source")
            yield job.finding(
                path, message, rule="job-vertex-mount", allowed="vertex.network or vertex.network_attachment"
            )


def _in_network(job: ResolvedJob, mount: Mount) -> str | None:
    """Return where a mount is, of those that are in the VPC."""
    if mount.source.directory:
        return f"{mount.source.directory} is on Filestore"
    data = job.environment.data_sets.get(mount.source.data_set or "")
    if data and (data.filestore or data.lustre):
        return f"{mount.source.data_set} is on {'Filestore' if data.filestore else 'Managed Lustre'}"
    return None


def _machine(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find more CPUs or memory than the machine has, and what wants /dev/shm, whose size Vertex AI has no field for.

    A CustomJobSpec says nothing of it in the discovery document of 2026-11-06; how large it is there was not read.
    """
    machine, spec = target.machine, job.spec
    for field, asked, has in (("cpu", spec.cpu, machine.vcpus), ("memory_gib", spec.memory_gib, machine.memory_gb)):
        if asked and asked > has:
            message = f"is {asked}, and {machine.name} has {has:g}; a job on Vertex AI has the whole machine"
            allowed, nearest = f"at most {has:g}", int(has)
            yield job.finding((field,), message, rule="job-vertex-size", allowed=allowed, nearest=nearest)
    for field, size in (("shared_memory_gib", spec.shared_memory_gib), ("data_loaders", spec.data_loaders)):
        if size:
            message = "wants memory as /dev/shm, and Vertex AI has no field for its size"
            rule, allowed = "job-vertex-shared-memory", "GKE alone"
            yield job.finding((field,), message, rule=rule, severity="warning", allowed=allowed)
