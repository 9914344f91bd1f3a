"""Findings about a job's GKE target: what JobSet and Kueue refuse or never start. Source: their webhooks, read 2026."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from training_platform.catalog.locations import region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.config.data_sets import reaches
from training_platform.config.expansion import ExpandedPool, Flavor
from training_platform.config.lent_quota import lending
from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import Share
from training_platform.config.reading.declaration import Draft, finding, located
from training_platform.config.reading.finding import Finding, Severity
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.common_rules import (
    JOB_LOCAL_CHECKPOINTS,
    JOB_MOUNT,
    JOB_RETRY_ON,
    JOB_SWEEP,
    bucket_findings,
    data_set_findings,
    disk_findings,
)
from training_platform.parts.jobs.container import Launch, launched
from training_platform.parts.jobs.gke.egress import egress_findings
from training_platform.parts.jobs.gke.gpu_direct import fabric_of, gpu_direct, nccl_findings, usable_pools
from training_platform.parts.jobs.gke.pathways import JOB_IMAGE_SOURCE, pathways_findings
from training_platform.parts.jobs.gke.pods import (
    LOCAL_CHECKPOINTS_PATH,
    ROLE,
    chips_each,
    cpus_each,
    gke_target,
    layout,
    local_disk_gib,
    local_ssds,
    part_of_vm,
    placement_levels,
    pod_parts,
    pulled_image,
    roomy_pools,
    shape,
    usable_disk_gib,
    usable_memory_gib,
    vm_hours,
)
from training_platform.parts.jobs.job_file import JOB_NAME_RULE
from training_platform.parts.jobs.job_rules import gke_rule
from training_platform.parts.jobs.naming import longest_name
from training_platform.parts.jobs.rendezvous import launcher_findings
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.quota.charges import shown
from training_platform.resources.kueue import run_limit_hours

LONGEST_NAME = 63  # of a pod's host name, a DNS label
_RANDOM_SUFFIX = "abcde"  # of a pod's name, with Kubernetes' length


def gke_findings(job: ResolvedJob) -> list[Finding]:
    """Return the findings about the GKE target of a job whose file is valid."""
    return located(_drafts(job))


def _drafts(job: ResolvedJob) -> list[Draft]:
    gke, flavor = gke_target(job)
    is_tpu = flavor.accelerator.kind == "tpu"
    count = gke.slices if is_tpu else gke.nodes
    if count is None:
        of_gpus = list(_part_of_a_vm(job, flavor)) if is_tpu else []
        count_finding = of_gpus or [_wrong_count(job, flavor)]
        return [*count_finding, *_image(job), *_slice_sizes(job, flavor), *resource_findings(job)]
    count_findings = _cpu_counts(job, flavor, count) if gke.pool else _accelerator_counts(job, flavor, count)
    region = region_of(job.environment.clusters[gke.cluster].location)
    return [
        *_image(job),
        *_slice_sizes(job, flavor),
        *count_findings,
        *_part_of_a_vm(job, flavor),
        *_idle_gpus(job, flavor),
        *_slices(job, flavor, count),
        *_networks(job, flavor),
        *nccl_findings(job),
        *egress_findings(job),
        *_run_time(job),
        *_launcher(job, flavor),
        *pathways_findings(job),
        *resource_findings(job),
        *_names(job),
        *data_set_findings(job, region, vertex=False),
        *bucket_findings(job, region),
        *disk_findings(job, {pool.zone for pool in flavor.pools}),
    ]


JOB_COUNT = gke_rule(
    "job-count",
    "Find a number of slices for a flavor that is counted in nodes, or the reverse.",
)


def _wrong_count(job: ResolvedJob, flavor: Flavor) -> Draft:
    """Return the finding about nodes of a flavor of TPUs, or slices of another."""
    if flavor.accelerator.kind == "tpu":
        hosts = shape(flavor).hosts
        message = f"{flavor.name} is counted in slices, each of {hosts} VMs"
        nearest = f"slices: {math.ceil((job.spec.gke.nodes or 1) / hosts)}" if job.spec.gke else None
        return finding(job, ("gke", "nodes"), message, rule=JOB_COUNT, allowed="slices", nearest=nearest)
    message = f"{flavor.name} is counted in nodes"
    return finding(job, ("gke", "slices"), message, rule=JOB_COUNT, allowed="nodes", nearest="nodes")


def demand(job: ResolvedJob) -> int:
    """Return the amount that Kueue counts for the job: chips of whole slices, GPUs of VMs, or vCPUs of a CPU pool."""
    gke, flavor = gke_target(job)
    jobs, hosts = layout(gke, flavor)
    if gke.pool:
        return jobs * hosts * (cpus_each(job) or 0)
    return jobs * hosts * chips_each(gke, flavor)


def reach(job: ResolvedJob) -> tuple[int, float]:
    """Return the team's nominal quota of the job's flavor, and the most that it can have, in chips or GPUs.

    A team borrows what others lend, up to its borrowing limit. The most is ``inf`` without that limit if some stack
    files are unreadable, since they may be of further teams.
    """
    gke, flavor = gke_target(job)
    share = job.team.shares[gke.cluster][flavor.name]
    lending_environment = lending(job.workspace, job.team.environment)
    lent: float = sum(map(_lent, _other_shares(job, lending_environment)))
    if job.workspace.uncounted:
        lent = math.inf
    borrowed = lent if share.borrowing_limit is None else min(lent, share.borrowing_limit)
    return share.nominal_quota, share.nominal_quota + borrowed


JOB_FITS_POOLS = gke_rule(
    "job-fits-pools",
    "Find a job that the pools of its flavor do not hold.",
)


JOB_FITS_SHARE = gke_rule(
    "job-fits-share",
    "Find a job that is larger than its team's share plus all that it may borrow.",
)


def _accelerator_counts(job: ResolvedJob, flavor: Flavor, count: int) -> Iterator[Draft]:
    """Find more slices or VMs than the pools hold or the team can have; only the tighter limit is reported."""
    gke, _ = gke_target(job)
    if (gke.gpus or 0) > shape(flavor).machine.chips:
        return  # _part_of_a_vm reports that no VM has as many
    needed = demand(job)
    unit_chips = needed // count
    unit = "slice" if flavor.accelerator.kind == "tpu" else "VM"
    capacity = _pool_capacity(job, flavor, unit_chips)
    nominal, reachable = reach(job)
    reason: str
    if capacity <= reachable:
        rule = JOB_FITS_POOLS
        limit: float = capacity
        reason = f"the pools of {flavor.name} hold {capacity:,}"
        if flavor.by_request:
            reason = f"queued VMs come from one zone of one node pool, and the largest holds {capacity:,}"
    else:
        rule = JOB_FITS_SHARE
        limit = reachable
        reason = f"team {job.team.name} has {nominal:,} and can have {shown(reachable)} with what it borrows"
    if needed <= limit:
        return
    fitting = int(limit) // unit_chips
    subject = f"{count:,} {unit}s of {flavor.name} are" if count > 1 else f"1 {unit} of {flavor.name} is"
    nearest: int | str | None = fitting or None
    if not fitting and capacity >= unit_chips:
        nearest = _larger_share(job, flavor, unit_chips)
    share = job.stack.at(("shares", gke.cluster, flavor.name))
    yield finding(
        job,
        ("gke", "slices" if unit == "slice" else "nodes"),
        f"{subject} {needed:,} {flavor.accelerator.resource}, and {reason}",
        rule=rule,
        allowed=f"at most {fitting:,}" if fitting else f"a team that can have {unit_chips:,}, for one {unit}",
        nearest=nearest,
        rests_on=(share,) if rule is JOB_FITS_SHARE else (),
    )


def _pool_capacity(job: ResolvedJob, flavor: Flavor, unit_chips: int) -> int:
    """Return the chips that a flavor's pools hold for the job; of parts of a VM, only whole parts count.

    Queued VMs for a job come from one pool, so the largest decides; pools of other VMs are added up.
    """
    gke, _ = gke_target(job)
    nodes = gke.nodes or 1
    usable = usable_pools(flavor, nodes)
    capacity = 0
    for pool in _large_pools(job, flavor):
        if pool in usable:
            chips = pool.machine.chips
            if gke.gpus:
                chips -= chips % unit_chips
            if flavor.by_request:
                capacity = max(capacity, pool.max_nodes_per_request * chips)
            else:
                capacity += pool.max_nodes * chips
    if not fabric_of(flavor, nodes):  # auto-provisioned pools have no networks between GPUs
        capacity += flavor.auto_provisioned_chips
    return capacity


def cpu_quota(job: ResolvedJob) -> int:
    """Return the vCPUs that all pods of the team may request in the job's cluster."""
    from training_platform.resources.tenancy import resource_quota  # noqa: PLC0415 # few jobs need it

    gke, _ = gke_target(job)
    flavors = job.workspace.flavors(job.team.environment, gke.cluster)
    shares = {name: share for name, share in job.team.shares[gke.cluster].items() if name in flavors}
    return int(resource_quota(shares, flavors)["requests.cpu"])


