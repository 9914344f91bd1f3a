"""What JobSet and Kueue refuse of a job, or would never start. Facts: JobSet and Kueue webhooks, read 2026."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from training_platform.catalog.locations import region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.reading import table
from training_platform.config.data_sets import reaches
from training_platform.config.expansion import ExpandedPool, Flavor
from training_platform.config.model.environment import Destination, Environment
from training_platform.config.model.queues import Share
from training_platform.config.reading.finding import Finding, Path, Severity
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import lending
from training_platform.parts.jobs.common_rules import bucket_findings, data_set_findings, disk_findings
from training_platform.parts.jobs.container import Launch, launched
from training_platform.parts.jobs.gke.gpu_direct import fabric_of, gpu_direct, usable_pools
from training_platform.parts.jobs.gke.pathways import pathways_findings
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
from training_platform.parts.jobs.naming import longest_name
from training_platform.parts.jobs.rendezvous import launcher_findings
from training_platform.parts.jobs.resolve import NAME_RULE, ResolvedJob
from training_platform.quota.charges import shown
from training_platform.resources.kueue import run_limit_hours

LONGEST_NAME = 63  # of a pod's host name, a DNS label
_SUFFIX = "abcde"  # what Kubernetes adds to a pod's name


def gke_findings(job: ResolvedJob) -> list[Finding]:
    """Return what is wrong with the GKE target of a job whose file the model takes."""
    gke, flavor = gke_target(job)
    tpu = flavor.accelerator.kind == "tpu"
    right, wrong = ("slices", "nodes") if tpu else ("nodes", "slices")
    count = gke.slices if tpu else gke.nodes
    if count is None:
        message = f"{flavor.name} is counted in {right}"
        finding = job.finding(("gke", wrong), message, rule="job-count", allowed=right, nearest=right)
        of_gpus = list(_part(job, flavor)) if tpu else []
        return [*(of_gpus or [finding]), *_image(job), *_shapes(job, flavor), *resource_findings(job)]
    region = region_of(job.environment.clusters[gke.cluster].location)
    counted = _cpus(job, flavor, count) if gke.pool else _counts(job, flavor, right, count)
    return [
        *_image(job),
        *_shapes(job, flavor),
        *counted,
        *_part(job, flavor),
        *_idle(job, flavor),
        *_slices(job, flavor, count),
        *_networks(job, flavor),
        *_hosts(job),
        *_run(job),
        *_launcher(job, flavor),
        *pathways_findings(job),
        *resource_findings(job),
        *_names(job),
        *data_set_findings(job, region, vertex=False),
        *bucket_findings(job, region),
        *disk_findings(job, {pool.zone for pool in flavor.pools}),
    ]


def demand(job: ResolvedJob) -> int:
    """Return the chips or GPUs that Kueue counts for the job: those of whole slices, or of each VM; or its vCPUs."""
    gke, flavor = gke_target(job)
    jobs, hosts = layout(gke, flavor)
    return jobs * hosts * ((cpus_each(job) or 0) if gke.pool else chips_each(gke, flavor))


def reach(job: ResolvedJob) -> tuple[int, float]:
    """Return the team's nominal quota of the job's flavor, and the most that it can reach, in chips or GPUs.

    It borrows what the other teams lend, up to its borrowing limit. ``inf`` without a limit if some stack files are
    unreadable, since they may be those of further teams.
    """
    gke, flavor = gke_target(job)
    share = job.team.shares[gke.cluster][flavor.name]
    home = lending(job.workspace, job.team.environment)
    lent: float = math.inf if job.workspace.uncounted else sum(map(_lent, _others(job, home)))
    borrowed = lent if share.borrowing_limit is None else min(lent, share.borrowing_limit)
    return share.nominal_quota, share.nominal_quota + borrowed


def _counts(job: ResolvedJob, flavor: Flavor, field: str, count: int) -> Iterator[Finding]:
    if (gke_target(job)[0].gpus or 0) > shape(flavor).machine.chips:
        return  # _part finds that no VM has as many
    needed = demand(job)
    unit_chips = needed // count
    unit = "slice" if flavor.accelerator.kind == "tpu" else "VM"
    resource = flavor.accelerator.resource
    nodes = gke_target(job)[0].nodes or 1
    usable = usable_pools(flavor, nodes)
    # Pools that GKE makes have no networks between GPUs.
    auto_provisioned = 0 if fabric_of(flavor, nodes) else flavor.auto_provisioned_chips
    holds = auto_provisioned + sum(
        pool.max_nodes
        * (pool.machine.chips // unit_chips * unit_chips if gke_target(job)[0].gpus else pool.machine.chips)
        for pool in _large(job, flavor)
        if pool in usable
    )
    nominal, most = reach(job)
    share = job.stack.at(("shares", gke_target(job)[0].cluster, flavor.name))
    team = f"team {job.team.name} has {nominal:,} and can have {shown(most)} with what it borrows"
    rule, limit, why = min(
        ("job-fits-pools", holds, f"the pools of {flavor.name} hold {holds:,}"),
        ("job-fits-share", most, team),
        key=lambda row: row[1],
    )  # only the tighter of both: what fits it fits the other
    if needed > limit:
        fits = int(limit) // unit_chips
        asks = f"{count:,} {unit}s of {flavor.name} are" if count > 1 else f"1 {unit} of {flavor.name} is"
        yield job.finding(
            ("gke", field), f"{asks} {needed:,} {resource}, and {why}", rule=rule,
            allowed=f"at most {fits:,}" if fits else f"a team that can have {unit_chips:,}, for one {unit}",
            nearest=fits or (_larger_share(job, flavor, unit_chips) if holds >= unit_chips else None),
            rests_on=(share,) if rule == "job-fits-share" else (),
        )  # fmt: skip


def cpu_quota(job: ResolvedJob) -> int:
    """Return the vCPUs that all pods of the job's team may request together in the job's cluster."""
    from training_platform.resources.tenancy import resource_quota  # noqa: PLC0415 # few jobs need it

    gke, _ = gke_target(job)
    flavors = job.workspace.flavors(job.team.environment, gke.cluster)
    shares = {name: share for name, share in job.team.shares[gke.cluster].items() if name in flavors}
    return int(resource_quota(shares, flavors)["requests.cpu"])


def _cpus(job: ResolvedJob, flavor: Flavor, count: int) -> Iterator[Finding]:
    """Find more pods than a pool of CPUs has room for, or the team may have, and a queue that admits none of them."""
    gke, _ = gke_target(job)
    pool = shape(flavor)
    pod_cpus = cpus_each(job) or 1
    most = cpu_quota(job)
    room = pool.max_nodes * max(1, pool.machine.vcpus // pod_cpus)
    rule, limit, why = min(
        ("job-fits-pools", room, f"pool {flavor.name} has room for {room:,}"),
        ("job-fits-share", most // pod_cpus, f"team {job.team.name} may request {most:,} vCPUs in {gke.cluster}"),
        key=lambda row: row[1],
    )
    if count > limit:
        message = f"is {count:,}, pods of {pod_cpus:,} vCPUs each, and {why}"
        yield job.finding(("gke", "nodes"), message, rule=rule, allowed=f"at most {limit:,}", nearest=limit or None)
    declared = job.workspace.flavors(job.team.environment, gke.cluster)
    names = [name for name in job.team.shares[gke.cluster] if name in declared]
    if names and all(declared[name].topology_levels for name in names):  # as pathways_findings has it
        message = f"every flavor of the team's queue has a topology, and pods of pool {flavor.name} ask for none"
        allowed = "a share of a flavor without topology_aware beside them"
        yield job.finding(("gke", "pool"), message, rule="job-pool-queue", allowed=allowed)


def _larger_share(job: ResolvedJob, flavor: Flavor, needed: int) -> str:
    """Return what to raise so that the team can have some GPUs or chips: its share, what it borrows, or the pools."""
    cluster = gke_target(job)[0].cluster
    share = job.team.shares[cluster][flavor.name]
    others = list(_others(job, job.environment))
    place = job.stack.place(("shares", cluster, flavor.name))
    if needed <= flavor.queue_chips - sum(other.nominal_quota for other in others):
        return f"nominal_quota: {needed} at {place}"
    if needed <= share.nominal_quota + sum(map(_lent, others)):
        return f"borrowing_limit: {needed - share.nominal_quota} at {place}"
    return f"larger pools of {flavor.name} ({', '.join(pool.name for pool in flavor.pools)})"


def _part(job: ResolvedJob, flavor: Flavor) -> Iterator[Finding]:
    """Find GPUs of a VM that it does not have, or that cannot be had apart from its others."""
    gke, _ = gke_target(job)
    machine = shape(flavor).machine
    path = ("gke", "gpus")
    rule = "job-part"
    if gke.gpus is None:
        return
    if flavor.accelerator.kind == "tpu":
        message = f"{flavor.name} has TPUs, and a pod gets all TPUs of its VM"
        allowed = "slices and no gpus, or a flavor of VMs with one chip, such as ct5lp-hightpu-1t"
        yield job.finding(path, message, rule=rule, allowed=allowed, nearest=None if gke.slices else "slices: 1")
        return
    if gke.gpus > machine.chips:
        message = f"is {gke.gpus}, and a VM of {flavor.name} ({machine.name}) has {machine.chips}"
        nodes = -(-gke.gpus * (gke.nodes or 1) // machine.chips)
        allowed = f"at most {machine.chips}; for {gke.gpus * (gke.nodes or 1)} in all nodes: {nodes}, and no gpus"
        yield job.finding(path, message, rule=rule, allowed=allowed, nearest=machine.chips)
    elif gke.gpus < machine.chips and (fabric := fabric_of(flavor, gke.nodes or 1)):
        message = (
            f"is {gke.gpus}, and pods of several VMs take all network cards of {fabric}: GPUDirect needs whole VMs"
        )
        allowed = f"{machine.chips}, or nodes: 1"
        yield job.finding(path, message, rule=rule, allowed=allowed, nearest=machine.chips)
    if gke.gpus < machine.chips and flavor.by_request:
        message = (
            f"queued VMs of {flavor.name} serve one job: the other {machine.chips - gke.gpus} GPUs of each stay idle"
        )
        allowed = "the whole VM, or a flavor without queued provisioning"
        yield job.finding(path, message, rule=rule, severity="warning", allowed=allowed, nearest=machine.chips)


def _idle(job: ResolvedJob, flavor: Flavor) -> Iterator[Finding]:
    """Find requests for so much CPU, memory or disk that other GPUs of the VM can run no job beside it."""
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
        if requested and requested >= available:
            continue  # _machine finds it
        others = places - gke.gpus
        idle = others - min(others, max(0, usable - (requested or 0)) // share)
        if requested and idle > 0:
            message = (
                f"is {requested:,}: {idle} of the {others} other GPUs of its VM stand idle, since a job on one has "
                f"{share:,} {unit} by default, and jobs on a VM of {flavor.name} have {usable:,} together"
            )
            most = share * gke.gpus
            allowed = f"at most {most:,}, or gpus: {min(places, -(-requested // share))}"
            yield job.finding((field,), message, rule="job-part", severity="warning", allowed=allowed, nearest=most)


def _image(job: ResolvedJob) -> Iterator[Finding]:
    """Find an image that the cluster's admission policy refuses, since it comes from elsewhere."""
    sources = job.environment.image_sources
    name = pulled_image(job)
    if sources and not name.startswith(sources):
        path = ("source", "image") if job.spec.source else ("image",)
        message = f"{name} comes from elsewhere than image_sources of {job.spec.environment} say: its pods are refused"
        nearest = find_nearest(name, [f"{source}{name.rpartition('/')[2]}" for source in sources])
        yield job.finding(
            path, message, rule="job-image-source", allowed=f"images of {enumeration(sources)}", nearest=nearest
        )


