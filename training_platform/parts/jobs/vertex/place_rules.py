"""Rules for the networks, reservations and mounts that a job on Vertex AI uses from its region."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog.locations import region_of
from training_platform.config.model.team import OWN_ATTACHMENT
from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.references import missing_attachment
from training_platform.parts.jobs.container import fixed_path, mount_path
from training_platform.parts.jobs.job_model import VertexTarget
from training_platform.parts.jobs.job_rules import vertex_rule
from training_platform.parts.jobs.resolve import ResolvedJob

JOB_VERTEX_PLACE = vertex_rule(
    "job-vertex-place",
    "Find a network attachment or key of another region.",
)


JOB_VERTEX_KEY = vertex_rule(
    "job-vertex-key",
    "Find a job without an encryption key in an environment that encrypts its data with its own keys.",
    severity="warning",
)


def place_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Yield the findings about a job's region on Vertex AI, and about the resources that its VMs use from there."""
    yield from _network(job, target)
    yield from _key(job, target)
    for field, resource_name in (("network_attachment", target.network_attachment), ("kms_key", target.kms_key)):
        if resource_name is None or resource_name == OWN_ATTACHMENT:
            continue
        region = resource_name.split("/")[3]
        if region != target.region:
            yield finding(
                job,
                ("vertex", field),
                f"is in {region}, but the job runs in {target.region}",
                rule=JOB_VERTEX_PLACE,
                allowed=f"one in {target.region}",
            )
    if target.network_attachment == OWN_ATTACHMENT:
        for message, allowed in missing_attachment(job.team, job.environment, target.region):
            yield finding(job, ("vertex", "network_attachment"), message, rule=JOB_VERTEX_NETWORK, allowed=allowed)
    yield from _reservation(job, target)
    yield from _mounts(job, target)


_NO_PEERING = ("h100-mega", "h200", "b200")


JOB_VERTEX_NETWORK = vertex_rule(
    "job-vertex-network",
    "Find a network or network attachment that the job's VMs cannot use.",
)


def _key(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    key = job.scope.key(target.region)
    if key and target.kms_key is None and target.persistent_resource is None:
        message = f"is not set, but the environment encrypts its data in {target.region} with its own key"
        yield finding(job, ("vertex", "kms_key"), message, rule=JOB_VERTEX_KEY, allowed=key, nearest=key)


def _network(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    if target.network is None:
        return
    if target.network_attachment:
        yield finding(
            job,
            ("vertex", "network"),
            "is set together with network_attachment, but a job can have only one of them",
            rule=JOB_VERTEX_NETWORK,
            allowed="network or network_attachment",
        )
    accelerator = target.machine.accelerator
    if accelerator and accelerator.name in _NO_PEERING:
        yield finding(
            job,
            ("vertex", "network"),
            f"{target.machine_type} does not support peered networks",
            rule=JOB_VERTEX_NETWORK,
            allowed="network_attachment",
        )


JOB_VERTEX_RESERVATION = vertex_rule(
    "job-vertex-reservation",
    "Find a reservation in another region, or a reservation for VMs that are not on demand.",
)


def _reservation(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    if target.reservation is None:
        return
    if target.capacity != "on-demand":
        yield finding(
            job,
            ("vertex", "reservation"),
            f"is for on-demand VMs, but the job's are {target.capacity}",
            rule=JOB_VERTEX_RESERVATION,
            allowed="no reservation, or capacity: on-demand",
        )
    zone = target.reservation.split("/")[3]
    if region_of(zone) != target.region:
        yield finding(
            job,
            ("vertex", "reservation"),
            f"is in {zone}, but the job runs in {target.region}",
            rule=JOB_VERTEX_RESERVATION,
            allowed=f"a reservation in a zone of {target.region}",
        )
    if target.persistent_resource:
        yield finding(
            job,
            ("vertex", "reservation"),
            f"is for new VMs, but the job runs on the VMs of {target.persistent_resource}",
            rule=JOB_VERTEX_RESERVATION,
            allowed="none",
        )


JOB_VERTEX_MOUNT = vertex_rule(
    "job-vertex-mount",
    "Find a mount with a path or a write protection that Vertex AI does not support, or that the job cannot reach.",
)


def _mounts(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Find mount paths that Vertex AI does not support, unreachable shares, and ``read_only``, which it ignores."""
    for index, mount in enumerate(job.spec.mounts):
        data = job.environment.data_sets.get(mount.source.data_set or "")
        vertex_path = fixed_path(job, mount)
        if mount_path(job, mount) != vertex_path:
            yield finding(
                job,
                ("mounts", index, "path"),
                f"is {mount.path}, and Vertex AI mounts it at {vertex_path}",
                rule=JOB_VERTEX_MOUNT,
                allowed=f"none, or {vertex_path}",
                nearest=vertex_path,
            )
        if mount.read_only:
            yield finding(
                job,
                ("mounts", index, "read_only"),
                "has no effect on Vertex AI, which mounts everything as writable",
                rule=JOB_VERTEX_MOUNT,
                severity="warning",
                allowed="false",
            )
        if mount.source.directory or (data and data.filestore):
            service = "Filestore"
        elif data and data.lustre:
            service = "Managed Lustre"
        else:
            continue
        if not (target.network or target.network_attachment):
            name = mount.source.directory or mount.source.data_set
            yield finding(
                job,
                ("mounts", index, "source"),
                f"{name} is on {service}, which a job without a network cannot reach",
                rule=JOB_VERTEX_MOUNT,
                allowed="vertex.network or vertex.network_attachment",
            )
