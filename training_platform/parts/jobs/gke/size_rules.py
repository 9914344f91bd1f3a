"""Findings about the size of a job on GKE: its slices, VMs and GPUs, compared with its pools and its team's quota."""

from __future__ import annotations

import math
from collections.abc import Iterator

from training_platform.config.reading.declaration import Draft, finding
from training_platform.parts.jobs.gke.gke_job import GkeJob
from training_platform.parts.jobs.gke.gpu_direct import fabric_of, usable_pools
from training_platform.parts.jobs.gke.pod_sizes import vm_sizes
from training_platform.parts.jobs.gke.team_quota import cpu_quota, larger_share, reach
from training_platform.parts.jobs.job_rules import gke_rule
from training_platform.quota.charges import shown


def size_findings(job: GkeJob) -> Iterator[Draft]:
    """Find a job that requests more slices, VMs or GPUs than it can have, or that keeps GPUs idle."""
    if job.gke.pool:
        yield from _pods_without_gpus(job)
    elif job.chips_per_pod <= job.pool.machine.chips:  # else _part_of_a_vm reports that no VM has as many
        yield from _slices_or_vms(job)
    yield from _part_of_a_vm(job)
    yield from _idle_gpus(job)
    if job.is_tpu:
        yield from _multislice(job)


JOB_COUNT = gke_rule(
    "job-count",
    "Find slices for a flavor that needs nodes, or nodes for a flavor that needs slices.",
)


def wrong_count(job: GkeJob) -> Iterator[Draft]:
    """Find a job with ``nodes`` for a TPU flavor, ``slices`` for another flavor, or ``gpus`` for TPUs."""
    if job.is_tpu and job.gke.gpus is not None:
        yield from _part_of_a_vm(job)
        return
    if job.is_tpu:
        hosts = job.pool.hosts
        message = f"a job on {job.flavor.name} sets slices, each of {hosts} VMs"
        nearest = f"slices: {math.ceil(job.nodes / hosts)}"
        yield finding(job, ("gke", "nodes"), message, rule=JOB_COUNT, allowed="slices", nearest=nearest)
    else:
        message = f"a job on {job.flavor.name} sets nodes"
        yield finding(job, ("gke", "slices"), message, rule=JOB_COUNT, allowed="nodes", nearest="nodes")


JOB_FITS_POOLS = gke_rule(
    "job-fits-pools",
    "Find a job that does not fit in the pools of its flavor.",
)
JOB_FITS_SHARE = gke_rule(
    "job-fits-share",
    "Find a job that is larger than its team's share plus all that it may borrow.",
)


def _slices_or_vms(job: GkeJob) -> Iterator[Draft]:
    """Find a job with more slices or VMs than the pools or the team can have. Only the lower limit is reported."""
    flavor = job.flavor
    unit_chips = job.demand // job.units
    unit = "slice" if job.is_tpu else "VM"
    capacity = _pool_capacity(job, unit_chips)
    nominal, reachable = reach(job)
    if job.demand <= min(capacity, reachable):
        return
    if capacity <= reachable:
        rule = JOB_FITS_POOLS
        fitting = capacity // unit_chips
        reason = f"the pools of {flavor.name} have {capacity:,}"
        if flavor.by_request:
            reason = f"queued VMs come from one zone of one node pool, and the largest has {capacity:,}"
        rests_on = []
    else:
        rule = JOB_FITS_SHARE
        fitting = int(reachable) // unit_chips
        reason = f"team {job.team.name} has {nominal:,}, and at most {shown(reachable)} with borrowing"
        rests_on = [job.stack.at(("shares", job.gke.cluster, flavor.name))]
    subject = f"{job.units:,} {unit}s of {flavor.name} are" if job.units > 1 else f"1 {unit} of {flavor.name} is"
    allowed = f"at most {fitting:,}"
    nearest: int | str | None = fitting
    if not fitting:
        allowed = f"a team that can use at least {unit_chips:,}, for one {unit}"
        nearest = larger_share(job, unit_chips) if capacity >= unit_chips else None
    path = ("gke", "slices" if job.is_tpu else "nodes")
    message = f"{subject} {job.demand:,} {flavor.accelerator.resource}, but {reason}"
    yield finding(job, path, message, rule=rule, allowed=allowed, nearest=nearest, rests_on=rests_on)