JOB_POOL_QUEUE = gke_rule(
    "job-pool-queue",
    "Find a job on a pool of CPUs in a queue whose flavors all have a topology.",
)


def _cpu_counts(job: ResolvedJob, flavor: Flavor, count: int) -> Iterator[Draft]:
    """Find more pods than a pool of CPUs holds or the team may have, and a queue that admits none of them."""
    gke, _ = gke_target(job)
    pool = shape(flavor)
    pod_cpus = cpus_each(job) or 1
    capacity = pool.max_nodes * max(1, pool.machine.vcpus // pod_cpus)
    quota = cpu_quota(job)
    if capacity <= quota // pod_cpus:
        rule = JOB_FITS_POOLS
        limit = capacity
        reason = f"pool {flavor.name} has room for {capacity:,}"
    else:
        rule = JOB_FITS_SHARE
        limit = quota // pod_cpus
        reason = f"team {job.team.name} may request {quota:,} vCPUs in {gke.cluster}"
    if count > limit:
        message = f"is {count:,}, pods of {pod_cpus:,} vCPUs each, and {reason}"
        yield finding(job, ("gke", "nodes"), message, rule=rule, allowed=f"at most {limit:,}", nearest=limit or None)
    flavors = job.workspace.flavors(job.team.environment, gke.cluster)
    team_flavors = [flavors[name] for name in job.team.shares[gke.cluster] if name in flavors]
    if team_flavors and all(team_flavor.topology_levels for team_flavor in team_flavors):  # as for Pathways
        message = f"every flavor of the team's queue has a topology, and pods of pool {flavor.name} request none"
        allowed = "a share of a flavor without topology_aware beside them"
        yield finding(job, ("gke", "pool"), message, rule=JOB_POOL_QUEUE, allowed=allowed)


def _larger_share(job: ResolvedJob, flavor: Flavor, needed: int) -> str:
    """Return what to raise so that the team can have the needed chips: its quota, its borrowing limit, or the pools."""
    cluster = gke_target(job)[0].cluster
    share = job.team.shares[cluster][flavor.name]
    other_shares = list(_other_shares(job, job.environment))
    position = job.stack.place(("shares", cluster, flavor.name))
    if needed <= flavor.queue_chips - sum(other.nominal_quota for other in other_shares):
        return f"nominal_quota: {needed} at {position}"
    if needed <= share.nominal_quota + sum(map(_lent, other_shares)):
        return f"borrowing_limit: {needed - share.nominal_quota} at {position}"
    return f"larger pools of {flavor.name} ({', '.join(pool.name for pool in flavor.pools)})"


JOB_PART = gke_rule(
    "job-part",
    "Find GPUs that a VM does not have, that a job cannot request separately, or that stay idle beside it.",
)


def _part_of_a_vm(job: ResolvedJob, flavor: Flavor) -> Iterator[Draft]:
    """Find more GPUs than a VM has, and a part of a VM that cannot be had without the rest."""
    gke, _ = gke_target(job)
    machine = shape(flavor).machine
    path = ("gke", "gpus")
    rule = JOB_PART
    if gke.gpus is None:
        return
    if flavor.accelerator.kind == "tpu":
        message = f"{flavor.name} has TPUs, and a pod gets all TPUs of its VM"
        allowed = "slices and no gpus, or a flavor of VMs with one chip, such as ct5lp-hightpu-1t"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest=None if gke.slices else "slices: 1")
        return
    nodes = gke.nodes or 1
    if gke.gpus > machine.chips:
        message = f"is {gke.gpus}, and a VM of {flavor.name} ({machine.name}) has {machine.chips}"
        total = gke.gpus * nodes
        allowed = f"at most {machine.chips}; for {total} in all nodes: {math.ceil(total / machine.chips)}, and no gpus"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest=machine.chips)
        return
    if gke.gpus == machine.chips:
        return
    fabric = fabric_of(flavor, nodes)
    if fabric:
        message = (
            f"is {gke.gpus}, and pods of several VMs take all network cards of {fabric}: GPUDirect needs whole VMs"
        )
        allowed = f"{machine.chips}, or nodes: 1"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest=machine.chips)
    if flavor.by_request:
        idle = machine.chips - gke.gpus
        message = f"queued VMs of {flavor.name} serve one job: the other {idle} GPUs of each stay idle"
        allowed = "the whole VM, or a flavor without queued provisioning"
        yield finding(job, path, message, rule=rule, severity="warning", allowed=allowed, nearest=machine.chips)


