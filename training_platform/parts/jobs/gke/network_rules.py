"""Findings about the networks of a job with several VMs: the networks between GPUs, and the host's network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.container import Launch, launched
from training_platform.parts.jobs.gke.gke_job import GkeJob
from training_platform.parts.jobs.gke.gpu_direct import fabric_of, gpu_direct, usable_pools
from training_platform.parts.jobs.job_rules import gke_rule

JOB_FLAVOR_NETWORKS = gke_rule(
    "job-flavor-networks",
    "Find pools of a flavor that a job on several VMs cannot use, because it needs networks between GPUs.",
    severity="warning",
)
JOB_HOST_NETWORK = gke_rule(
    "job-host-network",
    "Find a pod on the host network whose team or flavor does not allow this.",
)


def network_findings(job: GkeJob) -> Iterator[Draft]:
    """Find pools that a job with several VMs cannot use, and pods without the networks between GPUs."""
    rule = JOB_FLAVOR_NETWORKS
    if job.gke.host_network and not job.team.host_network:
        message = f"team {job.team.name} may not use the host network: the cluster would refuse its pods"
        allowed = "false, or host_network: true in the team's stack"
        yield finding(job, ("gke", "host_network"), message, rule=JOB_HOST_NETWORK, allowed=allowed, nearest="false")
        return
    machine = job.pool.machine
    if machine.nvlink_domain and not machine.gpudirect and job.nodes > 1:
        message = (
            f"VMs of {job.flavor.name} ({machine.name}) reach each other only through the slower network of their nodes"
        )
        yield finding(job, ("gke", "nodes"), message, rule=rule, allowed="1", nearest=1)
    fabric = fabric_of(job.flavor, job.nodes)
    if fabric is None:
        return
    direct = gpu_direct(job)
    if direct and direct.script and not launched(job, Launch(script=direct.script)):
        variables = f"the NCCL variables in {direct.script} for {job.flavor.name}"
        message = f"is missing, so the launcher does not set {variables}"
        allowed = "command: the program that the image starts; or an image that sources the script itself"
        yield finding(job, ("command",), message, rule=rule, allowed=allowed)
    if job.gke.host_network:
        pods = f"pods of {job.flavor.name}"
        message = f"{pods} use additional network interfaces, which pods on the host network do not support"
        yield finding(job, ("gke", "host_network"), message, rule=JOB_HOST_NETWORK, allowed="false", nearest="false")
    yield from _zones_apart(job)
    usable = usable_pools(job.flavor, job.nodes)
    unusable = [pool.name for pool in job.large_pools if pool not in usable]
    if unusable:
        message = (
            f"its pods use the GPU networks {fabric}, so they run only in pools "
            f"{enumeration([pool.name for pool in usable])}, not in {enumeration(unusable)}"
        )
        yield finding(job, ("gke", "flavor"), message, rule=rule)


def _zones_apart(job: GkeJob) -> Iterator[Draft]:
    """Find a job that needs more VMs than its pools have in one zone, so that traffic between GPUs crosses zones.

    RDMA networks and queued VMs are always in one zone, so they are not reported.
    """
    zones: Counter[str] = Counter()
    for pool in usable_pools(job.flavor, job.nodes):
        if pool.zone is None:
            return  # its VMs may be in any zone of the region
        zones[pool.zone] += pool.max_nodes
    largest_zone = max(zones.values())
    if not job.flavor.by_request and largest_zone < job.nodes <= zones.total():
        counts = " and ".join(f"{count:,} in {zone}" for zone, count in zones.items())
        vms = f"the VMs of {job.flavor.name} are {counts}"
        message = f"is {job.nodes:,}, and {vms}: traffic between GPUs would cross zones"
        rule = JOB_FLAVOR_NETWORKS
        allowed = f"at most {largest_zone:,}"
        yield finding(job, ("gke", "nodes"), message, rule=rule, allowed=allowed, nearest=largest_zone)
