"""Explains in sentences why a run on GKE waits or failed, from its queue to its VMs. It sends no requests.

For other teams' runs, it states only totals. Messages in quotation marks are Kueue's or GKE's own. Sources: Kueue
0.19.2, pkg/workload and pkg/controller/admissionchecks/provisioning; autoscaler v1 ProvisioningRequest;
cluster-autoscaler, processors/status/eventing_scale_up_processor.go, whose events on pods have the type Normal except
for failures; read 2026-11-22.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from training_platform.catalog.types import Json
from training_platform.clients.google_api import GoogleError, NoCredentialsError
from training_platform.config.expansion import ExpandedPool
from training_platform.config.reading.section import counted
from training_platform.parts.jobs.gke.gke_job import GkeJob
from training_platform.parts.jobs.gke.gpu_direct import usable_pools
from training_platform.parts.jobs.gke.pods import REQUIRED
from training_platform.parts.jobs.runs.on_gke import condition, container_wait, holds, words
from training_platform.parts.jobs.runs.state import Run, quoted
from training_platform.quota.alternatives import pool_vms
from training_platform.quota.charges import shown, vm_usage
from training_platform.quota.snapshot import Snapshot, read_snapshots
from training_platform.resources.node_pools import node_pool_name

_EVENTS = 5  # only the last warnings matter
_LINES = 3  # at the end of a log
_SCALING = ("TriggeredScaleUp", "NotTriggerScaleUp")
# JobSet's webhook says this of pods while the first pod of their slice waits. Source: kubernetes-sigs/jobset #1187.
_FOLLOWERS = "follower pod node selector not set"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Objects related to a run. A field is None or empty if the object does not exist or may not be read.

    - ``pending``: the workloads that wait in the run's LocalQueue, in the order that Kueue shows
    - ``quota``: the team's nominal quota of the flavor, in chips or GPUs
    - ``reachable``: this quota plus the amount that the team may borrow (None: no limit)
    - ``demand``: the run's own demand; ``flavor``: the name of the flavor
    - ``holders``: the team's runs that hold quota of the flavor; ``ahead``: those that wait before the run
    - ``vms``: sentences about the node pools of the flavor; ``nodes``: the nodes of the run's pods
    """

    jobset: Json
    workload: Json | None = None
    queue: Json | None = None
    queue_name: str = ""
    pending: Sequence[Json] | None = None
    requests: Sequence[Json] = ()
    pods: Sequence[Json] = ()
    events: Sequence[Json] = ()
    flavor: str = ""
    resource: str = ""
    demand: int | None = None
    unit: int = 1
    quota: int | None = None
    reachable: int | None = None
    holders: Sequence[Run] = ()
    ahead: Sequence[Run] = ()
    vms: Sequence[str] = ()
    nodes: Sequence[Json] = ()


def why(run: Run, seen: Seen) -> Iterator[str]:
    """Yield sentences about a run, the cause first."""
    if run.state == "succeeded":
        yield f"{run.name} has succeeded."
    elif run.state == "failed":
        yield from _failed(run, seen)
    elif run.state == "cancelling":
        yield f"{run.name} is being deleted; its pods may use their termination grace period."
    elif seen.workload is None:
        if seen.queue is None:
            yield (
                f"The queue {seen.queue_name} of {run.name} does not exist in namespace {run.team} of {run.place}: "
                "it was deleted, or the team's stack is not deployed there."
            )
        else:
            yield f"Kueue has no Workload for {run.name} yet; its controller needs a second, or is not running."
    elif (seen.workload.get("spec") or {}).get("active") is False:
        yield (
            f"Kueue has deactivated {run.name} and does not queue it again: "
            f"{quoted(words(seen.workload, 'Evicted') or words(seen.workload, 'QuotaReserved'))}. "
            f"training-platform job requeue {run.name} puts it back into the queue; its output is kept."
        )
    elif not holds(seen.workload, "QuotaReserved"):
        yield from _without_quota(run, seen)
    elif not holds(seen.workload, "Admitted"):
        yield from _unchecked(run, seen)
    elif not holds(seen.workload, "PodsReady"):
        yield from _starting(run, seen)
    else:
        yield f"{run.name} has been running since {run.started}."
    yield from _retries(run, seen)
    yield from _evictions(seen)
    yield from _hosts(seen.nodes)