def _pool_capacity(job: GkeJob, unit_chips: int) -> int:
    """Return the number of chips in a flavor's pools that the job can use. A rest too small for a pod is not counted.

    Queued VMs for a job come from one pool, so the largest pool decides. Other pools are added up.
    """
    capacity = 0
    for pool in usable_pools(job.flavor, job.nodes):
        if pool not in job.large_pools:
            continue
        chips = pool.machine.chips
        if job.gke.gpus:
            chips -= chips % unit_chips
        if job.flavor.by_request:
            capacity = max(capacity, pool.max_nodes_per_request * chips)
        else:
            capacity += pool.max_nodes * chips
    if not fabric_of(job.flavor, job.nodes):  # auto-provisioned pools have no networks between GPUs
        capacity += job.flavor.auto_provisioned_chips
    return capacity


JOB_POOL_QUEUE = gke_rule(
    "job-pool-queue",
    "Find a job on a pool of CPUs in a queue whose flavors all have a topology.",
)


def _pods_without_gpus(job: GkeJob) -> Iterator[Draft]:
    """Find a job with more pods than a CPU pool or the team can have, and a queue that admits none of its pods."""
    pod_cpus = job.cpus_per_pod or 1
    capacity = job.pool.max_nodes * max(1, job.pool.machine.vcpus // pod_cpus)
    quota = cpu_quota(job)
    if capacity <= quota // pod_cpus:
        rule = JOB_FITS_POOLS
        limit = capacity
        reason = f"pool {job.pool.name} has room for {capacity:,}"
    else:
        rule = JOB_FITS_SHARE
        limit = quota // pod_cpus
        reason = f"team {job.team.name} may request {quota:,} vCPUs in {job.gke.cluster}"
    if job.nodes > limit:
        message = f"is {job.nodes:,} pods of {pod_cpus:,} vCPUs each, but {reason}"
        yield finding(job, ("gke", "nodes"), message, rule=rule, allowed=f"at most {limit:,}", nearest=limit or None)
    flavors = job.workspace.flavors(job.team.environment, job.gke.cluster)
    team_flavors = [flavors[name] for name in job.team.shares[job.gke.cluster] if name in flavors]
    if team_flavors and all(flavor.topology_levels for flavor in team_flavors):  # as for Pathways
        message = (
            f"every flavor of the team's queue has a topology, but pods of pool {job.pool.name} request no topology"
        )
        allowed = "an additional share of a flavor without topology_aware"
        yield finding(job, ("gke", "pool"), message, rule=JOB_POOL_QUEUE, allowed=allowed)


JOB_PART = gke_rule(
    "job-part",
    "Find GPUs that a VM does not have, that a job cannot request separately, or that stay idle next to it.",
)


def _part_of_a_vm(job: GkeJob) -> Iterator[Draft]:
    """Find a job that requests more GPUs than a VM has, or that needs whole VMs and requests only a part of each."""
    machine = job.pool.machine
    gpus = job.gke.gpus
    path = ("gke", "gpus")
    rule = JOB_PART
    if gpus is None:
        return
    if job.is_tpu:
        message = f"{job.flavor.name} has TPUs, and a pod gets all TPUs of its VM"
        allowed = "slices and no gpus, or a flavor of VMs with one chip, such as ct5lp-hightpu-1t"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest=None if job.gke.slices else "slices: 1")
        return
    if gpus > machine.chips:
        message = f"is {gpus}, but a VM of {job.flavor.name} ({machine.name}) has {machine.chips}"
        total = gpus * job.nodes
        nodes = math.ceil(total / machine.chips)
        allowed = f"at most {machine.chips}; for {total} in total: nodes: {nodes}, without gpus"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest=machine.chips)
        return
    if gpus == machine.chips:
        return
    fabric = fabric_of(job.flavor, job.nodes)
    if fabric:
        message = f"is {gpus}, but pods on several VMs use all network cards of {fabric}: GPUDirect needs whole VMs"
        allowed = f"{machine.chips}, or nodes: 1"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest=machine.chips)
    if job.flavor.by_request:
        idle = machine.chips - gpus
        message = f"each queued VM of {job.flavor.name} runs only one job: its other {idle} GPUs stay idle"
        allowed = "the whole VM, or a flavor without queued provisioning"
        yield finding(job, path, message, rule=rule, severity="warning", allowed=allowed, nearest=machine.chips)


