"""Predictions of when waiting jobs start: the queues of a cluster, simulated from their current state in many runs.

The state is the output of ``kubectl get workloads -A -o json``. Jobs with quota are submitted at the time of their
admission on their flavors, so that they hold the same quota now; waiting jobs are submitted now, in the order of
creation. Run times are unknown: each run draws them from ended jobs of the queue, or of all queues, or from an invented
distribution, up to ``maximumExecutionTimeSeconds``. Jobs submitted later are left out.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from kueue_model import MOST_SECONDS, NEVER, Manifests, TraceJob, amount, play, read_rows, units
from kueue_model.imports import MALFORMED, workload_items
from kueue_model.results import duration
from training_platform.checks.reports.tables import ReportRow, ReportSection
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.runs.waits import Start, WaitingJob, Waits

INVENTED_SECONDS: Final = 4 * 3600.0
"""The median run time if no job of the file has ended; invented."""
_MOST_NAMES: Final = 10  # of workloads that are not played
_ORDER_SECONDS: Final = 0.001  # between two waiting jobs, to keep their order


class _State(NamedTuple):
    """A workload that has not ended: its row of a trace, its admission, and its longest run time."""

    namespace: str
    job: str
    row: Mapping[str, object]
    created: float
    admitted: float | None
    most_seconds: float
    why: str = ""  # the reason, if it can never start


class _NoFlavorError(Exception):
    """No flavor of a queue has the labels that pods select."""


class _Workloads(NamedTuple):
    """The workloads of a file; ``lengths`` are run times of ended jobs, by queue, and by "" for all queues."""

    running: list[_State]
    waiting: list[_State]
    lengths: Mapping[str, list[float]]
    left_out: tuple[str, ...]


def predict(path: Path, manifests: Manifests, runs: Sequence[int], now: datetime) -> Waits:
    """Simulate a cluster from the state in a file, once for each seed. Raises UserError for an unreadable file."""
    workloads = _read_workloads(path, manifests)
    states = [*workloads.running, *workloads.waiting]
    moment = now.timestamp()
    trace = read_rows(path, _trace_rows(workloads, moment), [manifests.cluster])
    starts: dict[int, list[float]] = {}
    why: dict[int, str] = {}
    for index, state in enumerate(states):
        if state.why:
            starts[index] = [math.inf]
            why[index] = state.why
    for seed in runs:
        jobs = [_with_run_time(job, states[int(job.name)], workloads.lengths, moment, seed) for job in trace.jobs]
        for run in play(manifests.cluster, jobs, manifests.times, seed).runs:
            index = int(run.of.name)
            start = math.inf if run.started == NEVER else run.started + trace.start - moment
            starts.setdefault(index, []).append(max(0.0, start))
            if run.why:
                why[index] = run.why
    waiting = range(len(workloads.running), len(states))
    waiting_jobs = [
        _waiting_job(states[index], starts[index], why.get(index, ""), moment) for index in waiting if index in starts
    ]
    waiting_jobs.sort(key=lambda job: job.start.median if job.start else math.inf)
    notes = [*manifests.left_out, *map(str, trace.findings)]
    if not workloads.lengths:
        median = duration(INVENTED_SECONDS)
        notes.append(f"No job of {path} has ended, so run times are invented, with a median of {median}.")
    if workloads.left_out:
        names = enumeration(workloads.left_out, max_names=_MOST_NAMES)
        notes.append(f"Not played, since inactive, of an unknown queue, or unreadable: {names}.")
    return Waits(moment=now, runs=len(runs), notes=tuple(notes), jobs=tuple(waiting_jobs))


def _trace_rows(workloads: _Workloads, moment: float) -> Iterator[Mapping[str, object]]:
    """Yield a row for each workload that can start, named by its index; run times are drawn later."""
    states = [*workloads.running, *workloads.waiting]
    for index, state in enumerate(states):
        if state.why:
            continue
        submitted = state.admitted
        if submitted is None:
            submitted = moment + (index - len(workloads.running)) * _ORDER_SECONDS
        yield {**state.row, "submitted": submitted, "seconds": 1, "job": str(index)}


def _waiting_job(state: _State, starts: Iterable[float], why: str, moment: float) -> WaitingJob:
    ordered = sorted(starts)
    count = len(ordered)
    early, median, late = (ordered[min(count - 1, count * tenths // 10)] for tenths in (1, 5, 9))
    never_starts = math.isinf(median)
    start = None
    if not never_starts:
        start = Start(early, median, late if math.isfinite(late) else MOST_SECONDS)
    return WaitingJob(
        namespace=state.namespace,
        job=state.job,
        queue=str(state.row["team"]),
        needs=str(state.row["needs"]),
        priority=int(str(state.row["priority"])),
        waits_seconds=moment - state.created,
        start=start,
        why=why if never_starts else "",
    )


def _with_run_time(
    job: TraceJob, state: _State, lengths: Mapping[str, list[float]], moment: float, seed: int
) -> TraceJob:
    """Return a job with a random run time; a running job's is one of those that are longer than it has run."""
    draw = random.Random(f"{seed} {state.namespace}/{state.job}")
    age = 0.0 if state.admitted is None else moment - state.admitted
    ended = lengths.get(job.team) or lengths.get("") or ()
    longer = [seconds for seconds in ended if seconds > age]
    if longer:
        seconds = draw.choice(longer)
    elif ended:  # none ran as long as this one: the rest is like a new run
        seconds = age + draw.choice(ended)
    else:
        seconds = age + draw.lognormvariate(math.log(INVENTED_SECONDS), 1.0)
    return job._replace(seconds=max(age + 1.0, min(seconds, state.most_seconds)))