def _shapes(job: ResolvedJob, flavor: Flavor) -> Iterator[Finding]:
    """Find a flavor of TPUs whose slices have VMs of several sizes: no one number of VMs is right for all of them."""
    sizes = {pool.hosts: pool for pool in flavor.pools}
    if len(sizes) > 1:
        pools = " and ".join(f"{pool.name} of {hosts}" for hosts, pool in sorted(sizes.items()))
        message = f"{flavor.name} has slices of different numbers of VMs, pool {pools}: Kubernetes may pick either"
        yield job.finding(
            ("gke", "flavor"), message, rule="job-flavor-shape", allowed="a flavor whose slices have one size"
        )


def _slices(job: ResolvedJob, flavor: Flavor, count: int) -> Iterator[Finding]:
    """Find what multislice needs of its pools. Source: GKE docs on multislice TPUs; reports on JobSet, 2026."""
    pool = shape(flavor)
    if flavor.accelerator.kind != "tpu":
        return
    if count > 1 and not pool.multi_host:
        message = f"multislice needs multi-host slices, but {flavor.name} has single-host slices"
        yield job.finding(("gke", "slices"), message, rule="job-multislice", allowed="1", nearest=1)
    running = sum(member.min_nodes // member.hosts for member in flavor.pools)
    if pool.multi_host and count > running:
        message = (
            f"asks for {count:,} slices, and {flavor.name} always has {running:,}: some autoscaler versions "
            "are reported never to add a slice for a Job that needs one to itself"
        )
        enough = f"min_slices that come to {count:,} in the flavor's pools"
        yield job.finding(
            ("gke", "slices"), message, rule="job-slices-from-zero", severity="warning",
            allowed=f"at most {running:,}, or {enough}" if running else enough, nearest=running or None,
        )  # fmt: skip


def _networks(job: ResolvedJob, flavor: Flavor) -> Iterator[Finding]:
    """Find pools that a job over several VMs cannot use, and a pod that would be outside the networks between GPUs."""
    gke, _ = gke_target(job)
    if gke.host_network and not job.team.host_network:
        message = f"team {job.team.name} may not use the host network: the cluster would refuse its pods"
        allowed = "false, or host_network: true in the team's stack"
        yield job.finding(("gke", "host_network"), message, rule="job-host-network", allowed=allowed, nearest="false")
        return
    fabric = fabric_of(flavor, gke.nodes or 1)
    machine = shape(flavor).machine
    if machine.nvlink_domain and not machine.gpudirect and (gke.nodes or 1) > 1:
        message = f"VMs of {flavor.name} ({machine.name}) reach each other only by the slow network of their nodes"
        yield job.finding(
            ("gke", "nodes"), message, rule="job-flavor-networks", severity="warning", allowed="1", nearest=1
        )
    if fabric is None:
        return
    direct = gpu_direct(job)
    if direct and direct.script and not launched(job, Launch(script=direct.script)):
        message = f"is missing, so that the launcher does not set NCCL's variables of {direct.script} for {flavor.name}"
        allowed = "command: the program that the image starts; or an image that sources the script itself"
        yield job.finding(("command",), message, rule="job-flavor-networks", severity="warning", allowed=allowed)
    if gke.host_network:
        message = (
            f"pods of {flavor.name} use additional network interfaces, which pods on the host network do not support"
        )
        yield job.finding(("gke", "host_network"), message, rule="job-host-network", allowed="false", nearest="false")
    usable = usable_pools(flavor, gke.nodes or 1)
    others = [pool.name for pool in _large(job, flavor) if pool not in usable]
    if others:
        message = (
            f"its pods are in the networks {fabric} between GPUs, and so run in pools "
            f"{enumeration([pool.name for pool in usable])} and never in {enumeration(others)}"
        )
        yield job.finding(("gke", "flavor"), message, rule="job-flavor-networks", severity="warning")


_HOSTS: Sequence[Mapping[str, Any]] = table(__file__, "hosts.yaml")
_URL = re.compile(r"\bhttps?://([A-Za-z0-9.-]+)")
_GOOGLE = re.compile(r"(.*\.)?(googleapis\.com|gcr\.io|pkg\.dev|google\.internal|cluster\.local)|localhost|[\d.]+")
_INDEX = "the package index"  # of hosts.yaml
_INDEX_VARIABLE = "PIP_INDEX_URL"  # names it, and so its host


def _hosts(job: ResolvedJob) -> Iterator[Finding]:
    """Find hosts of the internet that a job's program names, and to which its team's pods may not connect.

    Nothing is said of a team that may connect to some addresses: whose they are is not known here.
    """
    spec = job.spec
    environment = job.environment
    opened = (*environment.egress, *job.team.egress)
    if environment.open_egress or any(row.cidr for row in opened):
        return
    texts: list[tuple[Path, str]] = [(("env", name), text) for name, text in spec.env.items()]
    texts += [(("command",), " ".join(spec.command)), (("args",), " ".join(spec.args))]
    if spec.source and spec.source.requirements:
        texts.append((("source", "requirements"), "pip install"))
    for path, text in texts:
        named = dict.fromkeys(_URL.findall(text))
        for row in _HOSTS:
            if re.search(row["pattern"], text):
                named |= dict.fromkeys(row["hosts"])
        if _INDEX_VARIABLE in spec.env:
            named.pop(_INDEX, None)
        closed = [name for name in named if not _GOOGLE.fullmatch(name) and not _opened(name, opened)]
        if closed:
            message = f"needs {enumeration(closed)}, and pods of team {job.team.name} reach only Google's APIs"
            rows = ", ".join(f"{{host: {name if name != _INDEX else 'HOST'}}}" for name in closed)
            yield job.finding(
                path, message, rule="job-egress", severity="warning",
                allowed=f"egress: [{rows}] in the team's stack, an image that holds it, or a data set",
            )  # fmt: skip


def _opened(host: str, opened: Iterable[Destination]) -> bool:
    """Whether a host, or all names below one that ends it, are let out; of the index any host may be it."""
    if host == _INDEX:
        return any(row.host for row in opened)
    return any(row.host and (row.host == host or fnmatchcase(host, row.host)) for row in opened)


def _run(job: ResolvedJob) -> Iterator[Finding]:
    """Find a run that may outlast its VMs, or the limit of the environment.

    Source: GKE docs, queued provisioning, read 2026-04.
    """
    gke, flavor = gke_target(job)
    life = vm_hours(flavor)
    vms = life if flavor.by_request else None
    limit = run_limit_hours(job.team, job.environment)
    most = min((hours for hours in (vms, limit) if hours), default=None)
    if gke.max_run_hours and most and gke.max_run_hours > most:
        whose = f"VMs of {flavor.name} run" if most == vms else f"jobs of team {job.team.name} may run"
        message = f"{whose} for at most {most:,} hours: then Kueue deactivates the job"
        allowed = f"at most {most:,}"
        yield job.finding(("gke", "max_run_hours"), message, rule="job-run-time", allowed=allowed, nearest=most)
    elif gke.max_run_hours and life and gke.max_run_hours > life:
        message = (
            f"is {gke.max_run_hours:,}, and GKE deletes VMs of {flavor.name} after {life:,} hours: the run then waits "
            "for new ones, and starts again from its last checkpoint"
        )
        yield job.finding(
            ("gke", "max_run_hours"), message, rule="job-run-time", severity="warning",
            allowed=f"at most {life:,}, or checkpoints that the program resumes from", nearest=life,
        )  # fmt: skip


def _launcher(job: ResolvedJob, flavor: Flavor) -> Iterator[Finding]:
    gke, _ = gke_target(job)
    if not gke.pathways:  # one program directs all VMs
        slices, hosts = layout(gke, flavor)
        yield from launcher_findings(job, where="GKE", nodes=slices * hosts, chips=chips_each(gke, flavor))


def _names(job: ResolvedJob) -> Iterator[Finding]:
    """Find a job whose pods' names get too long. Source: JobSet 08dfbdfd, jobset_webhook.go."""
    jobs, hosts = layout(*gke_target(job))
    longest = len(f"{longest_name(job)}-{ROLE}-{jobs - 1}-{hosts - 1}-{_SUFFIX}")
    if longest > LONGEST_NAME:
        fits = len(job.name) - (longest - LONGEST_NAME)
        message = f"names of its pods would have {longest} characters, but Kubernetes allows {LONGEST_NAME}"
        yield job.finding((), message, rule=NAME_RULE, allowed=f"a file name of at most {fits} characters")


def _large(job: ResolvedJob, flavor: Flavor) -> list[ExpandedPool]:
    """Return the pools whose VMs have as many chips as a pod of the job takes; of a part any VM may have more."""
    if (part := gke_target(job)[0].gpus) is not None:
        return [pool for pool in flavor.pools if pool.machine.chips >= part]
    return [pool for pool in flavor.pools if pool.machine.chips == shape(flavor).machine.chips]


def _others(job: ResolvedJob, home: Environment) -> Iterator[Share]:
    """Yield what other teams, and the cohorts of their environment, have of the job's flavor."""
    gke, flavor = gke_target(job)
    teams = [team for _, team, _ in job.workspace.teams() if team.environment == job.team.environment]
    others = [team.shares for team in teams if team.name != job.team.name]
    for shares in (*others, *(cohort.shares for cohort in home.cohorts.values())):
        share = shares.get(gke.cluster, {}).get(flavor.name)
        if share is not None:
            yield share


def _lent(share: Share) -> int:
    return share.nominal_quota if share.lending_limit is None else min(share.lending_limit, share.nominal_quota)


_OF_SEARCHES = ("metric", "goal", "trials", "parallel", "max_failed_trials")  # fields of a sweep
HOST = "host"  # the level of a physical host, on which these machine types have one VM
SPOT_SECONDS = 25  # Source: GKE docs, spot VMs, graceful termination of other than system pods, read 2026-11


def resource_findings(job: ResolvedJob) -> Iterator[Finding]:
    """Yield what is wrong with what a job asks of its VMs and their cluster."""
    yield from _machine(job)
    yield from _local_checkpoints(job)
    yield from _directories(job)
    yield from _placement(job)
    yield from _file_caches(job)
    if job.spec.tensorboard and job.spec.output and job.spec.vertex is None:
        message = "has no effect on GKE, where nothing streams the logs"
        allowed = "tb-gcp-uploader --logdir $AIP_TENSORBOARD_LOG_DIR beside the program, or no such field"
        yield job.finding(("tensorboard",), message, rule="job-tensorboard", severity="warning", allowed=allowed)
    gke, flavor = gke_target(job)
    if flavor.capacity == "spot" and gke.grace_seconds > SPOT_SECONDS and "grace_seconds" in gke.model_fields_set:
        message = f"is {gke.grace_seconds}, and VMs of {flavor.name} end {SPOT_SECONDS} seconds after their notice"
        yield job.finding(
            ("gke", "grace_seconds"), message, rule="job-grace", severity="warning",
            allowed=f"at most {SPOT_SECONDS}", nearest=SPOT_SECONDS,
        )  # fmt: skip
    if gke.grace_seconds > (most := job.environment.max_grace_seconds):
        message = f"is {gke.grace_seconds}, and the cluster refuses pods that take longer than max_grace_seconds"
        yield job.finding(
            ("gke", "grace_seconds"), message, rule="job-grace-refused", allowed=f"at most {most}", nearest=most
        )
    sweep = job.spec.sweep
    unused = [field for field in _OF_SEARCHES if sweep and field in sweep.model_fields_set]
    if sweep and sweep.method != "grid":
        without = f", without {enumeration(unused)}" if unused else ""
        message = f"GKE does not search: a {sweep.method} search runs on Vertex AI"
        yield job.finding(
            ("sweep", "method"), message, rule="job-sweep", allowed=f"grid{without}", nearest=f"grid{without}"
        )
    elif job.spec.vertex is None:
        for field in unused:
            message = "has no effect on GKE, which runs every combination as the queue admits it"
            yield job.finding(("sweep", field), message, rule="job-sweep", severity="warning", allowed="no such field")


def _machine(job: ResolvedJob) -> Iterator[Finding]:
    """Find more CPUs or memory than a VM has; what its own software takes of them is not known here."""
    gke, flavor = gke_target(job)
    pool = shape(flavor)
    spec = job.spec
    units = {"cpu": "vCPUs", "disk_gib": "GiB of disk"}
    for field, (available, usable) in _of_a_vm(pool).items():
        requested = getattr(spec, field)
        unit = units.get(field, "GiB")
        if requested and requested >= available:
            vm = f"a VM of {flavor.name} ({pool.machine.name})"
            nearest = int(available * 0.9)
            if gke.gpus:
                nearest = max(1, usable // (pool.machine.chips * pool.places_per_gpu)) * gke.gpus
            yield job.finding(
                (field,),
                f"is {requested}, and {vm} has {available} {unit} with its own software's",
                rule="job-machine",
                allowed=f"less than {available}",
                nearest=nearest or None,
            )
    if 137 in spec.retry_on:
        yield job.finding(
            ("retry_on", spec.retry_on.index(137)), "is also the code of a program that ran out of memory, which would "
            "start again until its retries are used", rule="job-retry-on", severity="warning", allowed="other codes",
        )  # fmt: skip


def _of_a_vm(pool: ExpandedPool) -> dict[str, tuple[int, int]]:
    """Return what a VM of a pool has, and what jobs on it may use together, by the field that asks for it."""
    memory = (int(pool.machine.memory_gb), usable_memory_gib(pool))
    return {
        "cpu": (pool.machine.vcpus, int(pool.machine.vcpus * 0.9)),
        "memory_gib": memory,
        "shared_memory_gib": memory,
        "disk_gib": (local_disk_gib(pool), usable_disk_gib(pool)),
    }


def _local_checkpoints(job: ResolvedJob) -> Iterator[Finding]:
    """Find local checkpoints on VMs without local SSD, more than the job's limits leave, and those of Pathways."""
    gke, flavor = gke_target(job)
    local = job.spec.local_checkpoints
    rule = "job-local-checkpoints"
    if local is None:
        return
    if gke.pathways:
        message = "are for programs on the VMs of the slices, and a Pathways job has its program on another VM"
        yield job.finding(("local_checkpoints",), message, rule=rule, allowed="the field left out")
        return
    for index, mount in enumerate(job.spec.mounts):
        if mount.path == LOCAL_CHECKPOINTS_PATH:
            message = f"{mount.path} is the path of local_checkpoints too"
            yield job.finding(("mounts", index, "path"), message, rule="job-mount", allowed="a path for each")
    without = [pool.name for pool in flavor.pools if not local_ssds(pool)]
    if local.medium == "ssd" and without:
        message = f"is ssd, and VMs of {enumeration(without)} ({flavor.name}) keep no containers' files on local SSD"
        path = ("local_checkpoints", "medium") if "medium" in local.model_fields_set else ("local_checkpoints",)
        yield job.finding(path, message, rule=rule, allowed="memory, or a flavor with local SSD", nearest="memory")
        return
    parts = pod_parts(job)
    if local.medium == "memory":
        field = "memory_gib"
        shared = job.spec.shared_memory_gib or 0
        room = parts.memory - shared
        has = f"{room:,} GiB of memory{' beside /dev/shm' if shared else ''}"
    else:
        field = "disk_gib"
        room = parts.disk
        has = f"{room:,} GiB of disk"
    if local.size_gib >= room:
        message = f"is {local.size_gib:,}, and the job has {has} on each VM of {flavor.name}"
        allowed = f"less than {room:,}, or a larger {field}"
        yield job.finding(
            ("local_checkpoints", "size_gib"), message, rule=rule, allowed=allowed, nearest=max(room // 2, 0) or None
        )


def _file_caches(job: ResolvedJob) -> Iterator[Finding]:
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
    yield job.finding(
        path, message, rule="job-file-cache", severity=severity, allowed=f"at most {part:,} in all", nearest=part
    )


def _placement(job: ResolvedJob) -> Iterator[Finding]:
    """Find a level of a topology that the flavor does not have, and one that can never hold all VMs of the job."""
    gke, flavor = gke_target(job)
    levels = placement_levels(flavor)
    chosen = gke.placement
    rule = "job-placement"
    if chosen is None:
        return
    if not levels:
        slices = bool(flavor.topology_levels)
        why = "puts each slice on VMs of one node pool already" if slices else "has no topology"
        other = "the field left out" + ("" if slices else ", or topology_aware: true of the flavor's pools")
        yield job.finding(("gke", "placement"), f"{flavor.name} {why}", rule=rule, allowed=other)
    elif chosen.level not in levels:
        nearest = next((name for name, label in levels.items() if label == chosen.level), None)
        yield job.finding(
            ("gke", "placement", "level"), f"{chosen.level!r} is not a level of {flavor.name}", rule=rule,
            allowed=", ".join(levels), nearest=nearest or find_nearest(chosen.level, levels),
        )  # fmt: skip
    elif chosen.required and chosen.level == HOST and demand(job) > shape(flavor).machine.chips:
        *wider, _ = levels
        message = f"one host has one VM of {flavor.name}, and the job has {gke.nodes}: it would wait for ever"
        yield job.finding(
            ("gke", "placement", "level"), message, rule=rule,
            allowed=f"{', '.join(wider)}, or required: false", nearest=wider[-1],
        )  # fmt: skip


def _directories(job: ResolvedJob) -> Iterator[Finding]:
    """Find directories that the cluster's pods do not reach."""
    gke, _ = gke_target(job)
    cluster = job.environment.clusters[gke.cluster]
    instances = job.environment.filestore
    near = [
        name
        for name, directory in job.team.directories.items()
        if directory.filestore in instances and reaches(instances[directory.filestore], cluster)
    ]
    for index, mount in enumerate(job.spec.mounts):
        if (name := mount.source.directory) is None:
            continue
        path = ("mounts", index, "source", "directory")
        instance = job.team.directories[name].filestore
        if name not in near:
            where = job.environment.filestore[instance].location
            message = f"{name} is on Filestore in {where}, too far from cluster {gke.cluster}"
            allowed = f"directories near it: {enumeration(near) or 'the team has none'}"
            yield job.finding(path, message, rule="job-mount-far", allowed=allowed, nearest=near[0] if near else None)