def _idle_gpus(job: ResolvedJob, flavor: Flavor) -> Iterator[Draft]:
    """Find requests for so much CPU, memory or disk that no other job fits on the rest of the VM's GPUs."""
    gke, _ = gke_target(job)
    spec = job.spec
    pool = shape(flavor)
    places = pool.machine.chips * pool.places_per_gpu
    if gke.gpus is None or gke.gpus >= places:
        return
    for field, unit in (("cpu", "vCPUs"), ("memory_gib", "GiB of memory"), ("disk_gib", "GiB of disk")):
        requested = getattr(spec, field)
        available, usable = _of_a_vm(pool)[field]
        share = max(1, usable // places)
        if not requested or requested >= available:
            continue  # _machine finds what no VM has
        other_gpus = places - gke.gpus
        usable_by_others = max(0, usable - requested) // share
        idle = other_gpus - min(other_gpus, usable_by_others)
        if idle > 0:
            message = (
                f"is {requested:,}: {idle} of the {other_gpus} other GPUs of its VM stay idle, since a job on one has "
                f"{share:,} {unit} by default, and jobs on a VM of {flavor.name} have {usable:,} together"
            )
            maximum = share * gke.gpus
            allowed = f"at most {maximum:,}, or gpus: {min(places, math.ceil(requested / share))}"
            yield finding(job, (field,), message, rule=JOB_PART, severity="warning", allowed=allowed, nearest=maximum)


def _image(job: ResolvedJob) -> Iterator[Draft]:
    """Find an image from a source that the cluster's admission policy refuses."""
    sources = job.environment.image_sources
    image = pulled_image(job)
    if not sources or image.startswith(sources):
        return
    path = ("source", "image") if job.spec.source else ("image",)
    message = f"{image} is not from the image_sources of {job.spec.environment}, so its pods are refused"
    allowed = f"images of {enumeration(sources)}"
    nearest = find_nearest(image, [f"{source}{image.rpartition('/')[2]}" for source in sources])
    yield finding(job, path, message, rule=JOB_IMAGE_SOURCE, allowed=allowed, nearest=nearest)


JOB_FLAVOR_SHAPE = gke_rule(
    "job-flavor-shape",
    "Find a flavor whose slices have different numbers of VMs.",
)


def _slice_sizes(job: ResolvedJob, flavor: Flavor) -> Iterator[Draft]:
    """Find a flavor of TPUs with slices of several sizes: no number of VMs is right for all of them."""
    sizes = {pool.hosts: pool for pool in flavor.pools}
    if len(sizes) < 2:
        return
    pools = " and ".join(f"{pool.name} of {hosts}" for hosts, pool in sorted(sizes.items()))
    message = f"{flavor.name} has slices of different numbers of VMs, pool {pools}: Kubernetes may choose either"
    allowed = "a flavor whose slices have one size"
    yield finding(job, ("gke", "flavor"), message, rule=JOB_FLAVOR_SHAPE, allowed=allowed)


JOB_MULTISLICE = gke_rule(
    "job-multislice",
    "Find several slices of a flavor whose slices are single hosts.",
)


JOB_SLICES_FROM_ZERO = gke_rule(
    "job-slices-from-zero",
    "Find more slices than the pools always keep: some autoscalers wait forever.",
    severity="warning",
)


def _slices(job: ResolvedJob, flavor: Flavor, count: int) -> Iterator[Draft]:
    """Find pools without what multislice needs. Source: GKE docs on multislice TPUs; reports on JobSet, 2026."""
    pool = shape(flavor)
    path = ("gke", "slices")
    if flavor.accelerator.kind != "tpu":
        return
    if count > 1 and not pool.multi_host:
        message = f"multislice needs multi-host slices, but {flavor.name} has single-host slices"
        yield finding(job, path, message, rule=JOB_MULTISLICE, allowed="1", nearest=1)
    running = sum(member.min_nodes // member.hosts for member in flavor.pools)
    if pool.multi_host and count > running:
        message = (
            f"needs {count:,} slices, and {flavor.name} always has {running:,}: some autoscaler versions "
            "are reported never to add a slice for a Job that needs a whole one"
        )
        allowed = f"min_slices that add up to {count:,} in the flavor's pools"
        if running:
            allowed = f"at most {running:,}, or {allowed}"
        yield finding(job, path, message, rule=JOB_SLICES_FROM_ZERO, allowed=allowed, nearest=running or None)


JOB_FLAVOR_NETWORKS = gke_rule(
    "job-flavor-networks",
    "Find pools of a flavor that a job over several VMs cannot use, since it needs networks between GPUs.",
    severity="warning",
)


JOB_HOST_NETWORK = gke_rule(
    "job-host-network",
    "Find a pod on the host network that its team or its flavor's networks do not allow.",
)


def _networks(job: ResolvedJob, flavor: Flavor) -> Iterator[Draft]:
    """Find pools that a job on several VMs cannot use, and pods outside the networks between GPUs."""
    gke, _ = gke_target(job)
    rule = JOB_FLAVOR_NETWORKS
    if gke.host_network and not job.team.host_network:
        message = f"team {job.team.name} may not use the host network: the cluster would refuse its pods"
        allowed = "false, or host_network: true in the team's stack"
        yield finding(job, ("gke", "host_network"), message, rule=JOB_HOST_NETWORK, allowed=allowed, nearest="false")
        return
    nodes = gke.nodes or 1
    machine = shape(flavor).machine
    if machine.nvlink_domain and not machine.gpudirect and nodes > 1:
        message = f"VMs of {flavor.name} ({machine.name}) reach each other only by the slow network of their nodes"
        yield finding(job, ("gke", "nodes"), message, rule=rule, severity="warning", allowed="1", nearest=1)
    fabric = fabric_of(flavor, nodes)
    if fabric is None:
        return
    direct = gpu_direct(job)
    if direct and direct.script and not launched(job, Launch(script=direct.script)):
        message = f"is missing, so that the launcher does not set NCCL's variables of {direct.script} for {flavor.name}"
        allowed = "command: the program that the image starts; or an image that sources the script itself"
        yield finding(job, ("command",), message, rule=rule, severity="warning", allowed=allowed)
    if gke.host_network:
        message = (
            f"pods of {flavor.name} use additional network interfaces, which pods on the host network do not support"
        )
        yield finding(job, ("gke", "host_network"), message, rule=JOB_HOST_NETWORK, allowed="false", nearest="false")
    yield from _zones_apart(job, flavor, nodes)
    usable = usable_pools(flavor, nodes)
    unusable = [pool.name for pool in _large_pools(job, flavor) if pool not in usable]
    if unusable:
        message = (
            f"its pods are in the networks {fabric} between GPUs, and so run in pools "
            f"{enumeration([pool.name for pool in usable])} and never in {enumeration(unusable)}"
        )
        yield finding(job, ("gke", "flavor"), message, rule=rule, severity="warning")


def _zones_apart(job: ResolvedJob, flavor: Flavor, nodes: int) -> Iterator[Draft]:
    """Find a job with more VMs than one zone has, so that traffic between its GPUs crosses zones.

    Networks of RDMA are of one zone already, and queued VMs come from one.
    """
    zones: Counter[str] = Counter()
    for pool in usable_pools(flavor, nodes):
        if pool.zone is None:
            return  # its VMs may be in any zone of the region
        zones[pool.zone] += pool.max_nodes
    largest_zone = max(zones.values())
    if not flavor.by_request and largest_zone < nodes <= zones.total():
        counts = " and ".join(f"{count:,} in {zone}" for zone, count in zones.items())
        message = f"is {nodes:,}, and the VMs of {flavor.name} are {counts}: traffic between GPUs would cross zones"
        yield finding(
            job,
            ("gke", "nodes"),
            message,
            rule=JOB_FLAVOR_NETWORKS,
            severity="warning",
            allowed=f"at most {largest_zone:,}",
            nearest=largest_zone,
        )


JOB_RUN_TIME = gke_rule(
    "job-run-time",
    "Find a run longer than its queued or flex-start VMs live.",
)


def _run_time(job: ResolvedJob) -> Iterator[Draft]:
    """Find a run longer than its VMs exist, or than the environment lets jobs run.

    Source: GKE docs, queued provisioning, read 2026-04.
    """
    gke, flavor = gke_target(job)
    longest_vm = vm_hours(flavor)
    vm_limit = longest_vm if flavor.by_request else None
    limits = [hours for hours in (vm_limit, run_limit_hours(job.team, job.environment)) if hours]
    path = ("gke", "max_run_hours")
    rule = JOB_RUN_TIME
    if not gke.max_run_hours:
        return
    if limits and gke.max_run_hours > min(limits):
        max_hours = min(limits)
        subject = f"VMs of {flavor.name} run" if max_hours == vm_limit else f"jobs of team {job.team.name} may run"
        message = f"{subject} for at most {max_hours:,} hours: then Kueue deactivates the job"
        yield finding(job, path, message, rule=rule, allowed=f"at most {max_hours:,}", nearest=max_hours)
    elif longest_vm and gke.max_run_hours > longest_vm:
        message = (
            f"is {gke.max_run_hours:,}, and GKE deletes VMs of {flavor.name} after {longest_vm:,} hours: the run then "
            "waits for new ones, and starts again from its last checkpoint"
        )
        allowed = f"at most {longest_vm:,}, or checkpoints that the program resumes from"
        yield finding(job, path, message, rule=rule, severity="warning", allowed=allowed, nearest=longest_vm)


def _launcher(job: ResolvedJob, flavor: Flavor) -> Iterator[Draft]:
    gke, _ = gke_target(job)
    if not gke.pathways:  # with it, one program directs all VMs
        slices, hosts = layout(gke, flavor)
        tpu = flavor.accelerator.kind == "tpu"
        yield from launcher_findings(job, where="GKE", nodes=slices * hosts, chips=chips_each(gke, flavor), tpu=tpu)


def _names(job: ResolvedJob) -> Iterator[Draft]:
    """Find a job with too long names of pods. Source: JobSet 08dfbdfd, jobset_webhook.go."""
    jobs, hosts = layout(*gke_target(job))
    longest = len(f"{longest_name(job)}-{ROLE}-{jobs - 1}-{hosts - 1}-{_RANDOM_SUFFIX}")
    if longest > LONGEST_NAME:
        max_characters = len(job.name) - (longest - LONGEST_NAME)
        message = f"names of its pods would have {longest} characters, but Kubernetes allows {LONGEST_NAME}"
        yield finding(
            job, (), message, rule=JOB_NAME_RULE, allowed=f"a file name of at most {max_characters} characters"
        )


def _large_pools(job: ResolvedJob, flavor: Flavor) -> list[ExpandedPool]:
    """Return the pools with VMs for the job: as large as the flavor's, or with enough GPUs for a part of a VM."""
    gpus = gke_target(job)[0].gpus
    if gpus is None:
        return [pool for pool in flavor.pools if pool.machine.chips == shape(flavor).machine.chips]
    return [pool for pool in flavor.pools if pool.machine.chips >= gpus]


def _other_shares(job: ResolvedJob, environment: Environment) -> Iterator[Share]:
    """Yield the shares of the job's flavor of other teams, and of the environment's cohorts."""
    gke, flavor = gke_target(job)
    shares_by_holder = [cohort.shares for cohort in environment.cohorts.values()]
    for _, team, _ in job.workspace.teams():
        if team.environment == job.team.environment and team.name != job.team.name:
            shares_by_holder.append(team.shares)
    for shares in shares_by_holder:
        share = shares.get(gke.cluster, {}).get(flavor.name)
        if share is not None:
            yield share


def _lent(share: Share) -> int:
    if share.lending_limit is None:
        return share.nominal_quota
    return min(share.lending_limit, share.nominal_quota)


_SEARCH_FIELDS = ("metric", "goal", "trials", "parallel", "max_failed_trials")  # of a sweep
OUT_OF_MEMORY = 137  # the exit code of a killed program
HOST = "host"  # the level of a physical host, which has one VM of these machine types
SPOT_SECONDS = 25  # Source: GKE docs, spot VMs, graceful termination of pods that are not system pods, read 2026-11


def resource_findings(job: ResolvedJob) -> Iterator[Draft]:
    """Find requests that the job's VMs or their cluster do not satisfy."""
    yield from _machine(job)
    yield from _local_checkpoints(job)
    yield from _directories(job)
    yield from _placement(job)
    yield from _file_caches(job)
    yield from _tensorboard(job)
    yield from _grace(job)
    yield from _sweep(job)


JOB_TENSORBOARD = gke_rule(
    "job-tensorboard",
    "Find `tensorboard`, which streams logs only on Vertex AI, in a job on GKE.",
    severity="warning",
)


def _tensorboard(job: ResolvedJob) -> Iterator[Draft]:
    """Find a TensorBoard to which nothing on GKE streams the logs."""
    if job.spec.tensorboard and job.spec.output and job.spec.vertex is None:
        message = "has no effect on GKE, where nothing streams the logs"
        allowed = "tb-gcp-uploader --logdir $AIP_TENSORBOARD_LOG_DIR beside the program, or no such field"
        yield finding(job, ("tensorboard",), message, rule=JOB_TENSORBOARD, allowed=allowed)


JOB_GRACE = gke_rule(
    "job-grace",
    "Find a longer grace period than spot VMs give.",
    severity="warning",
)


JOB_GRACE_REFUSED = gke_rule(
    "job-grace-refused",
    "Find a longer grace period than the environment's max_grace_seconds.",
)


def _grace(job: ResolvedJob) -> Iterator[Draft]:
    """Find more seconds for a checkpoint than spot VMs or the cluster give."""
    gke, flavor = gke_target(job)
    path = ("gke", "grace_seconds")
    if flavor.capacity == "spot" and gke.grace_seconds > SPOT_SECONDS and "grace_seconds" in gke.model_fields_set:
        message = f"is {gke.grace_seconds}, and VMs of {flavor.name} end {SPOT_SECONDS} seconds after their notice"
        allowed = f"at most {SPOT_SECONDS}"
        yield finding(job, path, message, rule=JOB_GRACE, allowed=allowed, nearest=SPOT_SECONDS)
    max_seconds = job.environment.max_grace_seconds
    if gke.grace_seconds > max_seconds:
        message = f"is {gke.grace_seconds}, and the cluster refuses pods that take longer than max_grace_seconds"
        yield finding(job, path, message, rule=JOB_GRACE_REFUSED, allowed=f"at most {max_seconds}", nearest=max_seconds)


def _sweep(job: ResolvedJob) -> Iterator[Draft]:
    """Find a search, which GKE does not run, and fields of a sweep that only a search has."""
    sweep = job.spec.sweep
    if sweep is None:
        return
    unused = [field for field in _SEARCH_FIELDS if field in sweep.model_fields_set]
    if sweep.method != "grid":
        message = f"GKE does not search: a {sweep.method} search runs on Vertex AI"
        allowed = f"grid, without {enumeration(unused)}" if unused else "grid"
        yield finding(job, ("sweep", "method"), message, rule=JOB_SWEEP, allowed=allowed, nearest=allowed)
        return
    gke, flavor = gke_target(job)
    if not gke.pool and flavor.name in job.team.shares[gke.cluster]:
        _, most = reach(job)
        if not math.isinf(most):  # some stack files are unreadable
            message = f"starts a run when the team's quota has room: at most {int(most) // demand(job):,} at once"
            yield finding(job, ("sweep",), message, rule=JOB_SWEEP, severity="note")
    if job.spec.vertex is None:
        for field in unused:
            message = "has no effect on GKE, which runs every combination as the queue admits it"
            yield finding(job, ("sweep", field), message, rule=JOB_SWEEP, severity="warning", allowed="no such field")


JOB_MACHINE = gke_rule(
    "job-machine",
    "Find more CPUs, memory or disk than a VM of the flavor has.",
)


def _machine(job: ResolvedJob) -> Iterator[Draft]:
    """Find more CPUs, memory or disk than a VM has; the part that its own software takes is unknown."""
    gke, flavor = gke_target(job)
    pool = shape(flavor)
    spec = job.spec
    units = {"cpu": "vCPUs", "disk_gib": "GiB of disk"}
    for field, (available, usable) in _of_a_vm(pool).items():
        requested = getattr(spec, field)
        unit = units.get(field, "GiB")
        if requested and requested >= available:
            nearest = int(available * 0.9)
            if gke.gpus:
                nearest = max(1, usable // (pool.machine.chips * pool.places_per_gpu)) * gke.gpus
            vm = f"a VM of {flavor.name} ({pool.machine.name})"
            message = f"is {requested}, and {vm} has {available} {unit} with its own software's"
            allowed = f"less than {available}"
            yield finding(job, (field,), message, rule=JOB_MACHINE, allowed=allowed, nearest=nearest or None)
    if OUT_OF_MEMORY in spec.retry_on:
        path = ("retry_on", spec.retry_on.index(OUT_OF_MEMORY))
        message = (
            "is also the code of a program that ran out of memory, which would start again until its retries are used"
        )
        yield finding(job, path, message, rule=JOB_RETRY_ON, severity="warning", allowed="other codes")


def _of_a_vm(pool: ExpandedPool) -> dict[str, tuple[int, int]]:
    """Return what a VM of a pool has, and what jobs on it may use together, by the field that asks for it."""
    memory = (int(pool.machine.memory_gb), usable_memory_gib(pool))
    return {
        "cpu": (pool.machine.vcpus, int(pool.machine.vcpus * 0.9)),
        "memory_gib": memory,
        "shared_memory_gib": memory,
        "disk_gib": (local_disk_gib(pool), usable_disk_gib(pool)),
    }


def _local_checkpoints(job: ResolvedJob) -> Iterator[Draft]:
    """Find local checkpoints on VMs without local SSD, larger than the job's limits, or of a Pathways job."""
    gke, flavor = gke_target(job)
    local = job.spec.local_checkpoints
    rule = JOB_LOCAL_CHECKPOINTS
    if local is None:
        return
    if gke.pathways:
        message = "are for programs on the VMs of the slices, and a Pathways job has its program on another VM"
        yield finding(job, ("local_checkpoints",), message, rule=rule, allowed="the field left out")
        return
    for index, mount in enumerate(job.spec.mounts):
        if mount.path == LOCAL_CHECKPOINTS_PATH:
            message = f"{mount.path} is the path of local_checkpoints too"
            yield finding(job, ("mounts", index, "path"), message, rule=JOB_MOUNT, allowed="a path for each")
    without_ssd = [pool.name for pool in flavor.pools if not local_ssds(pool)]
    if local.medium == "ssd" and without_ssd:
        names = enumeration(without_ssd)
        message = f"is ssd, and VMs of {names} ({flavor.name}) keep no containers' files on local SSD"
        path = ("local_checkpoints", "medium") if "medium" in local.model_fields_set else ("local_checkpoints",)
        allowed = "memory, or a flavor with local SSD"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest="memory")
        return
    parts = pod_parts(job)
    if local.medium == "memory":
        field = "memory_gib"
        shared_memory = job.spec.shared_memory_gib or 0
        room = parts.memory - shared_memory
        amount = f"{room:,} GiB of memory{' beside /dev/shm' if shared_memory else ''}"
    else:
        field = "disk_gib"
        room = parts.disk
        amount = f"{room:,} GiB of disk"
    if local.size_gib >= room:
        path = ("local_checkpoints", "size_gib")
        message = f"is {local.size_gib:,}, and the job has {amount} on each VM of {flavor.name}"
        allowed = f"less than {room:,}, or a larger {field}"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest=max(room // 2, 0) or None)


JOB_FILE_CACHE = gke_rule(
    "job-file-cache",
    "Find caches of buckets that are larger than the disk of the VM, or than the job's part of it.",
)


def _file_caches(job: ResolvedJob) -> Iterator[Draft]:
    """Find caches of buckets that are larger than the disk of the VM, or than the job's part of it."""
    _, flavor = gke_target(job)
    pool = min(roomy_pools(job), key=usable_disk_gib)
    whole = usable_disk_gib(pool)
    part = int(whole * part_of_vm(job, pool))
    total = sum(mount.file_cache_gib for mount in job.spec.mounts)
    if total <= part:
        return
    index = max(range(len(job.spec.mounts)), key=lambda row: job.spec.mounts[row].file_cache_gib)
    has = f"a VM of {flavor.name} has {whole:,} GiB of disk for jobs"
    message = f"caches of {total:,} GiB are asked for, and {has}{f', {part:,} for this one' if part < whole else ''}"
    severity: Severity = "error" if total > whole else "warning"
    path = ("mounts", index, "file_cache_gib")
    yield finding(
        job, path, message, rule=JOB_FILE_CACHE, severity=severity, allowed=f"at most {part:,} in all", nearest=part
    )


JOB_PLACEMENT = gke_rule(
    "job-placement",
    "Find a placement that the flavor's topology does not have, or that could never hold all VMs.",
)


def _placement(job: ResolvedJob) -> Iterator[Draft]:
    """Find a level that the flavor's topology lacks, and one that can never hold all VMs of the job."""
    gke, flavor = gke_target(job)
    levels = placement_levels(flavor)
    chosen = gke.placement
    path = ("gke", "placement", "level")
    rule = JOB_PLACEMENT
    if chosen is None:
        return
    if not levels and flavor.topology_levels:
        message = f"{flavor.name} puts each slice on VMs of one node pool already"
        yield finding(job, ("gke", "placement"), message, rule=rule, allowed="the field left out")
    elif not levels:
        message = f"{flavor.name} has no topology"
        allowed = "the field left out, or topology_aware: true of the flavor's pools"
        yield finding(job, ("gke", "placement"), message, rule=rule, allowed=allowed)
    elif chosen.level not in levels:
        same_label = [name for name, label in levels.items() if label == chosen.level]
        nearest = same_label[0] if same_label else find_nearest(chosen.level, levels)
        message = f"{chosen.level!r} is not a level of {flavor.name}"
        yield finding(job, path, message, rule=rule, allowed=", ".join(levels), nearest=nearest)
    elif chosen.required and chosen.level == HOST and demand(job) > shape(flavor).machine.chips:
        *wider_levels, _ = levels
        message = f"one host has one VM of {flavor.name}, and the job has {gke.nodes}: it would wait for ever"
        allowed = f"{', '.join(wider_levels)}, or required: false"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest=wider_levels[-1])


JOB_MOUNT_FAR = gke_rule(
    "job-mount-far",
    "Find a directory on Filestore that the cluster's pods cannot reach.",
)


def _directories(job: ResolvedJob) -> Iterator[Draft]:
    """Find directories that the cluster's pods do not reach."""
    gke, _ = gke_target(job)
    instances = job.environment.filestore
    cluster = job.environment.clusters[gke.cluster]
    near: list[str] = []
    for name, directory in job.team.directories.items():
        if directory.filestore in instances and reaches(instances[directory.filestore], cluster):
            near.append(name)
    for index, mount in enumerate(job.spec.mounts):
        mounted = mount.source.directory
        if mounted is None or mounted in near:
            continue
        path = ("mounts", index, "source", "directory")
        location = instances[job.team.directories[mounted].filestore].location
        message = f"{mounted} is on Filestore in {location}, too far from cluster {gke.cluster}"
        allowed = f"directories near it: {enumeration(near) or 'the team has none'}"
        yield finding(job, path, message, rule=JOB_MOUNT_FAR, allowed=allowed, nearest=near[0] if near else None)