def _read_workloads(path: Path, manifests: Manifests) -> _Workloads:
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    running: list[_State] = []
    waiting: list[_State] = []
    lengths: dict[str, list[float]] = {}
    left_out: list[str] = []
    for item, _ in workload_items(path, text):
        try:
            conditions = _true_conditions(item)
            queue = _queue_of(item, manifests)
            if "Finished" in conditions:
                if "Admitted" in conditions:
                    seconds = max(1.0, conditions["Finished"] - conditions["Admitted"])
                    lengths.setdefault(str(queue), []).append(seconds)
                    lengths.setdefault("", []).append(seconds)
                continue
            if queue is None or queue not in manifests.cluster.queues or item["spec"].get("active") is False:
                left_out.append(_name_of(item))
                continue
            state = _state(item, queue, conditions, manifests)
        except MALFORMED:
            left_out.append(_name_of(item))
            continue
        if state.admitted is None:
            waiting.append(state)
        else:
            running.append(state)
    waiting.sort(key=lambda state: state.created)
    return _Workloads(running, waiting, lengths, tuple(left_out))


def _name_of(item: Any) -> str:
    """Return ``namespace/name`` of a workload that may lack both."""
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return f"{metadata.get('namespace', 'default')}/{metadata.get('name', '?')}"


def _true_conditions(item: Any) -> dict[str, float]:
    """Return the moment of each condition of a workload that is true."""
    moments: dict[str, float] = {}
    for condition in (item.get("status") or {}).get("conditions") or ():
        if condition["status"] == "True":
            moments[condition["type"]] = _seconds(condition["lastTransitionTime"])
    return moments