def _without_quota(run: Run, seen: Seen) -> Iterator[str]:
    yield f"{run.name} waits for quota in queue {seen.queue_name} of {run.place}."
    if seen.queue is None:
        yield f"The queue {seen.queue_name} no longer exists: deploy the team's stack, or submit to another cluster."
        return
    if not holds(seen.queue, "Active"):
        yield f"The queue {seen.queue_name} admits nothing now: {quoted(words(seen.queue, 'Active'))}."
    if message := words(seen.workload, "QuotaReserved"):
        yield f"Kueue reports: {quoted(message)}."
    yield from _share(run, seen)
    yield from _before(seen)


def _share(run: Run, seen: Seen) -> Iterator[str]:
    if seen.demand is None or seen.quota is None:
        return
    # Chips or GPUs of this flavor that admitted runs of the queue hold.
    reserved = ((seen.queue or {}).get("status") or {}).get("flavorsReservation") or ()
    rows = [row for flavor in reserved if flavor.get("name") == seen.flavor for row in flavor.get("resources") or ()]
    used = sum(int(str(row.get("total") or 0)) for row in rows if row.get("name") == seen.resource)
    reach = "any amount" if seen.reachable is None else f"up to {seen.reachable:,}"
    yield (
        f"It requests {seen.demand:,} {seen.resource} of {seen.flavor}. Team {run.team} uses {used:,} of its "
        f"{seen.quota:,}, and can use {reach} while other teams lend their quota."
    )
    if holders := [_holder(holder) for holder in seen.holders]:
        yield f"Runs of the team that use this quota: {', '.join(holders)}."
    if seen.reachable is not None and seen.demand > seen.reachable:
        yield f"It can never start: it requests {seen.demand:,}, and the team can use at most {seen.reachable:,}."
        return
    free = seen.quota - used
    fits = free // seen.unit * seen.unit if free > 0 else 0
    if 0 < fits < seen.demand:
        yield f"The team's own share has room now for a run of {fits:,} {seen.resource}."
    yield from _placement(seen, seen.demand // seen.unit)


def _placement(seen: Seen, vms: int) -> Iterator[str]:
    """Yield the reason why a run waits that requires its VMs to be placed close together.

    If the queue has flavors without a topology, Kueue's message lists only those, without a reason for the run's own
    flavor (observed with 0.19.2, 2026-11-28).
    """
    for replicated_job in seen.jobset["spec"].get("replicatedJobs", ()):
        about_pods = replicated_job["template"]["spec"]["template"].get("metadata") or {}
        if level := (about_pods.get("annotations") or {}).get(REQUIRED):
            domain = level.rpartition("-")[2]
            yield f"Its placement is required: it waits until one {domain} of {seen.flavor} has room for all {vms} VMs."


def _holder(run: Run) -> str:
    unready = " (its pods are not ready)" if run.state == "starting" else ""
    return f"{run.name} since {run.started}{unready}"


def _before(seen: Seen) -> Iterator[str]:
    if seen.pending is None:
        if seen.ahead:
            yield f"Waiting runs of the team that were submitted earlier: {', '.join(run.name for run in seen.ahead)}."
        yield "Its place in the queue is not shown: Kueue's visibility API is off, or you have no right to read it."
        return
    uid = ((seen.workload or {}).get("metadata") or {}).get("name")
    for place, pending in enumerate(seen.pending):
        if pending["metadata"]["name"] == uid:
            other_runs = int(pending.get("positionInClusterQueue") or place) - place
            ahead = f"{place} of the team" + (f" and {other_runs} more of the ClusterQueue" if other_runs > 0 else "")
            yield f"Runs before it: {ahead}." if place or other_runs > 0 else "It is the first in its queue."
            return


def _unchecked(run: Run, seen: Seen) -> Iterator[str]:
    """Yield the pending admission checks. For queued provisioning, also yield the state of the request."""
    yield f"{run.name} has quota reserved, and waits for the admission checks of its flavor."
    for check in ((seen.workload or {}).get("status") or {}).get("admissionChecks") or ():
        if check.get("state") != "Ready":
            message = f": {quoted(check['message'])}" if check.get("message") else ""
            yield f"Admission check {check.get('name')} is {check.get('state', 'Pending')}{message}."
    for request in seen.requests:
        name = request["metadata"]["name"]
        for kind in ("Failed", "CapacityRevoked", "BookingExpired", "Provisioned", "Accepted"):
            if holds(request, kind):
                yield f"ProvisioningRequest {name} is {kind}: {quoted(words(request, kind))}."
                break
        else:
            message = words(request, "Provisioned") or words(request, "Accepted")
            yield f"ProvisioningRequest {name} has not been processed yet" + (
                f": {quoted(message)}." if message else "."
            )
    if seen.requests:
        yield "GKE creates all VMs of the run together, when the zone has them; that time cannot be predicted."


def _stopping(run: Run, seen: Seen) -> Iterator[str]:
    """Yield sentences about a run that Kueue has stopped, but that still holds its quota.

    Kueue 0.19 may leave it in this state forever. Source: kubernetes-sigs/kueue #14811, 2026-08, open; not reproduced
    here.
    """
    yield f"Kueue is stopping {run.name}; the run keeps its quota until its pods have ended."
    if not seen.pods:
        yield (
            f"It has no pods. If this lasts for minutes, Kueue does not queue it again: training-platform job cancel "
            f"{run.name} releases the quota; submit its file again, with --run {run.name} to keep its output."
        )


def _starting(run: Run, seen: Seen) -> Iterator[str]:
    if holds(seen.workload, "Evicted"):
        yield from _stopping(run, seen)
        return
    waiting = [pod for pod in seen.pods if (pod.get("status") or {}).get("phase") == "Pending"]
    if not seen.pods:
        yield f"{run.name} is admitted, and its pods do not exist yet."
    elif waiting:
        yield f"{run.name} is admitted, and {len(waiting)} of {len(seen.pods)} pods wait."
    else:
        yield f"{run.name} is admitted, and not all of its pods are ready."
    texts = (_wait(pod) if holds(pod, "PodScheduled") else words(pod, "PodScheduled") for pod in waiting)
    counts = Counter(filter(None, texts))
    for text, count in counts.most_common():
        yield f"{count} of them: {quoted(text)}."
    events = [event for event in seen.events if event.get("reason") in _SCALING]
    # The autoscaler's last event of each kind about the pods of the run.
    scaling = {event["reason"]: event for event in sorted(events, key=_time)}
    for event in scaling.values():
        yield f"The autoscaler reports: {quoted(str(event.get('message') or event['reason']))}."
    if set(scaling) == {"NotTriggerScaleUp"} and any(f"Insufficient {seen.resource}" in text for text in counts):
        yield (
            f"No VM has {seen.unit} {seen.resource} free, and no VM is added. Kueue counts {seen.flavor} for all VMs "
            "together, so runs on parts of VMs can leave too few free on each VM: it waits until enough other runs end."
        )
    if any(_FOLLOWERS in str(event.get("message")) for event in seen.events):
        yield "JobSet creates the other pods of a slice once the slice's first pod has a node: see why that pod waits."
    yield from seen.vms
    yield from _warnings(seen, already=counts)


def _wait(pod: Json) -> str:
    wait = container_wait(pod)
    return " ".join(str(wait[key]) for key in ("reason", "message") if wait.get(key))


def _failed(run: Run, seen: Seen) -> Iterator[str]:
    yield f"{run.name} has failed after {counted(run.restarts, 'restart')}: {quoted(words(seen.jobset, 'Failed'))}."
    for pod in seen.pods:
        status = pod.get("status") or {}
        if status.get("reason"):  # it stays with the pod, where events are kept for an hour
            message = f": {quoted(str(status['message']))}" if status.get("message") else ""
            yield f"Pod {pod['metadata']['name']} failed with {status['reason']}{message}."
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            ended = (status.get("state") or {}).get("terminated") or {}
            if ended.get("exitCode"):
                reason = f" ({ended['reason']})" if ended.get("reason") else ""
                yield f"Pod {pod['metadata']['name']} ended with exit code {ended['exitCode']}{reason}."
                if lines := str(ended.get("message") or "").strip().splitlines()[-_LINES:]:
                    yield f"Its log ends with: {quoted(' / '.join(lines))}."
    yield from _warnings(seen, already=(words(seen.jobset, "Failed"),))


def _retries(run: Run, seen: Seen) -> Iterator[str]:
    """Yield how many times an admission check requeued a waiting run. Each time, it lost its quota and position."""
    status = (seen.workload or {}).get("status") or {}
    for check in status.get("admissionChecks") or ():
        if check.get("retryCount") and run.state != "succeeded":
            again = (status.get("requeueState") or {}).get("requeueAt")
            later = f", the next time at {again}" if again else ""
            times = _times(check["retryCount"])
            yield f"Check {check.get('name')} has sent it back {times}{later}: no VMs were available."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _evictions(seen: Seen) -> Iterator[str]:
    evicted = condition(seen.workload, "Evicted")
    if evicted and evicted.get("status") == "True" and (seen.workload or {}).get("spec", {}).get("active") is not False:
        yield f"It started before and was stopped ({evicted.get('reason')}): {quoted(str(evicted.get('message')))}."


def _hosts(nodes: Sequence[Json]) -> Iterator[str]:
    """Yield faults and planned maintenance of nodes without duplicates, each with the number of affected nodes."""
    names: dict[str, list[str]] = {}
    for node in nodes:
        for text in _notices(node):
            names.setdefault(text, []).append(node["metadata"]["name"])
    for text, these in names.items():
        yield f"Node {these[0]}{f' (and {len(these) - 1} more)' if len(these) > 1 else ''} {text}."


def _notices(node: Json) -> Iterator[str]:
    """Yield the state of a node's host, from its labels, taints and conditions.

    Host maintenance ignores the cluster's maintenance windows. The labels are set on nodes with GPUs and TPUs from GKE
    1.31.1-gke.2008000. Source: GKE's pages on viewing maintenance events and on managing AI-optimized clusters, read
    2026-11-23; not observed on a node.
    """
    labels = node["metadata"].get("labels") or {}
    status = node.get("status") or {}
    if "cloud.google.com/active-node-maintenance" in labels:
        yield "is under host maintenance now"
    elif (starts := labels.get("cloud.google.com/scheduled-maintenance-time", "")).isdigit():
        day = datetime.fromtimestamp(int(starts), UTC)
        yield f"stops for host maintenance at {day:%Y-%m-%d %H:%M} UTC, whatever the cluster's maintenance window is"
    if any(taint["key"] == "cloud.google.com/impending-node-termination" for taint in node["spec"].get("taints") or ()):
        yield "is about to be terminated by Google Cloud"
    if reason := labels.get("cloud.google.com/fault-behavior"):
        yield f"was reported to Google as faulty ({reason})"
    if (ready := condition(node, "Ready")) and ready.get("status") != "True":
        reason = quoted(str(ready.get("message") or ready.get("reason")))
        yield f"is not ready: {reason}; its pods start elsewhere once GKE repairs it, or its VM is deleted"
    for resource in ("nvidia.com/gpu", "google.com/tpu"):
        whole, offered = (int((status.get(key) or {}).get(resource, 0)) for key in ("capacity", "allocatable"))
        if offered < whole:
            yield f"offers {offered} of {whole} {resource}: its device plugin considers the others faulty"


def _warnings(seen: Seen, already: Collection[str] = ()) -> Iterator[str]:
    """Yield the last warnings without duplicates, except those in ``already``, which were printed before."""
    warnings = [event for event in seen.events if event.get("type") == "Warning"]
    by_text: dict[str, list[Json]] = {}
    for event in sorted(warnings, key=_time):
        if (text := str(event.get("message") or "")) not in already:
            by_text.setdefault(text, []).append(event.get("involvedObject") or {})
    for text, objects in list(by_text.items())[-_EVENTS:]:
        names = {str(obj.get("name")) for obj in objects}
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"Event on {objects[0].get('kind', 'object')} {objects[0].get('name', '')}{more}: {quoted(text)}."


def _time(event: Json) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime"))


_ACCELERATORS: Final = ("GPUs", "chips")  # units of quotas
_CALM: Final = ("RUNNING", "RECONCILING")


def vm_sentences(job: GkeJob, states: Callable[[], Mapping[str, Json]], today: date) -> Iterator[str]:
    """Yield GKE's messages about the pools of a job's VMs, and sentences about the quota that these pools charge.

    ``states`` reads the cluster's node pools. Sentences are left out if the caller may not read the pools, for example
    with only a kubeconfig, or if no snapshot has the quota.
    """
    pools = usable_pools(job.flavor, job.nodes)
    project = job.environment.project
    snapshot = read_snapshots(job.workspace.root, today).get(project)
    for pool in pools:
        location = pool.zone or pool.region
        yield (
            f"Pool {pool.name} has at most {counted(pool.max_nodes, 'VM')} of {pool.machine.name} in {location}, "
            f"{pool.spec.capacity}{_quota(project, pool, snapshot)}."
        )
    if job.flavor.by_request:
        largest = max((pool.max_nodes_per_request for pool in pools), default=0)
        yield f"Queued VMs come from one zone of one of these pools: a run gets at most {largest:,}."
    try:
        bodies = states() if pools else {}
    except NoCredentialsError:
        return
    except GoogleError as error:
        yield f"GKE does not list the node pools: {str(error).rstrip('.')}."
        return
    for pool in pools:
        # Each problem once, with the number of its node pools.
        troubles: dict[str, list[str]] = {}
        for name in (node_pool_name(pool, gke_pool) for gke_pool in pool.gke_pools):
            for text in _troubles(bodies.get(name)):
                troubles.setdefault(text, []).append(name)
        for text, names in troubles.items():
            more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
            yield f"Node pool {names[0]}{more} {text}."


def _quota(project: str, pool: ExpandedPool, snapshot: Snapshot | None) -> str:
    """Return the quota that the pool's accelerators charge, and its limit in the last snapshot."""
    if snapshot is None:
        return ""
    for usage in vm_usage(pool_vms(project, pool)):
        key, *_ = usage.keys
        limit = snapshot.limit(key) if usage.unit in _ACCELERATORS else None
        if limit is not None:
            return f"; quota {key}: limit {shown(limit)} as of {snapshot.taken}"
    return ""


def _troubles(body: Json | None) -> Iterator[str]:
    if body is None:
        yield "does not exist"
        return
    rows = [(f"is {body.get('status', 'RUNNING')}", body.get("statusMessage"))]
    rows = [] if body.get("status", "RUNNING") in _CALM else rows
    for row in body.get("conditions") or ():
        rows.append((f"has the condition {row.get('canonicalCode') or row.get('code') or ''}", row.get("message")))
    yield from (f"{text}: {quoted(message)}" if message else text for text, message in rows)