def _idle_gpus(job: GkeJob) -> Iterator[Draft]:
    """Find a job that requests so much CPU, memory or disk that no other job can use the VM's remaining GPUs."""
    gpus = job.gke.gpus
    places = job.pool.machine.chips * job.pool.places_per_gpu
    if gpus is None or gpus >= places:
        return
    sizes = vm_sizes(job.pool)
    for field, unit in (("cpu", "vCPUs"), ("memory_gib", "GiB of memory"), ("disk_gib", "GiB of disk")):
        requested = getattr(job.spec, field)
        available, usable = sizes[field]
        share = max(1, usable // places)
        if not requested or requested >= available:
            continue  # vm_findings reports what no VM has
        other_gpus = places - gpus
        usable_by_others = max(0, usable - requested) // share
        idle = other_gpus - min(other_gpus, usable_by_others)
        if idle > 0:
            message = (
                f"is {requested:,}: {idle} of the {other_gpus} other GPUs of its VM stay idle, because a job on one "
                f"GPU requests {share:,} {unit} by default, and a VM of {job.flavor.name} has {usable:,} for jobs"
            )
            maximum = share * gpus
            allowed = f"at most {maximum:,}, or gpus: {min(places, math.ceil(requested / share))}"
            yield finding(job, (field,), message, rule=JOB_PART, severity="warning", allowed=allowed, nearest=maximum)


JOB_MULTISLICE = gke_rule(
    "job-multislice",
    "Find several slices of a flavor whose slices are single hosts.",
)
JOB_SLICES_FROM_ZERO = gke_rule(
    "job-slices-from-zero",
    "Find more slices than the pools always keep running: some autoscalers never add the missing slices.",
    severity="warning",
)


def _multislice(job: GkeJob) -> Iterator[Draft]:
    """Find pools that do not meet the requirements of multislice training.

    Source: GKE docs on multislice TPUs; JobSet reports, 2026.
    """
    path = ("gke", "slices")
    if job.slices > 1 and not job.pool.multi_host:
        message = f"multislice needs multi-host slices, but {job.flavor.name} has single-host slices"
        yield finding(job, path, message, rule=JOB_MULTISLICE, allowed="1", nearest=1)
    running = sum(pool.min_nodes // pool.hosts for pool in job.flavor.pools)
    if job.pool.multi_host and job.slices > running:
        message = (
            f"needs {job.slices:,} slices, and {job.flavor.name} always has {running:,}: some autoscaler versions "
            "reportedly never add a slice for a Job that needs a whole slice"
        )
        allowed = f"min_slices that add up to {job.slices:,} in the flavor's pools"
        if running:
            allowed = f"at most {running:,}, or {allowed}"
        yield finding(job, path, message, rule=JOB_SLICES_FROM_ZERO, allowed=allowed, nearest=running or None)


JOB_FLAVOR_SHAPE = gke_rule(
    "job-flavor-shape",
    "Find a flavor whose slices have different numbers of VMs.",
)


def slice_shapes(job: GkeJob) -> Iterator[Draft]:
    """Find a TPU flavor with slices of several sizes. No number of VMs is right for all of them."""
    sizes = {pool.hosts: pool for pool in job.flavor.pools}
    if len(sizes) < 2:
        return
    pools = " and ".join(f"{pool.name} of {hosts}" for hosts, pool in sorted(sizes.items()))
    message = f"{job.flavor.name} has slices of different numbers of VMs, pool {pools}: Kubernetes may choose either"
    allowed = "a flavor whose slices have one size"
    yield finding(job, ("gke", "flavor"), message, rule=JOB_FLAVOR_SHAPE, allowed=allowed)