def _state(item: Any, queue: str, conditions: Mapping[str, float], manifests: Manifests) -> _State:
    """Return the state of a workload that has not ended."""
    metadata = item["metadata"]
    spec = item["spec"]
    status = item.get("status") or {}
    admission = status.get("admission") or {}
    needs: list[str] = []
    why = ""
    try:
        if admission:
            needs.extend(_held(admission))
        else:
            needs.extend(_requested(spec, status, manifests, queue))
    except _NoFlavorError:
        needs.clear()
        why = f"no flavor of {queue} has the labels that its pods select"
    controllers = [owner["name"] for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    return _State(
        namespace=metadata.get("namespace", "default"),
        job=str(controllers[0] if controllers else metadata["name"]),
        row={"team": queue, "needs": " + ".join(needs), "priority": int(spec.get("priority") or 0)},
        created=_seconds(metadata["creationTimestamp"]),
        admitted=conditions.get("QuotaReserved") if admission else None,
        most_seconds=float(spec.get("maximumExecutionTimeSeconds") or MOST_SECONDS),
        why=why,
    )


def _queue_of(item: Any, manifests: Manifests) -> str | None:
    """Return the ClusterQueue of a workload, or None if its LocalQueue is unknown."""
    admission = (item.get("status") or {}).get("admission") or {}
    queue: str | None = admission.get("clusterQueue")
    counting = manifests.cluster.counting
    if queue or counting is None:
        return queue
    namespace = item["metadata"].get("namespace", "default")
    return counting.local_queues.get(f"{namespace}/{item['spec'].get('queueName')}")


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def _held(admission: Any) -> Iterator[str]:
    """Yield the amounts and flavors of each kind of pods of an admitted job."""
    for row in admission["podSetAssignments"]:
        usage = row.get("resourceUsage") or {}
        flavors = set((row.get("flavors") or {}).values())
        if usage and flavors:
            yield f"{_words(usage)} on {' or '.join(sorted(flavors))}"


def _requested(spec: Any, status: Any, manifests: Manifests, queue: str) -> Iterator[str]:
    """Yield the requests of each kind of pods of a waiting job, with the flavors that its node selector allows."""
    requests = {row["name"]: row.get("resources") or {} for row in status.get("resourceRequests") or ()}
    for pods in spec["podSets"]:
        template = pods["template"]["spec"]
        amounts = requests.get(pods.get("name", "main"))
        if amounts is None:  # Kueue has not seen the workload yet
            count = pods.get("count", 1)
            amounts = {name: _quantity(name, number * count) for name, number in _pod_requests(template).items()}
        flavors = _flavors(manifests, queue, template.get("nodeSelector") or {}, amounts)
        if amounts and flavors:
            yield f"{_words(amounts)} on {' or '.join(flavors)}"
        elif amounts:
            yield _words(amounts)


def _pod_requests(spec: Any) -> Counter[str]:
    """Return the requests of a pod by resource, in the units in which Kueue counts.

    Containers run together with sidecars, which are init containers that restart; other init containers run before
    them, one by one, each beside the sidecars that have started. The larger of the two counts, and the pod's overhead.
    Requests of the pod as a whole replace those of its containers. Source: kubernetes-sigs/kueue v0.19.2,
    pkg/workload/resources.go, and PodRequests of k8s.io/component-helpers, which it calls, read 2026-11-28.
    """
    together: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            together += _requests(container)
        else:
            before |= together + _requests(container)
    for container in spec["containers"]:
        together += _requests(container)
    requests = Counter({**(together | before), **_requests(spec)})
    overhead = {name: amount(name, quantity) for name, quantity in (spec.get("overhead") or {}).items()}
    return requests + Counter(overhead)


def _requests(spec: Any) -> Counter[str]:
    """Return the requests of a container, or of a pod as a whole; a limit without a request is one."""
    resources = spec.get("resources") or {}
    quantities = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return Counter({name: amount(name, quantity) for name, quantity in quantities.items()})


def _quantity(resource: str, number: int) -> str:
    """Return a number of Kueue's units as a Kubernetes quantity."""
    whole, thousandths = divmod(number, units(resource))
    return f"{number}m" if thousandths else str(whole)


def _words(resources: Mapping[str, object]) -> str:
    return " ".join(f"{quantity} {name}" for name, quantity in resources.items())


def _flavors(manifests: Manifests, queue: str, selector: Mapping[str, str], resources: Collection[str]) -> list[str]:
    """Return the flavors of resources whose labels match a selector; empty if all do.

    Kueue compares only the labels that a flavor has itself. Raises _NoFlavorError if none matches.
    """
    fitting: list[str] = []
    excluded = False
    for group in manifests.cluster.queues[queue].get("resourceGroups", ()):
        if not set(group["coveredResources"]) & set(resources):
            continue
        labels = {flavor["name"]: manifests.labels.get(flavor["name"], {}) for flavor in group["flavors"]}
        matching = [
            name
            for name, flavor_labels in labels.items()
            if all(selector.get(key, value) == value for key, value in flavor_labels.items())
        ]
        if not matching:
            raise _NoFlavorError
        fitting += matching
        excluded = excluded or len(matching) < len(labels)
    return fitting if excluded else []


def section(waits: Waits) -> ReportSection:
    """Return the table of a prediction."""
    rows: list[ReportRow] = []
    for job in waits.jobs:
        identity = (job.queue, f"{job.namespace}/{job.job}", str(job.priority), duration(job.waits_seconds))
        if job.start:
            early, median, late = (duration(seconds) for seconds in job.start)
            rows.append(ReportRow((*identity, median, f"{early} to {late}")))
        else:
            rows.append(ReportRow((*identity, f"never: {job.why}", ""), "over"))
    return ReportSection(
        title="waiting jobs",
        unit=f"at {waits.moment:%Y-%m-%d %H:%M %Z}",
        subject=1,
        rows=rows,
        columns=("queue", "job", ">priority", ">has waited", ">starts in", ">8 of 10 runs"),
    )
